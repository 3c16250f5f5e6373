"""What waits right after another wait, or before one that stays, is cold. What has a fix of its own, or shares one, is told."""

from pathlib import Path

import pytest

from syncscope.linter.config import Config
from syncscope.linter.engine import check, check_file

GUARDED = """
import torch

def forward(x: torch.Tensor, mask: torch.BoolTensor, net: torch.nn.Linear):
    y = net(x)
    if mask.any():  # hot
        y = y + net(x[mask]).mean()  # cold
        y = y + net(x[mask]).sum()  # hot
    if mask.sum() > 0:  # hot
        z = y.flatten()
        z[0] = z.masked_select(mask).prod()  # cold
        for part in z:
            y = y + torch.unique(part)  # hot
    else:
        y = y + torch.unique(y)  # cold
    return y
"""

STRAIGHT = """
import torch

def forward(x: torch.Tensor, mask: torch.BoolTensor, net: torch.nn.Linear):
    count = mask.sum().item()  # hot
    rows = x[mask].reshape(count, -1)  # cold
    other = net(rows)
    rows = other[torch.unique(other)]  # hot
    first = rows[: int(mask.max())]  # cold
    for row in first:
        last = torch.unique(row)  # hot
    again = torch.unique(last)  # cold
    with torch.autocast("cuda"):
        more = torch.unique(again @ again)  # hot
    try:
        most = torch.unique(more)  # cold
    except ValueError:
        return more
    return [torch.unique(each) for each in most], torch.unique(first)  # hot
"""

LOGGED = """
import time
import torch

def forward(x: torch.Tensor, writer, net: torch.nn.Linear):
    y = net(x)
    a = torch.unique(y)  # hot
    began = time.time()
    writer.add_scalar("unique", len(a), 1)
    b = torch.unique(x)  # cold
    writer.flush(net)
    return a, b, torch.unique(x)  # hot
"""

FIXED = """
import torch

def forward(x: torch.Tensor, y: torch.Tensor):
    x = x.flatten()
    y = x.sigmoid()
    good = x > 0
    kept = x[good]  # hot
    return kept + y[good]  # hot

def loss(x: torch.Tensor, mask: torch.BoolTensor):
    rows = torch.unique(x)  # hot
    return rows, x[mask].sum()  # cold

def logged(x: torch.Tensor, log: dict):
    first = x.max().item()  # hot
    if first > 3:
        return None
    log["low"], log["high"] = x.min().item(), x.std().item()  # cold
    return log

class Left:
    def forward(self, x: torch.Tensor):
        if len(x) > 3:
            return torch.unique(x)  # hot
        return torch.unique(x)  # hot
"""

CALLED = """
import torch

def check(x: torch.Tensor):
    if x.ndim == 0:
        raise ValueError("no rows")
    if len(torch.unique(x)) < 2:  # cold
        raise ValueError("all are the same")

def checked(x: torch.Tensor):
    check(x)
    return x.flatten()

def lengths(n: torch.Tensor):
    def convolved(n):
        return torch.floor(n / 2)
    for _ in range(3):
        n = convolved(n)
    return n.long()

def perhaps(x: torch.Tensor, strict: bool):
    if not strict:
        return x.sort()
    if len(torch.unique(x)) < 2:  # cold
        raise ValueError("all are the same")

def large(x: torch.Tensor):
    check(x)
    return x @ x

class Layer(torch.nn.Module):
    def forward(self, x: torch.Tensor, n: torch.Tensor, strict: bool, given):
        x = self.net(x)
        check(x)
        x = self.net(x[torch.unique(x)])  # cold
        x = checked(x)
        x = self.net(x[torch.unique(x)])  # cold
        self._check(x)
        x = x[torch.unique(x)]  # cold
        n = lengths(n)
        x = self.net(x[torch.unique(n)])  # cold
        perhaps(x, strict)
        x = self.net(x[torch.unique(x)])  # hot
        if strict:
            check(x)
        x = self.net(x[torch.unique(x)])  # hot
        x = torch.unique(large(x))  # hot
        x = self.net(x)
        given(x)
        x = self.net(x[torch.unique(x)])  # hot
        self._check(x)
        self.told(x)
        return torch.unique(x)  # hot

    def _check(self, x: torch.Tensor):
        if len(torch.unique(x)) < 2:  # cold
            raise ValueError("all are the same")

    def told(self, x: torch.Tensor):
        raise NotImplementedError
"""

UPLOADED = """
import torch

def forward(x: torch.Tensor, y: torch.Tensor, rows: list, net: torch.nn.Linear):
    index = x.new_tensor([len(row) for row in rows])  # cold
    kept = x[torch.unique(index)]  # hot
    kept = net(kept)
    index = torch.tensor(rows, device=x.device)  # cold
    kept = kept[torch.unique(index)]  # hot
    kept = net(kept) + x.new_tensor([len(row) for row in rows])  # hot
    kept = kept + torch.tensor(rows, device=x.device)  # hot
    none = net(kept).new_tensor([])  # hot
    return none + torch.unique(kept)  # hot

def encode(x: torch.Tensor, mask: torch.BoolTensor, rows: list, columns: list, net: torch.nn.Linear):
    first, second = net(x), net(x)
    first[mask] = torch.tensor(rows, device=x.device)  # hot
    first = net(first)
    second[mask] = torch.tensor(columns, device=x.device)  # hot
    return net(first + second)

class Layer(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        if x.ndim > 3:
            self.table = torch.FloatTensor(len(x))
        self.table = self.table.to(x.device)  # cold
        return torch.unique(x) + self.table  # hot

def loss(x: torch.Tensor):
    rows = torch.unique(x)  # hot
    none = torch.tensor(0.0, device=x.device)  # cold
    return none + rows if (rows > 1).all() else torch.tensor(0.0, device=x.device)  # cold
"""

FOLLOWED = """
import torch

def forward(x: torch.Tensor, rows: list, net: torch.nn.Linear):
    index = torch.tensor(rows, device=x.device)  # cold
    x = x + index
    kept = net(x[torch.unique(x)])  # hot
    index = torch.tensor(rows, device=x.device)  # hot
    kept = net(kept[index])
    kept = kept[torch.unique(kept)]  # hot
    index = torch.tensor(0.0, device=x.device)  # cold
    kept = net(kept + index)
    return kept[torch.unique(kept)]  # hot

def loss(x: torch.Tensor, rows: list, early: bool, count: int, net: torch.nn.Linear):
    if early:
        index = torch.tensor(rows, device=x.device)  # cold
    else:
        index = torch.matmul(x, x)
    index = torch.matmul(index, index)
    x = x[torch.unique(x)] + index  # hot
    x = net(x)
    index = torch.tensor(rows, device=x.device)  # hot
    if early:
        return x[index]
    x = x[torch.unique(x)]  # hot
    x = net(x)
    index = torch.tensor(rows, device=x.device)  # hot
    while count > 3:
        x = x[torch.unique(x)]  # hot
    x = net(x)
    for row in rows:
        x = x + torch.tensor(rows, device=x.device)  # hot
    x = x[torch.unique(x)]  # hot
    x = net(x)
    index = torch.tensor(rows, device=x.device)  # cold
    checked(x[index])
    return x

def checked(x: torch.Tensor):
    assert len(x) > 3, f"too short: {x}"
    if len(torch.unique(x)) < 2:  # cold
        raise ValueError("all are the same")

def closure(x: torch.Tensor, log: list, early: bool):
    if early:
        log.append(x.max().item())  # cold
    last = x.min().item()  # hot
    if last > 3:
        log.append(last)
"""

SOLVED = """
import torch
from scipy.optimize import linear_sum_assignment

def matched(cost: torch.Tensor, x: torch.Tensor):
    rows, _ = linear_sum_assignment(cost.cpu())  # cold
    index = torch.from_numpy(rows).to(x.device)  # cold
    return x[index]
"""


@pytest.mark.parametrize(
    "code",
    [GUARDED, STRAIGHT, LOGGED, FIXED, CALLED, UPLOADED, FOLLOWED, SOLVED],
    ids=[
        "guarded",
        "straight",
        "logged",
        "fixed",
        "in a called function",
        "uploaded",
        "followed",
        "solved on the host",
    ],
)
def test_a_wait_directly_after_another_is_cold(code: str) -> None:
    marked = {n: "# hot" in row for n, row in enumerate(code.splitlines(), 1) if "# hot" in row or "# cold" in row}
    found = check("x.py", code.encode(), Config(all=True)).findings
    told: dict[int, bool] = {}
    for finding in found:
        told[finding.place.line] = told.get(finding.place.line, False) or finding.heat.whole
    assert told == marked


def test_the_line_that_has_waited_is_named() -> None:
    found = check("x.py", GUARDED.encode(), Config(all=True)).findings
    assert [f.heat.words for f in found if f.place.line == 7] == ["line 6 has just waited: little is in flight"]
    found = check("x.py", FOLLOWED.encode(), Config(all=True)).findings
    assert [f.heat.words for f in found if f.place.line == 5] == ["line 7 waits right after, and stays"]
    found = check("x.py", UPLOADED.encode(), Config(all=True)).findings
    assert {f.heat.whole for f in found if f.rule == "boolean-mask-write"} == {
        True
    }  # the upload's fix writes it down again
    assert 7 not in [f.place.line for f in check("x.py", GUARDED.encode(), Config()).findings]


METERS = """
import torch

class Meters:
    def update(self, loss, metrics: dict[str, torch.Tensor]):
        if isinstance(loss, torch.Tensor):
            loss = loss.item()
        self.loss += loss
        for name, value in metrics.items():
            self.seen[name] += value.item()

class Norms:
    def update(self, loss, weights: dict[str, torch.Tensor]):
        if isinstance(loss, torch.Tensor):
            loss = loss.item()
        self.loss += loss
        for name, value in weights.items():
            self.seen[name] += value.norm().item()
"""


def test_a_loop_that_only_reads_what_is_there_waits_for_little_behind_a_wait() -> None:
    told = {f.place.line for f in check("x.py", METERS.encode(), Config()).findings}
    assert told == {7, 18}, "what each pass computes, it waits for"


HIDDEN = """
import torch

class Trainer:
    def train_step(self, x: torch.Tensor, y: torch.Tensor):
        loss = self.model(x).sub(y).sum()
        loss.backward()
        self.norms.append(self.last_norm(None))
        return loss.item()  # told

    def last_norm(self, dataset):
        return sum(p.grad.norm() for p in self.model.parameters()).item()

    def training_step(self, x: torch.Tensor, log: list):
        log.append((torch.zeros(3).cpu(), x.item()))  # told
"""


def test_what_is_not_told_hides_no_other() -> None:
    told = {f.place.line for f in check("x.py", HIDDEN.encode(), Config()).findings}
    assert told == {n for n, row in enumerate(HIDDEN.splitlines(), 1) if "# told" in row}


ELSEWHERE = """
import torch
import torch.distributed as dist

def accuracy(x: torch.Tensor, y: torch.Tensor):
    right = x == y
    return float(right.sum()) / len(y)

def rows(x: torch.Tensor, most: int = None):
    if most is None:
        most = x.max()
    return torch.arange(most, device=x.device)

def mean_of_ranks(x: torch.Tensor):
    x = x / dist.get_world_size()
    dist.all_reduce(x)
    return x

class Base(torch.nn.Module):
    def _check(self, x: torch.Tensor):
        if torch.isnan(x).any():
            raise ValueError("not a number")

    def _note(self, x: torch.Tensor):
        self.noted = x.sum()
"""

CALLER = """
import torch
from .elsewhere import Base, accuracy, mean_of_ranks, rows
from . import elsewhere

class Layer(Base):
    def forward(self, x: torch.Tensor, y: torch.Tensor, given: list):
        x = self.net(x)
        right = accuracy(x, y)
        x = self.net(x[torch.unique(x)])  # cold
        right = elsewhere.accuracy(x, y)
        x = self.net(x[torch.unique(x)])  # cold
        self._check(x)
        x = self.net(x[torch.unique(x)])  # cold
        x = self.net(x) + torch.tensor(given, device=x.device)  # cold
        self._check(x)
        x = self.net(x)
        x = rows(x, 5)
        x = self.net(x[torch.unique(x)])  # hot
        x = torch.unique(x)  # hot
        self._note(x)
        x = torch.unique(x)  # cold
        x = torch.unique(mean_of_ranks(x))  # hot
        return self.net(x)
"""


def test_a_wait_in_a_function_of_another_file_counts(tmp_path: Path) -> None:
    (tmp_path / "__init__.py").write_text("")
    (tmp_path / "elsewhere.py").write_text(ELSEWHERE)
    caller = tmp_path / "caller.py"
    caller.write_text(CALLER)
    found = check_file(str(caller), Config(all=True)).findings
    rows = enumerate(CALLER.splitlines(), 1)
    assert {f.place.line: f.heat.whole for f in found} == {
        n: "# hot" in row for n, row in rows if "# hot" in row or "# cold" in row
    }
    reasons = {f.place.line: f.heat.words for f in found if not f.heat.whole}
    assert reasons[10] == "line 7 of elsewhere.py has just waited: little is in flight"
    assert reasons[15] == "line 21 of elsewhere.py waits right after, and stays"


def test_a_number_that_goes_away_with_the_positions_is_told_with_them_and_hides_nothing(tmp_path: Path) -> None:
    path = tmp_path / "segmentation.py"  # beside nothing of this repository, which would be gone through
    path.write_bytes((Path(__file__).parents[2] / "samples" / path.name).read_bytes())
    found = check_file(str(path), Config())
    whole = ["nonzero", "unique", "boolean-mask-read", "boolean-mask-read"]
    assert [f.rule for f in found.findings] == whole
    assert not found.also


EMPTIED = """\
import torch

def train(model, loader, optimizer):
    for x in loader:
        loss = model(x.cuda(non_blocking=True)).mean()
        loss.backward()
        optimizer.step()
        print(loss.item())
        torch.cuda.empty_cache()
"""


def test_what_costs_more_than_its_wait_is_told_whole_beside_another() -> None:
    found = check("train.py", EMPTIED.encode(), Config()).findings
    told = {finding.rule: finding for finding in found}
    assert told["host-read"].heat.whole
    assert told["emptied-cache"].heat.whole
    assert told["emptied-cache"].advice.why_by_hand == ""
