"""Heteroscedastic regression, with the learning rate found by a range test, snapshots, and Monte-Carlo dropout."""

import logging

import torch
import torch.nn as nn
from finder import LRFinder
from sklearn.datasets import make_regression
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, TensorDataset, random_split

log = logging.getLogger(__name__)


class MeanVariance(nn.Module):
    def __init__(self, n_features, hidden=32, p=0.1):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(n_features, hidden), nn.ReLU(), nn.Dropout(p), nn.Linear(hidden, hidden), nn.ReLU(), nn.Dropout(p)
        )
        self.mean = nn.Linear(hidden, 1)
        self.log_var = nn.Linear(hidden, 1)

    def forward(self, x):
        h = self.body(x)
        return torch.cat([self.mean(h), self.log_var(h).clamp(-6, 6)], dim=1)


def nll(out, y):
    mean, log_var = out[:, 0], out[:, 1]
    loss = 0.5 * (log_var + (y - mean) ** 2 / log_var.exp())
    # outliers must not lead: leave out the worst hundredth of a batch
    if len(loss) >= 100:
        threshold = torch.quantile(loss.detach(), 0.99)
        loss = loss[loss <= threshold]
    return loss.mean()


def mc_dropout(model, x, n=8):
    model.train()
    with torch.no_grad():
        draws = torch.stack([model(x)[:, 0] for _ in range(n)])
    return draws.mean(0), draws.std(0)


def fit(model, optimizer, train_loader, val_loader, device, n_epochs=4, patience=3):
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
    best_loss, best_state, bad_epochs = float("inf"), None, 0
    for epoch in range(n_epochs):
        model.train()
        running_loss, n_seen, worst = 0.0, 0, 0.0
        for x, y in train_loader:
            x = x.to(device)
            y = y.to(device)
            optimizer.zero_grad(set_to_none=True)
            out = model(x)
            loss = nll(out, y)
            l1 = sum(p.abs().sum() for p in model.parameters())
            loss = loss + 1e-5 * l1
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), 5.0, error_if_nonfinite=False)
            optimizer.step()
            running_loss += float(loss) * len(x)
            n_seen += len(x)
            worst = max(worst, norm)
        train_loss = running_loss / n_seen

        model.eval()
        val_loss, sse = torch.zeros((), device=device), torch.zeros((), device=device)
        with torch.no_grad():
            for x, y in val_loader:
                x, y = x.to(device), y.to(device)
                out = model(x)
                val_loss += nll(out, y) * len(x)
                sse += ((out[:, 0] - y) ** 2).sum()
        val_loss = (val_loss / len(val_loader.dataset)).item()
        rmse = (sse / len(val_loader.dataset)).sqrt().item()
        scheduler.step(val_loss)
        log.info("epoch %d train %.4f val %.4f rmse %.4f |g| <= %.2f", epoch, train_loss, val_loss, rmse, worst)
        if val_loss < best_loss:
            best_loss, bad_epochs = val_loss, 0
            best_state = {k: v.cpu().clone() for k, v in model.state_dict().items()}
        else:
            bad_epochs += 1
            if bad_epochs > patience:
                break
    model.load_state_dict(best_state)
    return best_loss


def main():
    logging.basicConfig(level=logging.INFO)
    torch.manual_seed(3)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    x, y = make_regression(1500, 12, noise=8.0, random_state=0)
    x, y = StandardScaler().fit_transform(x), (y - y.mean()) / y.std()
    dataset = TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32))
    train_set, val_set = random_split(dataset, [1200, 300])
    train_loader = DataLoader(train_set, batch_size=120, shuffle=True, pin_memory=torch.cuda.is_available())
    val_loader = DataLoader(val_set, batch_size=150)

    model = MeanVariance(12).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-5)
    finder = LRFinder(model, optimizer, nll, device)
    finder.range_test(train_loader, end_lr=0.5, num_iter=20)
    lr = finder.suggestion()
    finder.reset()
    print("suggested learning rate", lr)
    for group in optimizer.param_groups:
        group["lr"] = lr
        group.pop("initial_lr", None)

    print("best", fit(model, optimizer, train_loader, val_loader, device))
    mean, std = mc_dropout(model, dataset.tensors[0][:5].to(device))
    for m, s in zip(mean.tolist(), std.tolist()):
        print(f"{m:.2f} +- {s:.2f}")


if __name__ == "__main__":
    main()
