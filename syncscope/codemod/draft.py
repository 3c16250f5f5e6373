"""Edits of one function, built with libcst: imported only when a fix is built."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import libcst as cst

from syncscope.codemod.function import Function
from syncscope.codemod.layout import comments, finished
from syncscope.codemod.new_imports import import_edit
from syncscope.codemod.read_again import read_more_often
from syncscope.codemod.splice import PLAIN
from syncscope.codemod.templates import Part, Templates
from syncscope.codemod.text import CannotRewrite, line_end
from syncscope.codemod.together import apart, together
from syncscope.model.finding import Drawback, Edit, Fix, Safety
from syncscope.model.source import Span
from syncscope.project.syntax import walk

BLANK = re.compile(rb"(?:[ \t]*\r?\n)*")
OWN_LINE = re.compile(rb"[ \t]*\r?\n\s*\.")
TYPED = re.compile(r"# *type: *(?!ignore)")
IMPORTS = {
    "torch": "import torch",
    "F": "import torch.nn.functional as F",
    "nn": "from torch import nn",
    "math": "import math",
    "functools": "import functools",
}
ACTS = (ast.Call, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
BRACED = (cst.Tuple, cst.GeneratorExp)  # whose parentheses are their own, and are replaced with them
WHOLE = (
    ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.Constant, ast.JoinedStr, ast.Tuple, ast.List, ast.Dict, ast.Set,
    ast.ListComp, ast.DictComp, ast.SetComp,
)  # fmt: skip
"""Expressions that need no parentheses, whatever stands around them."""
SHORT = 12  # characters of an expression that may be said several times


class Draft(Templates):
    """Edits that will make one fix.

    Code is written as templates: `draft.replace(node, "torch.where({mask}, {value}, {base})", mask=..., ...)`. An import is
    added where the file has none of a module that a template names.
    """

    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self.edits: list[Edit] = []
        self.drawbacks: set[Drawback] = set()
        self.dense: set[str] = set()  # code that a reader looks at twice, unless it is folded over lines

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
            span = self._with_brackets(node, text) or self._tight(node, text)
        else:
            span, lines = self.file.span(node), text.splitlines()
            kept = [c for c in self.comments(node) if not any(line.endswith(c) for line in lines)]
            text = f"\n{self.function.indent(node)}".join([*kept, text.rstrip("\n")])
        self.edits.append(Edit(span, text))

    def add_argument(self, call: ast.Call, name: str, value: str) -> None:
        """Give a call one argument more; a chain over several lines stays as it is laid out."""
        if call.func.lineno == call.func.end_lineno:
            self.replace(call, "{call}", call=self.call(call, {}, **{name: value}))
            return
        if self.function.printed(call):
            raise CannotRewrite("an f-string prints this code itself, by its `=`")
        given = [*call.args, *(k.value for k in call.keywords)]
        end = max((self.file.span(each).end for each in given), default=0)
        at = end or self.file.span(call).end - 1
        self.edits.append(Edit(Span(at, at), ", " * bool(end) + f"{name}={value}"))

    def take_off(self, call: ast.Call, made: ast.Call, new: Part) -> bool:
        """Take `.to(d)` off the end of a chain that goes over lines, and make what it begins with anew: all else stays.

        False where it stands on the line of what it is called on, or a comment beside it would be lost.
        """
        if not isinstance(call.func, ast.Attribute) or self.function.printed(call):
            return False
        span = Span(self.file.span(call.func.value).end, self.file.span(call).end)
        last = self.file.code[span.start : span.end]
        if not OWN_LINE.match(last) or b"#" in last:
            return False
        self.replace(made, "{new}", new=new)
        self.edits.append(Edit(span, ""))
        return True

    def _with_brackets(self, node: ast.expr, text: str) -> Span | None:
        """The place of a value and of the parentheses that only held it together over lines."""
        parent = self.function.parent(node)
        is_value = isinstance(parent, (ast.Assign, ast.AnnAssign, ast.Return)) and parent.value is node
        if not is_value or "\n" in text:
            return None
        span, code = self.file.span(node), self.file.code
        begin, end = len(code[: span.start].rstrip()), len(code) - len(code[span.end :].lstrip())
        apart = code[begin - 1 : begin] == b"(" and code[end : end + 1] == b")" and b"\n" in code[begin : span.start]
        return Span(begin - 1, end + 1) if apart else None

    def _tight(self, node: ast.expr, text: str) -> Span:
        """Where new code goes: `x[: n.item()]` is `x[:n]` with a name, without the space."""
        span, parent = self.file.span(node), self.function.parent(node)
        end = isinstance(parent, ast.Slice) and parent.lower is None and parent.upper is node
        spaced = end and text.isidentifier() and self.file.code[span.start - 2 : span.start] == b": "
        return Span(span.start - 1, span.end) if spaced else span

    def _in_place_of(self, node: ast.expr, text: str) -> str:
        """The new code, in parentheses where what is around the old node demands them."""
        new, parent = ast.parse(f"({text})", mode="eval").body, self.function.parent(node)
        if self._shares_brackets(node, parent):
            return text if _in_brackets(text) else f"({text})"
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
        if isinstance(parent, ast.BinOp) and parent.left is node and isinstance(new, ast.UnaryOp):
            tight = isinstance(parent.op, ast.Pow)
        loose = isinstance(new, (ast.BinOp, ast.UnaryOp))
        if isinstance(parent, (ast.Compare, ast.BoolOp)) and not loose:
            tight = True
        bracketed = isinstance(parent, ast.Call) and parent.func is not node
        if "\n" in text and not bracketed:
            tight = True
        return f"({text})" if tight and not _in_brackets(text) else text

    def _shares_brackets(self, node: ast.expr, parent: ast.AST | None) -> bool:
        """Whether the parentheses of a generator are those of the call that it is given to, `tuple(x for x in xs)`."""
        if not (isinstance(node, ast.GeneratorExp) and isinstance(parent, ast.Call) and node in parent.args):
            return False
        return self.file.span(parent).end == self.file.span(node).end

    def _is_bracketed(self, node: ast.expr) -> bool:
        """Whether parentheses stand around an expression that stay when it is replaced."""
        old = self.node(node)
        return bool(old.lpar) and not isinstance(old, BRACED)

    def insert_before(self, statement: ast.stmt, template: str, **parts: Part) -> None:
        """Put a statement before another.

        Raises:
            CannotRewrite: there is no line between them, or it reads what is bound only afterwards.
        """
        self._begins_its_line(statement)
        start = self.file.starts[statement.lineno - 1]
        if self.file.code[:start].rstrip(b"\r\n").endswith(b"\\"):
            raise CannotRewrite("the line before goes on here: nothing can be put between")
        code = self.code(template, **parts).rstrip("\n")
        if early := next((name for name in self._read_in(parts) if self._bound_later(name, start)), None):
            raise CannotRewrite(f"{early} is not there yet")
        self.edits.append(Edit(Span(start, start), f"{self.function.indent(statement)}{code}\n"))

    @staticmethod
    def _read_in(parts: dict[str, Part]) -> Iterator[str]:
        """The names that the parts of a template read, not those that they bind themselves."""
        for part in parts.values():
            if isinstance(part, ast.expr):
                names = [n for n in ast.walk(part) if isinstance(n, ast.Name)]
                own = {n.id for n in names if not isinstance(n.ctx, ast.Load)}
                yield from (n.id for n in names if n.id not in own)

    def _bound_later(self, name: str, start: int) -> bool:
        """Whether a name of the function is bound nowhere before a place of its text."""
        binds = self.function.binds(name)
        return bool(binds) and name not in self.function.parameters and self.file.span(binds[0]).start >= start

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

    def unwrap(self, statement: ast.If, inside: Sequence[tuple[ast.expr, str]] = ()) -> None:
        """Put what an `if` does in its place, with its comments; expressions `inside` of it as the code that is given for each.

        Raises:
            CannotRewrite: a string goes over lines, or the block is indented as no block below it.
        """
        first, last = self.file.span(statement.body[0]), self.file.span(statement.body[-1])
        texts = (n for each in statement.body for n in ast.walk(each) if isinstance(n, (ast.Constant, ast.JoinedStr)))
        if any(n.lineno != n.end_lineno for n in texts):
            raise CannotRewrite("a string goes over several lines")
        start, span = first.start, self.file.span(statement)
        inner, outer = self.function.indent(statement.body[0]), self.function.indent(statement)
        if statement.body[0].lineno > (statement.test.end_lineno or 0):  # on lines of its own
            start = self.file.code.index(b"\n", self.file.span(statement.test).end) + 1
        code, at = "", start
        for each, new in sorted(((self.file.span(node), text) for node, text in inside), key=lambda pair: pair[0]):
            code += self.file.code[at : each.start].decode() + new
            at = each.end
        lines = (code + self.file.code[at : last.end].decode()).splitlines()
        if start != first.start and any(line.strip() and not line.startswith(inner) for line in lines):
            raise CannotRewrite("something stands further left than its block")
        text = "\n".join(outer + line.removeprefix(inner) if line.strip() else "" for line in lines)
        self.edits.append(Edit(span, text.removeprefix(outer)))

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

    def take(self, other: Draft) -> None:
        """Take over what was drafted in another function of the file, laid out there."""
        self.edits += finished(other.function, other.edits)
        self.needed |= other.needed
        self.drawbacks |= other.drawbacks
        self.dense |= other.dense

    def fix(self, title: str, safety: Safety, *changes: str, redraws: bool = False) -> Fix:
        """What was drafted, as one fix; "" among what it changes is left out.

        Raises:
            CannotRewrite: an error that is caught around it would find other statements done.
        """
        imports = [import_edit(self.file, IMPORTS[name]) for name in self.needed]
        edits = tuple(sorted([*finished(self.function, self.edits), *imports], key=lambda e: e.span))
        if any(code in edit.text for code in self.dense for edit in edits):
            self.drawbacks.add(Drawback.READS_WORSE)
        self.function.drafted[edits] = tuple(self.edits), tuple(imports)
        if safety is not Safety.SUGGEST and (again := read_more_often(self.function, self.edits)):
            said = " and ".join(f"`{text}`" for text in again)
            safety = Safety.UNSAFE
            changes = (*changes, f"{said} is read more often, which a property would notice")
        return Fix(
            title, edits, safety, tuple(filter(None, changes)), redraws=redraws, drawbacks=frozenset(self.drawbacks)
        )


def laid_out_together(function: Function, fixes: Sequence[Fix]) -> Fix | None:
    """One fix of several that fold the same statements anew: what they draft is brought together, then laid out once.

    None where they replace the same code, or are drafted in other functions. Raises:
        CannotRewrite: an error that is caught around it would find other statements done.
    """
    drafted = [function.drafted.get(fix.edits) for fix in fixes]
    drafts = [replace(f, edits=each[0]) for f, each in zip(fixes, drafted, strict=True) if each is not None]
    if len(drafts) < len(fixes) or not apart(drafts):
        return None
    fix, imports = together(drafts), {edit for each in drafted if each is not None for edit in each[1]}
    edits = sorted([*finished(function, fix.edits), *imports], key=lambda e: e.span)
    return replace(fix, edits=tuple(edits))


def _in_brackets(text: str) -> bool:
    """Whether one pair of parentheses holds all of some code."""
    return text.startswith("(") and len(getattr(cst.parse_expression(f"({text})"), "lpar", ())) > 1
