"""PointNet++-like part segmentation of synthetic point clouds: farthest points, ball query, instance-averaged IoU."""

import argparse
import datetime
import logging
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm

N_POINTS, N_PARTS = 64, 3


class Solids(Dataset):
    """A ball on a box on a plate: which part does each point belong to?"""

    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.points = rng.uniform(-1, 1, (n, N_POINTS, 3)).astype(np.float32)
        self.points[..., 2] *= 1.5
        self.parts = np.digitize(self.points[..., 2], [-0.5, 0.5]).astype(np.int64)

    def __len__(self):
        return len(self.points)

    def __getitem__(self, i):
        choice = np.random.choice(N_POINTS, N_POINTS, replace=False)
        return self.points[i][choice], self.parts[i][choice]


def random_point_dropout(batch_pc, max_dropout_ratio=0.5):
    for b in range(batch_pc.shape[0]):
        dropout_ratio = np.random.random() * max_dropout_ratio
        drop_idx = np.where(np.random.random(batch_pc.shape[1]) <= dropout_ratio)[0]
        if len(drop_idx) > 0:
            batch_pc[b, drop_idx, :] = batch_pc[b, 0, :]
    return batch_pc


def square_distance(src, dst):
    return torch.sum((src[:, :, None] - dst[:, None]) ** 2, dim=-1)


def index_points(points, idx):
    device = points.device
    B = points.shape[0]
    view_shape = list(idx.shape)
    view_shape[1:] = [1] * (len(view_shape) - 1)
    repeat_shape = list(idx.shape)
    repeat_shape[0] = 1
    batch_indices = torch.arange(B, dtype=torch.long).to(device).view(view_shape).repeat(repeat_shape)
    return points[batch_indices, idx, :]


def farthest_point_sample(xyz, npoint):
    device = xyz.device
    B, N, C = xyz.shape
    centroids = torch.zeros(B, npoint, dtype=torch.long).to(device)
    distance = torch.ones(B, N).to(device) * 1e10
    farthest = torch.randint(0, N, (B,), dtype=torch.long).to(device)
    batch_indices = torch.arange(B, dtype=torch.long).to(device)
    for i in range(npoint):
        centroids[:, i] = farthest
        centroid = xyz[batch_indices, farthest, :].view(B, 1, 3)
        dist = torch.sum((xyz - centroid) ** 2, -1)
        mask = dist < distance
        distance[mask] = dist[mask]
        farthest = torch.max(distance, -1)[1]
    return centroids


def query_ball_point(radius, nsample, xyz, new_xyz):
    device = xyz.device
    B, N, C = xyz.shape
    _, S, _ = new_xyz.shape
    group_idx = torch.arange(N, dtype=torch.long).to(device).view(1, 1, N).repeat([B, S, 1])
    sqrdists = square_distance(new_xyz, xyz)
    group_idx[sqrdists > radius**2] = N
    group_idx = group_idx.sort(dim=-1)[0][:, :, :nsample]
    group_first = group_idx[:, :, 0].view(B, S, 1).repeat([1, 1, nsample])
    mask = group_idx == N
    group_idx[mask] = group_first[mask]
    return group_idx


class PointNetSetAbstraction(nn.Module):
    def __init__(self, npoint, radius, nsample, in_channel, mlp):
        super().__init__()
        self.npoint, self.radius, self.nsample = npoint, radius, nsample
        self.mlp_convs, self.mlp_bns = nn.ModuleList(), nn.ModuleList()
        last_channel = in_channel
        for out_channel in mlp:
            self.mlp_convs.append(nn.Conv2d(last_channel, out_channel, 1))
            self.mlp_bns.append(nn.BatchNorm2d(out_channel))
            last_channel = out_channel

    def forward(self, xyz):
        new_xyz = index_points(xyz, farthest_point_sample(xyz, self.npoint))
        idx = query_ball_point(self.radius, self.nsample, xyz, new_xyz)
        grouped = index_points(xyz, idx) - new_xyz[:, :, None]
        new_points = grouped.permute(0, 3, 2, 1)
        for conv, bn in zip(self.mlp_convs, self.mlp_bns):
            new_points = F.relu(bn(conv(new_points)))
        return new_xyz, torch.max(new_points, 2)[0].transpose(1, 2)


class PartSeg(nn.Module):
    def __init__(self, num_part):
        super().__init__()
        self.sa = PointNetSetAbstraction(8, 0.8, 6, 3, [16, 16])
        self.head = nn.Sequential(nn.Conv1d(19, 32, 1), nn.BatchNorm1d(32), nn.ReLU(), nn.Conv1d(32, num_part, 1))

    def forward(self, xyz):
        new_xyz, feats = self.sa(xyz)
        dists, idx = square_distance(xyz, new_xyz).sort(dim=-1)
        dists, idx = dists[:, :, :3], idx[:, :, :3]
        weight = 1.0 / (dists + 1e-8)
        weight = weight / weight.sum(2, keepdim=True)
        interpolated = torch.sum(index_points(feats, idx) * weight[..., None], dim=2)
        x = self.head(torch.cat([xyz, interpolated], -1).transpose(1, 2))
        return F.log_softmax(x, dim=1).transpose(1, 2)


def to_categorical(y, num_classes):
    """1-hot encodes a tensor"""
    new_y = torch.eye(num_classes)[y.cpu().data.numpy(),]
    if y.is_cuda:
        return new_y.cuda()
    return new_y


def bn_momentum_adjust(m, momentum):
    if isinstance(m, (nn.BatchNorm2d, nn.BatchNorm1d)):
        m.momentum = momentum


def evaluate(classifier, loader):
    total_correct = total_seen = 0
    ious = []
    with torch.no_grad():
        classifier = classifier.eval()
        for points, target in tqdm(loader, total=len(loader), smoothing=0.9):
            points, target = points.float().cuda(), target.long().cuda()
            seg_pred = classifier(points)
            cur_pred_val = seg_pred.cpu().data.numpy().argmax(-1)
            target = target.cpu().data.numpy()
            total_correct += np.sum(cur_pred_val == target)
            total_seen += target.size
            for i in range(len(target)):
                part_ious = []
                for part in range(N_PARTS):
                    inter = np.sum((target[i] == part) & (cur_pred_val[i] == part))
                    union = np.sum((target[i] == part) | (cur_pred_val[i] == part))
                    part_ious.append(1.0 if union == 0 else inter / float(union))
                ious.append(np.mean(part_ious))
    return total_correct / float(total_seen), np.mean(ious)


def main(args):
    logger = logging.getLogger("Model")
    logging.basicConfig(level=logging.INFO)
    exp_dir = Path("./log/") / str(datetime.datetime.now().strftime("%Y-%m-%d_%H-%M"))
    exp_dir.mkdir(parents=True, exist_ok=True)
    np.random.seed(0)
    torch.manual_seed(0)
    train_loader = DataLoader(Solids(80, 0), batch_size=args.batch_size, shuffle=True, drop_last=True)
    test_loader = DataLoader(Solids(12, 1), batch_size=args.batch_size)
    classifier = PartSeg(N_PARTS).cuda()
    optimizer = torch.optim.Adam(classifier.parameters(), lr=args.learning_rate, betas=(0.9, 0.999), weight_decay=1e-4)
    best_iou = 0.0
    for epoch in range(args.epoch):
        mean_correct, parts_seen = [], []
        lr = max(args.learning_rate * (args.lr_decay ** (epoch // args.step_size)), 1e-5)
        for param_group in optimizer.param_groups:
            param_group["lr"] = lr
        classifier = classifier.apply(lambda x: bn_momentum_adjust(x, 0.1))
        classifier = classifier.train()

        for i, (points, target) in tqdm(enumerate(train_loader), total=len(train_loader), smoothing=0.9):
            optimizer.zero_grad()
            points = points.data.numpy()
            points = random_point_dropout(points)
            points = torch.Tensor(points)
            points, target = points.float().cuda(), target.long().cuda()

            seg_pred = classifier(points)
            seg_pred = seg_pred.contiguous().view(-1, N_PARTS)
            target = target.view(-1, 1)[:, 0]
            pred_choice = seg_pred.data.max(1)[1]

            correct = pred_choice.eq(target.data).cpu().sum()
            mean_correct.append(correct.item() / (args.batch_size * N_POINTS))
            parts_seen.append(to_categorical(target, N_PARTS).sum(0))
            loss = F.nll_loss(seg_pred, target)
            loss.backward()
            optimizer.step()

        logger.info("Train accuracy is: %.5f", np.mean(mean_correct))
        logger.info("points by part %s", torch.stack(parts_seen).sum(0).tolist())
        acc, iou = evaluate(classifier, test_loader)
        logger.info("Epoch %d test accuracy: %f  instance avg mIOU: %f", epoch + 1, acc, iou)
        if iou >= best_iou:
            best_iou = iou
            state = {"epoch": epoch, "iou": iou, "model_state_dict": classifier.state_dict()}
            torch.save(state, str(exp_dir / "best_model.pth"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser("PointNet")
    parser.add_argument("--batch_size", type=int, default=4)
    parser.add_argument("--epoch", default=2, type=int)
    parser.add_argument("--learning_rate", default=0.001, type=float)
    parser.add_argument("--lr_decay", type=float, default=0.5)
    parser.add_argument("--step_size", type=int, default=20)
    main(parser.parse_args())
