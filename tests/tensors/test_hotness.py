"""Hot is what runs in every step, wherever people put their loop."""

from pathlib import Path

import pytest
from tensors.heat import heat

from syncscope.tensors.interpret import Project, sites

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
        return x.max().item()  # cold

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


AROUND_THE_LOOP = b"""
import torch

class Calibrator:
    def fit(self, scores: torch.Tensor, targets: torch.Tensor):
        first = scores.sum().item()  # cold
        for column in range(3):
            last = scores[:, column].max().item()  # cold
        for batch in self.batches:
            loss = self.train_on(batch)
            total = loss.sum().item()  # hot
        return first, last, total

    @property
    def scale(self):
        return self._scale

    @scale.setter
    def scale(self, value: torch.Tensor):
        self._scale = value.max().item()  # cold
"""


AROUND_THE_STEPS = b"""
import torch

def train(model, loader, optimizer):
    for epoch in range(3):
        total = torch.zeros((), device="cuda")
        for batch in loader:
            loss = model(batch)
            loss.backward()
            optimizer.step()
            total += loss.detach()
            seen = loss.item()  # hot
        print(total.item())  # cold

def train_whole(model, x, steps):
    for epoch in range(steps):
        loss = model(x)
        for part in loss.parts:
            part.backward()
        loss.backward()
        print(loss.sum().item())  # hot

def run(model, epochs):
    for epoch in range(epochs):
        for i in range(100):
            loss = model(i)
            loss.backward()
        print(loss.mean().item())  # cold

class Bins:
    def fit(self, scores: torch.Tensor):
        self.low = scores.min().item()  # cold

class Trainer:
    def fit(self, scores: torch.Tensor):
        self.low = scores.min().item()  # hot
        self._train_loop(scores)

class Tuned:
    def fit(self, scores: torch.Tensor):
        def closure():
            loss = scores.mean()
            loss.backward()
            return loss
        self.low = scores.min().item()  # hot
"""


AROUND_AN_UPDATE = b"""
import torch

class Agent:
    def update(self, rollout, x: torch.Tensor):
        def policy_loss(batch):
            return batch.sum().item()  # hot
        first = x.max().item()  # cold
        for epoch in range(self.epochs):
            for batch in rollout.split():
                loss = policy_loss(batch)
                loss.backward()
                self.optimizer.step()
                seen = x.min().item()  # hot
        return x.std().item()  # cold

    def update_by_parts(self, rollout, x: torch.Tensor):
        self.optimizer.zero_grad()
        for batch in rollout.batches:
            self.model(batch).backward()
        self.optimizer.step()
        return x.std().item()  # hot

    def update_critics(self, x: torch.Tensor):
        for critic, optimizer in self.critics:
            critic(x).backward()
            optimizer.step()
        return x.std().item()  # hot
"""


def test_what_stands_around_the_loop_of_an_update_of_many_steps_is_cold() -> None:
    lines = enumerate(AROUND_AN_UPDATE.splitlines(), 1)
    marks = {n: line.rpartition(b"# ")[2].decode() for n, line in lines if line.endswith((b"# hot", b"# cold"))}
    assert heat(AROUND_AN_UPDATE, "agent.py") == marks


def test_what_an_environment_on_the_host_gave_is_sent_while_nothing_is_in_flight() -> None:
    source = b"""
import torch

class Wrapper:
    def step(self, actions):
        state, reward = self._env.step(actions)
        return torch.tensor(reward, device=self.device)

class Model:
    def step(self, reward):
        return torch.tensor(reward, device=self.device)
"""
    assert [site.whole for site in sites(source, "x.py")] == [False, True]


@pytest.mark.parametrize("line", [n for n, row in enumerate(AROUND_THE_STEPS.splitlines(), 1) if b"# " in row])
def test_what_stands_around_the_loop_over_steps_and_a_fit_that_calls_none_are_cold(line: int) -> None:
    told = AROUND_THE_STEPS.splitlines()[line - 1].rpartition(b"# ")[2].decode()
    assert heat(AROUND_THE_STEPS, "x.py")[line] == told


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


def test_what_fit_does_around_its_loop_and_setters_are_cold() -> None:
    lines = enumerate(AROUND_THE_LOOP.splitlines(), 1)
    marks = {n: line.rpartition(b"# ")[2].decode() for n, line in lines if line.endswith((b"# hot", b"# cold"))}
    assert heat(AROUND_THE_LOOP, "calibrator.py") == {
        n: told for n, told in marks.items() if n in heat(AROUND_THE_LOOP, "x.py")
    }


def test_names_that_come_by_a_star_import_are_those_that_people_mean() -> None:
    source = b"from .imports import *\n# torch\ndef forward(self, logits):\n    return F.softmax(logits, dim=1).max().item()\n"
    assert [(site.op, site.confidence > 1) for site in sites(source, "x.py")] == [("item", True)]


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
    return loss.sum().item()  # hot

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


@pytest.mark.parametrize(
    ("given", "hot"),
    [("pin_memory=True", True), ("workers=4", False), ("**settings.LOADER", True)],
)
def test_an_upload_of_a_batch_is_hot_where_a_loader_pins_or_can_be_told_to(
    tmp_path: Path, given: str, hot: bool
) -> None:
    (tmp_path / "setup.py").touch()
    if "settings" in given:  # which speaks of no torch
        (tmp_path / "settings.py").write_text('LOADER = {"pin_memory": True}\n')
    (tmp_path / "data.py").write_text(
        f"import settings\nfrom torch.utils.data import DataLoader\n\ndef made(rows):\n    return DataLoader(rows, {given})\n"
    )
    train = tmp_path / "train.py"
    train.write_text(
        "import torch\nfrom data import made\n\ndef train(model, rows):\n    for x in made(rows):\n"
        "        model(x.to('cuda')).mean().backward()\n"
    )

    def found() -> list[bool]:
        return [site.whole for site in sites(train.read_bytes(), str(train), Project()) if site.op == "to_device"]

    assert found() == [hot]
    train.write_text(train.read_text() + "\ntrain(model, DataLoader(rows))\n")
    assert found() == [True]


def test_an_upload_of_what_a_tokenizer_made_is_cold_and_so_is_what_collates_and_explains() -> None:
    source = b"""
import torch
from transformers import BertTokenizer

class Collater:
    def __call__(self, x: torch.Tensor):
        return x.sum().item()

class NodeExplainer(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        return x.sum().item()

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.tokenizer = BertTokenizer.from_pretrained("bert")

    def forward(self, x: torch.Tensor, text):
        words = self.tokenizer(text, return_tensors="pt").to(x.device)
        return x.sum().item()
"""
    assert [site.whole for site in sites(source, "x.py")] == [False, False, False, True]


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


def test_a_constant_that_is_moved_to_where_it_is_needed_and_kept_is_moved_once() -> None:
    source = b"""
import torch

class Net(torch.nn.Module):
    def __init__(self):
        self.mean = torch.Tensor([0.5, 0.4, 0.4]).view(1, 3, 1, 1)

    def forward(self, x):
        self.mean = self.mean.type_as(x)
        return x - self.mean
"""
    assert [s.whole for s in sites(source, "x.py")] == [False]
    assert [s.whole for s in sites(source.replace(b"self.mean = self", b"mean = self"), "x.py")] == [True]


DISTRIBUTIONS = b"""
import torch
from torch.distributions import Normal
from torch.distributions.transforms import Transform

class Shuffled(Transform):
    def __init__(self, order: torch.Tensor):
        self.first = order.sum().item()  # hot

    def _call(self, x: torch.Tensor):
        return x * x.sum().item()  # hot

class Crop:
    def __init__(self, order: torch.Tensor):
        self.first = order.sum().item()  # cold

class CropTransform:
    def apply(self, x: torch.Tensor):
        return x * x.sum().item()  # cold

class ShuffledTransform(Shuffled):
    def apply(self, x: torch.Tensor):
        return x * x.sum().item()  # hot
"""


def test_what_distributions_are_transformed_by_is_made_in_each_step_and_is_no_transform_of_data() -> None:
    lines = enumerate(DISTRIBUTIONS.splitlines(), 1)
    marks = {n: line.rpartition(b"# ")[2].decode() for n, line in lines if line.endswith((b"# hot", b"# cold"))}
    assert heat(DISTRIBUTIONS, "transforms.py") == marks
