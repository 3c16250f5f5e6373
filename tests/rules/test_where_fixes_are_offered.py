"""What stands around a line decides what its fix takes along: a condition, a loop of steps, the project."""

from pathlib import Path

import pytest
from rules.driver import config, findings, fixed

from syncscope.linter.engine import check_file
from syncscope.model.finding import Safety


@pytest.mark.slow  # this repository is gone through
@pytest.mark.parametrize("name", ["gan.py", "digits.py"])
def test_a_sample_is_offered_its_fixes_inside_the_project(name: str, tmp_path: Path) -> None:
    sample = Path(__file__).parents[2] / "samples" / name
    alone = tmp_path / name
    alone.write_bytes(sample.read_bytes())
    inside, outside = ([f.fix is not None for f in check_file(str(p), config()).findings] for p in (sample, alone))
    assert any(inside)
    assert inside == outside


def test_a_condition_goes_with_what_stands_under_it_alone() -> None:
    step = "        loss.backward()\n"
    head = (
        "import torch\n\n\ndef train(model, xs):\n    for step, x in enumerate(xs):\n        loss = model(x).mean()\n"
    )
    assert fixed(f"{head}{step}        if step % 9 == 0:\n            torch.cuda.empty_cache()\n") == head + step


@pytest.mark.parametrize(
    ("over", "rarely"),
    [
        ("for k, v in losses.items():", False),
        ("for v in [losses['a'], losses['b']]:", False),
        ("for i, k in enumerate(sorted(losses)):", False),
        ("for v in train_loader:", True),
        ("for i, v in enumerate(tqdm(train_loader)):", True),
        ("for v in range(9):", True),
    ],
)
def test_only_what_steps_write_is_written_rarely(over: str, rarely: bool) -> None:
    code = (
        "import torch\nfrom tqdm import tqdm\n\n\ndef f(writer, losses: dict, x: torch.Tensor, train_loader):\n"
        f"    {over}\n        writer.add_scalar('loss', x.mean().item())\n"
    )
    assert ("% 50 == 0" in fixed(code, "host-read")) is rarely


READ_APART = """
import torch


def train(model, batches, report, bound: float):
    for batch in batches:
        losses = model(batch)
        losses.sum().backward()
        first = losses.max().item()
        noted = losses.min().item()
        {}
        if {}:
            report(noted)
"""


@pytest.mark.parametrize(
    ("made", "test", "later"),
    [
        ("pass", "bound < 3", True),
        ("pass", "first < bound", False),
        ("pass", "losses.sum() < bound", False),
        ("total = float(losses.sum())", "total < bound and bound > 0", False),
    ],
)
def test_a_read_moves_under_no_condition_that_waits_itself(made: str, test: str, later: bool) -> None:
    titles = {f.fix.title for f in findings(READ_APART.format(made, test), "host-read") if f.fix is not None}
    assert ("read noted only where used" in titles) is later


NAMED = """
import torch


def scaled(x: torch.Tensor):
    size = x.detach().abs().mean()
    {}
    return x.cos().mean() * size.item(){}
"""


@pytest.mark.parametrize(
    ("above", "beside", "by_hand"),
    [
        ("# as in the paper", "", False),
        ("# ``.item()`` matches the reference and avoids\n    # casting where it divides", "", True),
        ("pass", "  # item() drops the gradient here", True),
        ("# TODO: item() is slow", "", False),
        ("# avoid this: item() makes the host wait", "", False),
    ],
)
def test_a_call_that_a_comment_gives_reasons_for_is_not_taken_out_by_command(
    above: str, beside: str, by_hand: bool
) -> None:
    fixes = [f.fix for f in findings(NAMED.format(above, beside), "host-read") if f.fix is not None]
    assert [fix.safety is Safety.SUGGEST for fix in fixes] == [by_hand]
    assert by_hand == fixes[0].changes.startswith("a comment here says why `.item()` is called; ")


METERS = """
import torch


class Meter:
    def __init__(self):
        self.total, self.n = 0.0, 0

    def update(self, value, n=1):
        self.total += float(value) * n
        self.n += n


def step(model, x, meters):
    loss = model(x).mean()
    {}
    return loss


def train(model, optimizer, loader):
    meters = {{k: Meter() for k in ("loss", "norm")}}
    for x in loader:
        step(model, x, meters).backward()
        meters["norm"].update(torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0))
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("call", "offered"),
    [
        ("meters['loss'].update(loss.item(), len(x))", False),
        ("shown = float(loss)\n    meters['loss'].update(n=len(x), value=shown)", False),
        ("meters['loss'].update(0.5)", False),
        ("meters['loss'].update(loss, 2)", True),
    ],
)
def test_what_any_caller_passes_as_a_number_is_no_tensor_in_a_fix(call: str, offered: bool) -> None:
    read = next(f for f in findings(METERS.format(call)) if "float(value)" in f.message)
    assert (read.fix is not None) == offered
