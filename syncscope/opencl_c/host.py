"""What a program on the host asks of an OpenCL driver, in one vocabulary for pyopencl (`host_python`), C and C++ (`host_cpp`).

Only what stands in the file is looked at; which queue, buffer, size or kernel a name means is taken from what it is assigned.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field, replace
from enum import Enum

from syncscope.opencl_c.constants import constant
from syncscope.opencl_c.facts import KernelProgram


class Verb(Enum):
    """What is asked of the driver."""

    LAUNCH = "launch"
    READ = "read"  # and wait for it
    COPY = "copy"  # anything else that is enqueued
    FINISH = "finish"
    MAP = "map"
    UNMAP = "unmap"
    CREATE = "create"


@dataclass(frozen=True, slots=True)
class Command:
    """A call, at the bytes [start, end). `loops` are the loops around it, outermost first, by the byte at which they begin."""

    verb: Verb
    name: str  # of the function that is called
    start: int = 0
    end: int = 0
    queue: str = ""
    kernel: str = ""
    sizes: tuple[str, ...] = ()  # of a launch: global and local, as they are written
    waits: tuple[str, ...] = ()  # the events of its wait list
    target: str = ""  # what its result is called
    event: str = ""  # the event that it gives
    uses: frozenset[str] = frozenset()  # the names in its arguments
    loops: tuple[int, ...] = ()
    function: int = -1  # the byte at which the function around it begins

    def at(self, start: int, end: int, loops: tuple[int, ...], function: int) -> Command:
        """The same call, at its place in a file."""
        return replace(self, start=start, end=end, loops=loops, function=function)


@dataclass
class HostProgram:
    """The commands of a file, in the order of its text; `kernels` are the programs that it holds itself."""

    code: bytes
    commands: list[Command] = field(default_factory=list)
    ordered: set[str] = field(default_factory=set)  # queues that are made here, and work in order
    released: set[str] = field(default_factory=set)  # what is unmapped or released
    changed: dict[int, set[str]] = field(default_factory=dict)  # names that are assigned in a loop, by its first byte
    # what a name is assigned in a function, or outside (-1)
    values: dict[tuple[int, str], str] = field(default_factory=dict)
    timed: set[int] = field(default_factory=set)  # functions and loops that look at a clock, by their first byte
    kernels: list[KernelProgram] = field(default_factory=list)

    def assign(self, function: int, name: str, value: str) -> None:
        """Notes what a name is assigned; where that is several things, all of them."""
        known = self.values.get((function, name))
        self.values[function, name] = value if known in (None, value) else f"{known} | {value}"[:LONGEST]

    def is_timed(self, command: Command) -> bool:
        """Whether it is measured: then it waits on purpose."""
        return bool({command.function, *command.loops} & self.timed)

    def size(self, command: Command, place: int) -> str:
        """The global (0) or local (1) size of a launch as it is written, with what its names are assigned."""

        def of(found: re.Match[str]) -> str:
            outside = self.values.get((-1, found[0]), found[0])
            return self.values.get((command.function, found[0]), outside)

        text = command.sizes[place] if place < len(command.sizes) else ""
        for _ in range(NESTED):
            text = re.sub(r"(?<![\w.])[A-Za-z_]\w*\b(?!\s*\()", of, text)[:LONGEST]
        return text

    def is_padded(self, command: Command) -> bool:
        """Whether memory is made of the global size, too: then it is as long as it is rounded up."""
        names = set(re.findall(r"[A-Za-z_]\w*", command.sizes[0])) if command.sizes else set()
        sized = [re.escape(n.encode()) for n in names if (command.function, n) in self.values]
        return bool(sized) and re.search(ALLOCATES + rb"[^\n;]*\b(?:%s)\b" % b"|".join(sized), self.code) is not None

    def numbers(self, command: Command, place: int) -> tuple[int, ...] | None:
        """A size that is known in numbers; () where the driver chooses, None where it is not known."""
        text = self.size(command, place)
        try:
            value = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        if isinstance(value, ast.Constant) and value.value is None:
            return ()
        found = [constant(ast.unparse(e)) for e in (value.elts if isinstance(value, ast.Tuple) else [value])]
        return None if None in found else tuple(n for n in found if n is not None)

    def written(self, command: Command) -> str:
        """The call as the file has it, in one line."""
        text = " ".join(self.code[command.start : command.end].decode("utf-8", "replace").split())
        return f"`{text if len(text) <= 72 else text[:68] + ' ...'}`"


NESTED = 3  # names that stand for names
ALLOCATES = rb"\b(?:zeros|empty|ones|full|pad|resize|Buffer|clCreateBuffer|malloc|calloc|vector)\b"
LONGEST = 2000  # letters of a size
CLOCK = re.compile(
    r"\b(perf_counter|monotonic|timeit|time\.time|time\(\)|chrono|clock_gettime|\w*wtime|bench|[mM]easure|[wW]arm_?up|latency|profile)"
    r"|[tT]imer|[tT]iming|[gG]et(Event)?Profiling"
)
