"""What runs between two lines that launch, by the source: where the host's own time goes for which no call was recorded.

```python
for step in range(60):
    x, y = next(it)      # runs between line 5 of one step and line 3 of the next
    x = x.to(device)
    loss = model(x).sum()
    loss.backward()
```

Only calls are named, and a `for` over what is no range: all else takes no time to speak of. By syntax alone: what stands in a
branch may run, or not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from syncscope.model.commands import shows_fixes
from syncscope.model.finding import Finding
from syncscope.model.line_use import LineUses
from syncscope.model.source import Place, shortly
from syncscope.model.what_if import ELSEWHERE, WhatIf, own_work

SHORT = {  # calls that take no time to speak of
    "range",
    "len",
    "enumerate",
    "zip",
    "isinstance",
    "int",
    "float",
    "min",
    "max",
    "perf_counter",
    "monotonic",
    "time",
}
# which end a step of the recording, and do no work of the loop
MARKS = {"trace.step", "prof.step", "profiler.step", "p.step"}
LOOPS = (ast.For, ast.AsyncFor, ast.While)
Body = ast.Module | ast.stmt
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
HEADS = ("iter", "test", "items", "subject")  # what a statement with a body computes before it
NAMED, WIDE = 3, 60  # lines that are named, and columns of one that are shown


def with_what_runs(
    found: Iterable[WhatIf], sources: Mapping[str, bytes], findings: Iterable[Finding]
) -> tuple[WhatIf, ...]:
    """The rows, those on what the host does between two lines of a file with the lines that run there.

    Where none runs, and the second calls something, that is what takes the time: it is named, with its fix where it has one.
    """
    fixes = {finding.place: finding.fix for finding in findings if finding.fix is not None}

    def told(one: WhatIf) -> WhatIf:
        if one.between is None:
            return one
        since, until = one.between
        if not is_its_own(since, until, sources):
            return replace(one, advice=own_work(one.spent, runs=what_runs(since, until, sources)))
        fix = fixes.get(until)
        do = f"{fix.title}, as {shows_fixes([until.path])} shows" if fix else ELSEWHERE
        name = f"line {until.line}'s own work on the host, in {shortly(until.path)}, is free"
        return replace(one, name=name, lines=(until,), advice=own_work(one.spent, "before it launches", do=do))

    return tuple(map(told, found))


def with_runs(found: LineUses | None, sources: Mapping[str, bytes]) -> LineUses | None:
    """What each line takes, with what runs before it."""
    if found is None:
        return None
    lines = (
        replace(one, runs=what_runs(one.since, one.place, sources)) if one.since and one.place else one
        for one in found.lines
    )
    return replace(found, lines=tuple(lines))


def what_runs(since: Place, until: Place, sources: Mapping[str, bytes]) -> str:
    """`there line 30 runs, "x, y = next(it)"`; "" where that is not known."""
    if since.path != until.path:
        return ""
    text = sources.get(since.path, b"")
    lines = list(lines_between(text, since.line, until.line))
    if not lines:
        return ""
    there = "there" if since != until else "from pass to pass"  # between two calls of a line this may run, or nothing
    if len(lines) > NAMED:
        return f"{there} {len(lines)} lines with calls run, the first {lines[0]}, the last {lines[-1]}"
    if len(lines) > 1:
        return f"{there} lines {', '.join(map(str, lines[:-1]))} and {lines[-1]} run"
    shown = text.splitlines()[lines[0] - 1].decode("utf-8", "replace").strip().removesuffix(":")
    return f"{there} line {lines[0]} runs, `{shown if len(shown) <= WIDE else shown[: WIDE - 1] + '…'}`"


def is_its_own(since: Place, until: Place, sources: Mapping[str, bytes]) -> bool:
    """Whether what the host does between two lines of a function is done by the second: it calls something, and no line runs
    between them."""
    if since.path != until.path or since.line >= until.line:
        return False
    text = sources.get(since.path, b"")
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return False
    before, after = _around(tree, since.line), _around(tree, until.line)
    if _scope(before) is not _scope(after) or any(lines_between(text, since.line, until.line)):
        return False
    return not isinstance(after[-1], (ast.Module, *SCOPES)) and _takes_time(after[-1])


def lines_between(source: bytes, since: int, until: int) -> Iterator[int]:
    """The lines with calls that run after one line and before another of the same function, in the order in which they run."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return
    before, after = _around(tree, since), _around(tree, until)
    both = [node for node in before if node in after]
    if _scope(before) is not _scope(after):  # one calls the other
        return
    if since < until:
        yield from (line for line, end in _calling(_scope(both)) if since < line and end < until)
    elif loops := [node for node in both[both.index(_scope(both)) :] if isinstance(node, LOOPS)]:
        found = list(_calling(loops[-1]))
        yield from (line for line, _ in found if line > since)
        yield from (line for line, end in found if end < until)


def _around(tree: ast.Module, line: int) -> list[Body]:
    """The statements around a line, the outermost first, and the module before them."""
    found: list[Body] = [tree]
    while inner := next((n for n in _within(found[-1]) if n.lineno <= line <= (n.end_lineno or 0)), None):
        found.append(inner)
    return found


def _within(node: ast.AST) -> Iterator[ast.stmt]:
    """The statements right below this."""
    for one in ast.iter_child_nodes(node):
        if isinstance(one, ast.stmt):
            yield one
        elif isinstance(one, (ast.ExceptHandler, ast.match_case)):
            yield from _within(one)


def _scope(around: Sequence[Body]) -> Body:
    """The innermost function of these, or the module."""
    return next((node for node in reversed(around) if isinstance(node, SCOPES)), around[0])


def _calling(around: Body) -> Iterator[tuple[int, int]]:
    """The first and the last line of each statement within this, and of its own head, that calls what may take time; those of
    other functions run elsewhere."""
    if isinstance(around, ast.stmt) and not isinstance(around, SCOPES) and _takes_time(around):
        yield around.lineno, max(getattr(one, "end_lineno", None) or around.lineno for one in _own(around))
    for one in _within(around):
        if not isinstance(one, SCOPES):
            yield from _calling(one)


def _own(statement: ast.stmt) -> list[ast.AST]:
    """What a statement computes itself: without its body, where it has one."""
    if not hasattr(statement, "body"):
        return [statement]
    heads = [getattr(statement, name) for name in HEADS if hasattr(statement, name)]
    found = [one for head in heads for one in (head if isinstance(head, list) else [head])]
    return [one.context_expr if isinstance(one, ast.withitem) else one for one in found]


def _takes_time(statement: ast.stmt) -> bool:
    """Whether a statement calls something, or goes through something, that may take long."""
    called = [node.func for one in _own(statement) for node in ast.walk(one) if isinstance(node, ast.Call)]
    names = {
        one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "")
        for one in called
        if ast.unparse(one) not in MARKS
    }
    if isinstance(statement, (ast.For, ast.AsyncFor)) and not names & {"range"}:
        return not isinstance(statement.iter, (ast.Tuple, ast.List))
    return bool(names - SHORT)
