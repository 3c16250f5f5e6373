import torch
from callbacks import EarlyStopping, GradientNorm, ModelCheckpoint, NaNGuard, ProgressPrinter, WeightAveraging
from module import DigitModule
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset
from trainer import Trainer


def main():
    torch.manual_seed(0)
    digits = load_digits()
    x, y = torch.tensor(digits.images, dtype=torch.float32) / 16, torch.tensor(digits.target)
    train_loader = DataLoader(TensorDataset(x[:800], y[:800]), batch_size=32, shuffle=True)
    val_loader = DataLoader(TensorDataset(x[800:1000], y[800:1000]), batch_size=100)
    norms = GradientNorm()
    model = DigitModule(class_weights=[1.0] * 9 + [1.5])
    trainer = Trainer(
        max_epochs=3,
        callbacks=[EarlyStopping(), ModelCheckpoint(), norms, NaNGuard(), ProgressPrinter(10), WeightAveraging()],
        gradient_clip_val=1.0,
    )
    trainer.fit(model, train_loader, val_loader)
    losses = [value.item() for name, value in model.history if name == "train_loss"]
    print("train accuracy", model.train_acc.compute(), "mean loss", sum(losses) / len(losses), "norm", max(norms.norms))
    print(trainer.predict(model, val_loader).argmax(1)[:10].tolist())


if __name__ == "__main__":
    main()
