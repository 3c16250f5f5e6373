"""This call: who makes it, where it stands, on what and with what; everything that a handler of calls is told."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from syncscope.model.fact import UNKNOWN, Device, Dtype, Fact, Shape
from syncscope.model.heat import Role
from syncscope.model.ops import Op
from syncscope.project import devices
from syncscope.tensors.facts import ANY_DTYPE, DEVICE, HOST, NONE, SOMEWHERE, SPREAD, TENSOR, Items, Tag, like
from syncscope.tensors.frame import Frame
from syncscope.tensors.torch.signatures import DTYPE_NAMED

Keywords = dict[str | None, Fact]  # None: `**more`


class Call:
    """A call as it is interpreted.

    `name` is the word after the dot of a method, or the dotted name of a function from outside the project (see `named`).
    `receiver` is what is known of the object of a method, `at` the expression that it stands in. `nodes` are the expressions
    of `args`.
    """

    __slots__ = ("args", "at", "frame", "keywords", "name", "node", "nodes", "receiver", "word")

    def __init__(
        self,
        frame: Frame,
        node: ast.Call,
        name: str,
        args: list[Fact],
        keywords: Keywords,
        receiver: Fact = UNKNOWN,
        at: ast.expr | None = None,
    ) -> None:
        self.frame = frame
        self.node = node
        self.nodes = node.args
        self.name = self.word = name
        self.args = args
        self.keywords = keywords
        self.receiver = receiver
        self.at = at

    def named(self, name: str) -> Call:
        """The same call, of the function that has this dotted name."""
        self.name = name
        self.word = name.rpartition(".")[2]
        return self

    def emit(self, op: Op, at: ast.expr | None, fact: Fact, confidence: int = 3) -> None:
        """The host waits in this call for what stands at `at`."""
        self.frame.emit(op, self.node, at, fact, confidence)

    def result(
        self,
        of: Fact | None = None,
        *,
        dtype: Dtype | None = None,
        device: Device | None = None,
        shape: Shape | None = None,
        ndim: int | None = -1,
        confidence: int | None = None,
    ) -> Fact:
        """A tensor that this call computes from `of`, else from its receiver: what is not named stays; `ndim` -1 keeps it."""
        return like(
            self.receiver if of is None else of,
            self.node,
            dtype=dtype,
            device=device,
            shape=shape,
            ndim=ndim,
            confidence=confidence,
        )

    @property
    def unasked(self) -> bool:
        """Whether it is a statement by itself: nobody asks for what it gives."""
        return self.node is self.frame.unasked

    # -- what it is given

    @property
    def first(self) -> Fact:
        """The first argument."""
        return self.args[0] if self.args else UNKNOWN

    @property
    def first_node(self) -> ast.expr | None:
        """The expression of the first argument."""
        return self.nodes[0] if self.nodes else None

    def given(self, position: int, name: str, otherwise: Fact = UNKNOWN) -> Fact:
        """The argument that may be given by position or by name."""
        return self.args[position] if len(self.args) > position else self.keywords.get(name, otherwise)

    def node_of(self, position: int, *names: str) -> ast.expr | None:
        """The expression of that argument."""
        if len(self.nodes) > position:
            return self.nodes[position]
        return next((k.value for k in self.node.keywords if k.arg in names), None)

    def flag(self, name: str) -> bool:
        """Whether a keyword is given as True."""
        return any(
            k.arg == name and isinstance(k.value, ast.Constant) and k.value.value is True for k in self.node.keywords
        )

    @property
    def starred(self) -> bool:
        """Whether `*values` is among the arguments: what comes after it is at no known position."""
        return any(isinstance(each, ast.Starred) for each in self.nodes)

    @property
    def spread(self) -> bool:
        """Whether `*values` or `**more` is given."""
        return None in self.keywords or any(each is SPREAD for each in self.args)

    def tensors(self) -> Iterator[tuple[ast.expr, Fact]]:
        """The positional arguments that are tensors, and where they stand."""
        for at, fact in zip(self.nodes, self.args, strict=False):
            if fact.kind is TENSOR:
                yield at, fact

    def first_tensor(self) -> Fact | None:
        """The first positional argument that is a tensor."""
        return next((fact for fact in self.args if fact.kind is TENSOR), None)

    # -- where and as what a result is made

    @property
    def device_given(self) -> Fact | None:
        """What is given as a device, by its name or in a dict that is written out, `**{"device": x.device}`."""
        more = self.keywords.get(None)
        keys = more.ref.keys if more is not None and isinstance(more.ref, Items) else None
        return self.keywords.get("device") or (keys or {}).get("device")

    @property
    def by_default(self) -> Device:
        """Where torch makes a tensor of which nobody says where: on the host, unless its file or its project says otherwise."""
        return self._switched(devices.switches_default, devices.DEFAULT)

    @property
    def by_default_type(self) -> Device:
        """Where `torch.Tensor(values)` is made, which follows a default type alone, and no default device."""
        return self._switched(devices.switches_type, devices.DEFAULT_TYPE)

    def _switched(self, switches: Callable[[bytes], bool], name: str) -> Device:
        module = self.frame.module
        if switches(module.source):
            return SOMEWHERE
        return SOMEWHERE if module.project.role(module.path, name) is Role.UNREACHED else HOST

    def where_made(self, otherwise: Device) -> Device:
        """The device that a `device=` argument names."""
        fact = self.keywords.get("device")
        if fact is None:
            spread = self.device_given
            if spread is not None:
                return spread.device if spread.ref is Tag.DEVICE else SOMEWHERE
            return SOMEWHERE if None in self.keywords and otherwise is HOST else otherwise  # `**more` may name one
        for keyword in self.node.keywords:
            if keyword.arg == "device":
                return device_meant(keyword.value, fact, otherwise)
        return otherwise

    def dtype_given(self) -> Dtype:
        """The dtype that a `dtype=` argument names."""
        fact = self.keywords.get("dtype")
        return ANY_DTYPE if fact is None else dtype_meant(fact)


def device_meant(node: ast.expr, fact: Fact, otherwise: Device = SOMEWHERE) -> Device:
    """What an expression given as a device means."""
    if isinstance(node, ast.JoinedStr) and node.values and isinstance(node.values[0], ast.Constant):
        node = node.values[0]  # f"cuda:{rank}"
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            return HOST if node.value.startswith("cpu") else SOMEWHERE if node.value == "meta" else DEVICE
        return otherwise if node.value is None else DEVICE
    if fact.ref is Tag.DEVICE:
        return fact.device
    return otherwise if fact is NONE else SOMEWHERE


def dtype_meant(fact: Fact) -> Dtype:
    """What a value given as a dtype means: a dtype of torch, or one of Python's types."""
    if isinstance(fact.ref, str) and fact.ref.startswith("builtins."):
        return DTYPE_NAMED.get(fact.ref.removeprefix("builtins."), ANY_DTYPE)
    return fact.dtype
