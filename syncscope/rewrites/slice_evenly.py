"""`x[:, [1, 2, 3]]` as `x[:, 1:4]`, which is a view: there is no index to copy."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.pattern import seen
from syncscope.codemod.patterns.made_on_host import takes_all
from syncscope.codemod.patterns.passes import loop_of
from syncscope.codemod.writes import written_after
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

COMPILES = True
TOGETHER = True
FEW = 3  # positions: fewer of them, with a step, read worse as a slice than as a list
FEWER = "an index that is out of range is left out, not reported"
EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            x = x.relu()
            y = torch.zeros_like(x)
            y[:, [0, 2, 4]] = x[:, [1, 2, 3]] * 2  # !
            return y, x[..., [0, 1, 2]].sum()  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor):
            x = x.relu()
            y = torch.zeros_like(x)
            y[:, :5:2] = x[:, 1:4] * 2
            return y, x[..., :3].sum()
        """,
        Safety.UNSAFE,
        "x: finite[n, m + 5]",
    ),
    Example(
        """
        import torch

        def colours(x: torch.Tensor):
            x = x.relu()
            first = torch.zeros_like(x[:, :1])
            for j in range(3):
                first = first + x[:, [j]]  # !
            return x[..., [2, 1, 0], :], x[:, [2, 1, 0], ...], x[:, [0]] * first  # !
        """,
        """
        import torch

        def colours(x: torch.Tensor):
            x = x.relu()
            first = torch.zeros_like(x[:, :1])
            for j in range(3):
                first = first + x[:, j : j + 1]
            return x[..., :3, :].flip(-2), x[:, :3, ...].flip(1), x[:, :1] * first
        """,
        Safety.UNSAFE,
        "x: finite[n, 3, m]",
    ),
    Example(
        """
        import torch

        def normalized(x: torch.Tensor):
            x = x.cumsum(-1)
            x /= x[..., [-1]]  # !
            return x

        def shifted(x: torch.Tensor):
            x = x.cumsum(-1)
            first = x[:, [0]]  # !
            x -= 1
            return x, first
        """
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    statement = function.statement(site.node)
    if statement is None:
        return None
    found = function.once("taken evenly", statement, lambda: of_statement(function, statement))
    return found[1] if found is not None and site.node in found[0] else None


def of_statement(function: Function, statement: ast.stmt) -> tuple[list[ast.Subscript], Fix] | None:
    """What a statement takes by lists of positions, and the fix for all of it."""
    draft, done, changes, titles = Draft(function), list[ast.Subscript](), dict[str, None](), dict[str, None]()
    for site in function.sites_in(statement):
        taken = site.node
        if not isinstance(taken, ast.Subscript) or not isinstance(taken.value, (ast.Name, ast.Attribute)):
            continue
        code = instead(function, taken)
        if code is None or taken in done:
            continue
        done.append(taken)
        template, title, why = code
        draft.replace(taken, template, x=taken.value)
        titles[title] = None
        changes |= dict.fromkeys(why)
    if not done:
        return None
    return done, draft.fix(", ".join(titles), Safety.UNSAFE, *changes)


def instead(function: Function, taken: ast.Subscript) -> tuple[str, str, list[str]] | None:
    """What to write for a list of positions, in which words, and what changes."""
    index, name = taken.slice, function.file.text(taken.value)
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    lists = [part for part in parts if isinstance(part, ast.List)]
    if len(lists) != 1 or not all(part is lists[0] or keeps_its_place(part) for part in parts):
        return None
    if isinstance(taken.ctx, ast.Load) and (order := backwards(function, lists[0])):
        dim = dimension(parts, lists[0])
        if dim is None:
            return None
        code = ", ".join(f":{order}" if part is lists[0] else ast.unparse(part) for part in parts)
        return f"{{x}}[{code}].flip({dim})", "turn them round", [FEWER]
    even = evenly(function, lists[0]) or single(function, lists[0])
    if even is None:
        return None
    code = ", ".join(even if part is lists[0] else ast.unparse(part) for part in parts)
    changes = [FEWER]
    if isinstance(taken.ctx, ast.Load):
        if is_written(function, taken):
            return function.declines(taken, f"{name} is written in place, and a slice shares its memory")
        changes = [f"it shares the memory of {name}, so neither may be written later", *changes]
    return f"{{x}}[{code}]", "take them by a slice", changes


def is_written(function: Function, taken: ast.Subscript) -> bool:
    """Whether what a slice would share is written in place while it is looked at: by its own statement, or below that.

    `x /= x[..., [-1]]` divides by a copy; by a slice it is an error, or divides what comes later by one.
    """
    if isinstance(function.parent(taken), (ast.BinOp, ast.UnaryOp, ast.Compare)):  # what is computed is a copy
        return False
    statement = function.statement(taken)
    match statement:
        case ast.Assign(targets=targets):
            pass
        case ast.AugAssign(target=target):
            targets = [target]
        case _:
            targets = []
    into = [each.value if isinstance(each, ast.Subscript) else each for each in targets]
    in_place = isinstance(statement, ast.AugAssign) or any(isinstance(each, ast.Subscript) for each in targets)
    if in_place and ast.unparse(taken.value) in map(ast.unparse, into):
        return True
    return statement is not None and any(written_after(function, each, statement) for each in (taken.value, *into))


def backwards(function: Function, listed: ast.List) -> int:
    """How many positions these are, where they go from the last to the first: `[2, 1, 0]`, as colours are swapped."""
    at = [function.constant(each) for each in listed.elts]
    return len(at) if len(at) > 1 and at == list(range(len(at) - 1, -1, -1)) else 0


def dimension(parts: list[ast.expr], listed: ast.List) -> int | None:
    """The dimension that a list selects from, where the other parts of the index take all of theirs."""
    at = parts.index(listed)
    if not all(part is listed or takes_all(part) or is_ellipsis(part) for part in parts):
        return None
    return at - len(parts) if any(map(is_ellipsis, parts[:at])) else at


def is_ellipsis(part: ast.expr) -> bool:
    """Whether this is `...`."""
    return isinstance(part, ast.Constant) and part.value is ...


def single(function: Function, listed: ast.List) -> str | None:
    """One position, as a slice that keeps its dimension: `[0]` is `:1`, `[j]` is `j : j + 1` where j counts a loop."""
    if len(listed.elts) != 1:
        return None
    at, only = function.constant(listed.elts[0]), listed.elts[0]
    if isinstance(at, int):
        return "-1:" if at == -1 else f"{at or ''}:{at + 1}" if at >= 0 else None
    if isinstance(only, ast.Name) and counts_a_loop(function, only):
        return f"{only.id} : {only.id} + 1"
    return None


def counts_a_loop(function: Function, name: ast.Name) -> bool:
    """Whether a name is what `for j in range(n)` counts, or `range(i + 1, n)` where i counts another loop: none below 0."""
    found = loop_of(function, name)
    counted = seen(function, found[2], "range({n})", "range({first}, {n})") if found is not None else None
    if counted is None or "first" not in counted:
        return counted is not None
    plus = seen(function, counted["first"], "{first} + {more}") or {"first": counted["first"]}
    first, more = plus["first"], function.constant(plus["more"]) if "more" in plus else 0
    at = function.constant(first)
    if not isinstance(more, int) or more < 0:
        return False
    if isinstance(first, ast.Name) and at is None:
        return first.id != name.id and counts_a_loop(function, first)
    return isinstance(at, int) and at >= 0


def keeps_its_place(part: ast.expr) -> bool:
    """Whether this part of an index is a slice, an ellipsis or a new dimension, beside which a list stays where it is."""
    return isinstance(part, ast.Slice) or (isinstance(part, ast.Constant) and part.value in (None, ...))


def evenly(function: Function, listed: ast.List) -> str | None:
    """Positions that rise by equal steps, as a slice."""
    at = [whole for each in listed.elts if isinstance(whole := function.constant(each), int)]
    if len(at) != len(listed.elts) or len(at) < 2 or at[0] < 0:
        return None
    step = at[1] - at[0]
    if step < 1 or at != list(range(at[0], at[-1] + 1, step)) or (step > 1 and len(at) < FEW):
        return None  # nobody reads `:3:2` as the first and the third
    return f"{at[0] or ''}:{at[-1] + 1}" + (f":{step}" if step > 1 else "")
