"""What switches its model to evaluation is no step, nor what an object does in its first alone, or where a loss begins anew."""

from heat.hot_lines import heat

SOURCE = b"""
import pickle
import torch

class Learner:
    def encoded(self, x: torch.Tensor):
        self.model.eval()
        return self.model(x).sum().item()  # cold

    def distilled(self, x: torch.Tensor):
        self.teacher.eval()
        return self.teacher(x).sum().item()  # hot

    def attacked(self, x: torch.Tensor):
        self.model.eval()
        near = self.model(x).sum().item()  # hot
        self.model.train()
        return near

    def switched(self, x: torch.Tensor, still):
        if still:
            self.model.eval()
        return self.model(x).sum().item()  # hot

def all_gather(data, size: torch.Tensor):
    sent = pickle.dumps(data)
    return size.max().item()  # cold

class Dropped(torch.nn.Module):
    def forward(self, x: torch.Tensor, step):
        if self.training_step == 0:
            self.scale = x.sum().item()  # cold
        if self.num_calls == 0 and self.training:
            self.scale = x.mean().item()  # cold
        if self.width == 0:
            self.scale = x.amax().item()  # hot
        if step == 0:
            self.scale = x.amin().item()  # hot
        return x

class EdgeLoss(torch.nn.Module):
    def reset_norm(self, x: torch.Tensor):
        self.norm = x.sum().item()  # cold

    def scaled(self, x: torch.Tensor):
        return x.sum().item()  # hot
"""


def test_what_switches_a_model_to_evaluation_and_what_is_done_once_is_cold() -> None:
    lines = enumerate(SOURCE.splitlines(), 1)
    marks = {n: line.rpartition(b"# ")[2].decode() for n, line in lines if line.endswith((b"# hot", b"# cold"))}
    assert heat(SOURCE, "learning.py") == marks
