"""What is seldom asked for, or is for the log, a warning, a tokenizer, a transform: hot or cold by what it is there for."""

import pytest
from heat.hot_lines import heat

from syncscope.tensors.interpret import sites

LOOKED_FOR = b"""
import torch

def forward(self, x: torch.Tensor, skip: torch.Tensor):
    kept = (skip == 0).nonzero().squeeze()  # cold
    x, rest = x[kept], x.sum()
    many = torch.nonzero(x > 1)  # hot
    if len(many):
        rest = rest + many.size(0)
    low = torch.nonzero(x < 0)[:, 0]  # hot
    x[low] = 0.0
    for one in self.parts:
        each = torch.nonzero(skip == one)  # hot
        rest = rest + x[each].sum()
    return rest
"""


def test_positions_that_are_needed_are_looked_for_once_and_those_only_counted_or_written_at_are_hot() -> None:
    lines = LOOKED_FOR.splitlines()
    found = {s.place.line: s.whole for s in sites(LOOKED_FOR, "x.py") if s.op == "nonzero"}
    assert found == {n: row.endswith(b"# hot") for n, row in enumerate(lines, 1) if b"nonzero(" in row}


SELDOM = b"""
import torch

def keep(trainer, loss: torch.Tensor, step: int):
    first = loss.min().item()  # hot
    if not trainer.should_log(step):
        return first
    return loss.max().item()  # cold

def every(trainer, loss: torch.Tensor, step: int, mask: torch.Tensor, debug_mask=None):
    due = step % 50 == 0
    if due:
        print(loss.min().item())  # cold
    if trainer.is_main and (step % 50 == 0 or trainer.last):
        print(loss.median().item())  # cold
    if trainer.opt.oracle_boxes:
        loss = loss * loss.mean().item()  # cold
    if debug_mask is not None:
        loss = loss * loss.std().item()  # cold
    if trainer.opt.test or trainer.eval_only:
        loss = loss * loss.std().item()  # cold
    if not trainer.opt.test:
        loss = loss * loss.std().item()  # hot
    if trainer.latest:
        loss = loss * loss.std().item()  # hot
    if trainer.log.isEnabledFor(logging.DEBUG):
        trainer.log.debug(f"{loss.sum().item()}")  # cold
    if trainer.log.isEnabledFor(logging.INFO):
        trainer.log.info(f"{loss.amin().item()}")  # hot
    if not trainer.debug:
        loss = loss * loss.var().item()  # hot
    if mask.any():
        print("odd", loss.norm().item())  # cold
    if mask.all():
        print("odd", loss.prod().item())  # hot
        loss = loss + 1
    with trainer.timer:
        if step % 10:
            return loss
        loss = loss * loss.amax().item()  # cold
    for part in trainer.parts:
        if part.skipped:
            continue
        if part.number % 10 != 0:
            continue
        part.seen = loss.amin().item()  # cold
    if step % trainer.accumulation != 0:
        return loss
    if step > 100 and step % trainer.train_every == 0:
        loss = loss * loss.amin().item()  # hot
    if step % trainer.target_update_every == 0:
        loss = loss * loss.amin().item()  # cold
    if step % trainer.update_every_steps != 0:
        return loss
    loss = loss * loss.sum().item()  # hot
    if step % trainer.target_update_freq != 0:
        return loss
    return loss.sum().item()  # cold

def train(model, loader, validation, step):
    for x in loader:
        loss = model(x)
        loss.backward()
        with torch.no_grad():
            total += loss.sum().item()  # hot
        with torch.no_grad():
            for y in validation:
                total += compute_loss(y).sum().item()  # cold
        if step % 100 == 0:
            with torch.no_grad():
                for y in validation:
                    total = compute_loss(y).sum().item()  # cold
"""

GIVEN = b"""
import torch
from sklearn.metrics import f1_score

def update(self, x: torch.Tensor):
    loss = x.mean()
    loss.backward()
    return Stats(loss=loss.item())  # cold

def update_both(self, x: torch.Tensor, y: torch.Tensor):
    loss, other_loss = x.mean(), y.mean()
    return {
        "loss": loss.item(),  # hot
        "other": other_loss.item(),  # cold
    }

def update_between(self, x: torch.Tensor, y: torch.Tensor):
    loss, other_loss = x.mean(), y.mean()
    return {
        "loss": loss.item(),  # hot
        "norm": self.norm(y),
        "other": other_loss.item(),  # hot
        "size": y.abs().max().item(),  # hot
    }

def to_float(x: torch.Tensor):
    return x.sum().item()  # cold

def mined(self, dataset, x: torch.Tensor):
    return x.sum().item()  # cold

def length_of(self, prompt, x: torch.Tensor):
    if prompt in self.lengths:
        return self.lengths[prompt]
    self.lengths[prompt] = x.sum().item()  # cold
    return self.lengths[prompt]

def counted(self, x: torch.Tensor):
    found = x.sum()
    return {"found": found.item()}  # hot

def step(self, x: torch.Tensor, loss: torch.Tensor):
    self.logger.update(predicted=x.detach().cpu(), loss=loss.item())  # cold
    return f1_score(x.mean().item(), 1)  # cold

def rolled_out(self, x: torch.Tensor):
    with torch.no_grad():
        answers = self.model.generate(x)
    return answers, x.sum().item()  # cold

def distilled(self, x: torch.Tensor):
    if self.on_policy:
        x = self.model.generate(x)
    return x, x.sum().item()  # hot

class Network(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        if self.to_be_checked:
            x = x / x.amax().item()  # cold
            self.to_be_checked = False
        if not self.checked and len(x):
            x = x / x.amax().item()  # cold
            self.checked = True
        if self.scales:
            x = x / x.sum().item()  # hot
            self.scales = True
        return x

    def resize(self, keep: torch.Tensor):
        self.weight = torch.nn.Parameter(self.weight[: keep.sum().item()])  # cold

@click.command()
def learn(x: torch.Tensor):
    return x.sum().item()  # cold

class PointsCoder:
    def encode(self, x: torch.Tensor):
        return x.sum().item()  # hot

    def decode_single(self, x: torch.Tensor):
        return x.sum().item()  # cold

class PostProcessBoxes:
    def forward(self, x: torch.Tensor):
        return x.sum().item()  # cold

def setup_grid(self, x: torch.Tensor):
    return x.sum().item()  # cold
"""


@pytest.mark.parametrize("source", [SELDOM, GIVEN], ids=["what is asked for seldom", "what it is to give"])
def test_what_is_seldom_asked_for_and_what_a_function_is_to_give_is_cold(source: bytes) -> None:
    marks = [(n, row.rpartition(b"# ")[2].decode()) for n, row in enumerate(source.splitlines(), 1) if b"# " in row]
    found = heat(source, "x.py")
    assert [(n, found[n]) for n, _ in marks] == marks


def test_a_clock_around_a_step_is_for_the_log_and_a_decomposition_has_no_other_form() -> None:
    source = b"""
import time, torch

def train(model, loader):
    for x in loader:
        start = time.time()
        model(x.cuda()).mean().backward()
        print(time.time() - start)

def forward(self, x: torch.Tensor):
    for part in x:
        torch.linalg.svd(part)
    return torch.linalg.svd(x)
"""
    found = {(s.op, s.place.line): s.whole for s in sites(source, "x.py") if s.op in ("timing", "linalg_check")}
    assert found == {("timing", 8): False, ("linalg_check", 12): True, ("linalg_check", 13): False}


def test_a_test_that_is_asked_after_another_has_nothing_to_wait_for() -> None:
    source = b"""
import torch

def forward(self, x: torch.Tensor, y: torch.Tensor, flag):
    if x.mean() > 1:
        x = x * 2
    elif x.mean() < 0:
        x = x / 2
    if flag or y.any():
        y = y + 1
    if x.any() or y.any():
        y = y + 2
    return x + y
"""
    found = [(s.place.line, s.whole) for s in sites(source, "x.py") if s.op == "condition"]
    assert found == [(5, True), (7, False), (9, True), (11, True), (11, False)]


BESIDE_A_STEP = b"""
import logging
import torch

logger = logging.getLogger()

def forward(self, x: torch.Tensor, name=None):
    odd = name
    if odd is not None:
        if torch.is_tensor(x):
            odd += f" max {x.max().item()}"  # cold
        said = "first" if name else "again"
        logger.warning(odd)
        setattr(self, said, True)
    if name is not None:
        logger.warning(name)
        x = x / x.sum().item()  # hot
    return x / x.sum().item()  # hot

def log_norms(named):
    for name, x in named.items():
        logger.info("%s %s", name, torch.norm(x).item())  # cold

def log_weights(x: torch.Tensor):
    return x.log() / x.sum().item()  # hot

def peak_gpu_memory(x: torch.Tensor):
    return {0: x.max().item()}  # cold

def _raise_if_odd(x: torch.Tensor):
    if not x.isfinite().all().item():  # cold
        raise ValueError

def fit_part(x: torch.Tensor, first_pass=True, first=True):
    if first_pass:
        n = x.max().item()  # cold
    if first:
        n = x.max().item()  # hot
    return run_kmeans(x, n)

windows_cache = {}

def forward_windows(size, x: torch.Tensor, states=None):
    if size not in windows_cache:
        windows_cache[size] = x.max().item()  # cold
    if states is None:
        states = x.max().item()  # hot
    return windows_cache[size], states

def run_kmeans(x: torch.Tensor, n):
    while x.sum().item() > n:  # cold
        x = x / 2
    return x

class Trainer:
    def train(self):
        self.keep(torch.ones(3, device="cuda").sum().item())  # cold

class TritonPythonModel:
    def execute(self, x: torch.Tensor):
        return x / x.sum().item()  # cold

class Other:
    def train(self, x: torch.Tensor):
        self.update(x)
        self.keep(x.sum().item())  # hot
"""


def test_what_warns_tells_the_log_much_or_trains_nothing_is_cold() -> None:
    lines = enumerate(BESIDE_A_STEP.splitlines(), 1)
    marks = {n: line.rpartition(b"# ")[2].decode() for n, line in lines if line.endswith((b"# hot", b"# cold"))}
    assert heat(BESIDE_A_STEP, "x.py") == marks
