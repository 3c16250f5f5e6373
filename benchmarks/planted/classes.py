"""Pictures told apart: what is read is added up, and the best is kept."""

import torch
from torch import nn

STEPS, EACH = 16, 4
device = torch.device("cuda")
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 4)).to(device)
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.5)
total, correct, seen, best = 0.0, 0, 0, 1e9
history = []
epochs = []
for step in range(STEPS):
    x = torch.randn(24, 6).to(device)
    y = torch.randint(4, (24,)).to(device)
    y = torch.where(y == 3, -100, y)
    mask = y >= 0
    logits = model(x)
    loss = nn.functional.cross_entropy(logits[mask], y[mask])
    norm = torch.zeros((), device=device)
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    total += loss.item()
    correct += (logits.argmax(1) == y).sum().item()
    seen += mask.sum().item()
    history.append(norm.item())
    if loss.item() < best:
        best = loss.item()
    if step % EACH == EACH - 1:
        accuracy = correct / seen
        epochs.append(total / EACH)
        print(f"{step}: {total / EACH:.6f}, {accuracy:.4f}, best {best:.6f}")
        total, correct, seen = 0.0, 0, 0
