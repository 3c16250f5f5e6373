"""Nodes of libcst put into other places: the holes of a template filled, parts swapped, indentation written out."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection

import libcst as cst

ATOMS = (
    cst.Name, cst.Attribute, cst.Subscript, cst.Call, cst.Integer, cst.Float, cst.List, cst.Dict, cst.Set, cst.SimpleString,
    cst.FormattedString, cst.ListComp, cst.DictComp, cst.SetComp,
)  # fmt: skip
# what they hold needs no parentheses
DELIMITED = cst.Arg, cst.Index, cst.Element, cst.Slice, cst.DictElement, cst.Assign
SUMS = (cst.Add, cst.Subtract)
PRODUCTS = (cst.Multiply, cst.Divide, cst.FloorDivide, cst.Modulo, cst.MatrixMultiply, cst.Power)
PLAIN = cst.Module([])  # writes single nodes down
Left = cst.CSTNode


def spaced(args: list[cst.Arg], new: cst.Arg, before: cst.BaseParenthesizableWhitespace) -> tuple[cst.Arg, cst.Arg]:
    """The last argument of a call, and one that comes after it, laid out as the others are."""
    last = args[-1]
    if isinstance(last.comma, cst.Comma):  # one argument a line, a comma after the last
        if not isinstance(before, cst.ParenthesizedWhitespace):
            beside = args[-2].comma if len(args) > 1 else None
            before = beside.whitespace_after if isinstance(beside, cst.Comma) else cst.SimpleWhitespace(" ")
        if isinstance(last.comma.whitespace_after, cst.ParenthesizedWhitespace):  # nobody writes `f(1, n=2,)` in a line
            new = new.with_changes(comma=last.comma)
        return last.with_changes(comma=cst.Comma(whitespace_after=before)), new
    gap: cst.BaseParenthesizableWhitespace = cst.SimpleWhitespace(" ")
    if "\n" in PLAIN.code_for_node(last.value) and isinstance(before, cst.ParenthesizedWhitespace):
        tight = last.with_changes(
            comma=cst.Comma(whitespace_after=before), whitespace_after_arg=cst.SimpleWhitespace("")
        )
        return tight, new.with_changes(comma=cst.Comma(whitespace_after=last.whitespace_after_arg))
    if len(args) > 1 and isinstance(args[-2].comma, cst.Comma):
        gap = args[-2].comma.whitespace_after
    if isinstance(gap, cst.ParenthesizedWhitespace):
        first = gap.first_line.with_changes(whitespace=cst.SimpleWhitespace(""))  # none at the end of a line
        gap = before if first.comment is not None else gap.with_changes(first_line=first)
    return (
        last.with_changes(comma=cst.Comma(whitespace_after=gap), whitespace_after_arg=cst.SimpleWhitespace("")),
        new.with_changes(whitespace_after_arg=last.whitespace_after_arg),
    )


def bare(node: cst.BaseExpression) -> cst.BaseExpression:
    """The expression without parentheses of its own, unless a line break or a comment hangs on them."""
    if len(node.lpar) != 1 or isinstance(node, (cst.Tuple, cst.GeneratorExp)):
        return node
    inside = (node.lpar[0].whitespace_after, node.rpar[0].whitespace_before)
    if not all(isinstance(space, cst.SimpleWhitespace) for space in inside):
        return node
    return node.with_changes(lpar=[], rpar=[])


class Fill(cst.CSTTransformer):
    """Puts nodes into the holes of a template."""

    def __init__(
        self, nodes: dict[str, cst.BaseExpression], modules: Collection[str], called: Callable[[str], str]
    ) -> None:
        super().__init__()
        self.nodes = nodes
        self.modules, self.called = modules, called  # what templates call modules, and what the file does
        self.labels: set[int] = set()  # ids of names that are attributes or keywords
        self.wrapped: dict[int, tuple[cst.BaseExpression, cst.BaseExpression]] = {}  # by id: in parentheses, without

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.Attribute):
            self.labels.add(id(node.attr))
        elif isinstance(node, cst.Arg) and node.keyword is not None:
            self.labels.add(id(node.keyword))
        return True

    def on_leave(self, original_node: cst.CSTNodeT, updated_node: cst.CSTNodeT) -> Left:  # type: ignore[override]  # a hole takes any expression
        if isinstance(original_node, cst.Name) and id(original_node) not in self.labels:
            return self._filled(original_node)
        value = getattr(updated_node, "value", None)
        if isinstance(updated_node, cst.Attribute) and isinstance(value, cst.Integer) and not value.lpar:
            number = value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])  # 2.sum is no Python
            return updated_node.with_changes(value=number)
        if isinstance(updated_node, cst.BinaryOperation) and isinstance(updated_node.operator, SUMS):
            sides = {"left": updated_node.left, "right": updated_node.right}
            return updated_node.with_changes(**{k: self.bare(v) for k, v in sides.items() if self.is_product(v)})
        if isinstance(updated_node, (*DELIMITED, cst.Assign)) and id(value) in self.wrapped:
            wrapped, node = self.wrapped[id(value)]
            bare = self.bare(wrapped) if isinstance(updated_node, cst.Assign) else node
            if not isinstance(bare, (cst.GeneratorExp, cst.NamedExpr, cst.Tuple, cst.Yield)):
                return updated_node.with_changes(value=bare)
        return updated_node

    def is_product(self, wrapped: cst.BaseExpression) -> bool:
        """Whether it is a product that was put in parentheses, which a sum needs none around."""
        node = self.wrapped[id(wrapped)][1] if id(wrapped) in self.wrapped else None
        return isinstance(node, cst.BinaryOperation) and isinstance(node.operator, PRODUCTS)

    def bare(self, wrapped: cst.BaseExpression) -> cst.BaseExpression:
        """The node without the parentheses it was given, where no bracket around it holds its lines together."""
        node = self.wrapped[id(wrapped)][1]
        return wrapped if "\n" in PLAIN.code_for_node(node) else node

    def _filled(self, name: cst.Name) -> cst.BaseExpression:
        if name.value in self.modules:
            return cst.parse_expression(self.called(name.value))
        node = bare(self.nodes.get(name.value, name))
        if node.lpar or (isinstance(node, ATOMS) and not needs_brackets(node)):
            return node
        wrapped = node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        self.wrapped[id(wrapped)] = (wrapped, node)
        return wrapped


def needs_brackets(node: cst.BaseExpression) -> bool:
    """Whether it goes over lines that brackets around it held together, which stay where it comes from."""
    code = PLAIN.code_for_node(node)
    if "\n" not in code:
        return False
    try:
        ast.parse(code.strip(), mode="eval")
    except SyntaxError:
        return True
    return False


class WriteOut(cst.CSTTransformer):
    """Turns the indentation that libcst adds by itself into white space of the lines."""

    def __init__(self, indent: str) -> None:
        super().__init__()
        self.indent = indent

    def on_leave(self, original_node: cst.CSTNodeT, updated_node: cst.CSTNodeT) -> Left:  # type: ignore[override]  # as libcst returns it
        if isinstance(updated_node, cst.EmptyLine) and updated_node.indent:
            space = (
                self.indent + updated_node.whitespace.value if updated_node.comment else updated_node.whitespace.value
            )
            return updated_node.with_changes(indent=False, whitespace=cst.SimpleWhitespace(space))
        if isinstance(updated_node, cst.ParenthesizedWhitespace) and updated_node.indent:
            last = cst.SimpleWhitespace(self.indent + updated_node.last_line.value)
            return updated_node.with_changes(indent=False, last_line=last)
        return updated_node


class Swap(cst.CSTTransformer):
    """Replaces nodes by others."""

    def __init__(self, instead: dict[cst.BaseExpression, cst.BaseExpression]) -> None:
        super().__init__()
        self.old = tuple(instead)  # kept alive, so that no other node gets the id of one
        self.instead = {id(old): new for old, new in instead.items()}

    def on_visit(self, node: cst.CSTNode) -> bool:
        return id(node) not in self.instead

    def on_leave(self, original_node: cst.CSTNodeT, updated_node: cst.CSTNodeT) -> Left:  # type: ignore[override]  # a hole takes any expression
        return self.instead.get(id(original_node), updated_node)
