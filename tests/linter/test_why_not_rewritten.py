"""Why a rewrite of its form does not mend a line: said with the finding, in text and in JSON. `# not: WHY` marks such lines."""

import json
import re

import pytest

HEAD = """\
import torch
import torch.nn.functional as F


def train(model, criterion, optimizer, loader, log):
    total, count, kept = 0.0, 0, []
    for x, y in loader:
        x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
ADDED_UP = {
    "shown in each pass": """
        total += loss.item()  # not: line 14 reads `total` in each pass of the loop
        log(total)
    """,
    "begun by who knows what": """
        log.total += 1
        begun += loss.item()  # not: what `begun` begins with, or who sees it half done, is unknown
    """,
}


IN_A_STEP = {
    "fill_tensor_on_device": """
def training_step(self, x: torch.Tensor, low):
    bound = torch.as_tensor(low, device=x.device)  # not: nothing says that `low` is one number
    return (x * bound).sum()
""",
    "create_on_device": """
def training_step(self, x: torch.Tensor, place):
    return (x * torch.rand(3, generator=self.drawn).to(place)).sum()  # not: where it is sent may be no device
""",
    "make_number_on_device": """
def training_step(self, x: torch.Tensor, i, n: int):
    goal = torch.zeros_like(x)
    goal[i, n] = 1.0  # not: a mask may say where it is written: a number is filled there without waiting
    return (x * goal).sum()
""",
    "gather_row": """
def training_step(self, x: torch.Tensor, rows: torch.LongTensor):
    x[rows.argmax()].zero_()  # not: the row is written in place: a copy of it would be
    return x.sum()
""",
    "count_in_given_bins": """
def training_step(self, x: torch.Tensor, rows: torch.LongTensor):
    return (x * torch.bincount(rows)).sum()  # not: no minlength says how many bins there are
""",
    "choose_with_where": """
def training_step(self, x: torch.Tensor, keep: torch.BoolTensor):
    y = x.exp()
    y[keep] = self.other(x)  # not: what is written is not made element by element of what the mask selects
    return y.sum()
""",
    "ignore_in_cross_entropy": """
def training_step(self, x: torch.Tensor, y: torch.LongTensor, keep: torch.BoolTensor):
    return F.cross_entropy(x[keep], y)  # not: logits and targets are not both selected by one mask
""",
    "go_through_numbers": """
def training_step(self, x: torch.Tensor, labels: torch.LongTensor):
    for label in labels:
        self.seen[label.item()] = self.told(label)  # not: line 7 takes `label` as a tensor
    return x.sum()
""",
}


def marked(code: str) -> dict[int, str]:
    lines = enumerate(code.splitlines(), 1)
    return {number: said for number, line in lines for said in re.findall("# not: (.*)", line)}


@pytest.mark.parametrize("body", ADDED_UP.values(), ids=ADDED_UP)
def test_what_keeps_a_sum_from_the_device(door, body):
    code = HEAD + body.strip("\n").rstrip(" ")
    door.write("train.py", code)
    told = {f["line"]: f.get("why_not") for f in json.loads(door("lint", "--format", "json").out)}
    assert told == marked(code)
    for line, why in marked(code).items():
        assert f"= not rewritten: {why}" in door("lint", "--explain-finding", f"train.py:{line}").out


@pytest.mark.parametrize("rewrite", IN_A_STEP)
def test_what_keeps_a_rewrite_from_a_line(door, rewrite):
    code = f"import torch\nimport torch.nn.functional as F\n\n{IN_A_STEP[rewrite]}"
    door.write("train.py", code)
    (line,), (why,) = marked(code), marked(code).values()
    assert f"= not rewritten: {why}" in door("lint", "--explain-finding", f"train.py:{line}").out


def test_what_is_of_no_form_that_is_known_says_no_more_than_that(door):
    door.write("train.py", f"{HEAD}        log.add(loss.item() ** 2)\n")
    (found,) = json.loads(door("lint", "--format", "json").out)
    assert found["fix"] is None
    assert "why_not" not in found
    assert "= no rewrite fits here: " in door("lint").out
