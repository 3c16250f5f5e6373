"""The code of a function as libcst reads it: one statement of it, where that can be read by itself."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import cast

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider, CodeSpan

from syncscope.codemod.function import Function
from syncscope.codemod.text import CannotRewrite

HEADED = (ast.If, ast.While, ast.For, ast.With)  # their heads can be read with another body
Nodes = dict[tuple[int, int], cst.BaseExpression]


class _Spans(ByteSpanPositionProvider):
    """Where the nodes of a module stand. libcst's wrapper would visit them all once more, for nobody."""

    def of(self, module: cst.Module) -> Iterable[tuple[cst.CSTNode, CodeSpan]]:
        self._gen_impl(module)
        return cast(dict[cst.CSTNode, CodeSpan], self._computed).items()


def parse(function: Function, statement: ast.stmt | None) -> Nodes:
    """The expressions of a statement by their spans, of a compound one those of its head; of all the function where it is none.

    What is indented is put under `if True:` as it stands, not dedented, so that its strings keep their text.

    Raises:
        CannotRewrite: libcst cannot read it.
    """
    file, scope = function.file, function.scope
    code, shift = file.code.decode(), 0
    if statement is not None:
        span, indent = file.span(statement), function.indent(statement)
        head = f"if True:\n{indent}" if indent else ""
        start, end = span.start, span.end
        if isinstance(statement, HEADED):
            end = file.span(statement.body[0]).start
            start += 2 if file.code.startswith(b"elif", start) else 0
        code, shift = head + file.code[start:end].decode(), start - len(head)
        code += "pass" if isinstance(statement, HEADED) else ""
    elif isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)):
        start, head = file.starts[scope.lineno - 1], "if True:\n" if scope.col_offset else ""
        code = head + file.code[start : file.span(scope).end].decode()
        shift = start - len(head)
    try:
        module = cst.parse_module(code)
    except (cst.ParserSyntaxError, cst.CSTValidationError) as error:  # newer than libcst's grammar, or `for* x in y`
        raise CannotRewrite(f"libcst cannot read the code around: {error}") from error
    return {
        (span.start + shift, span.start + span.length + shift): node
        for node, span in _Spans().of(module)
        if isinstance(node, cst.BaseExpression)
    }


def stands_alone(function: Function, statement: ast.stmt) -> bool:
    """Whether it, or its head, can be read without the code around: nothing before it on its line, nothing needed after."""
    if isinstance(statement, HEADED):
        readable = not getattr(statement.body[0], "decorator_list", None)  # which stands before it
    else:
        readable = not hasattr(statement, "body") and not hasattr(statement, "cases")
    return readable and not function.indent(statement).strip()
