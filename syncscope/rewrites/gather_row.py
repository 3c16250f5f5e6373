"""`x[i]` with one number of the device as `x[i[None]][0]`, and `torch.stack([x[i] for i in rows])` as `x[rows]`."""

from __future__ import annotations

import ast

from syncscope.codemod.caught import caught
from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.mixed import mixed
from syncscope.codemod.pattern import seen
from syncscope.codemod.patterns.listed import waits_around
from syncscope.codemod.whereabouts import apart
from syncscope.codemod.writes import written_after
from syncscope.model.example import Example
from syncscope.model.fact import Dtype, Fact, Site
from syncscope.model.finding import Fix, Safety

LONG = True
EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor, scores: torch.Tensor):
            best = scores.argmax()
            return x[best]  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor, scores: torch.Tensor):
            best = scores.argmax()
            return x[best[None]][0]
        """,
        Safety.UNSAFE,
        "x: float[n, m]; scores: finite[n]",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor, scores: torch.Tensor):
            best = scores.argmax(1).flatten()
            return torch.stack([x[row] for row in best], dim=0)  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor, scores: torch.Tensor):
            best = scores.argmax(1).flatten()
            return x[best]
        """,
        Safety.UNSAFE,
        "x: float[n, m]; scores: finite[k + 1, n]",
    ),
)
LATER = "an index out of range is found later, by the device"


def rewrite(site: Site, function: Function) -> Fix | None:
    taken = site.node
    if (
        not isinstance(taken, ast.Subscript)
        or not isinstance(taken.ctx, ast.Load)
        or isinstance(taken.slice, ast.Tuple)
    ):
        return None
    index = site.fact_of(taken.slice)
    if not index.is_tensor or not site.fact_of(taken.value).is_tensor:
        return None
    if why := _no_number(function, taken, index) or _elsewhere(function, taken) or _noticed(function, taken):
        return function.declines(taken, why)
    if (every := rows_of(function, taken)) is not None:
        return every
    if waits_around(function, taken):
        return function.declines(taken, "its statement waits for something else, too")
    draft = Draft(function)
    draft.replace(taken, "{x}[{i}[None]][0]", x=taken.value, i=taken.slice)
    kept = isinstance(taken.value, ast.Attribute)  # weights, mostly: a row of them may be large
    tier = Safety.SUGGEST if kept and site.fact_of(taken.value).ndim is None else Safety.UNSAFE
    return draft.fix("gather the row on the device", tier, f"it is a copy, no view, and {LATER}")


def _no_number(function: Function, taken: ast.Subscript, index: Fact) -> str:
    """Why an index may be no whole number of the device; "" where it is one."""
    text = function.file.quote(taken.slice)
    if index.ndim != 0:
        return f"that {text} is one number is not known"
    if index.dtype is not Dtype.INT:
        return f"the dtype of {text} is not known to be whole"
    return f"{text} may be a number of Python's" if mixed(function, taken.slice) else ""


def _elsewhere(function: Function, taken: ast.Subscript) -> str:
    """Why an index of the device may not select: a number is read and taken from a table of the host; "" where it may."""
    if not apart(function, (taken.value, taken.slice)):
        return ""
    return f"{function.file.quote(taken.value)} may live on the host, where no index of the device selects"


def _noticed(function: Function, taken: ast.Subscript) -> str:
    """Why somebody would notice that a row is a copy, gathered later; "" where nobody does."""
    if caught(function, taken):
        return "an index that is out of range is caught here, and would be reported elsewhere"
    return "the row is written in place: a copy of it would be" if written(function, taken) else ""


def rows_of(function: Function, taken: ast.Subscript) -> Fix | None:
    """The fix for `torch.stack([x[i] for i in rows])`."""
    listed = function.parent(taken)
    stacked = function.parent(listed) if listed is not None else None
    match listed:
        case ast.ListComp(elt=elt, generators=[ast.comprehension(target=ast.Name(id=name), iter=rows, ifs=[])]) if (
            elt is taken and isinstance(taken.slice, ast.Name) and taken.slice.id == name
        ):
            pass
        case _:
            return None
    fact, own = function.fact(rows), {n.id for n in ast.walk(taken.value) if isinstance(n, ast.Name)}
    of_all = seen(function, stacked, "torch.stack({rows})", "torch.stack({rows}, dim=0)", "torch.stack({rows}, 0)")
    if (
        not isinstance(stacked, ast.Call)
        or of_all is None
        or name in own
        or not fact.is_tensor
        or fact.ndim not in (1, None)
        or not function.pure(taken.value)
    ):
        return None
    draft = Draft(function)
    draft.replace(stacked, "{x}[{rows}]", x=taken.value, rows=rows)
    changes = [f"{function.file.text(rows)} must have one dimension"] * (fact.ndim is None)
    changes.append(f"of no rows it is no error, and {LATER}")
    return draft.fix("gather the rows on the device", Safety.UNSAFE, *changes)


def written(function: Function, taken: ast.Subscript) -> bool:
    """Whether the row is written in place, or what has its name is: a copy of it would be."""
    around = [n for n in function.around(taken) if isinstance(n, ast.Attribute)][:1]
    if any(n.attr.endswith("_") and isinstance(function.parent(n), ast.Call) for n in around):
        return True
    match function.statement(taken):
        case ast.Assign(targets=[ast.Name() as name]) as statement:
            return written_after(function, name, statement)
    return False
