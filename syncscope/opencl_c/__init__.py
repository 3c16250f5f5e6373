"""OpenCL C, and the program on the host that enqueues it: hazards seen without compiling or running either.

A rule is a module of `rules/`, whose name is its file's name. Its docstring is its page, as that of a rule of Python is; what
else it holds is in `KernelRule`. `text` makes tree-sitter read OpenCL C, `facts` says what is known of a program, `divergence`
which of it differs between the items of a group, `embedded` where a file of Python or C++ holds kernels, and `host_python` and
`host_cpp` what such a file asks of the driver, in the words of `host`. tree-sitter is imported when it is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from syncscope.model.example import Example
from syncscope.model.finding import Fix, Severity
from syncscope.model.heat import SILENT, Heat
from syncscope.model.ops import Family

if TYPE_CHECKING:
    from syncscope.opencl_c.text import Node

__all__ = ["Family", "KernelRule", "Sighting", "seen"]


@dataclass(frozen=True, slots=True)
class Sighting:
    """A hazard at the bytes [start, end) of a program's or a file's text. `confidence` as `Finding` has it; edits are relative
    to that text, too."""

    start: int
    end: int
    message: str
    confidence: int = 3
    fix: Fix | None = None
    heat: Heat = SILENT


def seen(node: Node, message: str, confidence: int = 3, fix: Fix | None = None) -> Sighting:
    """A hazard at a node."""
    return Sighting(node.start_byte, node.end_byte, message, confidence, fix)


class KernelRule(Protocol):
    """What a rule's module must hold."""

    __name__: str
    __doc__: str | None
    SEVERITY: Severity
    FAMILY: Family  # of a kernel: `find` gets a `facts.KernelProgram`; of a host program: a `host.Host`
    SEEN_AS: tuple[str, ...]  # the names under which a trace shows it
    EXAMPLES: tuple[Example, ...]  # each a `KernelExample`

    def find(self, program: Any) -> Iterator[Sighting]:
        """Where the hazard is."""
