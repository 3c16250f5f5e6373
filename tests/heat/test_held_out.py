"""What goes over held-out data is cold, and so is what runs where no GPU is, or moves what stays where it is moved to."""

from heat.hot_lines import heat

from syncscope.tensors.interpret import sites

SOURCE = b"""
import torch
from torch.utils.data import DataLoader

def metrics(model, test_loader, device):
    hits = 0
    for x, y in test_loader:
        hits += (model(x.to(device)) == y.to(device)).sum().item()  # cold
    return hits

def fitted(model, train_loader, device):
    for x, y in train_loader:
        model.seen += x.to(device).sum().item()  # hot

def tuned(model, val_loader, optimizer):
    for x in val_loader:
        loss = model(x.cuda()).sum()
        loss.backward()
        optimizer.step()
        model.seen += loss.item()  # hot

def fit(model, train_loader, valid_loader, optimizer, epochs):
    for epoch in range(epochs):
        seen, bar = 0, tqdm(enumerate(train_loader))
        for step, x in bar:
            loss = model.loss(x.cuda())
            loss.backward()
            optimizer.step()
            seen += loss.item()  # hot
        bar = tqdm(enumerate(valid_loader))
        for step, x in bar:
            seen += model.loss(x.cuda()).sum().item()  # cold
        with torch.no_grad():
            for rows in torch.split(model.rows, 20):
                seen += model.loss(rows).sum().item()  # cold

def train_epoch(model, batches, optimizer):
    seen = 0
    for x in batches:
        loss = model.loss(x.cuda())
        loss.backward()
        optimizer.step()
        seen += loss.item()  # hot
    with torch.no_grad():
        for rows in torch.split(model.rows, 20):
            seen += model.loss(rows).sum().item()  # cold

def sent(x: torch.Tensor, device):
    total = x.mean() if device.type == "cuda" else x.sum().item()  # cold
    if device.type == "cuda":
        return x.max().item()  # hot
    else:
        return x.min().item()  # cold

def mixed(x: torch.Tensor, device, amp):
    if device.type == "cuda" and amp:
        return x
    else:
        return x.min().item()  # hot

def either(x: torch.Tensor):
    if torch.cuda.is_available():
        x = x.cuda()
    else:
        x = x.mean().item()  # cold
    return x

def tables(n):
    return torch.arange(n).cos(), torch.arange(n).sin()

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cos, self.sin = tables(3)

    def forward(self, x: torch.Tensor, step):
        self.cos, self.sin = self.cos.to(x.device), self.sin.to(x.device)
        shown = x.sum().item() if step % 100 == 0 else 0.0  # cold
        return x * self.cos + x.std().item()  # hot
"""


def test_held_out_data_and_other_machines_are_cold() -> None:
    lines = enumerate(SOURCE.splitlines(), 1)
    marks = {n: line.rpartition(b"# ")[2].decode() for n, line in lines if line.endswith((b"# hot", b"# cold"))}
    assert heat(SOURCE, "fit.py") == marks


def test_of_two_that_are_moved_at_once_each_stays_where_it_is_moved_to() -> None:
    moved = [site.whole for site in sites(SOURCE, "fit.py") if site.place.line == MOVED]
    assert moved == [False, False]


MOVED = 1 + next(n for n, line in enumerate(SOURCE.splitlines()) if b"self.cos.to(" in line)
