"""What new code reads more often than the old did: a property notices, if it draws, counts or computes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from syncscope.codemod.function import Function
from syncscope.model.finding import Edit

SPACE = re.compile(r"\s+")


def read_more_often(function: Function, edits: Iterable[Edit]) -> list[str]:
    """The attributes, as they are written, that edits have read more often, and that may be properties."""
    edits, code = list(edits), function.file.code
    new = [SPACE.sub("", edit.text) for edit in edits]
    words, old = "\n".join(new), [SPACE.sub("", code[e.span.start : e.span.end].decode()) for e in edits]
    found: dict[str, bool] = {}
    for node in function.every(ast.Attribute):
        if f".{node.attr}" not in words or not isinstance(node.ctx, ast.Load) or function.read_alike(node):
            continue
        text = SPACE.sub("", function.file.text(node))
        if text in words and text not in found:
            found[text] = _times(text, new) > _times(text, old)
    return [text for text, more in found.items() if more]


def _times(written: str, texts: Iterable[str]) -> int:
    alone = re.compile(rf"(?<![\w.]){re.escape(written)}(?![\w(])")
    return sum(len(alone.findall(text)) for text in texts)
