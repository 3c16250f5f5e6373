"""Resets of recurrent states are written without asking whether anything is done, and do the same."""

from textwrap import dedent
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("hypothesis")

import torch
from effort import draws
from rules.driver import HEAD, findings, fixed
from rules.equivalence import assert_equivalent

from syncscope.model.finding import Safety

INPUTS = "x: finite[t, n, m]; done: index[t, n] < 2; h: finite[n, m]; c: finite[n, m]"
STEPS = """
def rollout(x: torch.Tensor, done: torch.Tensor, h: torch.Tensor, c: torch.Tensor):
    h, c = h * 1, c * 1
    for t in range(x.shape[0]):
        d = done[t]
{reset}
        h, c = h + x[t], c * 2 - x[t]
    return h, c
"""
RESETS = {
    "in place": ("if d.any():\n    h[d.bool()] = 0", "h[d.bool()] = 0"),
    "several states": (
        "if torch.any(d):\n    h[d > 0] = 0\n    c[d.bool()] = 1.5",
        "h[d > 0] = 0\nc[d.bool()] = 1.5",
    ),
    "a mask of its own name": (
        "gone = d.bool()\nif gone.any():\n    h[gone, :] = 0",
        "gone = d.bool()\nh[gone, :] = 0",
    ),
    "beside other tests": (
        "if t > 0 and (d > 0).sum() > 0:\n    h[d > 0] = 0",
        "if t > 0:\n    h[d > 0] = 0",
    ),
    "asked for as a number": (
        "if d.any().item():\n    h[d.bool()] = 0\nif d.sum().item() > 0:\n    c[d == 1] = 0",
        "h[d.bool()] = 0\nc[d == 1] = 0",
    ),
    "a product": (
        "if d.any():\n    h = h * (1 - d).unsqueeze(-1)\n    c *= 1 - d[:, None]",
        "h = h * (1 - d).unsqueeze(-1)\nc *= 1 - d[:, None]",
    ),
    "a product with what was made before": (
        "keep = 1.0 - d.float().view(-1, 1)\nif d.any():\n    h, c = keep * h, c * keep",
        "keep = 1.0 - d.float().view(-1, 1)\nh, c = keep * h, c * keep",
    ),
    "filled": (
        "if d.any():\n    h = h.masked_fill(d.bool().unsqueeze(-1), 0.0)\n    c.masked_fill_((d == 1)[:, None], 2)",
        "h = h.masked_fill(d.bool().unsqueeze(-1), 0.0)\nc.masked_fill_((d == 1)[:, None], 2)",
    ),
    "chosen": (
        "if d.any():\n    h = torch.where(d.bool()[:, None], 0.0, h)\n    c = torch.where((d == 0)[:, None], c, -1.0)",
        "h = torch.where(d.bool()[:, None], 0.0, h)\nc = torch.where((d == 0)[:, None], c, -1.0)",
    ),
    "of each state": (
        "if d.any():\n    with torch.no_grad():\n        for s in (h, c):\n            s[d.bool()] = 0",
        "with torch.no_grad():\n    for s in (h, c):\n        s[d.bool()] = 0",
    ),
}


@pytest.mark.parametrize("name", RESETS)
def test_a_reset_does_not_ask(name: str) -> None:
    before, after = RESETS[name]
    code = HEAD + STEPS.format(reset=indented(before))
    found = fixed(code, "tensor-in-condition", "nonzero", "host-read", allowed={Safety.UNSAFE})
    assert found == HEAD + STEPS.format(reset=indented(after))
    assert_equivalent(code, found, INPUTS, Safety.UNSAFE, draws(10))


def indented(code: str) -> str:
    return "\n".join(" " * 8 + line for line in code.split("\n"))


OF_MODULES = {
    "attributes": (
        "if done.any():\n    self.h[:, done] = 0.0\n    self.c[:, done] = 0.0",
        "self.h[:, done] = 0.0\nself.c[:, done] = 0.0",
        "done must be a mask, no positions",
    ),
    "a tuple": (
        "if done.any():\n    hidden = (hidden[0] * (1 - done).view(1, -1, 1), hidden[1] * (1 - done).view(1, -1, 1))",
        "hidden = (hidden[0] * (1 - done).view(1, -1, 1), hidden[1] * (1 - done).view(1, -1, 1))",
        "hidden must be a tuple of 2",
    ),
    "a sum of what may be negative": (
        "if done.sum() > 0:\n    self.h = self.h * (1 - done)",
        "self.h = self.h * (1 - done)",
        "done must hold no negative numbers",
    ),
}
MODULE = """
class Policy(torch.nn.Module):
    def forward(self, x: torch.Tensor, done: torch.Tensor, hidden):
{reset}
        return self.cell(x, hidden), self.h, self.c
"""


@pytest.mark.parametrize("name", OF_MODULES)
def test_what_must_hold_is_said(name: str) -> None:
    before, after, words = OF_MODULES[name]
    code = HEAD + MODULE.format(reset=indented(before))
    assert fixed(code, "tensor-in-condition") == HEAD + MODULE.format(reset=indented(after))
    (fix,) = {each.fix for each in findings(code, "tensor-in-condition")}
    assert fix is not None
    assert words in fix.changes
    assert fix.safety is Safety.UNSAFE


@pytest.mark.parametrize(
    "reset",
    [
        "if d.any():\n    h = h.zero_()",  # all rows, not those of the mask
        "if d.any():\n    h[d.bool()] = 0\nelse:\n    h[0] = 1",
        "if d.any():\n    h[c > 0] = 0",  # another mask
        "if d.any():\n    d = c > 0\n    h[d] = 0",  # it is another one by then
        "if d.any():\n    h = h * d[:, None]",  # zero where nothing is masked
        "if d.any():\n    h[d.bool()] = 0\n    print(t)",
    ],
)
def test_what_is_no_reset_by_this_mask_is_asked(reset: str) -> None:
    code = HEAD + STEPS.format(reset=indented(reset))
    assert findings(code, "tensor-in-condition")
    assert fixed(code, "tensor-in-condition", allowed={Safety.UNSAFE}) == code


def test_a_reset_in_a_loop_over_steps_is_told_whole() -> None:
    code = dedent(
        """
        import torch

        class Agent(torch.nn.Module):
            def states(self, x, h, done):
                for each, d in zip(self.encoder(x), done):
                    if d.any():
                        h = h.clone()
                        h[d.bool()] = 0.0
                    h = self.cell(each, h)
                return h
        """
    )
    import syncscope

    (found,) = syncscope.lint(source=code)
    assert found.place.line == 7
    assert found.heat.whole


ATTENTION = """
def attended(scores: torch.Tensor, mask: torch.Tensor):
    weights = {made}
    empty = mask.sum(-1) == 0
    if empty.any():
        {reset}
    return weights * 2
"""


@pytest.mark.parametrize(
    "made", ["torch.softmax(scores, dim=1)", "scores.exp().view(scores.shape)", "scores.sigmoid()"]
)
@pytest.mark.parametrize("reset", ["weights[empty] = 0.0", "weights.masked_fill_(empty[:, None], 0.0)"])
def test_what_backward_needs_is_written_only_where_it_is_now(made: str, reset: str) -> None:
    """Such a write raises in backward, and would do so in every step."""
    code = HEAD + ATTENTION.format(made=made, reset=reset)
    assert findings(code, "tensor-in-condition")
    assert fixed(code, "tensor-in-condition", allowed={Safety.UNSAFE}) == code
    other = HEAD + ATTENTION.format(made="scores * 2", reset=reset)
    after = fixed(other, "tensor-in-condition", allowed={Safety.UNSAFE})
    assert "if empty.any()" not in after
    space: dict[str, Any] = {}
    exec(after, space)
    scores = torch.ones(3, 4, requires_grad=True)
    space["attended"](scores, torch.eye(3, 4)).sum().backward()
    assert scores.grad is not None
