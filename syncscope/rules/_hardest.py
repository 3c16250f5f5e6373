"""Hard examples, `x[m].topk(k)` with a k that was read from the device, in fixed shapes: all are sorted, the first k count."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from syncscope.model.fact import Dtype, Site
from syncscope.model.finding import Fix, Safety
from syncscope.rules._function import Function
from syncscope.rules._proofs import is_mask, same_rank

if TYPE_CHECKING:
    from syncscope.rules._draft import Draft, Part

CHANGES = (
    "{k} is a tensor that stays on the device; all are sorted, and the sum may differ in its last bits; a k larger than "
    "the number there is does not raise"
)


class Best(NamedTuple):
    """The k largest of a tensor, and their sum or mean."""

    node: ast.expr  # the topk call, or the sorted tensor that is cut
    taken: ast.expr  # that of which they are the largest
    k: ast.expr
    statement: ast.Assign
    name: ast.Name  # what the values are called
    total: ast.Call  # `name.sum()` or `name.mean()`
    mean: bool


def hardest(site: Site, function: Function) -> Fix | None:
    """The site is any read that k is made of, the `topk` itself, or the selection by a mask of which it is taken."""
    if b"topk" not in function.view.code and b"sort(" not in function.view.code:
        return None
    for best in filter(None, (largest(function, n) for n in ast.walk(function.scope) if isinstance(n, ast.Assign))):
        made = Count(function)
        if made.of(best.k) and (site.node in made.reads or site.node is best.node or site.node is best.taken):
            return first_count(site, function, best, made)
    return None


def largest(function: Function, statement: ast.Assign) -> Best | None:
    """`v, _ = x.topk(k)`, `v = x.topk(k).values` or `v = x.sort(descending=True)[0][:k]`, where v is only summed up."""
    target, value = statement.targets[0], statement.value
    cut: ast.expr | None = None
    if len(statement.targets) != 1:
        return None
    if isinstance(target, ast.Tuple):
        name, rest = target.elts[0], target.elts[1:]
        if any(not isinstance(n, ast.Name) or function.reads(n.id) for n in rest):
            return None
    else:
        name = target
        if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice) and value.slice.upper is not None:
            if value.slice.lower is not None or value.slice.step is not None:
                return None
            cut = value.slice.upper
            value = value.value
        values = isinstance(value, ast.Subscript) and function.constant(value.slice) == 0
        if not (values or (isinstance(value, ast.Attribute) and value.attr == "values")):
            return None
        assert isinstance(value, (ast.Subscript, ast.Attribute))
        value = value.value
    op = function.op(value)
    if op is None or not isinstance(name, ast.Name):
        return None
    k = cut if cut is not None else op.argument(0, "k")
    flag = op.keywords.get("descending")
    down = isinstance(flag, ast.Constant) and flag.value is True and len(op.keywords) == 1
    if (
        k is None
        or op.name != ("topk" if cut is None else "sort")
        or not (down if cut is not None else not op.keywords)
    ):
        return None
    if len(op.args) > (1 if cut is None else 0):
        return None
    uses = [n for n in function.reads(name.id) if n.lineno > (statement.end_lineno or 0)]
    if function.binds(name.id)[-1] is not name or function.loop(statement) is not None or len(uses) != 1:
        return None
    attribute = function.parent(uses[0])
    total = function.parent(attribute) if isinstance(attribute, ast.Attribute) else attribute
    reduction = function.op(total)
    if reduction is None or reduction.base is not uses[0] or reduction.args or reduction.keywords:
        return None
    if not isinstance(total, ast.Call) or reduction.name not in ("sum", "mean"):
        return None
    return Best(value, op.base, k, statement, name, total, reduction.name == "mean")


class Count:
    """A number that was read from the device, as the tensor it is."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.reads: dict[ast.expr, str] = {}  # calls that read, and what takes their place: a template with {t}
        self.extremes: list[ast.Call] = []  # min(a, b)
        self.defined: list[ast.Assign] = []

    def of(self, node: ast.expr) -> bool:
        """Whether the number is made of such reads, by arithmetic and `min`: then they are noted."""
        return self.kind(node) == "device"

    def kind(self, node: ast.expr) -> str | None:
        """Where a number is once its reads are gone: on the host, on the device; None where it cannot be said."""
        function = self.function
        if function.constant(node) is not None:
            return "host"
        if isinstance(node, ast.Name):
            return self.named(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv)):
            kinds = {self.kind(node.left), self.kind(node.right)}
            return None if None in kinds else "device" if "device" in kinds else "host"
        if not isinstance(node, ast.Call) or node.keywords:
            return None
        called = function.dotted(node.func)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "item" and not node.args:
            self.reads[node] = "{t}"
            return "device"
        if called == "int" and len(node.args) == 1:
            fact = function.fact(node.args[0])
            if fact.is_tensor:
                self.reads[node] = "{t}" if fact.dtype is Dtype.INT else "{t}.long()"
                return "device"
            kind = self.kind(node.args[0])  # int(k * 3.0)
            if kind == "device":
                self.reads[node] = "{t}.long()"
            return kind
        if called == "min" and len(node.args) == 2:
            either = [self.kind(a) for a in node.args]
            if None in either or "device" not in either:
                return None
            self.extremes.append(node)
            return "device"
        return None

    def named(self, node: ast.Name) -> str | None:
        """As `kind`, of a name."""
        function = self.function
        if function.fact(node).is_tensor:
            return "device"
        made = function.definition(node)
        if made is None:
            return "host" if function.untouched(node) else None
        kind = self.kind(made.value)
        if kind == "device" and made not in self.defined:
            self.defined.append(made)
        return kind

    def spread(self, known: set[int]) -> bool:
        """Whether every use of the names is one that a tensor serves as well: here, or in arithmetic."""
        function = self.function
        for assign in self.defined:
            uses = function.seen_by(assign)
            if not uses or not all(id(u) in known or isinstance(function.parent(u), ast.BinOp) for u in uses):
                return False
        return True


def first_count(site: Site, function: Function, best: Best, made: Count) -> Fix | None:
    """The fix: sort, and sum the first k."""
    mask = (
        best.taken.slice if isinstance(best.taken, ast.Subscript) and is_mask(function.fact(best.taken.slice)) else None
    )
    base = function.op(best.taken)
    flat = (
        mask is not None
        or function.fact(best.taken).ndim == 1
        or (base is not None and (base.name == "flatten" or (base.name in ("view", "reshape") and len(base.args) == 1)))
    )
    known = {id(n) for e in (best.k, *made.extremes, *made.reads) for n in ast.walk(e)}
    if (best.mean and not flat) or not made.spread(known) or not function.pure(best.taken):
        return None
    if any(function.disturbed(n.id, best.statement, best.total) for n in ast.walk(best.k) if isinstance(n, ast.Name)):
        return None
    if function.fact(best.taken).dtype not in (Dtype.FLOAT, Dtype.UNKNOWN) or not isinstance(
        best.k, (ast.Name, ast.Call, ast.BinOp)
    ):
        return None
    draft = function.draft()
    for assign in made.defined:
        draft.replace(assign.value, "{v}", v=on_device(assign.value, made, draft))
    k = on_device(best.k, made, draft)
    if mask is not None and isinstance(best.taken, ast.Subscript):
        draft.replace(
            best.statement,
            '{v} = {x}.masked_fill(~{m}, float("-inf")).flatten().sort(descending=True).values',
            v=best.name.id, x=best.taken.value, m=mask,
        )  # fmt: skip
    else:
        draft.replace(best.statement, "{v} = {x}.sort(descending=True).values", v=best.name.id, x=best.taken)
    kept = "torch.where(torch.arange({v}.shape[-1], device={v}.device) < {k}, {v}, 0).sum()"
    draft.replace(best.total, f"{kept} / {{k}}" if best.mean else kept, v=best.name.id, k=k)
    changes = CHANGES.format(k=function.view.text(best.k))
    if (
        mask is not None
        and isinstance(best.taken, ast.Subscript)
        and not same_rank(site, function, mask, best.taken.value)
    ):
        x, m = function.view.text(best.taken.value), function.view.text(mask)
        return draft.fix("sort all, and sum the first", Safety.SUGGEST, f"{x} must have the shape of {m}; {changes}")
    return draft.fix("sort all, and sum the first", Safety.UNSAFE, changes)


def on_device(node: ast.expr, made: Count, draft: Draft) -> Part:
    """A number as a tensor: the reads taken off, `min` as `torch.minimum` or `clamp`."""
    if isinstance(node, ast.BinOp):
        return draft.swapped(node, {n: on_device(n, made, draft) for n in (node.left, node.right)})
    if not isinstance(node, ast.Call):
        return node
    if node in made.reads:
        tensor = node.args[0] if node.args else node.func.value if isinstance(node.func, ast.Attribute) else node
        return draft.part(made.reads[node], t=on_device(tensor, made, draft))
    if node not in made.extremes:
        return node
    a, b = (on_device(n, made, draft) for n in node.args)
    kinds = [made.kind(n) for n in node.args]
    if kinds == ["device", "device"]:
        return draft.part("torch.minimum({a}, {b})", a=a, b=b)
    tensor_part, bound = (a, b) if kinds[0] == "device" else (b, a)
    return draft.part("{t}.clamp(max={b})", t=tensor_part, b=bound)
