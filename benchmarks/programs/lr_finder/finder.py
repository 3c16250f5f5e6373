import copy

import numpy as np
import torch
from torch.optim.lr_scheduler import LRScheduler
from tqdm.auto import tqdm


class ExponentialLR(LRScheduler):
    """Exponentially increases the learning rate between two boundaries over a number of iterations."""

    def __init__(self, optimizer, end_lr, num_iter, last_epoch=-1):
        self.end_lr, self.num_iter = end_lr, num_iter
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        r = self.last_epoch / (self.num_iter - 1)
        return [base_lr * (self.end_lr / base_lr) ** r for base_lr in self.base_lrs]


class LRFinder:
    """Learning rate range test."""

    def __init__(self, model, optimizer, criterion, device=None):
        self.model, self.optimizer, self.criterion = model, optimizer, criterion
        self.device = device or next(model.parameters()).device
        self.history = {"lr": [], "loss": []}
        self.best_loss = None
        self.model_state = copy.deepcopy(model.state_dict())
        self.optimizer_state = copy.deepcopy(optimizer.state_dict())

    def reset(self):
        self.model.load_state_dict(self.model_state)
        self.optimizer.load_state_dict(self.optimizer_state)
        self.model.to(self.device)

    def range_test(self, train_loader, end_lr=1.0, num_iter=20, smooth_f=0.05, diverge_th=5):
        lr_schedule = ExponentialLR(self.optimizer, end_lr, num_iter)
        iterator = iter(train_loader)
        for iteration in tqdm(range(num_iter)):
            try:
                inputs, labels = next(iterator)
            except StopIteration:
                iterator = iter(train_loader)
                inputs, labels = next(iterator)
            loss = self._train_batch(inputs, labels)
            lr_schedule.step()
            self.history["lr"].append(lr_schedule.get_last_lr()[0])

            if iteration == 0:
                self.best_loss = loss
            else:
                if smooth_f > 0:
                    loss = smooth_f * loss + (1 - smooth_f) * self.history["loss"][-1]
                if loss < self.best_loss:
                    self.best_loss = loss
            self.history["loss"].append(loss)
            if loss > diverge_th * self.best_loss:
                print("Stopping early, the loss has diverged")
                break

    def _train_batch(self, inputs, labels):
        self.model.train()
        inputs, labels = self._move(inputs), self._move(labels)
        self.optimizer.zero_grad()
        outputs = self.model(inputs)
        loss = self.criterion(outputs, labels)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def _move(self, x):
        return x.to(self.device)

    def suggestion(self, skip_start=2, skip_end=2):
        lrs, losses = self.history["lr"][skip_start:-skip_end], self.history["loss"][skip_start:-skip_end]
        return lrs[int(np.gradient(np.array(losses)).argmin())]

    def plot(self):
        import matplotlib.pyplot as plt

        plt.plot(self.history["lr"], self.history["loss"])
        plt.xscale("log")
        plt.show()
