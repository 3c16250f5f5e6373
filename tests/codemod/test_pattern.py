"""Shapes of code as code with holes: what is seen, and what is not."""

import ast

import pytest

from syncscope.codemod.function import Function
from syncscope.codemod.pattern import around, seen
from syncscope.codemod.view import View

HEAD = """\
import torch
import torch.nn.functional as nnf
from torch import cat as join

LAST = -1


def f(x, y, m, rows):
"""


def parts(code: str, *patterns: str) -> dict[str, str] | None:
    """What fills the holes, as text: of a statement, or of the expression that is one."""
    view = View((HEAD + "".join(f"    {line}\n" for line in code.splitlines())).encode())
    scope = view.tree.body[-1]
    assert isinstance(scope, ast.FunctionDef)
    node = scope.body[-1]
    found = seen(Function(view, scope, ()), node.value if isinstance(node, ast.Expr) else node, *patterns)
    return None if found is None else {name: ast.unparse(part) for name, part in found.items()}


@pytest.mark.parametrize(
    ("code", "pattern", "filled"),
    [
        ("m.unsqueeze(-1)", "{m}.unsqueeze(-1)", {"m": "m"}),
        ("(x > 0)[..., None]", "{m}[..., None]", {"m": "x > 0"}),
        ("torch.unsqueeze(m, -1)", "{m}.unsqueeze(-1)", {"m": "m"}),  # a method is an operation, however it is written
        ("m.unsqueeze(LAST)", "{m}.unsqueeze(-1)", {"m": "m"}),  # a name that surely stands for the number
        ("nnf.pad(x, (0, 3 - 1), value=-1)", "F.pad({i}, (0, {n} - {l}), value=-1)", {"i": "x", "n": "3", "l": "1"}),
        ("join([x, y])", "torch.cat({all})", {"all": "[x, y]"}),  # a function is its full name, whatever it is called here
        ("join([x, y], dim=1)", "torch.cat({all}, *_, **_)", {"all": "[x, y]"}),
        ("x[m] = y[m]", "{x}[{m}] = {y}[{m}]", {"x": "x", "m": "m", "y": "y"}),
        ("if m:\n    x = y", "if {test}:\n    {x:name} = {y}", {"test": "m", "x": "x", "y": "y"}),
        ("{k: v for k, v in y.items()}", "{ {k:name}: {v} for {k}, {v} in {d}.items() }", {"k": "k", "v": "v", "d": "y"}),
    ],
)  # fmt: skip
def test_a_pattern_sees_code_and_fills_its_holes(code: str, pattern: str, filled: dict[str, str]) -> None:
    assert parts(code, pattern) == filled


@pytest.mark.parametrize(
    ("code", "pattern"),
    [
        ("m.unsqueeze(0)", "{m}.unsqueeze(-1)"),
        ("m.unsqueeze(-1, out=y)", "{m}.unsqueeze(-1)"),  # what is not named is not given
        ("x[m] = y[rows]", "{x}[{m}] = {y}[{m}]"),  # one hole, two parts
        ("x.y[m] = 0", "{x:name}[{m}] = {v}"),
        ("len(x, y)", "len({x})"),
        ("x.len()", "len({x})"),
        ("if m:\n    x = y\nelse:\n    x = m", "if {test}:\n    {x} = {y}"),
        ("x == 0", "{x} > 0"),
        ("x > False", "{x} > 0"),
        ("0 < x < 1", "{a} < {b}"),
    ],
)
def test_what_is_not_seen(code: str, pattern: str) -> None:
    assert parts(code, pattern) is None


def test_the_first_pattern_that_fits_is_told() -> None:
    assert parts("x.max()", "{x}.min()", "{x}.max()", "{y}.max()") == {"x": "x"}


def test_the_expression_around_a_node() -> None:
    view = View((HEAD + "    return len(x.shape) + x.shape[0]\n").encode())
    scope = view.tree.body[-1]
    assert isinstance(scope, ast.FunctionDef)
    function = Function(view, scope, ())
    first, second = function.reads("x")
    assert around(function, first, "len({it})", "{it}.shape[0]") is None
    found = around(function, second, "len({it})", "{it}.shape[0]")
    assert found is not None
    assert view.text(found.node) == "x.shape[0]"
    assert found.parts == {"it": second}
