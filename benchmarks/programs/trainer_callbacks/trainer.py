import torch
from callbacks import Callback


class Trainer:
    """A small Lightning: the module says what a step is, the trainer runs it."""

    def __init__(self, max_epochs=2, callbacks=(), accumulate_grad_batches=1, gradient_clip_val=None, device="auto"):
        self.max_epochs = max_epochs
        self.callbacks: list[Callback] = list(callbacks)
        self.accumulate_grad_batches = accumulate_grad_batches
        self.gradient_clip_val = gradient_clip_val
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        self.device = torch.device(device)
        self.metrics = {}
        self.should_stop = False
        self.global_step = 0

    def call(self, hook, *args):
        for callback in self.callbacks:
            getattr(callback, hook)(self, *args)

    def transfer(self, batch):
        if isinstance(batch, dict):
            return {k: self.transfer(v) for k, v in batch.items()}
        if isinstance(batch, (list, tuple)):
            return type(batch)(self.transfer(x) for x in batch)
        return batch.to(self.device) if hasattr(batch, "to") else batch

    def fit(self, model, train_loader, val_loader=None):
        self.model = model.to(self.device)
        model.trainer = self
        self.optimizer, self.scheduler = model.configure_optimizers()
        self.call("on_train_start")
        for self.epoch in range(self.max_epochs):
            self.run_epoch(train_loader)
            if val_loader is not None:
                self.validate(val_loader)
            self.call("on_epoch_end")
            if self.should_stop:
                print("stopped early")
                break
        self.call("on_train_end")
        return self

    def run_epoch(self, loader):
        self.model.train()
        self.call("on_epoch_start")
        for batch_idx, batch in enumerate(loader):
            batch = self.transfer(batch)
            self.call("on_batch_start", batch, batch_idx)
            outputs = self.model.training_step(batch, batch_idx)
            (outputs["loss"] / self.accumulate_grad_batches).backward()
            self.call("on_after_backward")
            if (batch_idx + 1) % self.accumulate_grad_batches == 0:
                if self.gradient_clip_val:
                    torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.gradient_clip_val)
                self.optimizer.step()
                self.optimizer.zero_grad()
                if self.scheduler is not None:
                    self.scheduler.step()
                self.global_step += 1
            self.call("on_batch_end", outputs, batch, batch_idx)

    @torch.no_grad()
    def validate(self, loader):
        self.model.eval()
        outputs = []
        for batch_idx, batch in enumerate(loader):
            outputs.append(self.model.validation_step(self.transfer(batch), batch_idx))
        for key in outputs[0]:
            self.metrics[key] = torch.stack([o[key] for o in outputs]).mean()
        print(f"epoch {self.epoch}", {k: round(v.item(), 4) for k, v in self.metrics.items()})
        self.call("on_validation_end")

    @torch.no_grad()
    def predict(self, model, loader):
        model.eval()
        return torch.cat([model(self.transfer(x)).cpu() for x, *_ in loader])
