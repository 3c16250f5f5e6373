"""A product of `int`s that is an index or an offset: past 2^31 elements it overflows.

What happens
------------
`int offset = row * width` is computed in 32 bits, whatever it is assigned to or added to afterwards. At 2^31 an `int` becomes
negative (the standard leaves it undefined), at 2^32 a `uint` begins anew, and the kernel reads and writes somewhere else.
GPUs have had the memory for this for years: 2^31 floats are 8 GiB.

What to do
----------
Make the first factor wide: `(size_t)row * width + column`; `get_global_id(0) * width` is wide already.

When a fix pays
---------------
Where tensors can have more than two billion elements. 64-bit products cost several instructions on a GPU; where sizes are
known to be small, check them on the host instead. Where the result is widened at once, it was meant to be wide: that is shown
from medium confidence on, any other index of two factors at low confidence.
"""

from __future__ import annotations

from collections.abc import Iterator

from syncscope.model.example import KernelExample, Shows
from syncscope.model.finding import Edit, Fix, Safety, Severity
from syncscope.model.ops import Family
from syncscope.model.source import Span
from syncscope.opencl_c import Sighting, seen
from syncscope.opencl_c.facts import KernelProgram, Routine, said
from syncscope.opencl_c.text import Node, walk

SEVERITY = Severity.WARNING
FAMILY = Family.KERNEL
SEEN_AS = ()
EXAMPLES = (
    KernelExample(
        """
        __kernel void row(__global int *where, uint row, uint width) {
            size_t offset = row * width + get_global_id(0);  // !
            where[get_global_id(0)] = offset >> 16;
        }
        """,
        """
        __kernel void row(__global int *where, uint row, uint width) {
            size_t offset = (size_t)row * width + get_global_id(0);
            where[get_global_id(0)] = offset >> 16;
        }
        """,
        Safety.UNSAFE,
        shows=Shows.WRONG,
        run="""
        where = np.zeros(16, np.int32)
        run("row", 16, 16, where, np.uint32(1 << 16), np.uint32(1 << 16))
        right = where.tolist() == [1 << 16] * 16
        """,
    ),
    KernelExample(
        """
        __kernel void scale(__global float *x, int width) {
            int row = get_global_id(1);
            x[get_global_id(0) + (size_t)row * width] *= 2.0f;
            x[get_global_id(1) * width] *= 2.0f;
        }
        """
    ),
)


def find(program: KernelProgram) -> Iterator[Sighting]:
    for routine in program.routines:
        for node in walk(routine.body):
            if node.type == "binary_expression" and said(node.child_by_field_name("operator")) == "*":
                if is_product(node.parent) or program.type(node, routine.variables) not in ("int", "uint"):
                    continue
                factors = [f for f in factors_of(node) if program.number(f) is None]
                if len(factors) > 1 and (confidence := trust(program, routine, node, len(factors))):
                    message = f"{program.quote(node)} is computed in 32 bits, and used as an index of 64: it overflows at 2^31"
                    edits = widened(node)
                    changes = "the product is computed in 64 bits: past 2^31 it is another"
                    yield seen(node, message, confidence, Fix("widen the first factor", edits, Safety.UNSAFE, changes))


def widened(product: Node) -> tuple[Edit, ...]:
    """The first factor as a `size_t`; `a / b * c` is `(size_t)(a / b) * c`, for a negative `a` is divided as it was."""
    first = product
    while is_product(first):
        first = first.child_by_field_name("left")
    start, end = (Span(at, at) for at in (first.start_byte, first.end_byte))
    if first.type == "binary_expression":
        return Edit(start, "(size_t)("), Edit(end, ")")
    return (Edit(start, "(size_t)"),)


def is_product(node: Node | None) -> bool:
    """Whether it is a factor of a larger product."""
    return node is not None and node.type == "binary_expression" and said(node.child_by_field_name("operator")) == "*"


def factors_of(node: Node) -> Iterator[Node]:
    """The factors of a product."""
    while node.type == "parenthesized_expression" and len(node.named_children) == 1:
        node = node.named_children[0]
    if is_product(node):
        yield from factors_of(node.child_by_field_name("left"))
        yield from factors_of(node.child_by_field_name("right"))
    else:
        yield node


def trust(program: KernelProgram, routine: Routine, node: Node, factors: int) -> int:
    """How sure it is that the product should be wide: 0 where it is no index."""
    child, parent, wide = node, node.parent, False
    while parent is not None:
        kind = parent.type
        if kind == "subscript_expression":
            owner = parent.child_by_field_name("argument")
            variable = routine.variables.get(said(owner))
            if child == owner or variable is None or variable.space not in ("global", "constant"):
                return 0
            return 2 if wide or factors > 2 else 1
        if kind == "binary_expression":
            if said(parent.child_by_field_name("operator")) not in ("+", "-"):
                return 0
            sides = (parent.child_by_field_name("left"), parent.child_by_field_name("right"))
            other = sides[0] if child == sides[1] else sides[1]
            wide = wide or program.type(other, routine.variables) in ("ulong", "long")
            if (
                other.type == "identifier"
                and said(other) in routine.variables
                and routine.variables[said(other)].is_pointer
            ):
                return 2 if wide or factors > 2 else 1
        elif kind in ("init_declarator", "assignment_expression"):
            target = parent.child_by_field_name("declarator") or parent.child_by_field_name("left")
            variable = routine.variables.get(said(target))
            if variable is None or not (variable.is_pointer or variable.type in ("ulong", "long")):
                return 0
            return 2 if wide or factors > 2 or not variable.is_pointer else 1
        elif kind != "parenthesized_expression":
            return 0
        child, parent = parent, parent.parent
    return 0
