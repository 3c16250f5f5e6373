"""`if x.isnan().any() and debug:` as `if debug and x.isnan().any():` what Python knows is asked first, and mostly decides."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.conditions import key, test_of, waits
from syncscope.model.example import Example
from syncscope.model.fact import Site, Value
from syncscope.model.finding import Fix, Safety, Way

COMPILES = True
WAY = Way.CHECKS
LOCAL = True
DECIDED = (ast.If, ast.IfExp, ast.While, ast.Assert)
EXAMPLES = (
    Example(
        """
        import torch

        DEBUG = False

        def checked(found: dict[str, torch.Tensor]):
            for name, x in found.items():
                if (torch.isnan(x).any() or torch.isinf(x).any()) and DEBUG:  # !
                    print(f"{name} has holes")
            return found
        """,
        """
        import torch

        DEBUG = False

        def checked(found: dict[str, torch.Tensor]):
            for name, x in found.items():
                if DEBUG and (torch.isnan(x).any() or torch.isinf(x).any()):
                    print(f"{name} has holes")
            return found
        """,
        Safety.SUGGEST,
    ),
    Example(
        """
        import torch

        class Net(torch.nn.Module):
            def forward(self, x: torch.Tensor):
                if (x > 1).any() and not self.training and self.limit is not None:  # !
                    self.told(x)
                return x * 2
        """,
        """
        import torch

        class Net(torch.nn.Module):
            def forward(self, x: torch.Tensor):
                if not self.training and self.limit is not None and (x > 1).any():
                    self.told(x)
                return x * 2
        """,
        Safety.SUGGEST,
    ),
    Example(
        """
        import torch

        class Net(torch.nn.Module):
            def forward(self, x: torch.Tensor, y):
                if (x > 1).any() and len(y) > self.most(x):  # !
                    self.told(x)
                return x * 2
        """,
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    test = test_of(site, function)
    if test is None or site.confidence < 2:
        return None
    outer = function.parent(test)
    if not isinstance(outer, DECIDED) or outer.test is not test:
        return None
    above = [n for n in function.around(site.node) if isinstance(n, ast.BoolOp) and test in (n, *function.around(n))]
    for asked in reversed(above):  # the outermost first
        if (fix := in_order(function, asked)) is not None:
            return fix
    return None


def in_order(function: Function, asked: ast.BoolOp) -> Fix | None:
    """The fix for parts of a condition, those that Python knows first; None where they stand so, or there is none."""
    known = [part for part in asked.values if is_known(function, part)]
    first = next((n for n, part in enumerate(asked.values) if waits(function, part)), None)
    if first is None or not known or not any(part in known for part in asked.values[first:]):
        return None
    if not all(function.pure(part) for whole in asked.values for part in parts_of(whole)):
        return None
    order = [*known, *(part for part in asked.values if part not in known)]
    word = " and " if isinstance(asked.op, ast.And) else " or "
    draft = Draft(function)
    written = word.join(function.file.text(part) if part in known else f"{{{key(part)}}}" for part in order)
    draft.replace(asked, written, **{key(part): part for part in order if part not in known})
    names = " and ".join(dict.fromkeys(function.file.quote(part) for part in known if part in asked.values[first:]))
    return draft.fix(
        "ask first what Python knows", Safety.SUGGEST, f"the rest is asked only where {names} leaves it open"
    )


def parts_of(node: ast.expr) -> list[ast.expr]:
    """The questions that a condition is made of."""
    match node:
        case ast.BoolOp(values=values):
            return [part for value in values for part in parts_of(value)]
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return parts_of(inner)
    return [node]


def is_known(function: Function, part: ast.expr) -> bool:
    """Whether a question is about a flag of Python's, and asks nothing that another part has to allow: `not self.training`."""
    if waits(function, part):
        return False
    match part:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return is_known(function, inner)
        case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant(value=None)]):
            return is_flag(left)
        case ast.Name() | ast.Attribute():
            return is_flag(part) and function.fact(part).kind in (Value.UNKNOWN, Value.SCALAR, Value.OTHER)
    return False


def is_flag(node: ast.expr) -> bool:
    """Whether this is a name, or an attribute of one: `debug`, `args.debug`."""
    return isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name))
