"""Arms of a mode that evaluates, hooks at the end of an epoch, and what is measured or made once are cold."""

from heat.hot_lines import heat

from syncscope.tensors.interpret import sites

SOURCE = b"""
import torch
from elsewhere import singleton

class Expert(torch.nn.Module):
    def forward(self, mode, x: torch.Tensor, split="train", norm="test"):
        if mode == "dev" or mode == "test":
            self.a = x.min().item()  # cold
        if split in ("val", "test"):
            self.b = x.max().item()  # cold
        if mode == "train":
            self.c = x.sum().item()  # hot
        else:
            self.d = x.std().item()  # cold
        if mode == "test" or self.scaled:
            self.e = x.var().item()  # hot
        if split in ("train", "val"):
            self.f = x.norm().item()  # hot
        if norm == "test":
            self.g = x.amin().item()  # hot
        if mode == "fan":
            self.h = x.amax().item()  # hot
        else:
            self.i = x.prod().item()  # hot

        if mode == "cpu":
            self.l = x.mean().item()  # cold
        if mode != "cpu":
            self.m = x.sum().item()  # hot

        if not self.initialized:
            self.j = x.std().item()  # cold
        if self.initialized:
            self.k = x.sum().item()  # hot

class Detector(torch.nn.Module):
    def forward(self, x: torch.Tensor, target=None, return_preds=False, mask=None):
        if target is None or return_preds:
            self.a = x.min().item()  # cold
        if target is None:
            return x.max().item()  # cold
        if mask is None or return_preds:
            self.b = x.sum().item()  # hot
        if target is None or self.keeps:
            self.c = x.std().item()  # hot
        return x / x.prod().item()  # hot

    def pairs(self, x: torch.Tensor, mask, kind):
        if not torch.any(mask):
            return x.min().item()  # cold
        if not mask.any():
            self.empty = x.max().item()  # hot
        if mask is None or mask.numel() == 0 or mask.shape[1] == 0:
            return x.sum().item()  # cold
        if mask is None or kind is None:
            return x.std().item()  # hot
        if "count" not in self.seen[kind]:
            self.seen[kind]["count"] = x.sum().item()  # cold
        return x / x.prod().item()  # hot

    def goal(self, x: torch.Tensor, target=None):
        if target is None:
            target = x.sum().item()  # hot
        return target

    @singleton("projector")
    def projected(self):
        return self.weight.cuda().sum().item()  # cold

class ContrastiveLoss(torch.nn.Module):
    def forward(self, x: torch.Tensor, labels=None):
        if labels is None:
            labels = x.argmax().item()  # hot
        return self._compute(x, labels)

    def _compute(self, x: torch.Tensor, labels):
        return x / x.sum().item()  # hot

def mined(x: torch.Tensor, show_progress_bar=False):
    return x.sum().item()  # cold

class Callback:
    def write_on_epoch_end(self, x: torch.Tensor):
        x.sum().item()  # cold

    def on_simulation_start(self, x: torch.Tensor):
        x.sum().item()  # cold

    def end_task(self, x: torch.Tensor):
        x.sum().item()  # cold

    def on_loader_end(self, x: torch.Tensor):
        x.sum().item()  # cold

    def on_stage_end(self, x: torch.Tensor):
        x.sum().item()  # cold

    def on_train_epoch_end(self, x: torch.Tensor):
        x.sum().item()  # cold

    def on_train_batch_end(self, x: torch.Tensor):
        x.sum().item()  # hot

class Images:
    def on_after_batch_transfer(self, x: torch.Tensor, index):
        return x / x.sum().item()  # hot

    def on_before_batch_transfer(self, x: torch.Tensor, index):
        return x / x.sum().item()  # hot

class NormLogger:
    def on_pre_optimizer_step(self, x: torch.Tensor):
        x.sum().item()  # hot

    def on_before_zero_grad(self, x: torch.Tensor):
        x.sum().item()  # hot

    def on_epoch_end(self, x: torch.Tensor):
        x.sum().item()  # cold

    def norms(self, x: torch.Tensor):
        return x.sum().item()  # cold

def shift_cpu(x: torch.Tensor):
    return x.sum().item()  # cold

def feature_importances(x: torch.Tensor):
    return x.sum().item()  # cold

def latency(x: torch.Tensor):
    return x.sum().item()  # cold

def latency_loss(x: torch.Tensor):
    return x.sum().item()  # hot
"""


def test_each_line_is_as_it_is_marked() -> None:
    lines = enumerate(SOURCE.splitlines(), 1)
    marks = {n: line.rpartition(b"# ")[2].decode() for n, line in lines if line.endswith((b"# hot", b"# cold"))}
    assert heat(SOURCE, "expert.py") == marks


def test_what_is_made_on_the_host_in_each_call_is_moved_in_each() -> None:
    code = b"""
import torch

class Focal(torch.nn.Module):
    def forward(self, x: torch.Tensor, given: torch.Tensor):
        weight = torch.ones(4)
        if weight.device != x.device:
            weight = weight.to(x.device)
        if given.device != x.device:
            given = given.to(x.device)
        return x * weight * given
"""
    found = sites(code, "focal.py")
    assert [(site.place.line, site.whole) for site in found if site.confidence > 1 or site.place.line == 8] == [
        (8, True)
    ]
