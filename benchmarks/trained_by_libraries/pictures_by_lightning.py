"""A classifier of pictures that are drawn, trained by pytorch-lightning; its own step reads what it prints."""

from itertools import pairwise

import pytorch_lightning as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(pl.LightningModule):
    """Four convolutions."""

    def __init__(self) -> None:
        super().__init__()
        widths = [3, 32, 64, 128, 128]
        layers: list[nn.Module] = []
        for one, other in pairwise(widths):
            layers += [nn.Conv2d(one, other, 3, 2, 1), nn.BatchNorm2d(other), nn.ReLU()]
        self.net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10))
        self.running = 0.0

    def training_step(self, batch, batch_index):
        x, y = batch
        logits = self.net(x)
        loss = nn.functional.cross_entropy(logits, y)
        accuracy = (logits.argmax(1) == y).float().mean()
        self.running += loss.item()
        self.log("loss", loss, prog_bar=True)
        self.log("accuracy", accuracy.item(), prog_bar=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), 1e-3)


def main() -> None:
    pl.seed_everything(0)
    data = TensorDataset(torch.randn(2048, 3, 32, 32), torch.randint(10, (2048,)))
    trainer = pl.Trainer(max_epochs=60, accelerator="auto", logger=False, enable_checkpointing=False)
    trainer.fit(Classifier(), DataLoader(data, batch_size=64, shuffle=True))


if __name__ == "__main__":
    main()
