"""Where a program computes in a type that not every device has."""

from __future__ import annotations

import re
from collections.abc import Iterator

from syncscope.opencl_c import Sighting, seen
from syncscope.opencl_c.facts import KernelProgram
from syncscope.opencl_c.nodes import callee
from syncscope.opencl_c.text import Node, part, said, walk

INCLUDES = re.compile(rb"^[ \t]*#[ \t]*include\b", re.MULTILINE)
CONDITIONS = {"preproc_if", "preproc_ifdef", "preproc_elif", "preproc_else"}


def first_number(program: KernelProgram, kind: str, asked: tuple[bytes, ...], words: str) -> Iterator[Sighting]:
    """The first variable, cast or element of this type under no `#if`; none where one of `asked` is mentioned, nor in a text
    without a kernel, that is included, or one that includes: the other file may ask."""
    if not program.unit.mentions(kind.encode()) or any(map(program.unit.mentions, asked)) or not any(program.kernels()):
        return
    if INCLUDES.search(program.unit.original):
        return
    for routine in program.routines:
        if is_conditional(routine.node):
            continue
        for node in walk(routine.node):
            if node.type in ("declaration", "parameter_declaration"):
                hit = any(v.type.rstrip("0123456789") == kind and not v.is_pointer for v in program.declared(node))
                written = said(part(node, "type")).rstrip("0123456789") == kind
            elif node.type in ("cast_expression", "subscript_expression", "binary_expression"):
                hit = program.type(node, routine.variables).rstrip("0123456789") == kind
                written = node.type != "binary_expression" or kind == "half"
            elif node.type == "call_expression":
                hit = written = re.match(rf"(?:convert|as)_{kind}\d*(?:_|$)", callee(node)) is not None
            else:
                continue
            if hit and written and node.parent.type != "pointer_expression" and not is_conditional(node):
                yield seen(node, f"{program.quote(node)} {words}", 2)
                return


def is_conditional(node: Node) -> bool:
    """Whether it is there only if the preprocessor says so."""
    while node is not None and node.type not in CONDITIONS:
        node = node.parent
    return node is not None
