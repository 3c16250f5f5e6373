"""`value = loss.item()` that is used under one `if` only is read there."""

from __future__ import annotations

import ast
import re

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.asked import asks_for_any
from syncscope.codemod.patterns.reads import tensor_read
from syncscope.codemod.writes import changed, quiet
from syncscope.model.example import Example
from syncscope.model.fact import Dtype, Site, Value
from syncscope.model.finding import Fix, Safety

PLAIN_SPEC = re.compile(r"|[ +<>^]?\d*(\.\d+[efg])")  # of a number; an int takes these too
EXAMPLES = (
    Example(
        """
        import torch

        def report(x: torch.Tensor, step: int):
            loss = x.sigmoid().mean()
            line = f"{step}: {loss:.3f}"  # !
            if step % 2 == 0:
                return line
            return ""
        """,
        """
        import torch

        def report(x: torch.Tensor, step: int):
            loss = x.sigmoid().mean()
            if step % 2 == 0:
                line = f"{step}: {loss:.3f}"
                return line
            return ""
        """,
        Safety.SAFE,
        "x: float[...]; step: count",
        rule="formatted-tensor",
    ),
    Example(
        """
        import torch

        def train(x: torch.Tensor, steps: int):
            seen = 0.0
            for step in range(steps):
                mean = (x * step).sigmoid().mean()
                value = mean.item()  # !
                if step % 3 == 0:
                    seen = value
            return seen
        """,
        """
        import torch

        def train(x: torch.Tensor, steps: int):
            seen = 0.0
            for step in range(steps):
                mean = (x * step).sigmoid().mean()
                if step % 3 == 0:
                    value = mean.item()
                    seen = value
            return seen
        """,
        Safety.SAFE,
        "x: float[...]; steps: count",
        rule="host-read",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    statement = function.statement(site.node)
    bound = function.sole_names(statement)
    reads = [n for name in bound for n in function.reads(name)]
    if not isinstance(statement, ast.Assign) or not reads or any(map(function.captured, bound)):
        return None
    block = function.block(statement)
    later = block[block.index(statement) + 1 :]
    place = next((s for s in later if any(n in reads for n in ast.walk(s))), None)
    if not isinstance(place, ast.If) or isinstance(function.scope, ast.Module) or asks_for_any(place.test):
        return None
    body = {id(n) for s in place.body for n in ast.walk(s)}
    if (
        any(id(n) not in body for n in reads)
        or not function.pure(statement.value)
        or changed(function, statement, place.body[0], statement.value)
        or waits_itself(function, place)
    ):
        return None
    if not function.alone(statement) or not function.alone(place.body[0]):
        return None
    draft = Draft(function)
    draft.remove(statement)
    draft.insert_before(place.body[0], f"{', '.join(bound)} = {{value}}", value=statement.value)
    title = f"read {' and '.join(bound)} only where used"
    if quiet(function, statement, place) and function.pure(place.test) and never_raises(function, statement.value):
        return draft.fix(title, Safety.SAFE)
    return draft.fix(
        title, Safety.UNSAFE, "it is read later: what stands between must not write what it is computed from"
    )


def waits_itself(function: Function, place: ast.If) -> bool:
    """Whether a condition asks a tensor, or a number that was read of one: then the host waits for that all the same."""
    asked = [n for n in ast.walk(place.test) if isinstance(n, ast.expr)]
    made = [function.reaching_definition(n) for n in asked if isinstance(n, ast.Name)]
    return any(function.fact(n).is_tensor for n in asked) or any(
        each is not None and function.sites_in(each) for each in made
    )


def never_raises(function: Function, value: ast.expr) -> bool:
    """Whether a read or a text surely works, so that nobody misses its error where it is not made."""
    tensor = tensor_read(function, value)
    if tensor is not None:
        return isinstance(tensor, ast.Name) and function.fact(tensor).ndim == 0
    if not isinstance(value, ast.JoinedStr):
        return False
    for part in value.values:
        match part:
            case ast.FormattedValue(value=shown, format_spec=ast.JoinedStr(values=[ast.Constant(value=literal), *_])):
                spec = str(literal)
            case ast.FormattedValue(value=shown):
                spec = ""
            case _:
                continue
        shown = tensor_read(function, shown) or shown
        fact = function.fact(shown)
        number = (fact.is_tensor and fact.ndim == 0 and fact.dtype is Dtype.FLOAT) or fact.kind is Value.SCALAR
        if not isinstance(shown, ast.Name) or not number or not PLAIN_SPEC.fullmatch(spec):
            return False
    return True
