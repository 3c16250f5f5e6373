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
from syncscope.opencl_c.facts import KernelProgram, Routine, Variable
from syncscope.opencl_c.nodes import assigned, operands
from syncscope.opencl_c.text import Node, part, said, sign

SEVERITY = Severity.WARNING
FAMILY = Family.KERNEL
SEEN_AS = ()
CASTS = ("cast_expression", "call_expression")
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
    for routine, node in program.each("binary_expression"):
        if (
            sign(node) != "*"
            or sign(node.parent) == "*"
            or program.type(node, routine.variables) not in ("int", "uint")
        ):
            continue
        factors = [f for f in operands(node, ("*",)) if program.number(f) is None]
        if len(factors) > 1 and (confidence := trust(program, routine, node, len(factors))):
            message = f"{program.quote(node)} is computed in 32 bits, and used as an index of 64: it overflows at 2^31"
            changes = "the product is computed in 64 bits: past 2^31 it is another"
            yield seen(
                node, message, confidence, Fix("widen the first factor", widened(node), Safety.UNSAFE, (changes,))
            )


def widened(product: Node) -> tuple[Edit, ...]:
    """The first factor as a `size_t`; `a / b * c` is `(size_t)(a / b) * c`, for a negative `a` is divided as it was."""
    first = product
    while sign(first) == "*":
        first = part(first, "left")
    start, end = (Span(at, at) for at in (first.start_byte, first.end_byte))
    if first.type == "binary_expression":
        return Edit(start, "(size_t)("), Edit(end, ")")
    return (Edit(start, "(size_t)"),)


def trust(program: KernelProgram, routine: Routine, node: Node, factors: int) -> int:
    """How sure it is that the product should be wide: 0 where it is no index. Beside a larger product that is wide, it was
    left narrow on purpose: `plane * width * height + row * width`."""
    child, parent, wide, beside = node, node.parent, factors > 2, 0
    while parent is not None:
        variable: Variable | None = None
        if parent.type == "subscript_expression":
            variable = routine.variables.get(said(part(parent, "argument")))
            if child == part(parent, "argument") or variable is None or variable.space not in ("global", "constant"):
                return 0
        elif sign(parent) in ("+", "-"):
            other = part(parent, "left") if child == part(parent, "right") else part(parent, "right")
            for term in operands(other, ("+", "-")):
                if program.type(term, routine.variables) in ("ulong", "long"):
                    wide, beside = True, max(beside, len(list(operands(term, ("*",)))))
            pointer = routine.variables.get(said(other)) if other.type == "identifier" else None
            variable = pointer if pointer is not None and pointer.is_pointer else None
        elif parent.type in ("init_declarator", "assignment_expression"):
            variable = program.variable(assigned(parent)[0], routine.variables)
            if variable is None or not (variable.is_pointer or variable.type in ("ulong", "long")):
                return 0
            wide = wide or not variable.is_pointer
        elif parent.type in CASTS and program.cast(parent) in ("ulong", "long"):
            wide = True
        elif parent.type == "argument_list" and program.cast(parent.parent) in ("ulong", "long"):
            pass
        elif parent.type != "parenthesized_expression":
            return 0
        if variable is not None:
            return 2 if wide and beside <= factors else 1
        child, parent = parent, parent.parent
    return 0
