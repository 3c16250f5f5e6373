import torch
import torch.nn as nn
import torch.nn.functional as F


class Accuracy:
    """Running accuracy."""

    def __init__(self):
        self.correct = self.total = 0

    def update(self, logits, target):
        self.correct += (logits.argmax(-1) == target).sum().item()
        self.total += target.numel()

    def compute(self):
        return self.correct / max(1, self.total)

    def reset(self):
        self.correct = self.total = 0


class DigitModule(nn.Module):
    def __init__(self, hidden=32, lr=1e-3, class_weights=None):
        super().__init__()
        self.lr = lr
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(64, hidden), nn.ReLU(), nn.Dropout(0.1), nn.Linear(hidden, 10))
        self.class_weights = class_weights
        self.train_acc = Accuracy()
        self.history = []

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        loss = F.cross_entropy(logits, y)
        if self.class_weights is not None:
            weights = torch.tensor(self.class_weights, device=x.device)
            loss = (F.cross_entropy(logits, y, reduction="none") * weights[y]).mean()
        self.train_acc.update(logits, y)
        self.log("train_loss", loss)
        return {"loss": loss, "logits": logits.detach()}

    def log(self, name, value):
        if isinstance(value, torch.Tensor):
            value = value.detach()
        self.history.append((name, value))

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        return {"val_loss": F.cross_entropy(logits, y), "val_acc": (logits.argmax(1) == y).float().mean()}

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.lr)
        return optimizer, torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
