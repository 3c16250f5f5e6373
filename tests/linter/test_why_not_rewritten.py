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


@pytest.mark.parametrize("body", ADDED_UP.values(), ids=ADDED_UP)
def test_what_keeps_a_rewrite_from_a_line(door, body):
    code = HEAD + body.strip("\n").rstrip(" ")
    door.write("train.py", code)
    marked = {
        number: said for number, line in enumerate(code.splitlines(), 1) for said in re.findall("# not: (.*)", line)
    }
    told = {f["line"]: f.get("why_not") for f in json.loads(door("lint", "--format", "json").out)}
    assert told == marked
    for line, why in marked.items():
        assert f"= not rewritten: {why}" in door("lint", "--explain-finding", f"train.py:{line}").out


def test_what_is_of_no_form_that_is_known_says_no_more_than_that(door):
    door.write("train.py", f"{HEAD}        log.add(loss.item() ** 2)\n")
    (found,) = json.loads(door("lint", "--format", "json").out)
    assert found["fix"] is None
    assert "why_not" not in found
    assert "= no rewrite fits here: " in door("lint").out
