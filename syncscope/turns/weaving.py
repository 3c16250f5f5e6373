"""Versions of a file as one tree: each loop's body and each function's in which they differ is there once for every version.

Which one runs is asked where the body begins, once for each time round: so no version is left in its middle, and a loop that
goes on for hours changes its version all the same. What stands outside of all functions and loops runs once, before the
steps: what differs there cannot take turns, but imports and functions that a version adds, which do no harm to the others.
"""

from __future__ import annotations

import ast
import dis
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType

from syncscope.turns.asking import Bodies, Body, alike, by_version, call, plain
from syncscope.turns.filled import Filled, filled
from syncscope.turns.statements import (
    BLOCKS,
    FUNCTIONS,
    OwnStatements,
    Stretch,
    aligned,
    changed,
    copied,
    equal,
    own_nodes,
    same,
)
from syncscope.turns.widening import widen

Passage = tuple[str, int, frozenset[int]]  # name, line, versions
LOOPS = (ast.For, ast.AsyncFor, ast.While)
ADDED = (*FUNCTIONS, ast.Import, ast.ImportFrom)
LINES = 1_000_000  # between the lines of two versions: a line says of which it is
NOT_PYTHON = re.compile(r"jit|script|compile|kernel")  # in a decorator: others read it, and know no names of ours
KINDS = 0x2A0  # of a code's flags: generator, coroutine, asynchronous generator


class CannotTakeTurnsError(Exception):
    """Why versions of a file cannot be woven."""


@dataclass
class Woven:
    """One file: the tree of all its versions. `passages` says of each where it begins, and which versions differ there.

    `filled` are the same of where lists are begun that passages fill, and that are finished behind them: such a list is better
    all of one version. `around` are loops and functions around loops that differ: an epoch, say.
    Both are numbered together.
    """

    tree: ast.Module
    passages: dict[int, Passage] = field(default_factory=dict)
    filled: dict[int, Passage] = field(default_factory=dict)
    around: dict[int, Passage] = field(default_factory=dict)

    @property
    def next(self) -> int:
        """The number for a passage of another file."""
        return max([*self.passages, *self.filled, *self.around], default=-1) + 1


def heard(tree: ast.Module) -> ast.Module:
    """A file whose loops ask what they are over, so that it can be kept: `turns.tape`."""
    found: ast.Module = _Heard().visit(tree)
    return ast.fix_missing_locations(found)


def weave(
    path: str,
    before: bytes,
    versions: Mapping[int, bytes],
    first: int = 0,
    hear: Callable[[ast.Module], ast.Module] = heard,
) -> Woven:
    """The file as written and in these versions (numbers from 1), whose passages are numbered from `first` on.

    What is of a version has its lines, moved by its number times `LINES`. `hear` is what else is done to the tree.

    Raises:
        CannotTakeTurnsError: they differ in what runs only once, or a name would mean something else.
    """
    trees = {number: ast.parse(raw) for number, raw in versions.items()}
    for number, tree in trees.items():
        ast.increment_lineno(tree, number * LINES)
    woven = Woven(ast.parse(before))
    widen([woven.tree, *trees.values()])
    loom = _Loom(woven, first)
    body = loom.weave(woven.tree.body, {number: tree.body for number, tree in trees.items()}, "the module")
    if body is None:
        raise CannotTakeTurnsError(loom.why)
    woven.tree.body = body
    woven.tree = hear(woven.tree)
    ast.fix_missing_locations(woven.tree)
    _must_mean_the_same(path, woven.tree, [ast.parse(before), *trees.values()])
    return woven


def unless_compiled(changes: ast.NodeTransformer, node: ast.FunctionDef | ast.ClassDef) -> ast.stmt:
    """Goes into a function or a class that nobody compiles: those who do read its source, and know no names of ours."""
    if not is_compiled(node):
        changes.generic_visit(node)
    return node


class _Heard(ast.NodeTransformer):
    def visit_For(self, node: ast.For) -> ast.stmt:
        """`for x in selector.over(...)`."""
        self.generic_visit(node)
        node.iter = ast.copy_location(call("over", node.iter), node.iter)
        return node

    visit_FunctionDef = visit_ClassDef = unless_compiled  # noqa: N815  names that ast asks for


def is_compiled(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    """Whether what decorates it has others read it, who know no names of ours."""
    return any(NOT_PYTHON.search(ast.dump(one)) for one in node.decorator_list)


class _Loom:
    def __init__(self, woven: Woven, first: int) -> None:
        self._woven, self._next = woven, first
        self._marks = 0
        self.why = ""

    def weave(self, body: Body, versions: Bodies, where: str, unit: ast.stmt | None = None) -> Body | None:
        """A list of statements with what other versions have in its place; None where what is around it must be woven.

        `unit` is the loop or the function whose body it is, if it is one.
        """
        others = {number: other for number, other in versions.items() if not same(body, other)}
        if not others:
            return body
        pieces = self._tried(body, others, where, unit)
        if pieces is not None:
            return pieces
        if unit is None:
            self.why = self.why or _why_not(body, others, where)
            return None
        # What changes the head of a function, which may never be begun anew, does not keep others from the loops in it.
        inside = {n: o for n, o in others.items() if self._tried(body, {n: o}, where, unit, keeps=False) is not None}
        if len(inside) == len(others):
            inside = {}
        finer = self.weave(body, inside, where, unit) or body
        self.why = ""
        return self._in_turns(body, {n: o for n, o in others.items() if n not in inside}, where, unit, finer)

    def _tried(self, body: Body, others: Bodies, where: str, unit: ast.stmt | None, keeps: bool = True) -> Body | None:
        """As `_piecewise`, of copies; nothing has happened where that cannot be, or where it is not kept."""
        body, others = copied(body), copied(dict(others))
        woven, before = self._woven, (self._next, self._marks)
        known = dict(woven.passages), dict(woven.filled), dict(woven.around)
        steps = {number: aligned(body, other) for number, other in others.items()}
        pieces = self._piecewise(body, others, steps, where, unit)
        if pieces is None or not keeps:
            woven.passages, woven.filled, woven.around = known
            self._next, self._marks = before
        return pieces

    def _piecewise(
        self, body: Body, others: Bodies, aligned: Mapping[int, list[Stretch]], where: str, unit: ast.stmt | None
    ) -> Body | None:
        """The list with each statement woven by itself; None where statements come, go or change that hold no others.

        What comes behind a loop that differs finishes what the loop began: it is of the version that ran there.
        """
        added: dict[int, Body] = {}  # imports and functions, by the statement before which they come
        pairs: dict[int, dict[int, ast.stmt]] = {}
        ends: dict[tuple[int, int], dict[int, Body]] = {}
        loop = len(body)  # the first one that differs
        for number, steps in aligned.items():
            own = len(body)
            for step in steps:
                if step.same:
                    for at, other in zip(range(step.first, step.last), step.other, strict=True):
                        if not equal(body[at], other):
                            pairs.setdefault(at, {})[number] = other
                            own = min(own, at) if _loops(body[at]) else own
                elif own < step.first:
                    ends.setdefault((step.first, step.last), {})[number] = step.other
                elif step.first == step.last and all(isinstance(s, ADDED) for s in step.other):
                    known = {ast.dump(s) for s in added.get(step.first, [])}
                    added.setdefault(step.first, []).extend(s for s in step.other if ast.dump(s) not in known)
                else:
                    return None
            loop = min(loop, own)
        spans = sorted(ends)
        gone = [at for first, last in spans for at in range(first, last)]
        if len(set(gone)) < len(gone) or any(at in pairs for at in gone) or any(at <= loop for at, _ in spans):
            return None
        lists, top = _filled(body, others) if spans else {}, self._next
        mark = f"__syncscope_mark_{self._marks}__"
        self._marks += bool(spans)
        is_around = isinstance(unit, LOOPS) or (isinstance(unit, FUNCTIONS) and loop < len(body))
        if lists or is_around:
            self._next += 1
            line = body[min(loop, len(body) - 1)].lineno
            kind = self._woven.filled if lists else self._woven.around
            kind[top] = where, line, frozenset(others)
        woven: Body = []
        finished: set[int] = set()
        for at in range(len(body) + 1):
            if (lists or is_around) and at == (0 if isinstance(unit, LOOPS) else loop):
                woven.append(ast.Expr(call("top", ast.Constant(top))))
            woven += added.get(at, [])
            if spans and at == loop:
                woven.append(ast.Assign([ast.Name(mark, ast.Store())], call("mark")))
            for first, last in spans:
                if first == at:
                    chosen = call("since", ast.Name(mark, ast.Load()))
                    made = {
                        number: [*(alike("finish", top, lists, number) if number not in finished else ()), *other]
                        for number, other in ends[first, last].items()
                    }
                    finished.update(made)  # a list is that of a version by now, and may hold what this made of it
                    woven.append(by_version(chosen, made, [*alike("finish", top, lists), *body[first:last]]))
            if at == len(body) or at in gone:
                continue
            if at in pairs and not self._inside(body[at], pairs[at], where):
                return None
            woven.append(body[at])
        return woven

    def _inside(self, statement: ast.stmt, others: Mapping[int, ast.stmt], where: str) -> bool:
        """Weaves the blocks of one statement, in place; False where these are no loop's and no function's."""
        if isinstance(statement, FUNCTIONS):
            where = f"{statement.name}()"
        elif isinstance(statement, ast.ClassDef):
            where = f"the body of class {statement.name}"
        if isinstance(statement, (*FUNCTIONS, ast.ClassDef)) and is_compiled(statement):
            raise CannotTakeTurnsError(f"{statement.name} is compiled by what decorates it")
        named = statement if isinstance(statement, (*LOOPS, *FUNCTIONS)) else None
        return self._blocks(statement, others, where, named)

    def _blocks(self, node: ast.AST, others: Mapping[int, ast.AST], where: str, unit: ast.stmt | None) -> bool:
        for name in BLOCKS:
            block = getattr(node, name, None)
            if not block:
                continue
            if isinstance(block[0], ast.stmt):
                whose = unit if name == "body" else None
                woven = self.weave(block, {n: getattr(other, name) for n, other in others.items()}, where, whose)
                if woven is None:
                    return False
                setattr(node, name, woven)
                continue
            for at, part in enumerate(block):  # the handlers of a try, the cases of a match
                if not self._blocks(part, {n: getattr(other, name)[at] for n, other in others.items()}, where, None):
                    return False
        return True

    def _in_turns(self, body: Body, others: Bodies, where: str, unit: ast.stmt, finer: Body) -> Body:
        """The body of a loop or of a function, once for each version; `finer` is that as written, in which others may be."""
        passage, self._next = self._next, self._next + 1
        name = f"a loop of {where}" if isinstance(unit, LOOPS) else where
        self._woven.passages[passage] = name, unit.lineno, frozenset(others)
        head: Body = []
        if isinstance(unit, FUNCTIONS) and ast.get_docstring(unit, clean=False) is not None:
            head, body, finer = body[:1], body[1:], finer[1:]
            others = {
                number: other[1:] if other and same(other[:1], head) else other for number, other in others.items()
            }
        declared: dict[str, ast.stmt] = {}
        for version in (body, *others.values()):
            for node in own_nodes(version):
                if isinstance(node, ast.Global | ast.Nonlocal):
                    declared.setdefault(ast.dump(node), node)
        drop, lists = _Undeclared(), _filled(body, others)
        bodies = {
            number: [*alike("alike", passage, lists, number), *(drop.visit(s) for s in other)]
            for number, other in others.items()
        }
        back = [s for name in sorted(_added_to(body)) for s in plain(passage, name)]
        written = [*back, *alike("alike", passage, lists), *(drop.visit(s) for s in finer)]
        chosen = by_version(call("at", ast.Constant(passage)), bodies, written)
        return [*head, *declared.values(), ast.copy_location(chosen, unit)]


def _why_not(body: Body, others: Bodies, where: str) -> str:
    """Why a list of statements that runs once cannot take turns: the first that differs, and what would help of a function."""
    first = next((s for other in others.values() for s in changed(body, aligned(body, other))), None)
    if first is None:
        return f"a statement is added to {where}, which runs once"
    named = getattr(first, "name", "")
    heads = (s for other in others.values() for s in other if isinstance(s, FUNCTIONS) and s.name == named)
    if isinstance(first, FUNCTIONS) and (head := next(heads, None)) is not None:
        what = "parameters" if not equal(first.args, head.args) else "head"
        return f"line {first.lineno} is the head of {named}(), which is made once: with the same {what} in both they take turns"
    return f"line {first.lineno} is in {where}, which runs once"


def _added_to(body: Body) -> set[str]:
    """Names to which something is added."""
    return {n.target.id for n in own_nodes(body) if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)}


def _loops(statement: ast.stmt) -> bool:
    """Whether there is a loop in it that is not a function's of its own."""
    return any(isinstance(node, LOOPS) for node in own_nodes([statement]))


def _filled(body: Body, others: Bodies) -> Filled:
    return filled([*own_nodes(body)], {number: [*own_nodes(other)] for number, other in others.items()})


class _Undeclared(OwnStatements, ast.NodeTransformer):
    """Takes `global` and `nonlocal` out of a passage: they stand before it, for all versions. What a function in it declares is
    its own."""

    def visit_Global(self, node: ast.Global) -> ast.stmt:
        """Nothing in its place."""
        return ast.copy_location(ast.Pass(), node)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> ast.stmt:
        """The same."""
        return ast.copy_location(ast.Pass(), node)


def _must_mean_the_same(path: str, woven: ast.Module, versions: Sequence[ast.Module]) -> None:
    """A name that is local in one version and global in another would be local in both; a function that yields in one only
    would be a generator."""
    try:
        both = _codes(compile(woven, path, "exec", dont_inherit=True))
        each = [_codes(compile(tree, path, "exec", dont_inherit=True)) for tree in versions]
    except (SyntaxError, ValueError) as error:
        raise CannotTakeTurnsError(f"both versions in one are no Python: {error}") from None
    for codes in each:
        for name, code in codes.items():
            other = both.get(name)
            if other is None:
                continue
            if taken := {*other.co_varnames, *other.co_cellvars} & _globals(code):
                raise CannotTakeTurnsError(f"{min(taken)} is local in one version of {name}, and global in another")
            if (code.co_flags ^ other.co_flags) & KINDS:
                raise CannotTakeTurnsError(f"{name} is a generator in one version only")


def _globals(code: CodeType) -> set[str]:
    return {one.argval for one in dis.get_instructions(code) if one.opname.endswith("_GLOBAL")}


def _codes(code: CodeType) -> dict[str, CodeType]:
    """All functions in a module's code, by their qualified names."""
    found: dict[str, CodeType] = {}
    todo = [code]
    while todo:
        one = todo.pop()
        found.setdefault(one.co_qualname, one)
        todo += [part for part in one.co_consts if isinstance(part, CodeType)]
    found.pop("<module>", None)
    return found
