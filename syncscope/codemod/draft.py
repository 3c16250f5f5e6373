"""Edits of one function, built with libcst: imported only when a fix is built."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import cast

import libcst as cst

from syncscope.codemod.function import Function
from syncscope.codemod.layout import comments, finished
from syncscope.codemod.new_imports import import_edit
from syncscope.codemod.parsing import parse, stands_alone
from syncscope.codemod.splice import ATOMS, PLAIN, Fill, Swap, WriteOut, spaced
from syncscope.codemod.text import CannotRewrite, line_end
from syncscope.model.finding import Edit, Fix, Safety
from syncscope.model.source import Span
from syncscope.project.syntax import walk

HOLE = re.compile(r"\{(\w+)\}")
BLANK = re.compile(rb"(?:[ \t]*\r?\n)*")
TYPED = re.compile(r"# *type: *(?!ignore)")
MODULE = re.compile(r"(?<![\w.{])(?:torch|F|nn|math|functools)\b(?![}=])")  # of `MODULES`
QUOTED = re.compile(r"[\"'#]")
CALLED = re.compile(r"(?<![\w.])(\w+)\(")
BUILTINS = frozenset(vars(builtins))
MODULES = {  # as templates call them
    "torch": "torch",
    "F": "torch.nn.functional",
    "nn": "torch.nn",
    "math": "math",
    "functools": "functools",
}
IMPORTS = {
    "torch": "import torch",
    "F": "import torch.nn.functional as F",
    "nn": "from torch import nn",
    "math": "import math",
    "functools": "import functools",
}
ACTS = (ast.Call, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
READ_ALONE = frozenset(
    (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp)
)  # what reads alike in whatever it stands
BRACED = (cst.Tuple, cst.GeneratorExp)  # whose parentheses are their own, and are replaced with them
WHOLE = (
    ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.Constant, ast.JoinedStr, ast.Tuple, ast.List, ast.Dict, ast.Set,
    ast.ListComp, ast.DictComp, ast.SetComp,
)  # fmt: skip
"""Expressions that need no parentheses, whatever stands around them."""
WHOLE_ALONE = frozenset((ast.Name, ast.Attribute, ast.Subscript, ast.Call))
CALLS = (cst.Name, cst.Attribute, cst.Subscript, cst.Call)
SHORT = 12  # characters of an expression that may be said several times
Part = ast.expr | cst.BaseExpression | str


@lru_cache(maxsize=512)
def written(template: str) -> cst.BaseExpression | cst.Module:
    """A template as a tree: an expression, or statements."""
    try:
        return cst.parse_expression(template)
    except cst.ParserSyntaxError:
        return cst.parse_module(template)


class Draft:
    """Edits that will make one fix.

    Code is written as templates: `draft.replace(node, "torch.where({mask}, {value}, {base})", mask=..., ...)`. A hole takes
    an expression of the function, moved there with its comments and line breaks, or a string that is Python. Parentheses
    are put where they are needed. The names torch, F, nn and math are turned into what the file calls these modules;
    an import is added where it has none.
    """

    def __init__(self, function: Function) -> None:
        self.function = function
        self.file = function.file
        self.edits: list[Edit] = []
        self.needed: dict[str, None] = {}  # imports to add, as templates call them

    def node(self, expr: ast.expr) -> cst.BaseExpression:
        """The libcst node of an expression of the function, to be put anywhere."""
        alone = self._alone(expr)
        return alone if alone is not None else self._movable(self._node(expr), expr)

    def _alone(self, expr: ast.expr) -> cst.BaseExpression | None:
        """The libcst node of an expression on one line, read by itself; None where it may have parentheses of its own."""
        if not self._is_bare(expr):
            return None
        try:
            return cst.parse_expression(self.file.text(expr))
        except (cst.ParserSyntaxError, cst.CSTValidationError):
            return None

    def _is_bare(self, expr: ast.expr) -> bool:
        """Whether an expression stands on one line, and surely has no parentheses of its own."""
        if expr.__class__ not in READ_ALONE or expr.lineno != expr.end_lineno:
            return False
        code, span = self.file.code, self.file.span(expr)
        end = code.find(b"\n", span.end)
        before = code[self.file.starts[expr.lineno - 1] : span.start].rstrip()[-1:]
        after = code[span.end : end if end >= 0 else None].lstrip()[:1]
        if before not in (b"", b"(") or after not in (b"", b"#", b")", b"\\"):
            return True
        parent = self.function.parent(expr)
        if not isinstance(parent, ast.Call) or [*parent.args, *parent.keywords] != [expr]:
            return False
        return self.file.span(parent).end == span.end + 1  # the bracket is the call's own

    def _movable(self, node: cst.BaseExpression, origin: ast.expr) -> cst.BaseExpression:
        """The node with the indentation of its lines written out: elsewhere libcst would not know it."""
        statement = self.function.statement(origin)
        if origin.lineno == origin.end_lineno or statement is None:
            return node
        return cast(cst.BaseExpression, node.visit(WriteOut(self.function.indent(statement))))

    def indented(self, expr: ast.expr, indent: str) -> cst.BaseExpression:
        """The libcst node of an expression that moves to a block of another indentation."""
        return cast(cst.BaseExpression, self._node(expr).visit(WriteOut(indent)))

    def _node(self, expr: ast.expr) -> cst.BaseExpression:
        span, statement = self.file.span(expr), self.function.statement(expr)
        if statement is not None and not stands_alone(self.function, statement):
            statement = None
        parsed = self.function.once("parsed", statement or self.function.scope, lambda: parse(self.function, statement))
        if (found := parsed.get((span.start, span.end))) is not None:
            return found
        try:
            return cst.parse_expression(f"({self.file.text(expr)})")
        except (cst.ParserSyntaxError, cst.CSTValidationError) as error:
            raise CannotRewrite(f"libcst cannot read {self.file.quote(expr)}") from error

    def code(self, template: str, **parts: Part) -> str:
        """Python made of a template: an expression, or statements.

        Raises:
            CannotRewrite: it calls what a name of Python stands for, and this function uses the name for something else.
        """
        for name in CALLED.findall(template):
            if name in BUILTINS and self._means_another(name):
                raise CannotRewrite(f"{name} is something else here")
        if self.file.single_quotes and "'" not in template:
            template = template.replace('"', "'")
        if (text := self._by_text(template, parts)) is not None:
            return text
        filled = HOLE.sub(lambda m: f"_hole_{m[1]}_", template)
        nodes = {f"_hole_{name}_": self._part(parts[name]) for name in dict.fromkeys(HOLE.findall(template))}
        fill = Fill(nodes, MODULES, self.called)
        changed = written(filled).visit(fill)
        assert isinstance(changed, cst.CSTNode)
        if id(changed) in fill.wrapped:
            changed = fill.bare(fill.wrapped[id(changed)][0])
        return changed.code if isinstance(changed, cst.Module) else PLAIN.code_for_node(changed)

    def _by_text(self, template: str, parts: Mapping[str, Part]) -> str | None:
        """The same, where nothing that fills a hole can need parentheses: then texts are put into a text."""
        if QUOTED.search(template):
            return None
        texts = {name: self._text_of(parts[name]) for name in dict.fromkeys(HOLE.findall(template))}
        if None in texts.values():
            return None
        named = MODULE.sub(lambda m: self.called(m[0]), template)
        return HOLE.sub(lambda m: str(texts[m[1]]), named)

    def _text_of(self, part: Part) -> str | None:
        """The code of a part that needs parentheses nowhere; None where it may."""
        if isinstance(part, str):
            return part if part.isidentifier() else None
        if isinstance(part, ast.expr):
            return self.file.text(part) if part.__class__ in WHOLE_ALONE and self._is_bare(part) else None
        if not isinstance(part, CALLS) or part.lpar:
            return None
        code = PLAIN.code_for_node(part)
        return code if "\n" not in code else None  # what goes over lines may do so by parentheses that stay behind

    def part(self, template: str, **parts: Part) -> cst.BaseExpression:
        """An expression made of a template, to be put into a hole."""
        return cst.parse_expression(self.code(template, **parts))

    def _part(self, part: Part) -> cst.BaseExpression:
        if isinstance(part, ast.expr):
            return self.node(part)
        if isinstance(part, str) and self.file.single_quotes and "'" not in part:
            part = part.replace('"', "'")
        return cst.parse_expression(part) if isinstance(part, str) else part

    def swapped(self, expr: ast.expr, instead: dict[ast.expr, Part]) -> cst.BaseExpression:
        """An expression of the function with some of its own parts replaced."""
        if not instead:
            return self.node(expr)
        swap = Swap({self._node(old): self._in_brackets(old, self._part(new)) for old, new in instead.items()})
        return self._movable(cast(cst.BaseExpression, self._node(expr).visit(swap)), expr)

    def _in_brackets(self, old: ast.expr, new: cst.BaseExpression) -> cst.BaseExpression:
        """What takes the place of an expression, in parentheses unless it is an argument or needs none."""
        parent = self.function.parent(old)
        argument = isinstance(parent, ast.Call) and parent.func is not old
        if argument or isinstance(new, ATOMS) or new.lpar:
            return new
        return new.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])

    def call(self, call: ast.Call, instead: dict[ast.expr, Part], *first: Part, **keywords: Part) -> cst.BaseExpression:
        """A call of the function with some of its parts replaced, arguments before all others, and keyword arguments added."""
        node = self.swapped(call, instead)
        assert isinstance(node, cst.Call)
        tight = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
        tight = next((a.equal for a in node.args if isinstance(a.equal, cst.AssignEqual)), tight)  # `device = device`
        lines = call.lineno != call.end_lineno or bool(instead)
        spread = lines and "\n" in PLAIN.code_for_node(node)
        gap = node.whitespace_before_args if spread else cst.SimpleWhitespace("")
        if isinstance(gap, cst.ParenthesizedWhitespace):  # its comment stays where it is
            none = cst.SimpleWhitespace("")
            gap = gap.with_changes(
                first_line=gap.first_line.with_changes(comment=None, whitespace=none), empty_lines=[]
            )
        split = node.args[0].comma if len(node.args) > 1 else None  # one argument a line, or all on one
        apart = isinstance(split, cst.Comma) and isinstance(split.whitespace_after, cst.ParenthesizedWhitespace)
        apart = apart and isinstance(gap, cst.ParenthesizedWhitespace)
        comma = cst.Comma(whitespace_after=gap if apart else cst.SimpleWhitespace(" "))
        node = node.with_changes(args=[*(cst.Arg(self._part(f), comma=comma) for f in first), *node.args])
        given = {a.keyword.value for a in node.args if a.keyword is not None}
        kept = [
            a.with_changes(value=self._part(keywords[a.keyword.value]))
            if a.keyword and a.keyword.value in keywords
            else a
            for a in node.args
        ]
        more = [cst.Arg(self._part(v), keyword=cst.Name(k), equal=tight) for k, v in keywords.items() if k not in given]
        for new in more:
            if kept:
                kept[-1], new = spaced(kept, new, gap)
            kept.append(new)
        return node.with_changes(args=kept)

    def without(self, call: ast.Call, keyword: str) -> cst.BaseExpression:
        """A call of the function without one of its keyword arguments."""
        node = self.node(call)
        assert isinstance(node, cst.Call)
        kept = [a for a in node.args if a.keyword is None or a.keyword.value != keyword]
        if kept and kept[-1] is not node.args[-1]:
            last = node.args[-1]
            kept[-1] = kept[-1].with_changes(comma=last.comma, whitespace_after_arg=last.whitespace_after_arg)
        return node.with_changes(args=kept)

    def drop_unused(self, gone: list[ast.AST], new: str) -> None:
        """Take out assignments of pure values to names that were read in `gone` only and are not in the new code."""
        function, gone = self.function, list(gone)
        kept = {n.id for n in ast.walk(ast.parse(new)) if isinstance(n, ast.Name)}
        for name in sorted({n.id for g in gone for n in ast.walk(g) if isinstance(n, ast.Name)} - kept):
            self._drop(name, gone, kept, function)

    def _drop(self, name: str, gone: list[ast.AST], kept: set[str], function: Function) -> None:
        binds = function.binds(name)
        inside = {id(n) for g in gone for n in ast.walk(g)}
        if name in kept or len(binds) != 1 or any(id(n) not in inside for n in function.reads(name)):
            return
        statement = function.parent(binds[0])
        if (
            isinstance(function.scope, (ast.FunctionDef, ast.AsyncFunctionDef))
            and isinstance(statement, ast.Assign)
            and statement.targets == [binds[0]]
            and statement not in gone
            and function.pure(statement.value)
            and self.function.alone(statement)
        ):
            self.remove(statement)
            gone.append(statement)
            for inner in sorted({n.id for n in ast.walk(statement.value) if isinstance(n, ast.Name)}):
                self._drop(inner, gone, kept, function)

    def replace(self, node: ast.expr | ast.stmt, template: str, **parts: Part) -> None:
        """Put other code in the place of an expression or a statement."""
        text = self.code(template, **parts)
        if isinstance(node, ast.expr):
            if self.function.printed(node):
                raise CannotRewrite("an f-string prints this code itself, by its `=`")
            text = self._in_place_of(node, text)
            span = self._tight(node, text)
        else:
            span, lines = self.file.span(node), text.splitlines()
            kept = [c for c in self.comments(node) if not any(line.endswith(c) for line in lines)]
            text = f"\n{self.function.indent(node)}".join([*kept, text.rstrip("\n")])
        self.edits.append(Edit(span, text))

    def _tight(self, node: ast.expr, text: str) -> Span:
        """Where new code goes: `x[: n.item()]` is `x[:n]` with a name, without the space."""
        span, parent = self.file.span(node), self.function.parent(node)
        end = isinstance(parent, ast.Slice) and parent.lower is None and parent.upper is node
        spaced = end and text.isidentifier() and self.file.code[span.start - 2 : span.start] == b": "
        return Span(span.start - 1, span.end) if spaced else span

    def _in_place_of(self, node: ast.expr, text: str) -> str:
        """The new code, in parentheses where what is around the old node demands them."""
        new, parent = ast.parse(f"({text})", mode="eval").body, self.function.parent(node)
        if not self._is_bare(node) and self._is_bracketed(node):
            read = cst.parse_expression(f"({text})") if text.startswith("(") else None
            if read is not None and len(read.lpar) > 1 and not isinstance(read, BRACED):
                return PLAIN.code_for_node(read.with_changes(lpar=[], rpar=[]))
            return text
        if isinstance(new, WHOLE):
            return text
        tight = isinstance(parent, (ast.Attribute, ast.Subscript, ast.Await, ast.UnaryOp, ast.BinOp, ast.Starred)) or (
            isinstance(parent, ast.Call) and parent.func is node
        )
        if isinstance(parent, ast.Subscript) and parent.slice is node:
            tight = False
        loose = isinstance(new, (ast.BinOp, ast.UnaryOp))
        if isinstance(parent, (ast.Compare, ast.BoolOp)) and not loose:
            tight = True
        bracketed = isinstance(parent, ast.Call) and parent.func is not node
        if "\n" in text and not bracketed:
            tight = True
        return f"({text})" if tight else text

    def _is_bracketed(self, node: ast.expr) -> bool:
        """Whether parentheses stand around an expression that stay when it is replaced."""
        old = self.node(node)
        return bool(old.lpar) and not isinstance(old, BRACED)

    def insert_before(self, statement: ast.stmt, template: str, **parts: Part) -> None:
        """Put a statement before another.

        Raises:
            CannotRewrite: there is no line between them.
        """
        self._begins_its_line(statement)
        start = self.file.starts[statement.lineno - 1]
        if self.file.code[:start].rstrip(b"\r\n").endswith(b"\\"):
            raise CannotRewrite("the line before goes on here: nothing can be put between")
        code = self.code(template, **parts).rstrip("\n")
        self.edits.append(Edit(Span(start, start), f"{self.function.indent(statement)}{code}\n"))

    def named(self, expr: ast.expr, wish: str) -> Part:
        """A name for an expression that new code has several times, bound before its statement.

        It is the expression itself where that is short, or where something else would be computed before it.
        """
        function, statement = self.function, self.function.statement(expr)
        if isinstance(expr, ast.Name) or len(self.file.text(expr)) <= SHORT or statement is None:
            return expr
        start = self.file.span(expr).start
        before = (n for n in walk(statement) if isinstance(n, ACTS) and self.file.span(n).end <= start)
        calm = function.pure(expr) and function.runs_first(statement, expr) and all(map(function.pure, before))
        if not calm or function.indent(statement).strip():
            return expr
        name = function.fresh(wish)
        self.insert_before(statement, f"{name} = {{x}}", x=expr)
        return name

    def insert_after(self, statement: ast.stmt, template: str, **parts: Part) -> None:
        """Put a statement after another, and after those that were put there before it.

        Raises:
            CannotRewrite: it does not begin its line, so that what comes after does not stand beside it.
        """
        self._begins_its_line(statement)
        end = line_end(self.file, self._last_put_after(statement, template))
        newline = "" if self.file.code[:end].endswith(b"\n") else "\n"
        code = self.code(template, **parts).rstrip("\n")
        self.edits.append(Edit(Span(end, end), f"{newline}{self.function.indent(statement)}{code}\n"))

    def _begins_its_line(self, statement: ast.stmt) -> None:
        if self.function.indent(statement).strip():
            raise CannotRewrite("it stands behind another on its line: `if test: this`")

    def _last_put_after(self, statement: ast.stmt, template: str) -> ast.stmt:
        """The last of the statements `name = read(name)` that follow a loop on the next lines: as other fixes write them."""
        block = self.function.block(statement)
        if statement not in block:  # of another function
            return statement
        for after in block[block.index(statement) + 1 :]:
            match after:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() | ast.IfExp() as value):
                    used = {n.id for n in ast.walk(value) if isinstance(n, ast.Name) and not self.function.dotted(n)}
                    own = re.search(rf"\b{name}\b", template) is not None
                    if own or used != {name} or after.lineno != (statement.end_lineno or 0) + 1:
                        break
                    statement = after
                case _:
                    break
        return statement

    def remove(self, statement: ast.stmt) -> None:
        """Take a statement out, with its lines; comments in them stay, on lines of their own, unless they have moved.

        Raises:
            CannotRewrite: a comment says what type is assigned, or something else stands on its line.
        """
        moved = [line for edit in self.edits for line in edit.text.splitlines()]
        if len(self.function.block(statement)) == 1:
            self.edits.append(Edit(self.file.span(statement), "pass"))
        else:
            if not self.function.alone(statement):
                raise CannotRewrite("something else stands on its line")
            start, end = self.file.starts[statement.lineno - 1], line_end(self.file, statement)
            indent = self.function.indent(statement)
            comments = self.comments(statement, end)
            if any(TYPED.match(c) for c in comments):
                raise CannotRewrite("a comment that is a type belongs to its statement")
            kept = "".join(f"{indent}{c}\n" for c in comments if not any(line.endswith(c) for line in moved))
            if not kept and self.function.block(statement)[0] is statement:  # no block begins with an empty line
                found = BLANK.match(self.file.code, end)
                end = found.end() if found else end
            self.edits.append(Edit(Span(start, end), kept))

    def comments(self, statement: ast.stmt, end: int = -1) -> list[str]:
        """The comments in a statement, and on to `end`."""
        span = self.file.span(statement)
        return comments(self.file.code[span.start : max(end, span.end)])

    def head_to_assignment(self, statement: ast.If, name: str, template: str, **parts: Part) -> bool:
        """Turn `if test: one statement` into `name = test`; False where it is not laid out on lines of its own."""
        body = statement.body[0]
        if body.lineno <= (statement.test.end_lineno or 0) or not self.function.alone(body):
            return False
        span, line = self.file.span(statement), self.file.starts[body.lineno - 1]
        tested = self.file.span(statement.test).end
        colon = self.file.code.index(b":", tested, line)
        self.edits.append(Edit(Span(span.start, colon + 1), f"{name} = {self.code(template, **parts)}"))
        below, start = self.file.code.index(b"\n", colon) + 1, self.file.starts[statement.lineno - 1]
        self.edits.append(Edit(Span(below, line_end(self.file, body)), ""))
        if said := comments(self.file.code[below:line]):
            self.edits.append(
                Edit(Span(start, start), "".join(f"{self.function.indent(statement)}{c}\n" for c in said))
            )
        return True

    def fix(self, title: str, safety: Safety, changes: str = "") -> Fix:
        """What was drafted, as one fix.

        Raises:
            CannotRewrite: an error that is caught around it would find other statements done.
        """
        edits = [*finished(self.function, self.edits), *(import_edit(self.file, IMPORTS[name]) for name in self.needed)]
        return Fix(title, tuple(sorted(edits, key=lambda e: e.span)), safety, changes)

    def called(self, name: str) -> str:
        """What the file calls a module that templates call `name`.

        Raises:
            CannotRewrite: the function uses that name for something else.
        """
        words = {**self.file.at_hand, **self.function.imported}
        found = next((word for word, meaning in words.items() if meaning == MODULES[name]), None)
        if found is None:
            self.needed[name] = None
            found = name
        if self._is_own(found):
            raise CannotRewrite(f"{found} is something else here")
        return found

    def _is_own(self, name: str) -> bool:
        return bool(self.function.binds(name)) or name in self.function.parameters

    def _means_another(self, name: str) -> bool:
        return self._is_own(name) or name in self.file.bound or name in {**self.file.at_hand, **self.function.imported}
