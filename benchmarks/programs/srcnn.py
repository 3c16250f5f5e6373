import argparse
import copy
import os

import numpy as np
import torch
import torch.backends.cudnn as cudnn
import torch.optim as optim
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import Dataset
from torch.utils.data.dataloader import DataLoader
from tqdm import tqdm


class SRCNN(nn.Module):
    def __init__(self, num_channels=1):
        super(SRCNN, self).__init__()
        self.conv1 = nn.Conv2d(num_channels, 16, kernel_size=5, padding=5 // 2)
        self.conv2 = nn.Conv2d(16, 8, kernel_size=3, padding=3 // 2)
        self.conv3 = nn.Conv2d(8, num_channels, kernel_size=3, padding=3 // 2)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        x = self.relu(self.conv1(x))
        x = self.relu(self.conv2(x))
        return self.conv3(x)


class PairDataset(Dataset):
    def __init__(self, start, stop):
        hr = torch.tensor(load_digits().images[start:stop], dtype=torch.float32)[:, None] / 16
        lr = nn.functional.avg_pool2d(hr, 2)
        self.hr, self.lr = hr, nn.functional.interpolate(lr, scale_factor=2, mode="bicubic")

    def __getitem__(self, idx):
        return self.lr[idx], self.hr[idx]

    def __len__(self):
        return len(self.hr)


class AverageMeter(object):
    def __init__(self):
        self.reset()

    def reset(self):
        self.val = 0
        self.avg = 0
        self.sum = 0
        self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count


def calc_psnr(img1, img2):
    return 10.0 * torch.log10(1.0 / torch.mean((img1 - img2) ** 2))


def calc_ssim(img1, img2):
    """Global SSIM, in numpy."""
    a, b = img1.cpu().numpy().astype(np.float64), img2.cpu().numpy().astype(np.float64)
    c1, c2 = 0.01**2, 0.03**2
    cov = ((a - a.mean()) * (b - b.mean())).mean()
    return ((2 * a.mean() * b.mean() + c1) * (2 * cov + c2)) / (
        (a.mean() ** 2 + b.mean() ** 2 + c1) * (a.var() + b.var() + c2)
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--outputs-dir", type=str, default="outputs")
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--num-epochs", type=int, default=3)
    parser.add_argument("--num-workers", type=int, default=0)
    parser.add_argument("--seed", type=int, default=123)
    args = parser.parse_args()

    if not os.path.exists(args.outputs_dir):
        os.makedirs(args.outputs_dir)

    cudnn.benchmark = True
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")

    torch.manual_seed(args.seed)

    model = SRCNN().to(device)
    criterion = nn.MSELoss()
    optimizer = optim.Adam(
        [
            {"params": model.conv1.parameters()},
            {"params": model.conv2.parameters()},
            {"params": model.conv3.parameters(), "lr": args.lr * 0.1},
        ],
        lr=args.lr,
    )

    train_dataset = PairDataset(0, 320)
    train_dataloader = DataLoader(
        dataset=train_dataset,
        batch_size=args.batch_size,
        shuffle=True,
        num_workers=args.num_workers,
        pin_memory=True,
        drop_last=True,
    )
    eval_dataset = PairDataset(320, 330)
    eval_dataloader = DataLoader(dataset=eval_dataset, batch_size=1)

    best_weights = copy.deepcopy(model.state_dict())
    best_epoch = 0
    best_psnr = 0.0

    for epoch in range(args.num_epochs):
        model.train()
        epoch_losses = AverageMeter()

        with tqdm(total=(len(train_dataset) - len(train_dataset) % args.batch_size)) as t:
            t.set_description("epoch: {}/{}".format(epoch, args.num_epochs - 1))

            for data in train_dataloader:
                inputs, labels = data

                inputs = inputs.to(device)
                labels = labels.to(device)

                preds = model(inputs)

                loss = criterion(preds, labels)

                epoch_losses.update(loss.item(), len(inputs))

                optimizer.zero_grad()
                loss.backward()
                optimizer.step()

                t.set_postfix(loss="{:.6f}".format(epoch_losses.avg))
                t.update(len(inputs))

        torch.save(model.state_dict(), os.path.join(args.outputs_dir, "epoch_{}.pth".format(epoch)))

        model.eval()
        epoch_psnr = AverageMeter()
        ssims = []

        for data in eval_dataloader:
            inputs, labels = data

            inputs = inputs.to(device)
            labels = labels.to(device)

            with torch.no_grad():
                preds = model(inputs).clamp(0.0, 1.0)

            epoch_psnr.update(calc_psnr(preds, labels), len(inputs))
            ssims.append(calc_ssim(preds, labels))

        print("eval psnr: {:.2f} ssim: {:.3f}".format(epoch_psnr.avg, np.mean(ssims)))

        if epoch_psnr.avg > best_psnr:
            best_epoch = epoch
            best_psnr = epoch_psnr.avg
            best_weights = copy.deepcopy(model.state_dict())

    print("best epoch: {}, psnr: {:.2f}".format(best_epoch, best_psnr))
    torch.save(best_weights, os.path.join(args.outputs_dir, "best.pth"))
