"""Train a tiny detector on coloured rectangles. Usage: python train.py --epochs 2"""

import argparse
import math
import os
from copy import deepcopy

import numpy as np
import torch
import torch.nn as nn
from loss import ComputeLoss
from model import TinyYolo
from torch.optim import SGD, lr_scheduler
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm
from utils import ap_per_class, box_iou, is_parallel, non_max_suppression, time_sync, xywh2xyxy

HYP = dict(lr0=0.01, lrf=0.1, momentum=0.9, box=0.05, cls=0.5, obj=1.0, cls_pw=1.0, obj_pw=1.0, anchor_t=4.0)


class Rectangles(Dataset):
    def __init__(self, n, size=32, seed=0):
        rng = np.random.default_rng(seed)
        self.images, self.labels = [], []
        for _ in range(n):
            img = rng.integers(0, 60, (3, size, size)).astype(np.uint8)
            labels = []
            for _ in range(rng.integers(1, 4)):
                cls, (w, h) = int(rng.integers(0, 2)), rng.integers(4, 14, 2)
                x, y = rng.integers(0, size - w), rng.integers(0, size - h)
                img[cls, y : y + h, x : x + w] = 220
                labels.append([0, cls, (x + w / 2) / size, (y + h / 2) / size, w / size, h / size])
            self.images.append(torch.from_numpy(img))
            self.labels.append(torch.tensor(np.array(labels), dtype=torch.float32))

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return self.images[i], self.labels[i].clone()

    @staticmethod
    def collate_fn(batch):
        img, label = zip(*batch)
        for i, lb in enumerate(label):
            lb[:, 0] = i
        return torch.stack(img, 0), torch.cat(label, 0)


class ModelEMA:
    def __init__(self, model, decay=0.9999, tau=200, updates=0):
        self.ema = deepcopy(model.module if is_parallel(model) else model).eval()
        self.updates = updates
        self.decay = lambda x: decay * (1 - math.exp(-x / tau))
        for p in self.ema.parameters():
            p.requires_grad_(False)

    def update(self, model):
        with torch.no_grad():
            self.updates += 1
            d = self.decay(self.updates)
            msd = model.module.state_dict() if is_parallel(model) else model.state_dict()
            for k, v in self.ema.state_dict().items():
                if v.dtype.is_floating_point:
                    v *= d
                    v += (1 - d) * msd[k].detach()


@torch.no_grad()
def validate(model, loader, compute_loss, device, conf_thres=0.05, iou_thres=0.5):
    model.eval()
    stats, loss, dt = [], torch.zeros(3, device=device), [0.0, 0.0]
    for im, targets in tqdm(loader, desc="val"):
        t1 = time_sync()
        im = im.to(device, non_blocking=True).float() / 255
        targets = targets.to(device)
        nb, _, height, width = im.shape
        out, train_out = model(im)
        t2 = time_sync()
        dt[0] += t2 - t1
        loss += compute_loss([x.float() for x in train_out], targets)[1]
        targets[:, 2:] *= torch.Tensor([width, height, width, height]).to(device)
        out = non_max_suppression(out, conf_thres, iou_thres)
        dt[1] += time_sync() - t2
        for si, pred in enumerate(out):
            labels = targets[targets[:, 0] == si, 1:]
            nl = len(labels)
            tcls = labels[:, 0].tolist() if nl else []
            if len(pred) == 0:
                if nl:
                    stats.append((np.zeros(0, bool), np.zeros(0), np.zeros(0), tcls))
                continue
            correct = torch.zeros(len(pred), dtype=torch.bool, device=device)
            if nl:
                tbox = xywh2xyxy(labels[:, 1:5])
                iou = box_iou(tbox, pred[:, :4])
                match = (iou > 0.5) & (labels[:, 0:1] == pred[:, 5])
                for j in range(nl):
                    if match[j].any():
                        correct[(iou[j] * match[j]).argmax()] = True
            stats.append((correct.cpu().numpy(), pred[:, 4].cpu().numpy(), pred[:, 5].cpu().numpy(), tcls))
    stats = [np.concatenate(x, 0) for x in zip(*stats)]
    ap = ap_per_class(*stats) if len(stats) and stats[0].any() else np.zeros(2)
    model.float()
    return ap.mean(), (loss.cpu() / len(loader)).tolist(), dt


def train(hyp, opt, device):
    os.makedirs(opt.save_dir, exist_ok=True)
    model = TinyYolo(nc=2).to(device)
    model.info()
    optimizer = SGD(model.parameters(), lr=hyp["lr0"], momentum=hyp["momentum"], nesterov=True)
    lf = lambda x: (1 - x / opt.epochs) * (1.0 - hyp["lrf"]) + hyp["lrf"]
    scheduler = lr_scheduler.LambdaLR(optimizer, lr_lambda=lf)
    ema = ModelEMA(model)
    train_loader = DataLoader(
        Rectangles(64), batch_size=opt.batch_size, shuffle=True, collate_fn=Rectangles.collate_fn, pin_memory=True
    )
    val_loader = DataLoader(Rectangles(8, seed=1), batch_size=opt.batch_size, collate_fn=Rectangles.collate_fn)
    compute_loss = ComputeLoss(model, hyp)
    nb = len(train_loader)
    nw = 3
    accumulate = 1
    last_opt_step = -1
    best_fitness = 0.0
    optimizer.zero_grad()
    for epoch in range(opt.epochs):
        model.train()
        mloss = torch.zeros(3, device=device)
        pbar = tqdm(enumerate(train_loader), total=nb)
        for i, (imgs, targets) in pbar:
            ni = i + nb * epoch
            imgs = imgs.to(device, non_blocking=True).float() / 255.0

            if ni <= nw:
                xi = [0, nw]
                for x in optimizer.param_groups:
                    x["lr"] = np.interp(ni, xi, [0.0, x["initial_lr"] * lf(epoch)])

            if opt.multi_scale:
                sf = np.random.choice([1.0, 1.25])
                if sf != 1:
                    imgs = nn.functional.interpolate(imgs, scale_factor=sf, mode="bilinear", align_corners=False)

            pred = model(imgs)
            loss, loss_items = compute_loss(pred, targets.to(device))
            loss.backward()

            if ni - last_opt_step >= accumulate:
                torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=10.0)
                optimizer.step()
                optimizer.zero_grad()
                ema.update(model)
                last_opt_step = ni

            mloss = (mloss * i + loss_items) / (i + 1)
            mem = f"{torch.cuda.memory_reserved() / 1e9 if torch.cuda.is_available() else 0:.3g}G"
            pbar.set_description(
                ("%10s" * 2 + "%10.4g" * 5)
                % (f"{epoch}/{opt.epochs - 1}", mem, *mloss, targets.shape[0], imgs.shape[-1])
            )

        scheduler.step()
        map50, val_loss, speeds = validate(ema.ema, val_loader, compute_loss, device)
        print(f"mAP50 {map50:.3f} val {val_loss} inference {speeds[0]:.3f}s nms {speeds[1]:.3f}s")
        if map50 >= best_fitness:
            best_fitness = map50
            torch.save(
                {"epoch": epoch, "model": deepcopy(model).half(), "ema": deepcopy(ema.ema).half()},
                f"{opt.save_dir}/best.pt",
            )


def parse_opt():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--multi-scale", action="store_true")
    parser.add_argument("--save-dir", default="runs/train")
    return parser.parse_args()


if __name__ == "__main__":
    torch.manual_seed(0)
    train(HYP, parse_opt(), torch.device("cuda:0" if torch.cuda.is_available() else "cpu"))
