"""Tabular fraud-like classification: embeddings, focal loss, class weights, early stopping on AUC."""

import os
import random
from dataclasses import asdict, dataclass
from typing import Optional

import numpy as np
import torch
from sklearn.metrics import f1_score, roc_auc_score
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class CFG:
    seed: int = 42
    n_rows: int = 1200
    n_num: int = 6
    cardinalities: tuple = (5, 12)
    emb_dim: int = 4
    hidden: int = 32
    batch_size: int = 64
    lr: float = 2e-3
    epochs: int = 6
    patience: int = 2
    max_grad_norm: float = 1000
    print_freq: int = 6
    gamma: float = 2.0


def seed_everything(seed: int) -> None:
    random.seed(seed)
    os.environ["PYTHONHASHSEED"] = str(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.cuda.manual_seed(seed)
    torch.backends.cudnn.deterministic = True


def make_data(cfg: CFG):
    rng = np.random.default_rng(cfg.seed)
    num = rng.normal(size=(cfg.n_rows, cfg.n_num)).astype(np.float32)
    cat = np.stack([rng.integers(0, c, cfg.n_rows) for c in cfg.cardinalities], 1)
    logit = num[:, 0] - 0.5 * num[:, 1] * num[:, 2] + (cat[:, 0] == 3) - 1.5
    y = (rng.random(cfg.n_rows) < 1 / (1 + np.exp(-logit))).astype(np.float32)
    num[rng.random(num.shape) < 0.02] = np.nan
    return torch.from_numpy(num), torch.from_numpy(cat), torch.from_numpy(y)


class TabularNet(nn.Module):
    def __init__(self, cfg: CFG):
        super().__init__()
        self.embs = nn.ModuleList([nn.Embedding(c, cfg.emb_dim) for c in cfg.cardinalities])
        self.bn = nn.BatchNorm1d(cfg.n_num)
        n_in = cfg.n_num + cfg.emb_dim * len(cfg.cardinalities)
        self.mlp = nn.Sequential(
            nn.Linear(n_in, cfg.hidden),
            nn.ReLU(),
            nn.Dropout(0.1),
            nn.Linear(cfg.hidden, cfg.hidden),
            nn.ReLU(),
            nn.Linear(cfg.hidden, 1),
        )

    def forward(self, x_num: Tensor, x_cat: Tensor) -> Tensor:
        # fill in missing values by zero, the mean after standardisation
        if torch.isnan(x_num).any():
            x_num = torch.nan_to_num(x_num)
        embs = [emb(x_cat[:, i]) for i, emb in enumerate(self.embs)]
        return self.mlp(torch.cat([self.bn(x_num), *embs], dim=1)).squeeze(1)


class FocalLoss(nn.Module):
    def __init__(self, gamma: float = 2.0, pos_weight: Optional[Tensor] = None):
        super().__init__()
        self.gamma = gamma
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        bce = nn.functional.binary_cross_entropy_with_logits(
            logits, target, reduction="none", pos_weight=self.pos_weight
        )
        p_t = torch.exp(-bce)
        loss = (1 - p_t) ** self.gamma * bce
        pos, neg = loss[target == 1], loss[target == 0]
        if len(pos) == 0:
            return neg.mean()
        return 0.5 * pos.mean() + 0.5 * neg.mean()


class EarlyStopping:
    def __init__(self, patience=7, verbose=False, delta=0.0, path="checkpoint.pt"):
        self.patience, self.verbose, self.delta, self.path = patience, verbose, delta, path
        self.counter, self.best_score, self.early_stop = 0, None, False

    def __call__(self, score, model):
        if self.best_score is None or score >= self.best_score + self.delta:
            self.best_score = score
            self.counter = 0
            torch.save(model.state_dict(), self.path)
        else:
            self.counter += 1
            if self.verbose:
                print(f"EarlyStopping counter: {self.counter} out of {self.patience}")
            self.early_stop = self.counter >= self.patience


def train_fn(train_loader, model, criterion, optimizer, scheduler, epoch, cfg, device):
    model.train()
    running, preds, targets = 0.0, [], []
    for step, (x_num, x_cat, y) in enumerate(train_loader):
        x_num, x_cat, y = x_num.to(device), x_cat.to(device), y.to(device)
        logits = model(x_num, x_cat)
        loss = criterion(logits, y)
        optimizer.zero_grad()
        loss.backward()
        grad_norm = torch.nn.utils.clip_grad_norm_(model.parameters(), cfg.max_grad_norm)
        optimizer.step()
        scheduler.step()
        running += loss.detach()
        preds.append(logits.sigmoid().detach().cpu().numpy())
        targets.append(y.cpu().numpy())
        if step % cfg.print_freq == 0 or step == (len(train_loader) - 1):
            print(
                "Epoch: [{0}][{1}/{2}] Loss: {loss:.4f} Grad: {grad_norm:.4f} LR: {lr:.6f}".format(
                    epoch, step, len(train_loader), loss=loss, grad_norm=grad_norm, lr=scheduler.get_last_lr()[0]
                )
            )
    auc = roc_auc_score(np.concatenate(targets), np.concatenate(preds))
    return (running / len(train_loader)).item(), auc


def valid_fn(valid_loader, model, criterion, device):
    model.eval()
    losses, preds, targets = [], [], []
    for x_num, x_cat, y in valid_loader:
        with torch.no_grad():
            logits = model(x_num.to(device), x_cat.to(device))
            loss = criterion(logits, y.to(device))
        losses.append(loss.item())
        preds.append(logits.sigmoid().to("cpu").numpy())
        targets.append(y.numpy())
    preds, targets = np.concatenate(preds), np.concatenate(targets)
    best_f1 = max(f1_score(targets, preds > th) for th in np.arange(0.1, 0.9, 0.1))
    return float(np.mean(losses)), roc_auc_score(targets, preds), best_f1


def permutation_importance(model, x_num, x_cat, y, device):
    """How much the AUC falls when a column is shuffled (for the notebook)."""
    model.eval()
    scores = []
    for col in range(x_num.shape[1]):
        shuffled = x_num.clone()
        shuffled[:, col] = shuffled[torch.randperm(len(shuffled)), col]
        with torch.no_grad():
            out = model(shuffled.to(device), x_cat.to(device)).cpu().numpy()
        scores.append(roc_auc_score(y.numpy(), out))
    return scores


def main(cfg: CFG):
    print(asdict(cfg))
    seed_everything(cfg.seed)
    device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")
    x_num, x_cat, y = make_data(cfg)
    n = int(0.8 * len(y))
    train_loader = DataLoader(TensorDataset(x_num[:n], x_cat[:n], y[:n]), cfg.batch_size, shuffle=True, drop_last=True)
    valid_loader = DataLoader(TensorDataset(x_num[n:], x_cat[n:], y[n:]), cfg.batch_size * 2)
    model = TabularNet(cfg).to(device)
    pos_weight = torch.tensor((1 - y[:n].mean()) / y[:n].mean())
    criterion = FocalLoss(cfg.gamma, pos_weight).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, cfg.lr, total_steps=cfg.epochs * len(train_loader))
    early_stopping = EarlyStopping(cfg.patience, verbose=True)
    for epoch in range(cfg.epochs):
        train_loss, train_auc = train_fn(train_loader, model, criterion, optimizer, scheduler, epoch, cfg, device)
        val_loss, val_auc, val_f1 = valid_fn(valid_loader, model, criterion, device)
        print(f"epoch {epoch}: {train_loss:.4f} {train_auc:.4f} | val {val_loss:.4f} {val_auc:.4f} f1 {val_f1:.3f}")
        early_stopping(val_auc, model)
        if early_stopping.early_stop:
            print("Early stopping")
            break
    model.load_state_dict(torch.load("checkpoint.pt"))
    print("final", valid_fn(valid_loader, model, criterion, device))


if __name__ == "__main__":
    main(CFG())
