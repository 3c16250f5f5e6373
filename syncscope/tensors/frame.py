"""The state of interpreting one function: what its names hold, where the host would wait, how hot the place is."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from syncscope.model.fact import UNKNOWN, Emitted, Fact
from syncscope.model.heat import Heat
from syncscope.model.ops import Op
from syncscope.project import conventions
from syncscope.project.modules import Class, Interpreter, Module, ProjectFunction
from syncscope.project.syntax import dotted
from syncscope.tensors.facts import DEVICE, HOST, INT, SOMEWHERE, TENSOR, tensor
from syncscope.tensors.usage import usage_of

_ONE_NUMBER = frozenset([Op.INT, Op.FLOAT, Op.ITEM])


class Later:
    """What a block says of how hot it is, found out when something waits in it: in most of them nothing does."""

    __slots__ = ("ask", "said")

    def __init__(self, ask: Callable[[], Heat | None]) -> None:
        self.ask: Callable[[], Heat | None] | None = ask
        self.said: Heat | None = None

    def heat(self) -> Heat | None:
        """What it says."""
        if self.ask is not None:
            self.said, self.ask = self.ask(), None
        return self.said


Around = Heat | Later | None


def heat_of(around: Around) -> Heat | None:
    """What the blocks around say."""
    return around.heat() if isinstance(around, Later) else around


class Frame:
    """One run through a function (or a module's top level)."""

    __slots__ = (
        "around",
        "clock",
        "counts",
        "dead",
        "depth",
        "either",
        "env",
        "function",
        "guarded",
        "inlined",
        "interpreter",
        "module",
        "nested",
        "on_host",
        "outer",
        "read_whole",
        "returns",
        "seen",
        "table",
        "unasked",
        "used",
        "waits",
        "work",
    )

    def __init__(
        self,
        module: Module,
        function: ProjectFunction | None = None,
        outer: Frame | None = None,
        waits: dict[tuple[int, Op], Emitted] | None = None,
        depth: int = 0,
    ) -> None:
        self.module = module
        self.interpreter: Interpreter = module.project.interpreter
        self.table: Mapping[type, Callable[[Frame, Any], Fact]] = self.interpreter.expressions
        self.function = function
        self.outer = outer
        self.env: dict[str, Fact] = {}
        self.waits = waits  # None: only the result is wanted
        self.depth = depth
        self.inlined = 0
        self.seen: dict[int, Fact] | None = None
        self.on_host = False  # the data pipeline, whose tensors live on the host
        self.counts = False  # what a loader gives, on the host: nothing here has to do with a device
        self.guarded = False  # a dtype was asked for before: it waits in that precision only
        self.around: Around = None  # what the surrounding block says of how hot it is
        self.read_whole: set[str] = set()  # names of what was read as one number: it has one element
        self.either: frozenset[str] = frozenset()  # names that are masks or positions: their dtype was asked for
        self.returns: list[Fact] = []
        self.dead = False  # the rest of this block is not reached
        self.used: dict[str, int] = {}
        self.clock: ast.AST | None = None  # the last clock reading
        self.work = False  # the device was given work since
        self.nested: list[ProjectFunction] = []
        self.unasked: ast.expr | None = None  # a call that is a statement: nobody asks for what it gives

    @property
    def heat(self) -> Heat | None:
        """What the surrounding block says."""
        return heat_of(self.around)

    @property
    def cls(self) -> Class | None:
        """The class whose method this is, also inside a nested function."""
        frame: Frame | None = self
        while frame is not None:
            if frame.function is not None and frame.function.cls is not None:
                return frame.function.cls
            frame = frame.outer
        return None

    @property
    def _sets_up(self) -> bool:
        return self.function is not None and self.function.name == "__init__"

    @property
    def alone(self) -> bool:
        """Whether what only arrays have only tensors have here: no other kind of array is named in this function."""
        usage = usage_of(self.module.parsed)
        if usage.alone or self.function is None:
            return usage.alone
        node = self.function.node
        return usage.alone_between(node.lineno, node.end_lineno or node.lineno)

    def assumed(self, name: str) -> Fact:
        """What the use of a name says of a value that nothing else is known of."""
        if self.used.get(name) == 2:
            if name in conventions.OF_THE_HOST:
                return tensor(INT, HOST, 2, f"`{name}` is what a packed sequence keeps on the host", ndim=1)
            return tensor(confidence=2, why=f"`{name}` is used as only a tensor can be")
        return UNKNOWN

    def emit(self, op: Op, node: ast.AST, operand: ast.expr | None, fact: Fact, confidence: int = 3) -> None:
        """The host waits here, unless the operand lives on the host."""
        if self.waits is None or fact.device is HOST or (self.on_host and fact.device is not DEVICE):
            return
        if op is Op.SIZE and fact.confidence < 2:
            return  # what makes a size, and is only guessed to be a tensor, is a number
        if op is Op.CPU and fact.device is not DEVICE and isinstance(operand, ast.Attribute) and self._sets_up:
            return  # objects are set up on the host: most often it is there
        if op in _ONE_NUMBER:
            self.read_whole.add(dotted(operand))
        guess = self.guarded or (self.counts and fact.device is not DEVICE)
        guess = guess or (op is Op.SCALAR_SLOT and _is_number_of_host(fact))
        sure = min(confidence, fact.confidence, 1 if guess else 3)
        self.waits[(id(node), op)] = Emitted(op, node, operand, fact, sure, self.heat)

    def confirm(self, node: ast.AST, op: Op) -> None:
        """What was copied so is surely a tensor: it is asked for what only tensors have, `x["loss"].cpu().item()`."""
        wait = self.waits.get((id(node), op)) if self.waits is not None else None
        if wait is not None and wait.confidence == 1 and not self.guarded:
            self.waits[id(node), op] = wait._replace(confidence=2)  # type: ignore[index]  # there is one


def _is_number_of_host(fact: Fact) -> bool:
    """Whether all that is known of a tensor is a number of the host that it is made of: `setting / torch.tensor(n).sqrt()`."""
    each: Fact | None = fact
    while each is not None and each.device is SOMEWHERE and isinstance(each.provenance, (ast.BinOp, ast.UnaryOp)):
        each = each.source
    return each is not None and each is not fact and each.device is HOST and each.ndim == 0


def evaluate(frame: Frame, node: ast.expr) -> Fact:
    """What an expression gives."""
    return frame.table[node.__class__](frame, node)


def execute(frame: Frame, body: list[ast.stmt]) -> None:
    """Run statements until the block ends or cannot go on; what one of them says of how hot the rest is ends with it."""
    table, around = frame.interpreter.statements, frame.around
    for statement in body:
        table[statement.__class__](frame, statement)
        if frame.dead:
            break
    frame.around = around


def recording(table: Mapping[type, Callable[[Frame, Any], Fact]]) -> Mapping[type, Callable[[Frame, Any], Fact]]:
    """The same table of expressions, each entry keeping what it answered in `frame.seen`."""

    def kept(of: Callable[[Frame, Any], Fact]) -> Callable[[Frame, Any], Fact]:
        def run(frame: Frame, node: Any) -> Fact:
            fact = of(frame, node)
            if frame.seen is not None:
                frame.seen[id(node)] = fact
            return fact

        return run

    return {kind: kept(of) for kind, of in table.items()}


def of_host(frame: Frame, node: ast.expr, fact: Fact) -> None:
    """Note that a tensor lives on the host, which is given to what takes no other: to numpy, to the packing of sequences."""
    path = dotted(node)
    if path and fact.kind is TENSOR and fact.device is not HOST and path in frame.env:
        frame.env[path] = fact.but(device=HOST)
