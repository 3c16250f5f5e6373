"""Python's standard library: numbers that `math` asks for, clocks, copies, and tuples with names."""

from __future__ import annotations

import ast

from syncscope.model.fact import UNKNOWN, Fact
from syncscope.model.ops import Op
from syncscope.project.syntax import text_of
from syncscope.tensors.annotations import annotated
from syncscope.tensors.call import Call
from syncscope.tensors.facts import NUMBER, OTHER, TENSOR, TRUTH, TupleType, listed, tensor
from syncscope.tensors.joins import element


def math(call: Call) -> Fact:
    """A function of math: it takes numbers, so a tensor is read."""
    for at, held in call.tensors():
        call.emit(Op.MATH, at, held)
        break
    return TRUTH if call.word.startswith("is") and call.word != "isqrt" else NUMBER


_CLOCKS = frozenset(
    """time.time time.perf_counter time.monotonic time.perf_counter_ns time.time_ns timeit.default_timer""".split()
)


def clock(call: Call) -> Fact | None:
    """A clock reading: with device work since the last one and nothing that waited, it measures the launch."""
    if call.name not in _CLOCKS:
        return None
    frame = call.frame
    if frame.clock is not None and frame.work:
        call.emit(Op.TIMING, None, tensor(confidence=2, why=call.node))
    frame.clock, frame.work = call.node, False
    return NUMBER


def pickled(call: Call) -> Fact | None:
    """A tensor is copied to the host to be written."""
    if call.name in ("pickle.dumps", "pickle.dump") and call.first.kind is TENSOR:
        call.emit(Op.CPU, call.first_node, call.first)
        return UNKNOWN
    return None


def copied(call: Call) -> Fact | None:
    """`copy.copy`, `copy.deepcopy`: the same again."""
    return call.args[0] if call.name in ("copy.copy", "copy.deepcopy") and call.args else None


def drawn(call: Call) -> Fact | None:
    """`random.sample(rows, n)`, `random.choices(rows, k=n)`: a list of some of them."""
    return listed(element(call.first)) if call.name in ("random.sample", "random.choices") and call.args else None


def typed(call: Call) -> Fact | None:
    """`typing.cast(Tensor, x)` is x where something is known of it, and so is `assert_type`; and types of tuples."""
    if call.word not in ("cast", "assert_type") or len(call.args) != _TWO:
        return tuple_type(call)
    if call.word == "assert_type":
        given = call.args[0]
        return given if given.kind is not UNKNOWN.kind else annotated(call.frame.module, call.nodes[1])
    given, said = call.args[1], annotated(call.frame.module, call.nodes[0])
    if said.kind is TENSOR is not given.kind and given.kind is UNKNOWN.kind:
        return said.but(confidence=2)  # what is said to be one in passing
    return given if said.kind in (given.kind, UNKNOWN.kind, TENSOR) else said


_TWO = 2


def tuple_type(call: Call) -> Fact | None:
    """`namedtuple("Point", "x y")`."""
    if call.name not in ("collections.namedtuple", "typing.NamedTuple") or len(call.nodes) < 2:
        return None
    fields = _fields(call.nodes[1])
    return Fact(OTHER, confidence=3, ref=TupleType(fields)) if fields else UNKNOWN


def _fields(node: ast.expr) -> tuple[str, ...]:
    """The names of a namedtuple: in one text, in a list, or in a list of pairs with their types."""
    if (text := text_of(node)) is not None:
        return tuple(text.replace(",", " ").split())
    if not isinstance(node, (ast.List, ast.Tuple)):
        return ()
    first = [each.elts[0] if isinstance(each, ast.Tuple) and each.elts else each for each in node.elts]
    return tuple(text for each in first if (text := text_of(each)) is not None)


CALLS = {
    "math": math,
    "time": clock,
    "timeit": clock,
    "pickle": pickled,
    "copy": copied,
    "random": drawn,
    "collections": tuple_type,
    **dict.fromkeys(("typing", "typing_extensions"), typed),
}
