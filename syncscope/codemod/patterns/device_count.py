"""A number that was read from the device, followed back through arithmetic: the same number as a tensor that stays there."""

from __future__ import annotations

import ast
from typing import NamedTuple

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.pattern import seen
from syncscope.codemod.patterns.lengths import length, number_of_elements
from syncscope.codemod.patterns.positions import Rows, rows_of
from syncscope.codemod.templates import Part
from syncscope.model.fact import Dtype

EXTREMES = {"min": ("torch.minimum", "max"), "max": ("torch.maximum", "min")}  # of two tensors; the bound of `clamp`


class Cap(NamedTuple):
    """`if k > n: k = n` after `k = ...`."""

    start: ast.Assign
    cut: ast.If
    bound: ast.expr


class Count:
    """What a number is made of: the reads that go, and the statements that then hold tensors."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.reads: dict[ast.expr, str] = {}  # calls that read, and what takes their place: a template with {t}
        self.lengths: dict[ast.expr, Rows] = {}  # `len(rows)`: how many elements of a mask are true
        self.extremes: list[ast.Call] = []  # min(a, b)
        self.defined: list[ast.Assign] = []
        self.caps: list[Cap] = []

    def of(self, node: ast.expr) -> bool:
        """Whether the number is made of such reads, by arithmetic, `min` and `max`: then they are noted."""
        return self.kind(node) == "device"

    def kind(self, node: ast.expr) -> str | None:
        """Where a number is once its reads are gone: on the host, on the device; None where it cannot be said."""
        function = self.function
        if function.constant(node) is not None:
            return "host"
        if isinstance(node, ast.Name):
            return self.named(node)
        match node:
            case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.FloorDiv(), left=left, right=right):
                kinds = {self.kind(left), self.kind(right)}
                return None if None in kinds else "device" if "device" in kinds else "host"
        if (rows := counted_rows(function, node)) is not None:
            self.lengths[node] = rows
            return "device"
        if isinstance(node, (ast.Attribute, ast.Subscript)):  # a setting: `cfg.ratio`, `cfg["ratio"]`
            return "host" if function.pure(node) and not function.fact(node).is_tensor else None
        return self.called(node) if isinstance(node, ast.Call) and not node.keywords else None

    def called(self, node: ast.Call) -> str | None:
        """Where the number is that a call gives, once its reads are gone: see `kind`."""
        function, name = self.function, self.function.dotted(node.func)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "item" and not node.args:
            self.reads[node] = "{t}"
            return "device"
        if name == "int" and len(node.args) == 1:
            fact = function.fact(node.args[0])
            if fact.is_tensor:
                self.reads[node] = "{t}" if fact.dtype is Dtype.INT else "{t}.long()"
                return "device"
            kind = self.kind(node.args[0])  # int(k * 3.0)
            if kind == "device":
                self.reads[node] = "{t}.long()"
            return kind
        if name in EXTREMES and len(node.args) == 2:
            either = [self.kind(a) for a in node.args]
            if None in either or "device" not in either:
                return None
            self.extremes.append(node)
            return "device"
        return None

    def named(self, node: ast.Name) -> str | None:
        """Where the number is that a name holds, once its reads are gone: see `kind`."""
        function = self.function
        if function.fact(node).is_tensor:
            return "device"
        made = function.reaching_definition(node)
        if made is None and (cap := self.cap(node)) is not None:
            kinds = (self.kind(cap.start.value), self.kind(cap.bound))
            if None in kinds or "device" not in kinds:
                return None
            if cap not in self.caps:
                self.caps.append(cap)
            return "device"
        if made is None:
            return "host" if function.untouched(node) else None
        kind = self.kind(made.value)
        if kind == "device" and made not in self.defined:
            self.defined.append(made)
        return kind

    def cap(self, use: ast.Name) -> Cap | None:
        """`k = ...`, then `if k > n: k = n`, then this use of k: all in one block, and in no loop."""
        function, bound = self.function, self.function.binds(use.id)
        start, cut = (function.parent(n) for n in bound) if len(bound) == 2 else (None, None)
        if not isinstance(start, ast.Assign) or not isinstance(cut, ast.Assign) or function.shared(use.id):
            return None
        if start.targets != [bound[0]] or cut.targets != [bound[1]] or function.loop(start) is not None:
            return None
        match function.parent(cut):
            case ast.If(test=asked, body=[_], orelse=[]) as test if larger(function, asked, cut):
                pass
            case _:
                return None
        block, around = function.block(start), [use, *function.around(use)]
        later = next((s for s in block if s in around), None)
        if test not in block or later is None or not block.index(start) < block.index(test) < block.index(later):
            return None
        return Cap(start, test, cut.value)

    def spread(self, known: set[int]) -> bool:
        """Whether every use of the names is one that a tensor serves as well: here, or in arithmetic."""
        function = self.function
        for assign in self.defined:
            uses = function.seen_by(assign)
            if not uses or not all(id(u) in known or isinstance(function.parent(u), ast.BinOp) for u in uses):
                return False
        for cap in self.caps:
            inside = {id(n) for n in ast.walk(cap.cut)}
            name = cap.start.targets[0]
            uses = function.reads(name.id) if isinstance(name, ast.Name) else []
            if not all(id(u) in known | inside or isinstance(function.parent(u), ast.BinOp) for u in uses):
                return False
        return True

    def parts(self) -> list[ast.expr]:
        """All expressions that become others: what is used in them is known to serve."""
        caps = [e for cap in self.caps for e in (cap.start.value, cap.cut.test, cap.bound)]
        return [*self.extremes, *self.reads, *self.lengths, *caps]

    def written(self, draft: Draft, masks: dict[str, str]) -> None:
        """Write the statements that named the number, as tensors. `masks`: what the mask of each name of rows is called."""
        for assign in self.defined:
            draft.replace(assign.value, "{v}", v=self.on_device(assign.value, draft, masks))
        for cap in self.caps:
            name, bound = cap.start.targets[0], self.on_device(cap.bound, draft, masks)
            assert isinstance(name, ast.Name)
            draft.replace(cap.start.value, "{v}", v=self.on_device(cap.start.value, draft, masks))
            kinds = (self.kind(cap.start.value), self.kind(cap.bound))
            template = f"{name.id} = torch.minimum({name.id}, {{n}})"
            if kinds == ("device", "host"):
                template = f"{name.id} = {name.id}.clamp(max={{n}})"
            elif kinds == ("host", "device"):
                template = f"{name.id} = {{n}}.clamp(max={name.id})"
            draft.replace(cap.cut, template, n=bound)

    def on_device(self, node: ast.expr, draft: Draft, masks: dict[str, str]) -> Part:
        """The number as a tensor: the reads taken off, `min` as `torch.minimum` or `clamp`."""
        if isinstance(node, ast.BinOp):
            return draft.swapped(node, {n: self.on_device(n, draft, masks) for n in (node.left, node.right)})
        if node in self.lengths:
            return f"{masks[self.lengths[node].name]}.sum()"
        if not isinstance(node, ast.Call):
            return node
        if node in self.reads:
            tensor = node.args[0] if node.args else node.func.value if isinstance(node.func, ast.Attribute) else node
            return draft.part(self.reads[node], t=self.on_device(tensor, draft, masks))
        if node not in self.extremes:
            return node
        a, b = (self.on_device(n, draft, masks) for n in node.args)
        kinds = [self.kind(n) for n in node.args]
        both, bound = EXTREMES[self.function.dotted(node.func) or ""]
        if kinds == ["device", "device"]:
            return draft.part(f"{both}({{a}}, {{b}})", a=a, b=b)
        tensor_part, number = (a, b) if kinds[0] == "device" else (b, a)
        return draft.part(f"{{t}}.clamp({bound}={{b}})", t=tensor_part, b=number)


def larger(function: Function, test: ast.expr, cut: ast.Assign) -> bool:
    """Whether a test is `k > n` or `n < k`, where `cut` is `k = n`."""
    found = seen(function, test, "{k} > {n}", "{k} >= {n}", "{n} < {k}", "{n} <= {k}")
    if found is None or not function.same_name(found["k"], cut.targets[0]):
        return False
    return function.same(found["n"], cut.value) and function.pure(found["n"])


def counted_rows(function: Function, node: ast.expr) -> Rows | None:
    """The rows of which this is the number: `len(rows)`, `rows.size(0)`, `rows.shape[0]`, `rows.numel()`."""
    rows = next((n for n in ast.walk(node) if isinstance(n, ast.Name) and n.id != "len"), None)
    if rows is None or (length(function, rows) is not node and number_of_elements(function, rows) is not node):
        return None
    found = rows_of(function, rows)
    return found if found is not None and not found.tupled else None
