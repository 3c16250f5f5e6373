"""Whether what a line computed for a read goes with its fix: if the fix asks no longer, and the line computes nothing else."""

import textwrap

import pytest

import syncscope
from syncscope.model.finding import Adds, Stays

BODY = """
import torch

def step(x: torch.Tensor, m: torch.Tensor, end: int, lengths: list[int]):
    m = x > 0
    for i in range(100):
        {line}
            {then}
    return x
"""


def fixes(line, then):
    source = textwrap.dedent(BODY).format(line=line, then=then)
    return [found.fix for found in syncscope.lint(source=source, all=True, min_confidence="low") if found.fix]


@pytest.mark.parametrize(
    ("line", "then", "clears"),
    [
        ("if m.any():", "x[m] = 0.0", True),
        ("if x.relu().sum() > 3 or m.any():", "x[m] = 0.0", False),
        ("if m.all():", "break", True),
        ("if (x * 2).isfinite().all() and m.all():", "break", False),
    ],
)
def test_a_question_that_is_asked_no_longer(line, then, clears):
    found = [fix for fix in fixes(line, then) if fix.rewrite in ("write_without_asking", "ask_every_few_passes")]
    assert all(fix.clears == clears for fix in found)
    assert found or not clears


def test_asking_rarely_runs_on_and_reading_together_waits_once():
    (rarely,) = fixes("if m.all():", "break")
    assert rarely.adds is Adds.PASSES
    together = syncscope.lint(
        source="import torch\ndef f(x: torch.Tensor, y: torch.Tensor):\n    for i in range(9):\n"
        "        a = x.sum().item()\n        b = y.sum().item()\n        print(a, b)\n",
        all=True,
    )
    assert {found.fix.stays for found in together if found.fix} == {Stays.LAST}
    assert not any(found.fix.clears for found in together if found.fix)
