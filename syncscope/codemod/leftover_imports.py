"""Names of torch that a file imports and, once its fixes are made, no longer uses: `from torch import tensor`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import suppress

from syncscope.model.finding import Edit
from syncscope.model.source import Span, line_starts
from syncscope.project.syntax import text_of, walk

CODE = re.compile(r"[\w.,|\[\] ]{1,200}")  # what an annotation consists of


def leftovers(before: bytes, after: bytes) -> list[Edit]:
    """The edits of `after` that take away from its imports what `before` still used."""
    was, now = ast.parse(before), ast.parse(after)
    unread = _read(was) - _read(now) - _in_texts(now)
    found: list[Edit] = []
    for node in now.body:
        if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").partition(".")[0] == "torch":
            gone = [alias for alias in node.names if (alias.asname or alias.name) in unread]
            if gone:
                found += _without(node, gone, after)
    return found


def _without(node: ast.ImportFrom, gone: list[ast.alias], code: bytes) -> Iterator[Edit]:
    starts = line_starts(code)

    def span(first: ast.stmt | ast.alias, last: ast.stmt | ast.alias) -> tuple[int, int]:
        assert last.end_lineno is not None
        assert last.end_col_offset is not None
        return starts[first.lineno - 1] + first.col_offset, starts[last.end_lineno - 1] + last.end_col_offset

    kept = [n for n, alias in enumerate(node.names) if alias not in gone]
    if not kept:
        start, end = span(node, node)
        rest = code.find(b"\n", end) + 1 or len(code)
        if not code[end:rest].strip() and start in starts:  # nothing else on its line
            yield Edit(Span(start, rest), "")
        return
    for one, following in zip(node.names, node.names[1:], strict=False):
        if one in gone and node.names.index(one) < kept[-1]:
            yield Edit(Span(span(one, one)[0], span(following, following)[0]), "")
    if node.names[-1] in gone:
        last = node.names[kept[-1]]
        yield Edit(Span(span(last, last)[1], span(node.names[-1], node.names[-1])[1]), "")


def _read(tree: ast.AST) -> set[str]:
    return {node.id for node in walk(tree) if isinstance(node, ast.Name)}


def _in_texts(tree: ast.Module) -> set[str]:
    """The names in texts that are code: `__all__`, annotations that are quoted, and examples that run with the file's names."""
    found = set[str]()
    for node in walk(tree):
        if (text := text_of(node)) is not None:
            with suppress(SyntaxError, ValueError):  # the second where examples are not indented alike
                if CODE.fullmatch(text):
                    found |= _read(ast.parse(text, mode="eval"))
                elif ">>> " in text:
                    found |= _in_examples(text)
    return found


def _in_examples(text: str) -> set[str]:
    """What examples read and do not import themselves; all of their words where they are no Python."""
    from doctest import DocTestParser  # brings the debugger along: only where there are examples

    code = "".join(each.source for each in DocTestParser().get_examples(text))
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return set(re.findall(r"\w+", code))
    own = {
        alias.asname or alias.name for node in walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    return _read(tree) - own
