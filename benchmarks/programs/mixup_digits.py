"""Digits with mixup, cutmix, label smoothing, EMA of the weights and a NaN check."""

import copy
import sys
import time

import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 3
BATCH = 48
MIXUP_ALPHA, CUTMIX_ALPHA = 0.4, 1.0
PRINT_FREQ = 8


def rand_bbox(size, lam):
    W, H = size[2], size[3]
    cut_rat = np.sqrt(1.0 - lam)
    cut_w, cut_h = int(W * cut_rat), int(H * cut_rat)
    cx, cy = np.random.randint(W), np.random.randint(H)
    bbx1, bby1 = np.clip(cx - cut_w // 2, 0, W), np.clip(cy - cut_h // 2, 0, H)
    bbx2, bby2 = np.clip(cx + cut_w // 2, 0, W), np.clip(cy + cut_h // 2, 0, H)
    return bbx1, bby1, bbx2, bby2


def mixup_data(x, y, alpha=1.0, use_cuda=True):
    """Returns mixed inputs, pairs of targets, and lambda"""
    lam = np.random.beta(alpha, alpha) if alpha > 0 else 1
    batch_size = x.size()[0]
    if use_cuda:
        index = torch.randperm(batch_size).cuda()
    else:
        index = torch.randperm(batch_size)
    mixed_x = lam * x + (1 - lam) * x[index, :]
    y_a, y_b = y, y[index]
    return mixed_x, y_a, y_b, lam


def cutmix_data(x, y, alpha):
    lam = np.random.beta(alpha, alpha)
    rand_index = torch.randperm(x.size(0), device=x.device)
    bbx1, bby1, bbx2, bby2 = rand_bbox(x.size(), lam)
    x = x.clone()
    x[:, :, bbx1:bbx2, bby1:bby2] = x[rand_index, :, bbx1:bbx2, bby1:bby2]
    lam = 1 - ((bbx2 - bbx1) * (bby2 - bby1) / (x.size(-1) * x.size(-2)))
    return x, y, y[rand_index], lam


def mixup_criterion(criterion, pred, y_a, y_b, lam):
    return lam * criterion(pred, y_a) + (1 - lam) * criterion(pred, y_b)


class AverageMeter:
    def __init__(self, name, fmt=":f"):
        self.name, self.fmt = name, fmt
        self.reset()

    def reset(self):
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count

    def __str__(self):
        return ("{name} {val" + self.fmt + "} ({avg" + self.fmt + "})").format(**self.__dict__)


class ModelEMA(nn.Module):
    def __init__(self, model, decay=0.99):
        super().__init__()
        self.module = copy.deepcopy(model)
        self.module.eval()
        self.decay = decay

    def update(self, model):
        with torch.no_grad():
            for ema_v, model_v in zip(self.module.state_dict().values(), model.state_dict().values()):
                ema_v.copy_(self.decay * ema_v + (1.0 - self.decay) * model_v)


def build_model():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, 10),
    )


def train_one_epoch(model, ema, loader, criterion, optimizer, epoch, device):
    losses, top1, batch_time = AverageMeter("Loss", ":.4f"), AverageMeter("Acc", ":.2f"), AverageMeter("Time", ":.3f")
    model.train()
    correct, total = 0, 0
    end = time.time()
    for i, (inputs, targets) in enumerate(loader):
        inputs, targets = inputs.to(device, non_blocking=True), targets.to(device, non_blocking=True)
        if np.random.rand() < 0.5:
            inputs, targets_a, targets_b, lam = mixup_data(inputs, targets, MIXUP_ALPHA, device.type == "cuda")
        else:
            inputs, targets_a, targets_b, lam = cutmix_data(inputs, targets, CUTMIX_ALPHA)
        outputs = model(inputs)
        loss = mixup_criterion(criterion, outputs, targets_a, targets_b, lam)
        if not torch.isfinite(loss):
            print("Loss is {}, stopping training".format(loss.item()))
            sys.exit(1)

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ema.update(model)

        _, predicted = outputs.max(1)
        total += targets.size(0)
        correct += (
            lam * predicted.eq(targets_a.data).cpu().sum().float()
            + (1 - lam) * predicted.eq(targets_b.data).cpu().sum().float()
        )
        losses.update(loss.item(), inputs.size(0))
        top1.update(100.0 * correct / total, 1)
        batch_time.update(time.time() - end)
        end = time.time()
        if i % PRINT_FREQ == 0:
            print(f"Epoch [{epoch}][{i}/{len(loader)}] {batch_time} {losses} {top1}")
    return losses.avg


@torch.no_grad()
def validate(model, loader, device):
    model.eval()
    correct = 0
    confusion = torch.zeros(10, 10)
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        pred = model(x).argmax(1)
        correct += (pred == y).sum().item()
        for t, p in zip(y.view(-1), pred.view(-1)):
            confusion[t.long(), p.long()] += 1
    return correct / len(loader.dataset), confusion


def export_onnx(model, path="digits.onnx"):
    model = model.cpu().eval()
    torch.onnx.export(model, torch.zeros(1, 1, 8, 8), path)


def main():
    np.random.seed(0)
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    digits = load_digits()
    x, y = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16, torch.tensor(digits.target)
    train_loader = DataLoader(TensorDataset(x[:960], y[:960]), BATCH, shuffle=True, pin_memory=True, drop_last=True)
    val_loader = DataLoader(TensorDataset(x[1600:], y[1600:]), BATCH)
    model = build_model().to(device)
    ema = ModelEMA(model).to(device)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, weight_decay=5e-4, nesterov=True)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    best = 0
    for epoch in range(EPOCHS):
        train_loss = train_one_epoch(model, ema, train_loader, criterion, optimizer, epoch, device)
        scheduler.step()
        acc, confusion = validate(ema.module, val_loader, device)
        print(f"epoch {epoch} loss {train_loss:.4f} acc {acc:.4f} worst class {confusion.diag().argmin().item()}")
        if acc > best:
            best = acc
            torch.save({"state": model.state_dict(), "acc": acc}, "best.pt")


if __name__ == "__main__":
    main()
