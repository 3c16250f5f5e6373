"""Edits of one function, built with libcst: imported only when a fix is built."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, cast

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper

from syncscope.model.finding import Edit, Fix, Safety
from syncscope.model.source import Span

if TYPE_CHECKING:
    from syncscope.rules._function import Function

HOLE = re.compile(r"\{(\w+)\}")
MODULES = {"torch": "torch", "F": "torch.nn.functional", "nn": "torch.nn", "math": "math"}  # as templates call them
IMPORTS = {
    "torch": "import torch",
    "F": "import torch.nn.functional as F",
    "nn": "from torch import nn",
    "math": "import math",
}
ATOMS = (
    cst.Name, cst.Attribute, cst.Subscript, cst.Call, cst.Integer, cst.Float, cst.List, cst.Dict, cst.Set, cst.SimpleString,
    cst.FormattedString, cst.ListComp, cst.DictComp, cst.SetComp,
)  # fmt: skip
DELIMITED = (
    cst.Arg,
    cst.Index,
    cst.Element,
    cst.Slice,
    cst.DictElement,
    cst.Assign,
)  # what they hold needs no parentheses
Part = ast.expr | cst.BaseExpression | str


class Draft:
    """Edits that will make one fix.

    Code is written as templates: `draft.replace(node, "torch.where({mask}, {value}, {base})", mask=..., ...)`. A hole takes
    an expression of the function, moved there with its comments and line breaks, or a string that is Python. Parentheses
    are put where they are needed. The names torch, F, nn and math are turned into what the file calls these modules;
    an import is added where it has none.
    """

    def __init__(self, function: Function) -> None:
        self.function = function
        self.view = function.view
        self.edits: list[Edit] = []
        self.needed: dict[str, None] = {}  # imports to add, as templates call them
        self._nodes = self._parse()

    def _parse(self) -> dict[tuple[int, int], cst.BaseExpression]:
        """The expressions of the function by span, from a tree of this function only.

        An indented function is put under `if True:` as it stands, not dedented, so that its strings keep their text.
        """
        scope = self.function.scope
        code, shift = self.view.code.decode(), 0
        if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)):
            start, head = self.view.starts[scope.lineno - 1], ""
            if scope.col_offset:
                head = "if True:\n"
            code = head + self.view.code[start : self.view.span(scope).end].decode()
            shift = start - len(head)
        wrapper = MetadataWrapper(cst.parse_module(code), unsafe_skip_copy=True)
        self.module = wrapper.module
        spans = wrapper.resolve(ByteSpanPositionProvider)
        found = {}
        for node, span in spans.items():
            if isinstance(node, cst.BaseExpression):
                found[span.start + shift, span.start + span.length + shift] = node
        return found

    def node(self, expr: ast.expr) -> cst.BaseExpression:
        """The libcst node of an expression of the function."""
        span = self.view.span(expr)
        if (found := self._nodes.get((span.start, span.end))) is not None:
            return found
        return cst.parse_expression(f"({self.view.text(expr)})")  # of another function, or a tuple without parentheses

    def code(self, template: str, **parts: Part) -> str:
        """Python made of a template: an expression, or statements."""
        filled = HOLE.sub(lambda m: f"_hole_{m[1]}_", template)
        nodes = {f"_hole_{name}_": self._part(part) for name, part in parts.items()}
        tree: cst.CSTNode
        try:
            tree = cst.parse_expression(filled)
        except cst.ParserSyntaxError:
            tree = cst.parse_module(filled)
        changed = tree.visit(_Fill(self, nodes))
        assert isinstance(changed, cst.CSTNode)
        return changed.code if isinstance(changed, cst.Module) else self.module.code_for_node(changed)

    def _part(self, part: Part) -> cst.BaseExpression:
        if isinstance(part, ast.expr):
            return self.node(part)
        return cst.parse_expression(part) if isinstance(part, str) else part

    def swapped(self, expr: ast.expr, instead: dict[ast.expr, Part]) -> cst.BaseExpression:
        """An expression of the function with some of its own parts replaced."""
        swap = _Swap({self.node(old): self._part(new) for old, new in instead.items()})
        return cast(cst.BaseExpression, self.node(expr).visit(swap))

    def replace(self, node: ast.expr | ast.stmt, template: str, **parts: Part) -> None:
        """Put other code in the place of an expression or a statement."""
        text = self.code(template, **parts)
        if isinstance(node, ast.expr):
            text = self._in_place_of(node, text)
        else:
            text = text.rstrip("\n").replace("\n", "\n" + self.indent(node))
        self.edits.append(Edit(self.view.span(node), text))

    def _in_place_of(self, node: ast.expr, text: str) -> str:
        """The new code, in parentheses where what is around the old node demands them."""
        new, old, parent = cst.parse_expression(f"({text})"), self.node(node), self.function.parent(node)
        if isinstance(new, (*ATOMS, cst.Tuple)) or old.lpar:
            return text
        tight = isinstance(parent, (ast.Attribute, ast.Subscript, ast.Await, ast.UnaryOp, ast.BinOp, ast.Starred)) or (
            isinstance(parent, ast.Call) and parent.func is node
        )
        if isinstance(parent, ast.Subscript) and parent.slice is node:
            tight = False
        loose = isinstance(new, (cst.BinaryOperation, cst.UnaryOperation)) and not isinstance(new, cst.Not)
        if isinstance(parent, (ast.Compare, ast.BoolOp)) and not loose:
            tight = True
        bracketed = isinstance(parent, ast.Call) and parent.func is not node
        if "\n" in text and not bracketed:
            tight = True
        return f"({text})" if tight else text

    def indent(self, statement: ast.stmt) -> str:
        """The white space before a statement that begins its line."""
        start = self.view.starts[statement.lineno - 1]
        return self.view.code[start : start + statement.col_offset].decode()

    def alone(self, statement: ast.stmt) -> bool:
        """Whether nothing else stands on the lines of a statement but a comment."""
        span = self.view.span(statement)
        rest = self.view.code[span.end :].split(b"\n", 1)[0].strip()
        return not self.indent(statement).strip() and (not rest or rest.startswith(b"#"))

    def insert_before(self, statement: ast.stmt, template: str, **parts: Part) -> None:
        """Put statements before another."""
        start = self.view.starts[statement.lineno - 1]
        indent = self.indent(statement)
        lines = self.code(template, **parts).rstrip("\n").split("\n")
        self.edits.append(Edit(Span(start, start), "".join(f"{indent}{line}\n" for line in lines)))

    def insert_after(self, statement: ast.stmt, template: str, **parts: Part) -> None:
        """Put statements after another."""
        end = self._line_end(statement)
        newline = "" if self.view.code[:end].endswith(b"\n") else "\n"
        indent = self.indent(statement)
        lines = self.code(template, **parts).rstrip("\n").split("\n")
        self.edits.append(Edit(Span(end, end), newline + "".join(f"{indent}{line}\n" for line in lines)))

    def remove(self, statement: ast.stmt) -> None:
        """Take a statement out, with its lines and a comment at its end."""
        if len(self.function.block(statement)) == 1:
            self.edits.append(Edit(self.view.span(statement), "pass"))
        else:
            start = self.view.starts[statement.lineno - 1]
            self.edits.append(Edit(Span(start, self._line_end(statement)), ""))

    def _line_end(self, statement: ast.stmt) -> int:
        end = self.view.span(statement).end
        newline = self.view.code.find(b"\n", end)
        return len(self.view.code) if newline < 0 else newline + 1

    def fix(self, title: str, safety: Safety, changes: str = "") -> Fix:
        """What was drafted, as one fix."""
        edits = [*self.edits, *(self._import(name) for name in self.needed)]
        return Fix(title, tuple(sorted(edits, key=lambda e: e.span)), safety, changes)

    def _import(self, name: str) -> Edit:
        """An import after those of the file, else after its docstring."""
        body = self.view.tree.body
        last = next((s for s in reversed(body) if isinstance(s, (ast.Import, ast.ImportFrom))), None)
        docstring = body[0] if body and ast.get_docstring(self.view.tree, clean=False) is not None else None
        after = last or docstring
        at = self._line_end(after) if after is not None else 0
        newline = "\n" if at and not self.view.code[:at].endswith(b"\n") else ""
        return Edit(Span(at, at), f"{newline}{IMPORTS[name]}\n")

    def called(self, name: str) -> str:
        """What the file calls a module that templates call `name`."""
        for word, meaning in self.function.imported.items():
            if meaning == MODULES[name]:
                return word
        for word, meaning in self.function.imported.items():
            if MODULES[name].startswith(meaning + ".") and meaning != "torch.nn":
                return word + MODULES[name].removeprefix(meaning)
        self.needed[name] = None
        return name


class _Fill(cst.CSTTransformer):
    """Puts nodes into the holes of a template."""

    def __init__(self, draft: Draft, nodes: dict[str, cst.BaseExpression]) -> None:
        super().__init__()
        self.draft = draft
        self.nodes = nodes
        self.bare: dict[int, cst.BaseExpression] = {}  # id of what was put in parentheses -> without them
        self.kept: list[cst.BaseExpression] = []  # so that no id is used twice

    def visit_Attribute_attr(self, node: cst.Attribute) -> None:
        """An attribute's own name is no module."""

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        name = updated_node.value
        if name in MODULES:
            return cst.parse_expression(self.draft.called(name))
        if name not in self.nodes:
            return updated_node
        node = self.nodes[name]
        if isinstance(node, ATOMS) or getattr(node, "lpar", ()):
            return node
        wrapped = cast(cst.BaseExpression, node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()]))
        self.bare[id(wrapped)] = node
        self.kept.append(wrapped)
        return wrapped

    def on_leave(self, original_node: cst.CSTNodeT, updated_node: cst.CSTNodeT) -> object:  # type: ignore[override]  # as libcst returns it
        left = super().on_leave(original_node, updated_node)
        value = getattr(left, "value", None)
        if isinstance(left, DELIMITED) and id(value) in self.bare:
            bare = self.bare[id(value)]
            if not isinstance(bare, (cst.GeneratorExp, cst.NamedExpr, cst.Tuple, cst.Yield)):
                return left.with_changes(value=bare)
        return left


class _Swap(cst.CSTTransformer):
    """Replaces nodes by others."""

    def __init__(self, instead: dict[cst.BaseExpression, cst.BaseExpression]) -> None:
        super().__init__()
        self.instead = {id(old): new for old, new in instead.items()}

    def on_visit(self, node: cst.CSTNode) -> bool:
        return id(node) not in self.instead

    def on_leave(self, original_node: cst.CSTNodeT, updated_node: cst.CSTNodeT) -> object:  # type: ignore[override]  # as libcst returns it
        return self.instead.get(id(original_node), updated_node)
