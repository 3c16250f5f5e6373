"""A compare-and-swap loop that ends when two floats are equal: it never ends once it meets a NaN.

What happens
------------
`atomic_cmpxchg` compares bits, the loop compares numbers. A NaN is not equal to itself, so where the memory holds one, or the
sum becomes one, the swap succeeds and the loop goes on: every item adds again and again, and the device hangs until a watchdog
ends it, or the machine is restarted. The other way round 0.0 equals -0.0 and their bits differ: the swap has failed, the loop
ends, and an update is lost.

What to do
----------
Compare what was swapped: the bits, as integers. `atomic_compare_exchange_weak` on an `atomic_int` does it by itself, and so
does an atomic addition of the device, where it has one for floats.

When a fix pays
---------------
Always: it costs nothing, and a NaN in one gradient is enough.

Fix safety
----------
Unsafe in name only: the loop ends where it did not, and where a zero changes its sign the update is made that was lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from syncscope.model.example import KernelExample, Shows
from syncscope.model.finding import Edit, Fix, Safety, Severity
from syncscope.model.ops import Family
from syncscope.model.source import Span
from syncscope.opencl_c import Sighting, seen
from syncscope.opencl_c.facts import COMPARE_AND_SWAP, KernelProgram, Routine
from syncscope.opencl_c.nodes import FENCED, arguments, assigned, base, callee
from syncscope.opencl_c.scalars import BITS, FLOATING
from syncscope.opencl_c.text import Node, part, said, sign, walk

SEVERITY = Severity.WARNING
FAMILY = Family.KERNEL
SEEN_AS = ()
ADD_UP = """
x = np.ones(64, np.float32)
x[5] = np.nan
total = np.zeros(1, np.float32)
run("total", 64, 16, total, x)
right = bool(np.isnan(total[0]))
"""
LOOSE = {"assignment_expression", "binary_expression", "comma_expression", "conditional_expression"}
EXAMPLES = (
    KernelExample(
        """
        void add(volatile __global float *sum, float value) {
            float old = *sum, assumed;
            do {
                assumed = old;
                old = as_float(atomic_cmpxchg((volatile __global int *)sum, as_int(assumed), as_int(assumed + value)));
            } while (old != assumed);  // !
        }

        __kernel void total(__global float *sum, __global const float *x) {
            add(sum, x[get_global_id(0)]);
        }
        """,
        """
        void add(volatile __global float *sum, float value) {
            float old = *sum, assumed;
            do {
                assumed = old;
                old = as_float(atomic_cmpxchg((volatile __global int *)sum, as_int(assumed), as_int(assumed + value)));
            } while (as_int(old) != as_int(assumed));
        }

        __kernel void total(__global float *sum, __global const float *x) {
            add(sum, x[get_global_id(0)]);
        }
        """,
        Safety.UNSAFE,
        shows=Shows.HANG,
        run=ADD_UP,
    ),
    KernelExample(
        """
        __kernel void total(volatile __global float *sum, __global const float *x) {
            union { unsigned int bits; float number; } old, new;
            for (;;) {
                old.number = *sum;
                new.number = old.number + x[get_global_id(0)];
                if (as_float(atomic_cmpxchg((volatile __global uint *)sum, old.bits, new.bits)) == old.number)  // !
                    break;
            }
        }
        """,
        """
        __kernel void total(volatile __global float *sum, __global const float *x) {
            union { unsigned int bits; float number; } old, new;
            for (;;) {
                old.number = *sum;
                new.number = old.number + x[get_global_id(0)];
                if (atomic_cmpxchg((volatile __global uint *)sum, old.bits, new.bits) == as_int(old.number))
                    break;
            }
        }
        """,
        Safety.UNSAFE,
        shows=Shows.HANG,
        run=ADD_UP,
    ),
    KernelExample(
        """
        __kernel void largest(volatile __global float *most, __global const float *x) {
            float seen = *most, mine = x[get_global_id(0)];
            for (int tries = 0; tries < 1000 && seen < mine; tries++) {
                float was = as_float(atomic_cmpxchg((volatile __global int *)most, as_int(seen), as_int(mine)));
                if (was == seen)
                    break;
                seen = was;
            }
        }
        """
    ),
)


def find(program: KernelProgram) -> Iterator[Sighting]:
    if not any(map(program.unit.mentions, (b"cmpxchg", b"ompare"))):
        return
    for routine in program.routines:
        for loop in program.inside(routine.body, *FENCED):
            calls = program.inside(loop, "call_expression")
            if swaps := {callee(c) for c in calls if is_swap(program, callee(c))}:
                yield from in_loop(program, routine, loop, swaps)


def is_swap(program: KernelProgram, name: str) -> bool:
    """Whether a function is a compare-and-swap, or one of the program that makes one, without a loop of its own."""
    if COMPARE_AND_SWAP.match(name):
        return True
    routine = program.named.get(name)
    if routine is None or program.inside(routine.body, *FENCED):
        return False
    return any(COMPARE_AND_SWAP.match(callee(c)) for c in program.inside(routine.body, "call_expression"))


def in_loop(program: KernelProgram, routine: Routine, loop: Node, swaps: set[str]) -> Iterator[Sighting]:
    """The comparisons of floats by which a loop ends, around calls that swap."""
    swapped = results(loop, swaps)
    ends = list(exits(loop))
    if any(is_bound(test) for test, _ in ends):
        return
    for test, equal in ends:
        for node in walk(test):
            if sign(node) not in ("==", "!="):
                continue
            sides = [part(node, "left"), part(node, "right")]
            kinds = [program.type(side, routine.variables) for side in sides]
            denied = node.parent is not None and node.parent.parent is not None and said(node.parent.parent)[:2] == "!("
            if not FLOATING & set(kinds) or (sign(node) == "==") != (equal != denied):
                continue
            found = (n for side in sides for n in walk(side) if n.type in ("call_expression", "identifier"))
            if any(callee(n) in swaps if n.type == "call_expression" else said(n) in swapped for n in found):
                message = (
                    f"{program.quote(node)} compares floats: with a NaN it is never equal, and this loop never ends"
                )
                yield seen(node, message, 3, compare_bits(program, routine, sides, kinds))


def is_bound(test: Node) -> bool:
    """Whether a test ends a loop by something else than the swap."""
    return any(
        (n.type == "binary_expression" and said(part(n, "operator")) in ("<", ">", "<=", ">="))
        or (n.type == "call_expression" and callee(n) in ("isnan", "isequal", "isnotequal"))
        for n in walk(test)
    )


def exits(loop: Node) -> Iterator[tuple[Node, bool]]:
    """The tests by which a loop ends, and whether it ends where they hold."""
    if (test := part(loop, "condition")) is not None:
        yield test, False
    for node in walk(part(loop, "body")):
        if node.type == "if_statement":
            then = part(node, "consequence")
            if any(n.type in ("break_statement", "return_statement", "goto_statement") for n in walk(then)):
                yield part(node, "condition"), True


def results(loop: Node, swaps: set[str]) -> set[str]:
    """The names that hold what a swap found, or what was made of it."""
    found: set[str] = set()
    while True:
        before = len(found)
        for node in walk(loop):
            # C11's writes what it found where its second argument points
            if node.type == "call_expression" and callee(node) in swaps:
                given = "".join(map(said, arguments(node)[1:2]))
                found |= set(re.findall(r"\w+", given)) if given.startswith("&") else set()
            target, value = assigned(node)
            if value is None:
                continue
            if any(callee(n) in swaps or (n.type == "identifier" and said(n) in found) for n in walk(value)):
                found.add(base(target))
        if len(found) == before:
            return found


def compare_bits(program: KernelProgram, routine: Routine, sides: list[Node], kinds: list[str]) -> Fix | None:
    """The comparison as one of integers."""
    if kinds[0] != kinds[1] or kinds[0] not in FLOATING:
        return None
    integer = {"half": "short", "float": "int", "double": "long"}[kinds[0]]
    edits = []
    for side in sides:
        text = f"as_{integer}({program.written(side)})"
        if side.type == "call_expression" and callee(side) == f"as_{kinds[0]}" and (inner := arguments(side)):
            kind = program.type(inner[0], routine.variables)
            text = whole(program, inner[0]) if BITS.get(kind) == BITS[integer] else text
        edits.append(Edit(Span(side.start_byte, side.end_byte), text))
    changes = "the loop ends where a NaN is met, and no update is lost between 0.0 and -0.0"
    return Fix("compare the bits", tuple(edits), Safety.UNSAFE, (changes,))


def whole(program: KernelProgram, node: Node) -> str:
    """An expression as the operand of a comparison."""
    text = program.written(node)
    return f"({text})" if node.type in LOOSE else text
