"""The statement of C around a node: its lines, and what stays of its text when comments and layout change."""

from __future__ import annotations

import re

from syncscope.opencl_c.text import Node, part

SIMPLE = {"expression_statement", "declaration", "return_statement", "preproc_def", "preproc_function_def"}
COMPOUND = {
    "if_statement",
    "for_statement",
    "for_range_loop",
    "while_statement",
    "do_statement",
    "function_definition",
    "switch_statement",
}
HELD = ("body", "consequence", "alternative")  # the statements in a compound one
COMMENT = re.compile(rb"""(?P<kept>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|//[^\n]*|/\*.*?\*/""", re.DOTALL)
LAYOUT = b" \t\v\f\r\n\\"  # a backslash at the end of a line of a macro, too


def statement(node: Node) -> Node | None:
    """The innermost statement that holds a node; None outside of any, and where none could be read."""
    while node is not None and node.type not in SIMPLE | COMPOUND:
        node = node.parent
    return node


def lines(node: Node) -> tuple[int, int]:
    """The first and last line of the statement at a node: all of a simple one, the head of one that holds others."""
    row = node.start_point[0]
    around = statement(node)
    if around is None:
        return row + 1, row + 1
    first, last = around.start_point[0], around.end_point[0]
    if around.type in COMPOUND:
        body = part(around, "body") or part(around, "consequence")
        last = body.start_point[0] if body is not None and around.type != "do_statement" else first
        return (first + 1, last + 1) if row <= last else (row + 1, row + 1)
    return first + 1, last + 1


def words(text: bytes, node: Node) -> bytes | None:
    """The statement at a node as `text` has it, without comments and layout, and of one that holds others without these; None
    where there is none."""
    around = statement(node)
    if around is None:
        return None
    kept, at = b"", around.start_byte
    held = [inner for name in HELD if (inner := part(around, name)) is not None]
    for inner in sorted(held, key=lambda each: each.start_byte):
        kept += text[at : inner.start_byte] + b"{}"
        at = inner.end_byte
    return _said(kept + text[at : around.end_byte])


def body_words(text: bytes, function: Node) -> bytes:
    """What the body of a function says, as `words`."""
    body = part(function, "body") or function
    return _said(text[body.start_byte : body.end_byte])


def _said(code: bytes) -> bytes:
    return COMMENT.sub(lambda found: found["kept"] or b" ", code).translate(None, LAYOUT)
