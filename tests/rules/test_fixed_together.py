"""What stands beside each other and waits alike is mended by one fix: a part of it would look forgotten, and wait as long."""

import re
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch
from rules.driver import config, findings, fixed

from syncscope.linter.engine import check_file
from syncscope.model.finding import Safety

COLLECTED = """
import torch

def train(loss_of, batches):
    losses, worst = [], []
    for batch in batches:
        loss, error = loss_of(batch).mean(), loss_of(batch).abs().max()
        losses.append(loss.item())
        worst.append(error.item())
    return losses, worst
"""
SLICED = """
import torch

def opponent(rgb: torch.Tensor):
    return rgb[:, [0]] - 2 * rgb[:, [1]] + rgb[:, [2]].abs()
"""
SPANS = """
import torch

def spans(x: torch.Tensor):
    begins, ends = (x * 4).long(), (x * 8).long()
    found = []
    for row in range(3):
        begin, end = int(begins[row, 0]), int(ends[row, 0])
        found.append(range(begin, end))
    return found
"""
UPLOADS = """
import torch
from torch.utils.data import DataLoader

def train(model, data, device):
    loader = DataLoader(data, batch_size=8)
    for batch in loader:
        x = batch[0].to(device)
        y = batch[1].to(device)
        (model(x) - y).square().mean().backward()
"""
WRITTEN = """
import torch

def projection(x: torch.Tensor, near, far):
    p = torch.zeros(4, 4, device="cuda")
    {}
    p[3, 2] = 1.0
    return x @ p
"""


def test_lists_that_are_filled_beside_each_other_are_read_together() -> None:
    (fix,) = {f.fix for f in findings(COLLECTED, "host-read")}
    assert fix is not None
    assert fix.safety is Safety.UNSAFE
    assert "losses and worst hold tensors" in fix.changes
    after = fixed(COLLECTED, "host-read")
    assert ".item()" not in after
    assert after.index("losses = torch.") < after.index("worst = torch.") < after.index("return")


def test_a_list_is_not_collected_by_command_where_one_beside_it_is_read_in_the_loop() -> None:
    looked_at = COLLECTED.replace("        worst.append", "        print(worst)\n        worst.append")
    assert {f.fix.safety for f in findings(looked_at, "host-read") if f.fix is not None} == {Safety.SUGGEST}


def test_slices_of_a_statement_are_taken_together() -> None:
    (fix,) = {f.fix for f in findings(SLICED, "list-as-index")}
    assert fix is not None
    assert "rgb[:, :1] - 2 * rgb[:, 1:2] + rgb[:, 2:3].abs()" in fixed(SLICED)


def test_an_element_beside_others_that_stay_is_not_filled_by_command() -> None:
    alone, beside = (WRITTEN.format(line) for line in ("pass", "p[0, 0] = near / far"))
    safeties = [{f.fix.safety for f in findings(code, "number-at-positions") if f.fix} for code in (alone, beside)]
    assert safeties[0] == {Safety.SAFE}
    assert Safety.SUGGEST in safeties[1] or Safety.UNSAFE in safeties[1]
    assert Safety.SAFE not in safeties[1]


def test_tensors_that_a_loop_reads_element_by_element_are_read_together() -> None:
    (fix,) = {f.fix for f in findings(SPANS, "host-read")}
    assert fix is not None
    assert fix.title == "read begins, ends once, before the loop"
    assert "begin, end = begins_list[row][0], ends_list[row][0]" in fixed(SPANS, "host-read")


def test_what_a_loader_gives_is_pinned_and_copied_together() -> None:
    (fix,) = {f.fix for f in findings(UPLOADS, "blocking-upload")}
    assert fix is not None
    after = fixed(UPLOADS, "blocking-upload")
    assert after.count("non_blocking=True") == 2
    assert after.count("pin_memory=torch.cuda.is_available()") == 1


SUMS = """
import torch

def train(model, loader, weighs_entropy: bool):
    policy = value = entropy = 0.0
    for batch in loader:
        losses = [part.mean() for part in model(batch)]
        policy_loss, value_loss, entropy_loss = losses[0] * 2, losses[1] * 2, losses[2] * 2
        policy_loss.backward()
        policy += policy_loss.item()
        value += value_loss.item()
        if weighs_entropy:
            entropy += entropy_loss.item()
    return policy, value, entropy
"""
MADE = """
import torch

def start(x: torch.Tensor, rows: int):
    device = x.device
    one = torch.ones(rows).to(device)
    none = torch.zeros(rows).to(device)
    {between}
    left, right = torch.eye(3).to(device), torch.zeros(
        3
    ).to(device)
    return one, none, left, right
"""


def test_sums_of_a_loop_are_kept_on_the_device_together() -> None:
    (fix,) = {f.fix for f in findings(SUMS, "host-read")}
    assert fix is not None
    said = "policy, value and entropy are tensors inside the loop, and added up in float32: the last bits may differ"
    assert fix.changes.startswith(said)
    after = fixed(SUMS, "host-read")
    assert "        value += value_loss.detach().float()\n" in after
    assert "            entropy += entropy_loss.detach().float()\n" in after
    assert after.count(".item()") == 0


def test_a_sum_that_each_pass_shows_stays_apart() -> None:
    shown = SUMS.replace("        value +=", "        print(value)\n        value +=")
    fixes = [f.fix for f in findings(shown, "host-read") if f.fix is not None]
    assert not any(re.search(r"\bvalue\b", fix.changes) for fix in fixes)
    assert all("`value_loss.item()`, another read beside it, stays" in fix.changes for fix in fixes)


def test_what_a_function_makes_on_the_host_is_made_on_the_device_by_one_fix() -> None:
    code = MADE.format(between="x = x @ x.mT")
    (fix,) = {f.fix for f in findings(code, "created-on-host")}
    assert fix is not None
    assert (len(fix.edits), fix.gains) == (4, "saves 4 waits in each call of start")
    after = fixed(code, "created-on-host", allowed={Safety.SAFE})
    assert after.count("device=device") == 4
    near = findings(MADE.format(between="x = x + 1"), "created-on-host")
    assert {len(f.fix.edits) for f in near if f.fix is not None} == {4}, (
        "one that is mended alone leaves the wait of the next"
    )
    joined = MADE.format(between="third = torch.zeros(rows).to(device)")
    assert {len(f.fix.edits) for f in findings(joined, "created-on-host") if f.fix is not None} == {5}


def test_what_stands_beside_another_wait_is_not_mended_with_it() -> None:
    code = MADE.format(between="print(x.sum())").replace("torch.zeros(rows)", "x.sum().item() * torch.zeros(rows)")
    fixes = [f.fix for f in findings(code, "created-on-host") if f.fix is not None]
    assert len(fixes[0].edits) == 1


def test_what_is_copied_beside_each_other_is_one_fix_also_where_its_loader_is_out_of_sight() -> None:
    code = """
import torch
from torch.utils.data import DataLoader

class Model:
    def fit(self, data):
        for X, y in DataLoader(data, pin_memory=True):
            self.train_batch(X, y)

    def train_batch(self, X, y):
        X = X.to(self.device).float()
        y = y.to(self.device).float()
        self.optimizer.zero_grad()
        loss = self.network(X).sub(y).square().mean()
        loss.backward()
        self.optimizer.step()
"""
    fixes = [f.fix for f in findings(code, "blocking-upload")]
    assert [fix is not None and len(fix.edits) for fix in fixes] == [2, 2]
    assert fixes[0] == fixes[1]


CHECKED = """
import torch
from torch.distributions import Categorical, Normal, kl_divergence

def loss(mean: torch.Tensor, spread: torch.Tensor, logits: torch.Tensor, action: torch.Tensor, discrete: bool):
    posterior = Normal(mean, spread.exp())
    prior = Normal(torch.zeros_like(mean), torch.ones_like(mean){})
    if discrete:
        return Categorical(logits=logits).log_prob(action).mean()
    return kl_divergence(posterior, prior).mean()
"""


def test_distributions_of_a_function_are_left_unchecked_together() -> None:
    fixes = {f.fix for f in findings(CHECKED.format(""), "distribution-validation")}
    assert len(fixes) == 1
    (fix,) = fixes
    assert fix is not None
    assert fix.changes.startswith("NaN in their parameters, or a 0, no longer raises an error; nor does a value")
    assert fixed(CHECKED.format(""), "distribution-validation").count("validate_args=False") == 3
    asked_for = findings(CHECKED.format(", validate_args=True"), "distribution-validation")
    assert {len(f.fix.edits) for f in asked_for if f.fix is not None} == {2}


def test_a_distribution_in_another_is_left_unchecked_with_those_beside_it() -> None:
    code = """
import torch
from torch.distributions import Independent, Normal

def ratio(a: torch.Tensor, b: torch.Tensor, x: torch.Tensor):
    new, old = Independent(Normal(a, a.exp()), 1), Independent(Normal(b, b.exp()), 1)
    return (new.log_prob(x) - old.log_prob(x)).exp()
"""
    after = fixed(code, "distribution-validation")
    assert after.count("exp(), validate_args=False), 1") == 2


PARTS = """
import torch

def term(x: torch.Tensor, m: int):
    a = torch.lgamma(torch.tensor([{}]).to(x.device)) + torch.tensor([2.0]).to(x.device).log()
    {}return a + torch.tensor([1.0]).to(x.device)
"""


def test_a_fix_that_is_not_safe_takes_along_the_safe_ones_beside_it() -> None:
    first, *others = [f.fix for f in findings(PARTS.format("m / 2", ""), "created-on-host")]
    assert first is not None
    assert (first.safety, len(first.edits)) == (Safety.UNSAFE, 3)
    assert {other.safety for other in others if other is not None} == {Safety.SAFE}
    assert ".to(" not in fixed(PARTS.format("m / 2", ""), "created-on-host", allowed={Safety.UNSAFE})
    safe = fixed(PARTS.format("m / 2", ""), "created-on-host", allowed={Safety.SAFE})
    assert safe.count(".to(") == 1
    assert "torch.tensor([m / 2]).to(x.device)" in safe


def test_a_wait_of_another_kind_between_them_keeps_fixes_apart() -> None:
    first, *_ = [f.fix for f in findings(PARTS.format("m / 2", "print(x.sum())\n    "), "created-on-host")]
    assert first is not None
    assert len(first.edits) == 2


WRAPPED = """
import torch

def between(a: torch.Tensor, b: torch.Tensor):
    angle = b - a
    angle[angle < -180] += 360
    angle[angle >= 180] -= 360
    return angle
"""


def test_writes_by_masks_that_follow_each_other_are_chosen_together() -> None:
    fixes = {f.fix for f in findings(WRAPPED, "boolean-mask-write", "boolean-mask-read") if f.fix is not None}
    assert len(fixes) == 1
    code = fixed(WRAPPED, "boolean-mask-write", "boolean-mask-read", allowed={Safety.UNSAFE})
    assert code.count("angle = torch.where(angle ") == 2
    spaces: tuple[dict[str, object], dict[str, object]] = {}, {}
    for space, text in zip(spaces, (WRAPPED, code), strict=True):
        exec(text, space)
    a, b = torch.linspace(-180, 180, 37), torch.linspace(180, -180, 37)
    a[3] = b[5] = torch.nan
    before, after = (space["between"](a, b) for space in spaces)  # type: ignore[operator]
    assert torch.equal(before.nan_to_num(7), after.nan_to_num(7))


def test_what_is_gone_through_side_by_side_is_read_together() -> None:
    code = """
import torch

def means(x: torch.Tensor, d: torch.Tensor):
    ends = d.cumsum(0)
    return [x[start:end].mean() for start, end in zip(ends[:-1], ends[1:])]
"""
    (fix,) = {f.fix for f in findings(code, "tensor-as-size")}
    assert fix is not None
    assert "zip(ends[:-1].tolist(), ends[1:].tolist())" in fixed(code, "tensor-as-size", allowed={Safety.UNSAFE})


def test_functions_of_math_in_a_statement_are_computed_on_the_device_together() -> None:
    code = """
import math
import torch

def scaled(x: torch.Tensor, y: torch.Tensor):
    c = x.square().mean()
    return y * math.sqrt(c) - math.log(c) * y.abs()
"""
    (fix,) = {f.fix for f in findings(code, "numpy-crossing")}
    assert fix is not None
    assert "y * c.detach().sqrt() - c.detach().log() * y.abs()" in fixed(
        code, "numpy-crossing", allowed={Safety.UNSAFE}
    )


def test_what_stands_in_one_statement_that_is_folded_anew_is_made_together(tmp_path: Path) -> None:
    code = """
import torch

def tables(image: torch.Tensor, height: int, width: int):
    rows, columns = torch.zeros(height).to(image.device), torch.ones(width).to(image.device)
    return rows[:, None] * columns[None, :] + image
"""
    (tmp_path / "pyproject.toml").write_text("[tool.black]\nline-length = 94\n")
    path = tmp_path / "tables.py"
    path.write_text(code)
    (fix,) = {f.fix for f in check_file(str(path), config("created-on-host")).findings}
    assert fix is not None
    (edit,) = fix.edits  # of the whole statement, which is too long for one line then
    assert edit.text.count("device=image.device") == 2
    assert "\n" in edit.text
