"""What the names of a function hold and what its calls call, as its text alone tells."""

from __future__ import annotations

import ast
import itertools
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import cached_property
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple, TypeVar

from syncscope.codemod.enclosure import LOOPS, SCOPES, Enclosure
from syncscope.codemod.text import CannotRewrite, Text, meanings
from syncscope.project.syntax import each_of, statements

COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
BY_TEXT = {("locals", False), ("vars", False), ("dir", False), ("eval", True), ("exec", True)}  # of what, or of nothing

_PLACE = attrgetter("lineno", "col_offset")

Made = TypeVar("Made")


class TorchCall(NamedTuple):
    """A call of a torch function or a tensor method, both written alike: `torch.sum(x, 0)` and `x.sum(0)` are the same."""

    name: str  # sum
    base: ast.expr  # x
    args: list[ast.expr]  # the others, by position
    keywords: dict[str, ast.expr]

    def argument(self, position: int, keyword: str) -> ast.expr | None:
        """An argument that may be given by position (the base is not counted) or by name."""
        return self.args[position] if position < len(self.args) else self.keywords.get(keyword)


class NamesAndCalls(Enclosure):
    """A function, or a module where code stands in none: where its names are bound and read, and by what."""

    def __init__(self, file: Text, scope: ast.AST) -> None:
        super().__init__(file, scope)
        self._made: dict[tuple[str, int], Any] = {}  # what several sites ask for, by its name and a node's id
        self._defined: dict[ast.expr, ast.Assign | None] = {}

    def once(self, what: str, node: ast.AST, make: Callable[[], Made]) -> Made:
        """What is made of a node, whichever site asks first: a fix that many share is built once."""
        key = (what, id(node))
        if key not in self._made:
            self._made[key] = make()
        made: Made = self._made[key]
        return made

    def names(self, name: str) -> list[ast.Name]:
        """Every use and binding of a name, nested functions included, in order."""
        return self._names.get(name, [])

    @cached_property
    def _names(self) -> dict[str, list[ast.Name]]:
        found: dict[str, list[ast.Name]] = {}
        for node in self.every(ast.Name):
            found.setdefault(node.id, []).append(node)
        for nodes in found.values():
            nodes.sort(key=_PLACE)
        return found

    @cached_property
    def _read(self) -> dict[str, list[ast.Name]]:
        return {name: [n for n in nodes if isinstance(n.ctx, ast.Load)] for name, nodes in self._names.items()}

    @cached_property
    def _bound(self) -> dict[str, list[ast.Name]]:
        found = {name: [n for n in nodes if not isinstance(n.ctx, ast.Load)] for name, nodes in self._names.items()}
        return {name: nodes for name, nodes in found.items() if nodes}

    def reads(self, name: str) -> list[ast.Name]:
        """Every use of a name."""
        return self._read.get(name, [])

    def binds(self, name: str) -> list[ast.Name]:
        """Every place where a name is bound or deleted."""
        return self._bound.get(name, [])

    @cached_property
    def parameters(self) -> set[str]:
        """The names of the function's own parameters."""
        return parameters_of(self.scope) if isinstance(self.scope, (ast.FunctionDef, ast.AsyncFunctionDef)) else set()

    @cached_property
    def statements(self) -> list[ast.stmt]:
        """Every statement in it, nested functions included."""
        return [n for n in statements(self.scope) if isinstance(n, ast.stmt) and n is not self.scope]

    @cached_property
    def imported(self) -> dict[str, str]:
        """What the names stand for that are imported at the top of the function itself."""
        body = getattr(self.scope, "body", [])
        return meanings(itertools.takewhile(lambda s: isinstance(s, (ast.Import, ast.ImportFrom, ast.Expr)), body))

    @cached_property
    def _shared(self) -> set[str]:
        """Names that are bound otherwise than by `ast.Name`: by other scopes, imports, handlers, patterns, nested functions."""
        found = {n.arg for n in self.every(ast.arg) if self.parent(self.parent(n) or n) is not self.scope}
        found.update(name for n in self.every(ast.Global, ast.Nonlocal) for name in n.names)
        inner = self.every(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        found.update(n.name for n in inner if n is not self.scope)
        found.update(n.name for n in self.every(ast.ExceptHandler, ast.MatchAs, ast.MatchStar) if n.name)
        found.update((n.asname or n.name).partition(".")[0] for n in self.every(ast.alias))
        found.update(n.rest for n in self.every(ast.MatchMapping) if n.rest)
        return found

    @cached_property
    def names_are_read(self) -> bool:
        """Whether code asks for its names as text, `locals()`, `eval(...)`: none can be added or taken out."""
        asked = ((n.func.id, bool(n.args)) for n in self.every(ast.Call) if isinstance(n.func, ast.Name))
        return any(call in BY_TEXT for call in asked)

    def fresh(self, wish: str, taken: Sequence[str] = (), everywhere: bool = False) -> str:
        """A name that nothing here has yet but attributes, and that is none of `taken`: without a number, if it can be.

        It is one for this function, `everywhere`: for the module. Raises:
            CannotRewrite: the function reads all of its names.
        """
        if self.names_are_read:
            raise CannotRewrite("the function asks for its names")
        own = getattr(self.scope, "name", "").strip("_").lower()
        beside = (f"{own}_{wish}" if own not in ("", "forward") and len(own) < 9 else f"new_{wish}", f"own_{wish}")
        numbered = (f"{wish}_{number}" for number in itertools.count(2))
        every = itertools.chain((wish,), beside, numbered)
        scope = None if everywhere else self.scope
        return next(name for name in every if name not in taken and not self.file.stands(name, scope))

    def reaching_definition(self, use: ast.expr) -> ast.Assign | None:
        """The assignment `name = value` whose value this use of the name surely sees: straight-line code only."""
        if use not in self._defined:
            self._defined[use] = self._reaching_definition(use)
        return self._defined[use]

    def _reaching_definition(self, use: ast.expr) -> ast.Assign | None:
        if not isinstance(use, ast.Name) or use.id in self._shared:
            return None
        bound = self.binds(use.id)  # in order
        before = bound[: bisect_left(bound, (use.lineno, use.col_offset), key=lambda n: (n.lineno, n.col_offset))]
        if not before:
            return None
        last = self.parent(before[-1])
        if not isinstance(last, ast.Assign) or len(last.targets) != 1 or last.targets[0] is not before[-1]:
            return None
        around = [use, *self.around(use)]
        if any(isinstance(n, COMPREHENSIONS) and self._binds_within(n, use.id) for n in around):
            return None
        if last in around:  # x = f(x): the use is older than the assignment
            before.pop()
            if not before:
                return None
            last = self.parent(before[-1])
            if not isinstance(last, ast.Assign) or len(last.targets) != 1 or last.targets[0] is not before[-1]:
                return None
        if self.parent(last) not in around or self.beside(last, use) is None:
            return None
        outer = self.parent(last)
        for node in around:  # in a loop that began after the assignment, a later binding comes round again
            if node is outer:
                break
            if isinstance(node, SCOPES):
                return None
            if isinstance(node, LOOPS) and self._binds_within(node, use.id):
                return None
        return last

    def _binds_within(self, node: ast.AST, name: str) -> bool:
        return self.once(f"binds {name}", node, lambda: any(node in (n, *self.around(n)) for n in self.binds(name)))

    def untouched(self, use: ast.Name) -> bool:
        """Whether a name surely holds what it held when the function was entered: a parameter not bound again before."""
        if use.id not in self.parameters or use.id in self._shared:
            return False
        if any(isinstance(n, COMPREHENSIONS) and self._binds_within(n, use.id) for n in self.around(use)):
            return False
        bound = self.binds(use.id)
        loops = [n for n in self.around(use) if isinstance(n, LOOPS)]
        if any(loop in self.around(n) for loop in loops for n in bound):
            return False
        inside = [n for n in self.around(use) if isinstance(n, ast.stmt)]
        return not any(
            (n.lineno, n.col_offset) < (use.lineno, use.col_offset) and self.statement(n) not in inside for n in bound
        )

    def value(self, use: ast.expr) -> ast.expr:
        """What a name surely holds, as the expression that was assigned to it; else the expression itself."""
        found = self.reaching_definition(use)
        return found.value if found is not None else use

    def maker(self, thing: ast.expr) -> ast.Call | None:
        """The call that made what a name holds, or an attribute that the class around assigns once: `self.encoder`."""
        made = self.value(thing)
        if isinstance(made, ast.Attribute) and isinstance(made.value, ast.Name) and made.value.id == "self":
            around = self.file.class_around(self.scope)
            values = [
                s.value
                for s in (statements(around) if around is not None else ())
                if isinstance(s, ast.Assign) and any(self.same_attribute(t, made) for t in s.targets)
            ]
            return values[0] if len(values) == 1 and isinstance(values[0], ast.Call) else None
        return made if isinstance(made, ast.Call) and made is not thing else None

    def same_attribute(self, a: ast.expr, b: ast.Attribute) -> bool:
        """Whether both are one attribute of one name, read or bound."""
        return isinstance(a, ast.Attribute) and a.attr == b.attr and self.same_name(a.value, b.value)

    def seen_by(self, assign: ast.Assign) -> list[ast.Name]:
        """The uses of a name that surely see this assignment `name = value`; none where it cannot be told of every use."""
        name = assign.targets[0]
        if not isinstance(name, ast.Name) or self.shared(name.id):
            return []
        seen, end, loop = [], self.file.span(assign).end, self.loop(assign)
        if isinstance(loop, ast.For) and self._binds_within(loop.target, name.id):
            loop = None  # each pass begins with another value
        for use in self.reads(name.id):
            found = self.reaching_definition(use)
            if found is assign:
                seen.append(use)
            elif found is None and (self.file.span(use).start >= end or loop is not None):
                return []
        return seen

    def sole_names(self, statement: ast.stmt | None) -> list[str]:
        """The names that `a = value` or `a, b = value` binds, and nothing else does; none where it binds anything else."""
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return []
        parts = each_of(statement.targets[0])
        words = [part.id for part in parts if isinstance(part, ast.Name)]
        return words if len(words) == len(parts) and all(len(self.binds(word)) == 1 for word in words) else []

    def shared(self, name: str) -> bool:
        """Whether another scope may bind this name, or code that is text."""
        return name in self._shared or self.names_are_read

    def captured(self, name: str) -> bool:
        """Whether another scope may bind this name, or read it at any time: a nested function, a lambda."""
        if name not in self._captured:
            self._captured[name] = self.shared(name) or any(
                isinstance(n, SCOPES) and n is not self.scope for use in self.names(name) for n in self.around(use)
            )
        return self._captured[name]

    @cached_property
    def _captured(self) -> dict[str, bool]:
        return {}

    @cached_property
    def statements_by_start(self) -> list[tuple[int, int, ast.stmt]]:
        """Its statements, each after those around it and those before it: begin, minus the end, both in bytes."""
        starts = self.file.starts
        found = [
            (starts[s.lineno - 1] + s.col_offset, -(starts[(s.end_lineno or 0) - 1] + (s.end_col_offset or 0)), s)
            for s in self.statements
        ]
        return sorted(found, key=itemgetter(0, 1))

    def same_name(self, a: ast.AST, b: ast.AST) -> bool:
        """Whether both are one name, used or bound."""
        return isinstance(a, ast.Name) and isinstance(b, ast.Name) and a.id == b.id

    def constant(self, node: ast.expr) -> int | float | None:
        """The number that is written out, or that a name surely stands for: of this function, or a constant of the module."""
        node = self.value(node)
        if isinstance(node, ast.Name) and not self.binds(node.id) and node.id not in self.parameters:
            bound, top = self.file.bound.get(node.id, []), self.file.constants(node.id)
            if len(bound) == 1 and len(top) == 1 and len(top[0].targets) == 1:
                node = top[0].value
        return number(node)

    # what a call calls

    def dotted(self, node: ast.expr) -> str | None:
        """The full name of a function or module: `F.mse_loss` is `torch.nn.functional.mse_loss`, `len` is `len`."""
        if isinstance(node, ast.Attribute):
            base = self.dotted(node.value)
            known = base is not None and ("." in base or base in self.file.imported.values())
            return f"{base}.{node.attr}" if known else None
        if not isinstance(node, ast.Name) or node.id in self.parameters or self.binds(node.id):
            return None
        return self.file.imported.get(node.id, node.id)

    def op(self, node: ast.AST | None) -> TorchCall | None:
        """A call as an operation on a tensor; None where it is neither a torch function nor a method."""
        if not isinstance(node, ast.Call) or any(k.arg is None for k in node.keywords):
            return None
        if any(isinstance(a, ast.Starred) for a in node.args):
            return None
        keywords = {k.arg: k.value for k in node.keywords if k.arg is not None}
        dotted = self.dotted(node.func)
        if dotted is not None and dotted.startswith("torch."):
            args = list(node.args)
            base = args.pop(0) if args else keywords.pop("input", None)
            return None if base is None else TorchCall(dotted.rpartition(".")[2], base, args, keywords)
        if isinstance(node.func, ast.Attribute) and dotted is None:
            return TorchCall(node.func.attr, node.func.value, list(node.args), keywords)
        return None

    def same(self, a: ast.AST, b: ast.AST) -> bool:
        """Whether two expressions are written alike."""
        return a.__class__ is b.__class__ and ast.dump(a) == ast.dump(b)


def parameters_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """The names of a function's own parameters."""
    a = function.args
    return {p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg)))}


def number(node: ast.AST | None) -> int | float | None:
    """The value of a number that is written out; None for anything else (booleans too)."""
    sign = 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node, sign = node.operand, -1
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
        return sign * node.value
    return None
