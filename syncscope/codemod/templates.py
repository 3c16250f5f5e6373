"""Code made of templates and of what stands in a function, by libcst: imported only when a fix is built."""

from __future__ import annotations

import ast
import builtins
import itertools
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import cast

import libcst as cst

from syncscope.codemod.function import Function
from syncscope.codemod.parsing import parse, stands_alone
from syncscope.codemod.splice import ATOMS, PLAIN, Fill, Swap, WriteOut, needs_brackets, spaced
from syncscope.codemod.text import CannotRewrite

HOLE = re.compile(r"\{(\w+)\}")
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
READ_ALONE = frozenset(
    (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp)
)  # what reads alike in whatever it stands
WHOLE_ALONE = frozenset((ast.Name, ast.Attribute, ast.Subscript, ast.Call))
CALLS = (cst.Name, cst.Attribute, cst.Subscript, cst.Call)
Part = ast.expr | cst.BaseExpression | str


@lru_cache(maxsize=512)
def written(template: str) -> cst.BaseExpression | cst.Module:
    """A template as a tree: an expression, or statements."""
    try:
        return cst.parse_expression(template)
    except cst.ParserSyntaxError:
        return cst.parse_module(template)


class Templates:
    """Code of one function, written as templates: `"torch.where({mask}, {value}, {base})"`.

    A hole takes an expression of the function, moved there with its comments and line breaks, or a string that is Python.
    Parentheses are put where they are needed. The names torch, F, nn and math are turned into what the file calls these
    modules.
    """

    def __init__(self, function: Function) -> None:
        self.function = function
        self.file = function.file
        self.needed: dict[str, None] = {}  # modules to import, as templates call them

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
        argument = argument or (isinstance(parent, ast.Subscript) and parent.slice is old)
        if argument or isinstance(new, ATOMS) or new.lpar:
            return new
        return new.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])

    def call(self, call: ast.Call, instead: dict[ast.expr, Part], *first: Part, **keywords: Part) -> cst.BaseExpression:
        """A call of the function with some of its parts replaced, arguments before all others, and keyword arguments added."""
        if (text := self._call_by_text(call, instead, first, keywords)) is not None:
            return cst.parse_expression(text)
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

    def _call_by_text(
        self, call: ast.Call, instead: Mapping[ast.expr, Part], first: Sequence[Part], keywords: Mapping[str, Part]
    ) -> str | None:
        """The same as text, of a call on one line that is laid out as everybody does: nothing around it is read by libcst."""
        given: list[ast.expr | ast.keyword] = sorted([*call.args, *call.keywords], key=lambda a: a.col_offset)
        if not (given and self._is_bare(call)) or any(old not in (call.func, *call.args) for old in instead):
            return None
        span, spans = self.file.span(call), [self.file.span(each) for each in given]
        code = self.file.code
        between = {code[one.end : other.start] for one, other in itertools.pairwise(spans)}
        named = [self.file.text(each) for each in call.keywords]
        # no comma, no parentheses behind the last
        plain = between <= {b", "} and code[spans[-1].end : span.end] == b")"
        plain = plain and all(text.startswith(f"{k.arg}=") for k, text in zip(call.keywords, named, strict=True))
        if not plain or any(
            k.arg in keywords or k.value.col_offset - k.col_offset != len(f"{k.arg}=") for k in call.keywords
        ):
            return None
        edits: list[tuple[int, int, str]] = []
        for at, part in ((spans[0].start, part) for part in first):
            text = self._as_argument(part)
            if text is None:
                return None
            edits.append((at, at, f"{text}, "))
        for old, new in instead.items():
            whole = isinstance(new, CALLS) and not new.lpar and not needs_brackets(new)
            text = self._as_argument(new) if old is not call.func or whole else None
            if text is None or not self._is_bare(old):
                return None
            edits.append((self.file.span(old).start, self.file.span(old).end, text))
        for name, part in keywords.items():
            text = self._as_argument(part)
            if text is None:
                return None
            edits.append((spans[-1].end, spans[-1].end, f", {name}={text}"))
        found, at = "", span.start
        for start, end, text in sorted(edits, key=itemgetter(0, 1)):
            found, at = found + code[at:start].decode() + text, end
        return found + code[at : span.end].decode()

    def _as_argument(self, part: Part) -> str | None:
        """The text of a part as an argument of a call; None where it is not on one line, or may need parentheses."""
        if isinstance(part, ast.expr):
            return self.file.text(part) if self._is_bare(part) else None
        if isinstance(part, str):
            text = part.replace('"', "'") if self.file.single_quotes and "'" not in part else part
        else:
            text = PLAIN.code_for_node(part)
        return text if "\n" not in text else None

    def without(self, call: ast.Call, keyword: str) -> cst.BaseExpression:
        """A call of the function without one of its keyword arguments."""
        return self.dropped(self.node(call), keyword)

    def dropped(self, node: Part, keyword: str) -> cst.BaseExpression:
        """A call, however it was made, without one of its keyword arguments."""
        assert isinstance(node, cst.Call)
        kept = [a for a in node.args if a.keyword is None or a.keyword.value != keyword]
        if kept and kept[-1] is not node.args[-1]:
            last = node.args[-1]
            kept[-1] = kept[-1].with_changes(comma=last.comma, whitespace_after_arg=last.whitespace_after_arg)
        return node.with_changes(args=kept)

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
