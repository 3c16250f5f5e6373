"""Reads side by side: one wait for all of them."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from syncscope.model.fact import Dtype, Fact, Site
from syncscope.model.finding import Fix, Safety
from syncscope.rules import Example
from syncscope.rules._function import Function
from syncscope.rules._reads import tensor_read

STACK = "torch.stack"
KEEP_DTYPE = {"min", "max", "amin", "amax", "median"}
KEEP_FLOAT = {*KEEP_DTYPE, "mean", "std", "var", "sum", "prod", "norm"}
ONE_KIND = "all must be of one dtype and live on one device"
TOGETHER = "there must be at least one, and all must have one dtype and no dimensions and live on one device"
SIMPLE = (ast.Expr, ast.Return, ast.Assign, ast.AugAssign, ast.AnnAssign)
EXAMPLES = (
    Example(
        """
        import torch

        def extremes(x: torch.Tensor):
            low = x.min().item()  # !
            high = x.max().item()  # !
            return low, high
        """,
        """
        import torch

        def extremes(x: torch.Tensor):
            low, high = torch.stack((x.min(), x.max())).tolist()
            return low, high
        """,
        Safety.SAFE,
        "x: int[...]",
    ),
    Example(
        """
        import torch

        def extremes(x: torch.Tensor):
            x, y = x.exp(), x.cos()
            low, high = x.mean().item(), y.mean().item()  # !
            return low, high
        """,
        """
        import torch

        def extremes(x: torch.Tensor):
            x, y = x.exp(), x.cos()
            low, high = torch.stack((x.mean(), y.mean())).tolist()
            return low, high
        """,
        Safety.UNSAFE,
        "x: float[n, m]",
    ),
    Example(
        """
        import torch

        def watch(x: torch.Tensor):
            loss, norm = x.sigmoid().mean(), x.float().norm()
            return {"loss": loss.item(), "norm": norm.item() / 2}  # !
        """,
        """
        import torch

        def watch(x: torch.Tensor):
            loss, norm = x.sigmoid().mean(), x.float().norm()
            loss_value, norm_value = torch.stack((loss, norm)).tolist()
            return {"loss": loss_value, "norm": norm_value / 2}
        """,
        Safety.UNSAFE,
        "x: finite[n]",
    ),
    Example(
        """
        import torch

        def watch(x: torch.Tensor, y: torch.Tensor, value: int):
            return x.mean().item(), y.mean().item(), y.mean().item() + value  # !
        """,
        """
        import torch

        def watch(x: torch.Tensor, y: torch.Tensor, value: int):
            mean_value, mean_value_2, mean_value_3 = torch.stack((x.mean(), y.mean(), y.mean())).tolist()
            return mean_value, mean_value_2, mean_value_3 + value
        """,
        Safety.UNSAFE,
        "x: finite[n]; y: finite[n]; value: count",
    ),
    Example(
        """
        import torch

        def losses(x: torch.Tensor):
            parts = {"error": x.square().mean(), "size": x.abs().mean()}
            every = [part.item() for part in parts.values()]  # !
            named = {name: part.item() for name, part in parts.items()}  # !
            return every, named
        """,
        """
        import torch

        def losses(x: torch.Tensor):
            parts = {"error": x.square().mean(), "size": x.abs().mean()}
            every = torch.stack(tuple(parts.values())).tolist()
            named = dict(zip(parts, torch.stack(tuple(parts.values())).tolist()))
            return every, named
        """,
        Safety.UNSAFE,
        "x: finite[n + 1]",
    ),
    Example(
        """
        import torch

        def values(parts: dict[str, torch.Tensor]):
            read = {}
            for name, part in parts.items():
                read[name] = part.item()  # !
            return read
        """,
        """
        import torch

        def values(parts: dict[str, torch.Tensor]):
            read = {}
            read.update(zip(parts, torch.stack(tuple(parts.values())).tolist()))
            return read
        """,
        Safety.UNSAFE,
    ),
)


def stacked(site: Site, function: Function) -> Fix | None:
    """`[t.item() for t in tensors]` reads them all at once."""
    loop = function.parent(site.node)
    tensor = tensor_read(site.node, function)
    if not isinstance(loop, (ast.ListComp, ast.GeneratorExp)) or len(loop.generators) != 1 or loop.elt is not site.node:
        return None
    each = loop.generators[0]
    if each.ifs or each.is_async or not isinstance(tensor, ast.Name) or not function.same_name(tensor, each.target):
        return None
    draft = function.draft()
    whole = "torch.stack(tuple({all})).tolist()"  # an argument alone has no parentheses but the call's
    draft.replace(loop, f"({whole})" if isinstance(loop, ast.GeneratorExp) else whole, all=each.iter)
    return draft.fix("read all at once", Safety.UNSAFE, TOGETHER)


def stacked_values(site: Site, function: Function) -> Fix | None:
    """`{k: t.item() for k, t in d.items()}` reads them all at once."""
    loop, tensor = function.parent(site.node), tensor_read(site.node, function)
    if not isinstance(loop, ast.DictComp) or len(loop.generators) != 1 or loop.value is not site.node:
        return None
    each = loop.generators[0]
    items = each.iter
    if (
        each.ifs
        or each.is_async
        or not isinstance(each.target, ast.Tuple)
        or len(each.target.elts) != 2
        or not function.same_name(loop.key, each.target.elts[0])
        or tensor is None
        or not function.same_name(tensor, each.target.elts[1])
        or not isinstance(items, ast.Call)
        or not isinstance(items.func, ast.Attribute)
        or items.func.attr != "items"
        or not isinstance(items.func.value, ast.Name)
    ):
        return None
    draft = function.draft()
    draft.replace(loop, "dict(zip({d}, torch.stack(tuple({d}.values())).tolist()))", d=items.func.value)
    return draft.fix("read all at once", Safety.UNSAFE, TOGETHER)


def stacked_entries(site: Site, function: Function) -> Fix | None:
    """`for k, t in d.items(): read[k] = t.item()` reads them all at once."""
    tensor, assign, loop = tensor_read(site.node, function), function.parent(site.node), function.loop(site.node)
    if not isinstance(loop, ast.For) or loop.orelse or not isinstance(assign, ast.Assign) or loop.body != [assign]:
        return None
    target, names, items = assign.targets[0], loop.target, loop.iter
    if (
        tensor is None
        or len(assign.targets) != 1
        or not isinstance(target, ast.Subscript)
        or not isinstance(target.value, ast.Name)
        or not isinstance(names, ast.Tuple)
        or len(names.elts) != 2
        or not function.same_name(target.slice, names.elts[0])
        or not function.same_name(tensor, names.elts[1])
        or not isinstance(items, ast.Call)
        or not isinstance(items.func, ast.Attribute)
        or items.func.attr != "items"
        or not isinstance(items.func.value, ast.Name)
        or function.same_name(target.value, items.func.value)
    ):
        return None
    after = [n for e in names.elts if isinstance(e, ast.Name) for n in function.reads(e.id) if n.lineno > loop.lineno]
    if any(n.lineno > (loop.end_lineno or 0) for n in after):
        return None
    draft = function.draft()
    all_read = "{r}.update(zip({d}, torch.stack(tuple({d}.values())).tolist()))"
    draft.replace(loop, all_read, r=target.value, d=items.func.value)
    return draft.fix("read all at once", Safety.UNSAFE, f"{target.value.id} must be a dict; {TOGETHER}")


def merged(site: Site, function: Function) -> Fix | None:
    """Reads side by side become one: `a, b = torch.stack((x, y)).tolist()`."""
    statement = function.statement(site.node)
    if not isinstance(statement, ast.Assign):
        return None
    pairs = reads_of(statement, function)
    if not pairs:
        return None
    run = [statement]
    if isinstance(statement.targets[0], ast.Name):
        block = function.block(statement)
        at = block.index(statement)
        first = last = at
        while first > 0 and reads_of(block[first - 1], function):
            first -= 1
        while last + 1 < len(block) and reads_of(block[last + 1], function):
            last += 1
        run = [s for s in block[first : last + 1] if isinstance(s, ast.Assign)]
        if any(isinstance(s.targets[0], ast.Tuple) for s in run):
            return None
        pairs = [pair for s in run for pair in reads_of(s, function)]
    return function.once("merged", run[0], lambda: merged_run(function, run, pairs))


def merged_run(function: Function, run: list[ast.Assign], pairs: list[tuple[ast.Name, ast.expr]]) -> Fix | None:
    """The fix of statements that only read."""
    names, tensors = [n for n, _ in pairs], [t for _, t in pairs]
    if len(pairs) < 2 or len({n.id for n in names}) < len(names):
        return None
    if any(isinstance(n, ast.Name) and n.id in {x.id for x in names} for t in tensors for n in ast.walk(t)):
        return None
    facts = [function.fact(t) for t in tensors]
    dtypes = {f.dtype for f in facts}
    one = of_one_tensor(tensors, function, dtypes == {Dtype.FLOAT})
    join = joined(facts)
    if join is None or not all(function.alone(s) for s in run):
        return None
    draft = function.draft()
    parts = {f"t{i}": t for i, t in enumerate(tensors)}
    stack = ", ".join(f"{{{key}}}" for key in parts)
    draft.replace(run[0], f"{', '.join(n.id for n in names)} = {join}(({stack})).tolist()", **parts)
    for other in run[1:]:
        draft.remove(other)
    if one and join == STACK:
        return draft.fix(f"read {len(names)} numbers at once", Safety.SAFE)
    return draft.fix(f"read {len(names)} numbers at once", Safety.UNSAFE, ONE_KIND)


def joined(facts: Sequence[Fact]) -> str | None:
    """The function that makes one tensor of such numbers: `hstack` takes tensors of one element too."""
    if any(f.ndim not in (0, None) for f in facts) or not may_mix({f.dtype for f in facts}):
        return None
    return STACK if all(f.ndim == 0 for f in facts) else "torch.hstack"


def may_mix(dtypes: set[Dtype]) -> bool:
    """Whether numbers of these dtypes can go through one tensor: not bool, which would come back as 0 and 1."""
    return dtypes <= {Dtype.FLOAT, Dtype.UNKNOWN} or dtypes <= {Dtype.INT, Dtype.UNKNOWN}


def reads_of(statement: ast.stmt, function: Function) -> list[tuple[ast.Name, ast.expr]]:
    """Names and tensors of `a = t.item()` or `a, b = t.item(), u.item()`; empty for any other statement."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return []
    target, value = statement.targets[0], statement.value
    targets: Sequence[ast.expr] = target.elts if isinstance(target, ast.Tuple) else [target]
    values: Sequence[ast.expr] = value.elts if isinstance(value, ast.Tuple) and len(targets) > 1 else [value]
    if len(targets) != len(values):
        return []
    found = []
    for name, one in zip(targets, values, strict=True):
        tensor = tensor_read(one, function)
        if (
            not isinstance(name, ast.Name)
            or tensor is None
            or not function.pure(tensor)
            or function.fact(one).is_tensor
        ):
            return []
        found.append((name, tensor))
    return found


def of_one_tensor(tensors: list[ast.expr], function: Function, floats: bool) -> bool:
    """Whether all are reductions of one tensor that keep its dtype: then stacking them changes nothing."""
    ops = [function.op(t) for t in tensors]
    bases = {op.base.id for op in ops if op is not None and isinstance(op.base, ast.Name)}
    kept = KEEP_FLOAT if floats else KEEP_DTYPE
    return len(bases) == 1 and all(
        op is not None and isinstance(op.base, ast.Name) and op.name in kept and not op.args and not op.keywords
        for op in ops
    )
