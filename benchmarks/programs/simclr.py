"""Contrastive learning (SimCLR) with automatic mixed precision, then a linear probe."""

import argparse
import logging
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, Dataset
from torch.utils.tensorboard import SummaryWriter
from tqdm import tqdm

parser = argparse.ArgumentParser(description="PyTorch SimCLR")
parser.add_argument("-b", "--batch-size", default=32, type=int)
parser.add_argument("--epochs", default=3, type=int)
parser.add_argument("--lr", default=0.0003, type=float)
parser.add_argument("--out_dim", default=16, type=int)
parser.add_argument("--temperature", default=0.07, type=float)
parser.add_argument("--n-views", default=2, type=int)
parser.add_argument("--log-every-n-steps", default=7, type=int)
parser.add_argument("--fp16-precision", action="store_true", default=True)
parser.add_argument("--disable-cuda", action="store_true")


class ViewsDataset(Dataset):
    def __init__(self, images, labels, n_views):
        self.images, self.labels, self.n_views = images, labels, n_views

    def __len__(self):
        return len(self.images)

    def augment(self, image):
        dx, dy = torch.randint(-1, 2, (2,)).tolist()
        image = torch.roll(image, (dx, dy), (1, 2))
        if torch.rand(1).item() < 0.5:
            image = image * (0.6 + 0.8 * torch.rand(1))
        return image + 0.1 * torch.randn_like(image)

    def __getitem__(self, i):
        return [self.augment(self.images[i]) for _ in range(self.n_views)], self.labels[i]


class ConvSimCLR(nn.Module):
    def __init__(self, out_dim):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(256, 32),
        )
        self.projector = nn.Sequential(nn.ReLU(), nn.Linear(32, out_dim))

    def forward(self, x):
        return self.projector(self.backbone(x))


def accuracy(output, target, topk=(1,)):
    """Computes the accuracy over the k top predictions for the specified values of k"""
    with torch.no_grad():
        maxk = max(topk)
        batch_size = target.size(0)

        _, pred = output.topk(maxk, 1, True, True)
        pred = pred.t()
        correct = pred.eq(target.view(1, -1).expand_as(pred))

        res = []
        for k in topk:
            correct_k = correct[:k].reshape(-1).float().sum(0, keepdim=True)
            res.append(correct_k.mul_(100.0 / batch_size))
        return res


class SimCLR(object):
    def __init__(self, *args, **kwargs):
        self.args = kwargs["args"]
        self.model = kwargs["model"].to(self.args.device)
        self.optimizer = kwargs["optimizer"]
        self.scheduler = kwargs["scheduler"]
        self.writer = SummaryWriter("runs/simclr")
        logging.basicConfig(filename=os.path.join(self.writer.log_dir, "training.log"), level=logging.DEBUG)
        self.criterion = torch.nn.CrossEntropyLoss().to(self.args.device)

    def info_nce_loss(self, features):
        labels = torch.cat([torch.arange(self.args.batch_size) for i in range(self.args.n_views)], dim=0)
        labels = (labels.unsqueeze(0) == labels.unsqueeze(1)).float()
        labels = labels.to(self.args.device)

        features = F.normalize(features, dim=1)

        similarity_matrix = torch.matmul(features, features.T)

        # discard the main diagonal from both: labels and similarities matrix
        mask = torch.eye(labels.shape[0], dtype=torch.bool).to(self.args.device)
        labels = labels[~mask].view(labels.shape[0], -1)
        similarity_matrix = similarity_matrix[~mask].view(similarity_matrix.shape[0], -1)

        # select and combine multiple positives
        positives = similarity_matrix[labels.bool()].view(labels.shape[0], -1)

        # select only the negatives
        negatives = similarity_matrix[~labels.bool()].view(similarity_matrix.shape[0], -1)

        logits = torch.cat([positives, negatives], dim=1)
        labels = torch.zeros(logits.shape[0], dtype=torch.long).to(self.args.device)

        logits = logits / self.args.temperature
        return logits, labels

    def train(self, train_loader):
        scaler = torch.amp.GradScaler("cuda", enabled=self.args.fp16_precision)

        n_iter = 0
        logging.info(f"Start SimCLR training for {self.args.epochs} epochs.")

        for epoch_counter in range(self.args.epochs):
            for images, _ in tqdm(train_loader):
                images = torch.cat(images, dim=0)

                images = images.to(self.args.device)

                with torch.autocast("cuda", enabled=self.args.fp16_precision):
                    features = self.model(images)
                    logits, labels = self.info_nce_loss(features)
                    loss = self.criterion(logits, labels)

                self.optimizer.zero_grad()

                scaler.scale(loss).backward()

                scaler.step(self.optimizer)
                scaler.update()

                if n_iter % self.args.log_every_n_steps == 0:
                    top1, top5 = accuracy(logits, labels, topk=(1, 5))
                    self.writer.add_scalar("loss", loss, global_step=n_iter)
                    self.writer.add_scalar("acc/top1", top1[0], global_step=n_iter)
                    self.writer.add_scalar("acc/top5", top5[0], global_step=n_iter)
                    self.writer.add_scalar("learning_rate", self.scheduler.get_last_lr()[0], global_step=n_iter)

                n_iter += 1

            # warmup for the first 10 epochs
            if epoch_counter >= 1:
                self.scheduler.step()
            logging.debug(f"Epoch: {epoch_counter}\tLoss: {loss}\tTop1 accuracy: {top1[0]}")

        torch.save({"state_dict": self.model.state_dict(), "epoch": self.args.epochs}, "checkpoint.pth.tar")


def linear_probe(model, x, y, device, steps=5):
    model.eval()
    with torch.no_grad():
        feats = model.backbone(x.to(device))
    y = y.to(device)
    probe = nn.Linear(feats.size(1), 10).to(device)
    optimizer = torch.optim.LBFGS(probe.parameters(), lr=0.5, max_iter=3)

    def closure():
        optimizer.zero_grad()
        loss = F.cross_entropy(probe(feats), y)
        loss.backward()
        return loss

    for _ in range(steps):
        optimizer.step(closure)
    top1, top5 = accuracy(probe(feats), y, topk=(1, 5))
    print(f"linear probe: top1 {top1.item():.1f} top5 {top5.item():.1f}")


def main():
    args = parser.parse_args()
    torch.manual_seed(0)
    if not args.disable_cuda and torch.cuda.is_available():
        args.device = torch.device("cuda")
    else:
        args.device = torch.device("cpu")
        args.fp16_precision = False
    digits = load_digits()
    x, y = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16, torch.tensor(digits.target)
    train_loader = DataLoader(
        ViewsDataset(x[:480], y[:480], args.n_views),
        batch_size=args.batch_size,
        shuffle=True,
        pin_memory=True,
        drop_last=True,
    )
    model = ConvSimCLR(args.out_dim)
    optimizer = torch.optim.Adam(model.parameters(), args.lr, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=len(train_loader), eta_min=0, last_epoch=-1)
    simclr = SimCLR(model=model, optimizer=optimizer, scheduler=scheduler, args=args)
    simclr.train(train_loader)
    linear_probe(model, x[480:700], y[480:700], args.device)


if __name__ == "__main__":
    main()
