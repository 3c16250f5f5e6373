"""Hot is what runs in every step, wherever people put their loop."""

from pathlib import Path

import pytest
from heat.hot_lines import heat

from syncscope.tensors.interpret import sites

SAMPLES = Path(__file__).parents[2] / "samples"

LOOP_IN_MAIN = b"""
import torch

def main():
    loader = torch.utils.data.DataLoader(data)
    model = torch.nn.Linear(3, 1).cuda()
    first = model(torch.zeros(3, device="cuda")).item()  # cold
    for step, (x, y) in enumerate(loader):
        loss = model(x.cuda()).mean()
        loss.backward()
        total += loss.item()  # hot
        if step % 100 == 0:
            print(loss.item())  # cold
"""

ONCE_AN_EPOCH = b"""
import torch

def train(model, batches):
    losses = []
    while batches:
        loss = model(batches.pop().cuda()).mean()
        loss.backward()
        losses.append(loss.detach())
        seen = torch.isnan(loss).item()  # hot
    return torch.stack(losses).tolist()  # cold
"""

STEP = b"""
import torch

def train_step(model: torch.nn.Module, x: torch.Tensor):
    loss = model(x).mean()
    loss.backward()
    return loss.item()  # hot
"""


@pytest.mark.parametrize("source", [LOOP_IN_MAIN, ONCE_AN_EPOCH, STEP], ids=["main", "train", "train_step"])
def test_hot_and_cold_are_as_marked(source: bytes) -> None:
    marks = {
        number: line.rpartition(b"# ")[2].decode()
        for number, line in enumerate(source.splitlines(), 1)
        if line.endswith((b"# hot", b"# cold"))
    }
    found = {
        site.place.line: "hot" if site.whole else "cold"
        for site in sites(source, "train.py")
        if site.op == "item" or site.op == "tolist"
    }
    assert found == marks


def test_the_sample_waits_on_the_lines_of_its_loss_and_nowhere_else_in_a_step() -> None:
    path = SAMPLES / "segmentation.py"
    lines = path.read_text().splitlines()
    hot = [site for site in sites(path.read_bytes(), str(path)) if site.whole and site.confidence >= 2]
    assert [(site.op, lines[site.place.line - 1].strip()) for site in hot] == [
        ("nonzero", "background = torch.nonzero(target == BACKGROUND, as_tuple=True)"),
        ("number_write", "target[background] = IGNORE"),
        ("unique", "if torch.unique(target).numel() < 2:"),
        ("mask_read", "return nn.CrossEntropyLoss()(scores[chosen].view(-1, CLASSES), target[keep])"),
        ("mask_read", "return nn.CrossEntropyLoss()(scores[chosen].view(-1, CLASSES), target[keep])"),
    ]


def test_the_log_line_of_the_gan_is_hot_up_to_its_first_read() -> None:
    path = SAMPLES / "gan.py"
    assert [site.whole for site in sites(path.read_bytes(), str(path)) if site.op == "item"] == [
        True,
        True,
        True,
        False,
    ]


def test_what_is_cached_runs_once() -> None:
    code = b"import functools, torch\n@functools.cache\ndef make(x: torch.Tensor):\n    x.item()\n"
    assert [site.whole for site in sites(code, "use.py")] == [False]


ONCE = """
import torch

def forward(self, x: torch.Tensor):
    if len(x) > 3:
        worst = x.sum().item()  # cold
        raise ValueError(worst)
    try:
        x = x + x.mean().item()  # hot
    except RuntimeError:
        x = x + x.prod().item()  # cold
    if self.table.device != x.device:
        x = x + x.min().item()  # cold
    else:
        x = x + x.max().item()  # hot
    return x

def get_accuracy(x: torch.Tensor):
    return x.mean().item()  # cold

def attend(self, x: torch.Tensor):
    if self.table is None:
        self.table = x.cumsum(0).max().item()  # cold
    if len(self.state) == 0:
        x = x + x.std().item()  # cold
    if self.training:
        x = x + x.var().item()  # hot
    else:
        x = x + x.norm().item()  # cold
    if self.training or self.calculator is None:
        x = x + x.sum().sum().item()  # hot
    else:
        x = x + x.abs().sum().item()  # cold
    if not torch.isfinite(x).all():  # hot
        x = x + x.abs().mean().item()  # cold
    if torch.isfinite(x).all():  # hot
        x = x + x.exp().mean().item()  # hot
    count_known = (x > 0).sum()
    if self.rank == 0:
        return x.log().mean().item()  # hot
    if count_known == 0:  # hot
        return x.tan().mean().item()  # cold
    if self.assign_on_cpu:
        x = x + x.amax().item()  # cold
    def check_all():
        return x.amin().item()  # cold
    return x
"""


def test_the_arm_of_an_error_and_of_a_move_are_cold() -> None:
    marked = {n: "# hot" in line for n, line in enumerate(ONCE.splitlines(), 1) if "# hot" in line or "# cold" in line}
    assert {site.place.line: site.whole for site in sites(ONCE.encode(), "x.py")} == marked


CALLERS = """
import torch, warnings

class NoiseScheduler:
    def set_timesteps(self, x: torch.Tensor):
        self.steps = self._spaced(x)

    def _spaced(self, x: torch.Tensor):
        return x.max().item()  # cold

    def step(self, x: torch.Tensor):
        return x.min().item()  # cold

    def add_noise(self, x: torch.Tensor):
        return x.sum().item()  # hot

class Layer(torch.nn.Module):
    def __init__(self, x: torch.Tensor):
        super().__init__()
        self._sized(x)
        self.attend = self._attended

    def _sized(self, x: torch.Tensor):
        return x.cuda().max().item()  # cold

    def _attended(self, x: torch.Tensor):
        return x.mean().item()  # hot

    def forward(self, x: torch.Tensor):
        warnings.warn(f"odd: {x.prod().item()}")  # cold
        return self._used(x)

    def _used(self, x: torch.Tensor):
        return self._used(x) if x.min().item() else x  # hot

    def scaled(self, x: torch.Tensor):
        return x.std().item()  # cold

    def generate(self, x: torch.Tensor):
        def decoded(y: torch.Tensor):
            return y.sum().item()  # cold
        return self.scaled(x) + decoded(x)

class BeamSearch(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        return x.max().item()  # cold

class Table:
    def __init__(self):
        self.kept, self.sent = torch.arange(3), torch.arange(4)

    def look(self, x: torch.Tensor):
        self.kept = self.kept.to("cuda")  # cold
        return x + self.kept + self.sent.to("cuda")  # hot
"""


def test_what_only_cold_functions_call_is_cold_and_so_is_what_a_sampler_or_a_warning_reads() -> None:
    marked = {n: "# hot" in row for n, row in enumerate(CALLERS.splitlines(), 1) if "# hot" in row or "# cold" in row}
    assert {site.place.line: site.whole for site in sites(CALLERS.encode(), "x.py")} == marked


ASKED_FOR = """
import torch
from scipy.optimize import linear_sum_assignment

def matched(self, cost: torch.Tensor):
    return linear_sum_assignment(cost.cpu())  # cold

def forward(self, cost: torch.Tensor, actions: torch.Tensor):
    linear_sum_assignment(cost.cpu())  # cold
    return cost.max().item()  # hot

def train_step(envs, policy, x: torch.Tensor, scaler: torch.amp.GradScaler):
    actions, loss = policy.sample(x), x.mean()
    loss.backward()
    envs.step(actions.cpu())  # cold
    scaler.step(policy.optimizer)  # cold
    return loss.cpu()  # hot

def helper(x: torch.Tensor):
    torch.cuda.synchronize()  # cold
    if x.sum() > 0:  # hot
        return x.cpu()  # cold

class RolloutBuffer:
    def add(self, x: torch.Tensor):
        self.values[0] = x.cpu()  # cold
"""


def test_what_is_asked_for_is_hot_only_where_something_says_that_it_runs_in_every_step() -> None:
    marked = {n: "# hot" in row for n, row in enumerate(ASKED_FOR.splitlines(), 1) if "# hot" in row or "# cold" in row}
    assert {site.place.line: site.whole for site in sites(ASKED_FOR.encode(), "x.py")} == marked


def test_the_last_line_of_a_file_is_read_without_its_newline_too() -> None:
    source = b"import torch\ndef forward(self, cost: torch.Tensor):\n    return linear_sum_assignment(cost.cpu())"
    assert [site.whole for site in sites(source, "x.py")] == [False]


def test_what_numba_or_triton_compile_is_no_python() -> None:
    code = (
        b"import numba.cuda, torch\n@numba.cuda.jit\ndef add(x: torch.Tensor, i):\n    if x[i] > 3:\n        x[i] = 3\n"
    )
    assert not sites(code, "x.py")


def test_lightning_keeps_the_tensor_that_it_is_told_to_log() -> None:
    code = (
        b"import torch\ndef training_step(self, x: torch.Tensor):\n    self.log('loss', x)\n    logger.info('%s', x)\n"
        b"    self.model.log('loss', x, on_epoch=True)\n"
    )
    assert [site.place.line for site in sites(code, "x.py")] == [4]


PIPELINE = """
import torch

class TextPipeline:
    def encode_prompt(self, x: torch.Tensor):
        return x * x.max().item()  # cold

    def get_train_loss_dict(self, x: torch.Tensor):
        return x * x.max().item()  # hot

class Block:
    def _fuse_bn_tensor(self, x: torch.Tensor):
        return x * x.max().item()  # cold
"""


def test_a_pipeline_uses_a_model_where_nothing_says_that_it_trains_it() -> None:
    marked = {n: "# hot" in row for n, row in enumerate(PIPELINE.splitlines(), 1) if "# hot" in row or "# cold" in row}
    assert {site.place.line: site.whole for site in sites(PIPELINE.encode(), "x.py")} == marked


def test_names_that_come_by_a_star_import_are_those_that_people_mean() -> None:
    source = b"from .imports import *\n# torch\ndef forward(self, logits):\n    return F.softmax(logits, dim=1).max().item()\n"
    assert [(site.op, site.confidence > 1) for site in sites(source, "x.py")] == [("item", True)]


HANDED_ON = b"""
import torch

class TabularGAN:
    def __init__(self, encoder, cond: torch.Tensor):
        def penalty(real: torch.Tensor, fake: torch.Tensor):
            return (real - fake).sum().item()  # hot

        def length(real: torch.Tensor):
            return real.sum().item()  # cold

        self.model = GAN(length(cond), penalties=[penalty])
"""


def test_what_set_up_hands_to_what_it_makes_is_called_later() -> None:
    lines = enumerate(HANDED_ON.splitlines(), 1)
    marks = {n: line.rpartition(b"# ")[2].decode() for n, line in lines if line.endswith((b"# hot", b"# cold"))}
    assert heat(HANDED_ON, "gan.py") == marks
