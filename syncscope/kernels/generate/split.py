"""The second kernel of a contraction whose steps of k were split among groups: adds up the parts that each has left."""

from __future__ import annotations

from syncscope.kernels.generate.ir import Contraction, Index
from syncscope.kernels.generate.text import DIVIDE, Fields, arguments, loops, place, result, start, template


def summing(c: Contraction) -> tuple[str, bytes]:
    """The kernel `<name>_sum`: adds up the parts of the workspace, always in the same order, and finishes each element."""
    fields = Fields()
    fields.divisor("N", c.size("n"))
    fields.divisor("M", c.size("m"))
    fields("Z", c.size("z"))
    z_lines, z_names = loops(fields, "z", c.z, "z")
    m_lines, m_names = loops(fields, "m", c.m, "m")
    n_lines, n_names = loops(fields, "n", c.n, "n")

    def whole(label: str, index: Index) -> str:
        m, n = place(fields, label, "m", index, m_names), place(fields, label, "n", index, n_names)
        return f"{label}_at + {start(fields, label, index, z_names)} + {m} + {n}"

    bias = "0" if c.bias is None else whole("bias", c.bias)
    text = template("adding")(
        divide=DIVIDE, name=c.name, arguments=arguments(c), loops=f"{z_lines} {m_lines} {n_lines}",
        store=result(c, "sum", whole("out", c.out), bias), fields=fields.declaration(),
    )  # fmt: skip
    return text, fields.packed()
