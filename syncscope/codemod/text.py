"""A file's text: the bytes of any node, and what its names mean at the level of the module."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

from syncscope.model.source import Span, line_starts
from syncscope.project.requirements import Requirements
from syncscope.project.syntax import children, held, name_of, statements, walk

Made = TypeVar("Made")

SHORTEST = 88  # of what a line may at least hold, where a project says nothing
FOR_TOOLS = re.compile(r"#\s*(?:noqa|nosec|type:|pragma|pylint|pyright|mypy|fmt:|yapf)|https?://", re.IGNORECASE)
OWN_TENSORS = re.compile(rb"as_subclass|__torch_function__|quantize_per_|class \w+\((?:torch\.)?Tensor\b")
OTHER_LAYOUTS = re.compile(
    rb"to_sparse|torch\.sparse|sparse_(?:coo|cs[rc]|bs[rc])|torch_sparse|mkldnn|\bnested\b|nested_tensor|\blayout\b"
)
NAMES = re.compile(rb"(?<![\w.])[^\W\d]\w*")  # that are no attributes
GLOBAL = re.compile(rb"\bglobal\b.*")
TEXT = re.compile(r"""(["'])(?:\\.|(?!\1)[^\\])*+\1""")  # on one line; nothing is given back: `Euler's \\alpha`
SINGLE, DOUBLE = (  # each begins with a sign that is looked for at once
    re.compile(rb"'(?<!'')[^'\"\n]+'(?!')"),
    re.compile(rb'"(?<!"")[^\'"\n]+"(?!")'),
)
LONGEST = 60  # characters of the user's code quoted in a message


class CannotRewrite(Exception):  # noqa: N818  (it is no error: there is just no fix)
    """Code that cannot be rewritten, however well it is understood."""


class OfProject(NamedTuple):
    """What the project of a file says, asked when it is wanted."""

    own_moves: Callable[[], bool] = bool  # whether a class of its own has a `to` that takes no `non_blocking`
    pins: Callable[[], bool] = bool  # whether loaders pin their memory
    sends: Callable[[], bool] = bool  # whether anything is sent by `non_blocking=True`
    own_graphs: Callable[[], bool] = bool
    needs: Callable[[], Requirements] = Requirements
    gives: Callable[[str], bool] = lambda parameter: (
        True
    )  # whether anything gives a parameter another value than it has
    has_others: Callable[[], bool] = bool  # whether there are other files
    on_host: Callable[[], bool] = bool  # whether it trains, and knows no device
    switches_default: Callable[[], bool] = bool  # whether torch makes on another device what it is told no device of
    speaks_of: Callable[[str], bool] = lambda name: True  # whether anything names a function, a class, `Class.method`


ALONE = OfProject()  # a file that is of none


class Text:
    """One file: `code` is UTF-8 without a byte order mark, `tree` the module that was parsed from it.

    `width` is how long its project says that lines may be, 0 where it does not.
    """

    def __init__(self, code: bytes, tree: ast.Module | None = None, width: int = 0, project: OfProject = ALONE) -> None:
        self.code = code
        self._tree = tree
        self._width = width
        self.project = project
        self._made: dict[str, Any] = {}  # what several sites ask of all of the file

    @cached_property
    def width(self) -> int:
        """How long a line may be: as the project says, else as the longest line of code is, but no less than `SHORTEST`.

        What no formatter breaks says nothing: comments, text, and what a comment for a tool keeps on its line.
        """
        if self._width:
            return self._width
        lines = self.code.decode().splitlines()
        long = [(len(line), n, line) for n, line in enumerate(lines, 1) if len(line) > SHORTEST]
        for length, n, line in sorted(long, reverse=True):
            if FOR_TOOLS.search(line) or line.lstrip().startswith("#") or len(TEXT.sub("", line)) <= SHORTEST // 2:
                continue
            texts = (node for node in self._on(n) if isinstance(node, (ast.Constant, ast.JoinedStr)))
            if all(node.lineno == node.end_lineno for node in texts):
                return min(160, length)
        return SHORTEST

    def _on(self, line: int) -> Iterator[ast.AST]:
        """The nodes that stand on a line or reach over it; what stands beside them is not gone through."""
        todo: list[Any] = [self.tree]
        while todo:
            for node in children(todo.pop()):
                first, last = getattr(node, "lineno", line), getattr(node, "end_lineno", line)
                if hasattr(node, "decorator_list"):  # which may begin above its own line
                    first = min([first, *(each.lineno for each in node.decorator_list)])
                if first <= line <= last:
                    yield node
                    todo.append(node)

    @cached_property
    def own_tensors(self) -> bool:
        """Whether tensors here may be of a class of their own, or quantized: these take or give what others do not."""
        return OWN_TENSORS.search(self.code) is not None

    @cached_property
    def other_layouts(self) -> bool:
        """Whether tensors here may be sparse, nested or MKL-DNN's: these have no zeros, or other ones."""
        return OTHER_LAYOUTS.search(self.code) is not None

    @cached_property
    def single_quotes(self) -> bool:
        """Whether texts of this file stand in single quotes, most often: new code's do so, too."""
        return len(SINGLE.findall(self.code)) > len(DOUBLE.findall(self.code))

    @cached_property
    def tree(self) -> ast.Module:
        """The parsed module."""
        return self._tree if self._tree is not None else ast.parse(self.code)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The offset at which each line begins."""
        return line_starts(self.code)

    @cached_property
    def statements(self) -> list[Any]:
        """The module, and the statements, handlers and cases in it: several ask for some of them."""
        return statements(self.tree)

    @cached_property
    def imported(self) -> dict[str, str]:
        """What the names stand for that imports bind anywhere in this file: `F` is `torch.nn.functional`."""
        return meanings(self.statements)

    @cached_property
    def bound(self) -> dict[str, list[ast.Name]]:
        """Every place in this file where a name is bound or deleted."""
        found: dict[str, list[ast.Name]] = {}
        for node in walk(self.tree):
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                found.setdefault(node.id, []).append(node)
        return found

    @cached_property
    def attributes(self) -> dict[str, list[ast.Attribute]]:
        """Every attribute in this file, by its name."""
        found: dict[str, list[ast.Attribute]] = {}
        for node in walk(self.tree):
            if isinstance(node, ast.Attribute):
                found.setdefault(node.attr, []).append(node)
        return found

    @cached_property
    def calls(self) -> dict[str, list[ast.Call]]:
        """Every call in this file, by the last word of what is called."""
        found: dict[str, list[ast.Call]] = {}
        for node in walk(self.tree):
            if isinstance(node, ast.Call):
                found.setdefault(name_of(node.func), []).append(node)
        return found

    @cached_property
    def callers(self) -> dict[ast.Call, ast.FunctionDef | ast.AsyncFunctionDef]:
        """The innermost function around each call that stands in one."""
        functions = (n for n in self.statements if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)))
        # the inner ones later
        return {node: each for each in functions for node in walk(each) if isinstance(node, ast.Call)}

    def once(self, what: str, make: Callable[[], Made]) -> Made:
        """What is made of all of a file, whichever site asks first."""
        if what not in self._made:
            self._made[what] = make()
        made: Made = self._made[what]
        return made

    @cached_property
    def classes(self) -> list[ast.ClassDef]:
        """Its classes, in whatever they stand."""
        return [each for each in self.statements if each.__class__ is ast.ClassDef]

    def class_around(self, member: ast.AST) -> ast.ClassDef | None:
        """The class in whose body this stands: of a method its own."""
        return self._class_around.get(member)

    @cached_property
    def _class_around(self) -> dict[ast.AST, ast.ClassDef]:
        return {member: cls for cls in self.classes for member in cls.body}

    def on_top(self, line: int) -> ast.stmt | None:
        """The statement at the top level of the module that stands on a line; of several the last."""
        at = bisect_right(self.tree.body, line, key=attrgetter("lineno"))
        found = self.tree.body[at - 1] if at else None
        return found if found is not None and line <= (found.end_lineno or 0) else None

    def constants(self, name: str) -> list[ast.Assign]:
        """The assignments at the top level of the module that give this name a value, alone or first in a chain."""
        return self._constants.get(name, [])

    @cached_property
    def _constants(self) -> dict[str, list[ast.Assign]]:
        found: dict[str, list[ast.Assign]] = {}
        for each in self.tree.body:
            if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name):
                found.setdefault(each.targets[0].id, []).append(each)
        return found

    @cached_property
    def kept_in_loops(self) -> set[str]:
        """What functions are called whose result is given a name in a loop of this file."""
        loops = [node for node in walk(self.tree) if isinstance(node, (ast.For, ast.While))]
        assigned = (n.value for loop in loops for n in walk(loop) if isinstance(n, (ast.Assign, ast.AnnAssign)))
        return {call.func.id for call in assigned if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)}

    @cached_property
    def at_hand(self) -> dict[str, str]:
        """What the names stand for that are imported for every function: by the module, when it runs, see `imported`."""
        found: list[ast.AST] = []
        todo: list[ast.AST] = [self.tree]
        while todo:
            node = todo.pop()
            found.append(node)
            typing_only = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
            if isinstance(node, (ast.Module, ast.If, ast.Try, ast.With)) and not typing_only:
                todo += held(node)
        return meanings(found)

    def span(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword | ast.ExceptHandler) -> Span:
        """The bytes of a node, without parentheses around it."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return Span(
            self.starts[node.lineno - 1] + node.col_offset, self.starts[node.end_lineno - 1] + node.end_col_offset
        )

    def text(self, node: ast.expr | ast.stmt | ast.keyword) -> str:
        """A node as the user wrote it."""
        span = self.span(node)
        return self.code[span.start : span.end].decode()

    def stands(self, name: str, scope: ast.AST | None) -> bool:
        """Whether a name stands in the file by itself, not as an attribute: what other functions call so is no hindrance in
        the one that `scope` is, or is a part of; None for the module, and all functions.
        """
        word = name.encode()
        if word not in self.code:
            return False
        alone = re.compile(rb"(?<![\w.])%s\b" % word)
        own = self.outermost_around(scope) if scope is not None else None
        if own is None:  # it stands in none
            return alone.search(self.code) is not None
        if word in self._outside:
            return True
        span = self.span(own)
        return alone.search(self.code, span.start, span.end) is not None

    @cached_property
    def _outside(self) -> set[bytes]:
        """The names that stand outside of all functions, or in one that says that they are the module's."""
        spans = [self.span(each) for each in self.outermost]
        begins, ends = [0, *(span.end for span in spans)], [*(span.start for span in spans), len(self.code)]
        found = {word for at, end in zip(begins, ends, strict=True) for word in NAMES.findall(self.code, at, end)}
        if b"global" in self.code:
            found.update(word for line in GLOBAL.finditer(self.code) for word in NAMES.findall(line[0]))
        return found

    def outermost_around(self, node: ast.AST) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The function that is in no other one and holds a node, or is it: only the one on its lines is gone through."""
        at = bisect_right(self.outermost, getattr(node, "lineno", 0), key=_first_line)
        found = self.outermost[at - 1] if at else None
        return found if found is not None and (found is node or any(each is node for each in walk(found))) else None

    @cached_property
    def outermost(self) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        """The functions that are in no other one, methods too, in the order in which they stand."""
        found: list[ast.FunctionDef | ast.AsyncFunctionDef] = []
        todo: list[ast.AST] = [self.tree]
        while todo:
            for node in held(todo.pop()):
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    found.append(node)
                else:
                    todo.append(node)
        return sorted(found, key=_first_line)

    def quote(self, node: ast.AST | None) -> str:
        """An expression on one line, in backticks, cut where it is long: for messages."""
        if not isinstance(node, ast.expr):
            return "this"
        text = " ".join(self.text(node).split())
        return f"`{text}`" if len(text) <= LONGEST else f"`{text[: LONGEST - 3]}...`"


def _first_line(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return min([function.lineno, *(each.lineno for each in function.decorator_list)])


def line_end(file: Text, statement: ast.stmt) -> int:
    """Where the line ends on which a statement does."""
    end = file.span(statement).end
    newline = file.code.find(b"\n", end)
    return len(file.code) if newline < 0 else newline + 1


def meanings(nodes: Iterable[Any]) -> dict[str, str]:
    """The names that the imports among some nodes bind, and what they stand for."""
    found = {}
    for node in nodes:
        kind = node.__class__  # of all statements of a file: an `isinstance` would cost twice as much
        if kind is ast.Import:
            for alias in node.names:
                package = alias.name.partition(".")[0]
                found[alias.asname or package] = alias.name if alias.asname else package
        elif kind is ast.ImportFrom and node.module and not node.level:
            for alias in node.names:
                found[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return found
