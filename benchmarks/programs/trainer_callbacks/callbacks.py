import copy
import math
import time

import torch


class Callback:
    def on_train_start(self, trainer): ...

    def on_epoch_start(self, trainer): ...

    def on_batch_start(self, trainer, batch, batch_idx): ...

    def on_after_backward(self, trainer): ...

    def on_batch_end(self, trainer, outputs, batch, batch_idx): ...

    def on_validation_end(self, trainer): ...

    def on_epoch_end(self, trainer): ...

    def on_train_end(self, trainer): ...


class EarlyStopping(Callback):
    def __init__(self, monitor="val_loss", patience=3, mode="min"):
        self.monitor, self.patience, self.sign = monitor, patience, 1 if mode == "min" else -1
        self.best, self.wait = math.inf, 0

    def on_validation_end(self, trainer):
        current = self.sign * float(trainer.metrics[self.monitor])
        if current < self.best:
            self.best, self.wait = current, 0
        else:
            self.wait += 1
            trainer.should_stop = self.wait >= self.patience


class ModelCheckpoint(Callback):
    def __init__(self, path="best.ckpt", monitor="val_acc"):
        self.path, self.monitor, self.best = path, monitor, None

    def on_validation_end(self, trainer):
        value = trainer.metrics[self.monitor]
        if self.best is None or value > self.best:
            self.best = value
            torch.save({"epoch": trainer.epoch, "state_dict": trainer.model.state_dict()}, self.path)


class GradientNorm(Callback):
    """Keeps the norm of each step's gradients."""

    def __init__(self):
        self.norms = []

    def on_after_backward(self, trainer):
        total = 0.0
        for p in trainer.model.parameters():
            if p.grad is not None:
                total += p.grad.detach().norm(2).item() ** 2
        self.norms.append(total**0.5)


class NaNGuard(Callback):
    def on_batch_end(self, trainer, outputs, batch, batch_idx):
        loss = outputs["loss"]
        if torch.isnan(loss) or torch.isinf(loss):
            raise RuntimeError(f"loss is {loss} at batch {batch_idx}")


class ProgressPrinter(Callback):
    def __init__(self, every=10):
        self.every = every
        self.smooth = None

    def on_epoch_start(self, trainer):
        self.start = time.perf_counter()

    def on_batch_end(self, trainer, outputs, batch, batch_idx):
        loss = outputs["loss"].detach()
        self.smooth = loss if self.smooth is None else 0.98 * self.smooth + 0.02 * loss
        if batch_idx % self.every == 0:
            speed = (batch_idx + 1) / (time.perf_counter() - self.start)
            print(f"epoch {trainer.epoch} batch {batch_idx} loss {self.smooth.item():.4f} {speed:.1f} it/s")


class WeightAveraging(Callback):
    def __init__(self, decay=0.99):
        self.decay, self.shadow = decay, None

    def on_train_start(self, trainer):
        self.shadow = copy.deepcopy(trainer.model.state_dict())

    def on_batch_end(self, trainer, outputs, batch, batch_idx):
        for key, value in trainer.model.state_dict().items():
            if value.dtype.is_floating_point:
                self.shadow[key].mul_(self.decay).add_(value, alpha=1 - self.decay)
            else:
                self.shadow[key].copy_(value)


class HistogramLogger(Callback):
    """Not used by default; slow."""

    def on_epoch_end(self, trainer):
        for name, p in trainer.model.named_parameters():
            counts = torch.histc(p.detach().float().cpu(), bins=10)
            print(name, counts.tolist())
