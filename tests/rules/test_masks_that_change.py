"""A mask is looked for anew where it may have changed, and no number is made where a mask or an index takes it."""

import pytest
from effort import in_turns
from rules.driver import FIXES, HEAD, findings, fixed

from syncscope.model.finding import Safety

MASKS = {  # a number written through a mask waits for nothing; made on the device it would look for the positions
    "product": "keep = (x > 0) * (x < 1)",
    "sum": "keep = (x > 0) + (x < 1)",
    "product with a bool": "keep = (x > 0) * True",
    "bytes": "keep = x.byte()",
    "uint8": "keep = (x > 0).to(torch.uint8)",
    "made of uint8": "keep = torch.ones(x.shape, dtype=torch.uint8, device=x.device)",
    "of nothing known": "keep = given.to(torch.uint8)",
}
STALE = {  # what is written to the mask between its uses
    "slice": "good[:2].logical_not_()",
    "view": "good.view(-1)[0] = False",
    "alias": "flat = good.view(-1)\n    flat[0:1] = False",
    "older alias": "first.zero_()",
    "list": "for each in [good]:\n        each.zero_()",
    "loop": "for row in good:\n        row.zero_()",
    "data": "good.data[0] = True",
    "handed on": "change(good[1:])",
    "kept": "self.kept = good\n    self.change()",
    "augmented": "same = good\n    same &= y > 1",
    "given back": "same = self.norm(good)\n    same.zero_()",
    "out": "torch.logical_not(good, out=good)",
    "another library's": "flat = torch.from_dlpack(good)\n    flat.zero_()",
    "a default": "def turn(same=good):\n        same.logical_not_()\n    turn()",
    "a class": "class Kept:\n        same = good\n    Kept.same.zero_()",
    "given by a function": "same = (lambda: good)()\n    same.zero_()",
    "memory": "good.untyped_storage().fill_(0)",
    "an equation": "same = torch.einsum('...->...', good)\n    same.zero_()",
    "a grid": "_, same = torch.meshgrid(x, good)\n    same.zero_()",
    "no dropout": "same = torch.nn.functional.alpha_dropout(good, training=False)\n    same.zero_()",
}
SHARED = {
    "alias": "r = repeats\n    r += 1",
    "slice": "r = repeats[1:]\n    r += 1",
    "view": "repeats.view(-1)[0] = 7",
    "nested": "def more():\n        repeats.add_(1)\n    more()",
}


@pytest.mark.parametrize(
    ("value", "shared"), [("x[d.mask].cumsum(0)", True), ("change(d, x[d.mask], x[d.mask])", False)]
)
def test_a_mask_that_others_may_write_is_asked_again_for_what_is_written(value: str, shared: bool) -> None:
    after = fixed(f"{HEAD}def f(d, x: torch.Tensor):\n    x[d.mask] = {value}\n    return x\n")
    assert ("x[mask_index] = " in after) == shared, after


@pytest.mark.parametrize("made", MASKS.values(), ids=MASKS)
def test_a_number_that_a_mask_takes_stays(made: str) -> None:
    code = f"{HEAD}def f(x: torch.Tensor, given):\n    {made}\n    x[keep] = 0\n    return x\n"
    assert fixed(code, allowed=FIXES) == code


def test_a_mask_of_a_function_of_the_file_is_one() -> None:
    code = f"{HEAD}def inside(x):\n    return (x > 0) * (x < 1)\n\n\ndef f(x: torch.Tensor):\n    x[inside(x)] = 0\n"
    assert fixed(code, allowed=FIXES) == code


@pytest.mark.parametrize(
    ("write", "at", "made"),
    in_turns(
        [*STALE.values()],
        ["good", "0, good"],
        ["good = x > 0", "good, least = x > 0, 1", "good: torch.Tensor = x > 0"],
    ),
)
def test_a_mask_that_is_written_is_looked_for_again(write: str, at: str, made: str) -> None:
    def written(between: str) -> str:
        return (
            f"{HEAD}def f(self, x: torch.Tensor, z: torch.Tensor):\n    y = z.sigmoid()\n    {made}\n    first = good[0]\n"
            f"    a = z[{at}]\n    {between}\n    b = y[{at}]\n    return a, b, first\n"
        )

    assert "nonzero" in fixed(written("c = 1"), allowed={*FIXES, Safety.SUGGEST})
    assert "nonzero" not in fixed(written(write), allowed={*FIXES, Safety.SUGGEST})


@pytest.mark.parametrize("write", SHARED.values(), ids=SHARED)
def test_counts_that_are_written_have_another_sum(write: str) -> None:
    code = (
        f"{HEAD}def f(x: torch.Tensor):\n    repeats = torch.tensor([1, 0, 3], device=x.device)\n    {write}\n"
        "    return x.repeat_interleave(repeats, dim=0)\n"
    )
    assert "output_size" not in fixed(code, allowed=FIXES)


GUARDED = (
    "if flag:\n        return x[good] + y[good]\n    return x",
    "return x[good] + y[good] if flag else x",
    "while flag:\n        x = x[good] + y[good]\n        flag = False\n    return x",
    "if flag:\n        return x[good]\n    return y[good]",
    "if flag:\n        return x[good]\n    else:\n        return y[good]",
)


@pytest.mark.parametrize("use", GUARDED)
def test_an_index_is_looked_for_only_where_it_is_used(use: str) -> None:
    code = f"{HEAD}def f(x: torch.Tensor, flag: bool):\n    x = x.flatten()\n    y = x.sigmoid()\n    good = x > 0\n    {use}\n"
    after = fixed(code, allowed=FIXES)
    lines = after.splitlines()
    looked = [n for n, line in enumerate(lines) if "nonzero" in line]
    assert all("if" not in lines[n + 1] or "return" in lines[n + 1] for n in looked), after
    assert after == code or lines[looked[0]].startswith(" " * 8), after


def test_objects_of_a_class_are_not_indexed_with_the_positions_of_a_mask() -> None:
    code = """
class Boxes:
    def __init__(self, data: torch.Tensor):
        self.data = data

    def __getitem__(self, key):
        return Boxes(self.data[key])


def f(x: torch.Tensor, y: torch.Tensor, boxes: Boxes):
    keep = x > 0
    return x[keep], y[keep], boxes[keep]
"""
    assert "boxes[keep]" in fixed(HEAD + code, allowed=FIXES)
    assert "x[keep_index], y[keep_index]" in fixed(HEAD + code, allowed=FIXES)


def test_an_index_that_may_be_a_number_is_not_indexed() -> None:
    code = f"{HEAD}def f(d: torch.Tensor, last: bool):\n    at = d.argmax()\n    if last:\n        at = -1\n    return d[at]\n"
    assert fixed(code, allowed=FIXES) == code


@pytest.mark.parametrize("shown", ["with graph.node():\n        graph.kind = x", "graph.kind = x"])
def test_what_is_given_attributes_of_its_own_is_not_indexed_with_positions(shown: str) -> None:
    code = f"{HEAD}def f(x: torch.Tensor, y: torch.Tensor, graph):\n    {shown}\n    keep = x > 0\n"
    code += "    return graph[keep], x[keep], y[keep]\n"
    assert "graph[keep], x[keep_index], y[keep_index]" in fixed(code, allowed=FIXES)
    assert "graph[keep_index], x[keep_index]" in fixed(code.replace(f"    {shown}\n", ""), allowed=FIXES)


@pytest.mark.parametrize(
    ("called", "then"),
    [("index", "positions"), ("idx", "positions"), ("best_idx", "best_positions"), ("keep", "keep_index")],
)
def test_positions_are_not_called_an_index_of_an_index(called: str, then: str) -> None:
    code = (
        f"{HEAD}def f(x: torch.Tensor, y: torch.Tensor):\n    {called} = x > 0\n    return x[{called}], y[{called}]\n"
    )
    assert f"return x[{then}], y[{then}]" in fixed(code, allowed=FIXES)


def test_masks_that_serve_side_by_side_are_looked_through_by_one_fix() -> None:
    lines = [f"out[{m}] = x[{m}].cumsum(0)" for m in ("left", "right")]
    lines += ["low = torch.zeros_like(x)", *[f"low[{m}] = -x[{m}].cumsum(0)" for m in ("left", "right")]]
    body = "".join(f"    {line}\n" for line in ["right, left, out = x > 1, x < -1, torch.zeros_like(x)", *lines])
    code = f"{HEAD}def f(x: torch.Tensor):\n{body}    return out, low\n"
    fixes = {f.fix for f in findings(code, "boolean-mask-write", "boolean-mask-read") if f.fix is not None}
    (fix,) = fixes
    assert fix.title == "; ".join(f"look for the true elements of {m} once, not 4 times" for m in ("left", "right"))
    assert fixed(code, allowed=FIXES).count(".nonzero(") == 2


def test_the_constants_of_numpy_are_numbers() -> None:
    code = (
        "import numpy as np\nimport torch\n\ndef turned(x: torch.Tensor):\n    x = x.exp()\n    far = x > np.pi\n"
        "    x[far] = (x[far] + np.pi) % (2 * np.pi)\n    return x\n"
    )
    after = fixed(code, "boolean-mask-write", allowed={Safety.SAFE, Safety.UNSAFE})
    assert "    x = torch.where(far, (x + np.pi) % (2 * np.pi), x)\n" in after


@pytest.mark.parametrize(
    ("left", "tier"),
    [
        (
            "(x > 0).any(dim)",
            Safety.SUGGEST,
        ),  # of a vector it leaves one element, which looked for is one position all the same
        ("(x.argmax(dim=dim) == 2).squeeze(-1)", Safety.SUGGEST),
        ("(x > 0).squeeze()", Safety.SUGGEST),
        ("(x > 0).any(1)", Safety.UNSAFE),  # the first dimension is left
        ("x.sum(dim=-2) > 0", Safety.UNSAFE),
        ("x > 0", Safety.UNSAFE),
    ],
)
def test_a_mask_that_may_have_no_dimension_left_is_offered_by_hand(left: str, tier: Safety) -> None:
    head = "import torch\n\n\ndef forward(x: torch.Tensor, y, z, dim):\n"
    code = f"{head}    bad = {left}\n    return y[bad] + z[bad].cumsum(0)\n"
    fixes = {f.fix.safety for f in findings(code) if f.fix is not None}
    assert fixes == {tier}
