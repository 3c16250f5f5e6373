"""A package whose step calls what is called like set-up, and which of its lines are hot."""

from pathlib import Path

from syncscope.tensors.interpret import Project, sites

MODEL = """
import torch

from .parts import build_targets, build_grid, match, set_scale, average
from .parts import compute_norm as norm

class ViterbiTagDecoder:
    def decode_tags(self, x: torch.Tensor):
        return x / x.sum().item()  # cold

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.grid = build_grid(torch.ones(3))
        self.losses = {"boxes": self.get_result}

    def forward(self, x, step=0):
        found = build_targets(x)
        match(x)
        if step % 100 == 0:
            set_scale(x)
        self._validate(x)
        self._validate_all(x)
        self._evaluate(self.loader)
        self._predict(x)
        self.all_latents(x)
        self.kept_latents(x)
        found = ViterbiTagDecoder().decode_tags(found)
        if not self.training:
            return self._evaluated(x)
        return self.losses["boxes"](found) / self.checked(x)

    def _validate(self, x: torch.Tensor):
        return x.sum().item()  # hot

    def _validate_all(self, x: torch.Tensor):
        return x.sum().item()  # hot

    def _evaluate(self, loader):
        total = 0.0
        for x in loader:
            total += self.loss(x.cuda()).item()  # cold
        return total

    def _predict(self, x):
        total, loader = 0.0, torch.utils.data.DataLoader(x)
        for each in loader:
            total += self.net(each.cuda()).item()  # hot
        return total

    @torch.inference_mode()
    def kept_latents(self, x: torch.Tensor):
        return x.sum().item()  # cold

    @torch.no_grad()
    def all_latents(self, x: torch.Tensor, adata=None):
        return x.sum().item()  # cold

    def check_sizes(self, x: torch.Tensor):
        return x.sum().item()  # cold

    def checked(self, x: torch.Tensor):
        return self.ensure_positive(x)

    def get_result(self, x: torch.Tensor):
        return x.sum().item()  # hot

    def ensure_positive(self, x: torch.Tensor):
        return x.sum().item()  # hot

    def _evaluated(self, x: torch.Tensor):
        return x.sum().item()  # cold

    def to_float(self, x: torch.Tensor):
        return x.sum().item()  # cold

    def train_step(self, x):
        try:
            self.forward(x).backward()
        except ValueError:
            self.to_float(x)
        if self.is_broken:
            self.check_sizes(x)
            raise ValueError(x)
        self.load_more(x)
        if self.rank == 0 and self.steps % 100 == 0:
            self.load_seldom(x)
        x.report_each()

    def load_more(self, x: torch.Tensor):
        return x.sum().item()  # hot

    def load_seldom(self, x: torch.Tensor):
        return x.sum().item()  # cold

    def report_each(self):
        return self.total.sum().item()  # cold
"""
PARTS = """
import torch

def build_targets(x: torch.Tensor):
    return convert_boxes(x) + x.sum().item()  # hot

def convert_boxes(x: torch.Tensor):
    return x.sum().item()  # hot

def build_grid(x: torch.Tensor):
    return x.cuda().sum().item()  # cold

@torch.no_grad()
def match(x: torch.Tensor):
    return x.sum().item()  # hot

@torch.no_grad()
def average(x: torch.Tensor):
    return x.sum().item()  # cold

def set_scale(x: torch.Tensor):
    return x.sum().item()  # cold
"""


def heat(path: Path) -> dict[int, str]:
    """By line, of those that read a number."""
    found = sites(path.read_bytes(), str(path), Project())
    return {site.place.line: "hot" if site.hot else "cold" for site in found if site.op == "item"}


def marked(text: str) -> dict[int, str]:
    lines = enumerate(text.splitlines(), 1)
    return {number: line.rpartition("# ")[2] for number, line in lines if line.endswith(("# hot", "# cold"))}
