"""Hot or cold by the blocks around a place in a function, as its text alone tells: loops, arms, and what stands before."""

from __future__ import annotations

import ast
from bisect import bisect_right
from operator import attrgetter
from typing import NamedTuple

from syncscope.heat import arms, first_time, loops
from syncscope.heat.counters import counts
from syncscope.heat.fleeting import forgets, is_fleeting
from syncscope.model.heat import Heat, Reason
from syncscope.project.of_file import kept
from syncscope.project.syntax import statements, walk

Function = ast.FunctionDef | ast.AsyncFunctionDef


def of_call(function: Function, call: ast.AST, source: bytes) -> Heat | None:
    """What the blocks around a call say; None where nothing speaks against it. `source` is the text of the function's file."""
    heat: Heat | None = None
    trained = False
    around = _Around(function, call, source)
    body: list[ast.stmt] | None = function.body
    while body is not None and (found := _holding(body, call)) is not None:
        index, statement = found
        for before in body[:index]:
            if isinstance(before, ast.If) and _leaves(before.body) and not before.orelse:
                heat = around.behind(heat, before, statement)
        inner = _part(statement, call)
        if isinstance(statement, ast.If):
            heat = _colder(heat, around.of_if(statement, inner))
        elif isinstance(statement, loops.LOOPS):
            said = loops.of_loop(statement, function.name, source)
            trained = trained or (said is not None and said.hot)
            if said is loops.PACED:
                heat = _colder(heat, said)
            heat = said if said is not None and (heat is None or heat.reason is Reason.EPOCHS) else heat
        elif isinstance(statement, (ast.With, ast.AsyncWith)):
            heat = _colder(heat, loops.of_with(statement, function.name))
        elif isinstance(statement, ast.Try) and inner is not None and inner not in (statement.body, statement.orelse):
            caught = next((each for each in statement.handlers if each.body is inner), None)
            heat = _colder(heat, None if caught is None else arms.of_handler(statement, caught))
        if inner is None:
            heat = _colder(heat, around.behind_test(statement))
        body = inner
    if heat is None or heat.hot:
        return Reason.OUTSIDE(function.name) if not trained and trains(function, source) else None
    return heat


class _Around(NamedTuple):
    """A call in a function."""

    function: Function
    call: ast.AST
    source: bytes

    def _counts(self, node: ast.expr) -> bool:
        return counts(node, function=self.function, source=self.source)

    def behind(self, heat: Heat | None, before: ast.If, statement: ast.stmt) -> Heat | None:
        """What is said, and what an `if` says that ends the block which the call stands in."""
        heat = _colder(heat, arms.of_rest(before.test, self._counts))
        if arms.chosen_to_evaluate(self.call, [statement], before.body):
            heat = _colder(heat, Reason.NOT_TRAINED(ast.unparse(before.test)))
        return heat

    def behind_test(self, statement: ast.stmt) -> Heat | None:
        """What a test in the same expression says: `step % n == 0 and check(x)`, `check(x) if step % n == 0 else None`."""
        for each in walk(statement):
            match each:
                case ast.BoolOp(op=ast.And(), values=[*tests]):
                    at = next((number for number, part in enumerate(tests) if self._is_in(part)), 0)
                case ast.IfExp(test=test, body=body) if self._is_in(body):
                    tests, at = [test], 1
                case _:
                    continue
            for test in tests[:at]:
                if said := arms.of_test(test, counted=self._counts):
                    return said
        return None

    def _is_in(self, node: ast.expr) -> bool:
        return any(each is self.call for each in walk(node))

    def of_if(self, node: ast.If, arm: list[ast.stmt] | None) -> Heat | None:
        """What an `if` says in whose arm the call stands, or in its test: then that is None."""
        said = None
        if arm is node.body:
            said = (
                arms.of_test(node.test, counted=self._counts)
                or arms.of_arm(node.body)
                or self._first(node)
                or arms.of_nothing(node)
                or arms.of_clock(node)
                or arms.of_warning(node.body)
            )
        elif arm is node.orelse and node.orelse:
            said = arms.of_unmet(node.test) or arms.of_arm(node.orelse) or self._missing(node)
        if said is None and arms.chosen_to_evaluate(self.call, arm or [], *_other_arms(node, arm)):
            return (Reason.WHEN if arm is node.body else Reason.NOT_TRAINED)(ast.unparse(node.test))
        return said

    def _first(self, node: ast.If) -> Heat | None:
        return first_time.of_first(node, self._forgotten, lambda name: self._fleeting(node, name))

    def _missing(self, node: ast.If) -> Heat | None:
        return first_time.of_missing(node, self.function, self._forgotten, lambda name: self._fleeting(node, name))

    def _forgotten(self, kept: str) -> bool:
        return forgets(self.function, kept, self.source)

    def _fleeting(self, node: ast.If, name: str) -> bool:
        return is_fleeting(self.function, node, self.source, name)


@kept(32)  # asked for each call in a function
def trains(function: Function, source: bytes) -> bool:
    """Whether a function holds a training loop: of its calls those are made in it of which `of_call` says nothing."""
    return any(loops.trains(each, function.name, source) for each in _loops(function))


def _loops(function: Function) -> list[ast.For | ast.AsyncFor | ast.While]:
    return [each for each in statements(function) if isinstance(each, loops.LOOPS)]


def of_last(function: Function | ast.Module, arm: ast.If, name: str, source: bytes) -> Heat | None:
    """Cold in an arm that ends the training loop which it stands in: it runs once."""
    if not isinstance(arm.body[-1], (ast.Break, ast.Return)):
        return None
    loop: ast.For | ast.AsyncFor | ast.While | None = None
    body = function.body
    while (found := _holding(body, arm)) is not None and found[1] is not arm:
        statement, inner = found[1], _part(found[1], arm)
        if inner is None:
            return None
        if isinstance(statement, loops.LOOPS):
            loop = statement if inner is statement.body else None
        body = inner
    said = loops.of_loop(loop, name, source) if loop is not None else None
    return Reason.LAST(ast.unparse(arm.test)) if said is not None and said.hot else None


def _colder(around: Heat | None, said: Heat | None) -> Heat | None:
    """What a block says, but where what is around it is cold already."""
    return around if said is None or (around is not None and not around.hot) else said


def _holding(body: list[ast.stmt], node: ast.AST) -> tuple[int, ast.stmt] | None:
    """The statement of a block that holds a node, with its place: of two no part is written in the other."""
    at = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
    index = bisect_right(body, at, key=attrgetter("lineno", "col_offset")) - 1
    within = index >= 0 and at < (body[index].end_lineno or 0, body[index].end_col_offset or 0)
    return (index, body[index]) if within else None


def _part(statement: ast.stmt, node: ast.AST) -> list[ast.stmt] | None:
    """The block of a statement that holds a node; None where it stands in the statement's head, or is no block."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(statement, name, None)
        if isinstance(block, list) and _holding(block, node) is not None:
            return block
    for handler in getattr(statement, "handlers", ()):
        if _holding(handler.body, node) is not None:
            return handler.body  # type: ignore[no-any-return]  # of `ast`
    return None


def _other_arms(statement: ast.If, arm: list[ast.stmt] | None) -> list[list[ast.stmt]]:
    return [each for each in (statement.body, statement.orelse) if each is not arm]


def _leaves(body: list[ast.stmt]) -> bool:
    """Whether a block ends what it stands in."""
    return isinstance(body[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break))
