"""`{k: t.item() for k, t in d.items()}`, and the same in a loop, reads them all at once."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.pattern import seen
from syncscope.codemod.patterns.joined import FLATTENED, all_at_once
from syncscope.codemod.patterns.numbers import named
from syncscope.codemod.patterns.reads import tensor_read
from syncscope.codemod.templates import Part
from syncscope.codemod.whereabouts import cannot_be_joined
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety, Stays, Way

STAYS = Stays.LAST
WAY = Way.LISTS

TOGETHER = True
EXAMPLES = (
    Example(
        """
        import torch

        def losses(x: torch.Tensor):
            parts = {"error": x.square().mean(), "size": x.abs().mean()}
            named = {name: part.item() for name, part in parts.items()}  # !
            return named
        """,
        """
        import torch

        def losses(x: torch.Tensor):
            parts = {"error": x.square().mean(), "size": x.abs().mean()}
            named = dict(zip(parts, torch.stack(tuple(parts.values())).tolist()))
            return named
        """,
        Safety.UNSAFE,
        "x: finite[n + 1]",
    ),
    Example(
        """
        import torch

        def everywhere(parts: dict[str, torch.Tensor], share):
            return {name: part.item() for name, part in share(parts).items()}  # !
        """,
        """
        import torch

        def everywhere(parts: dict[str, torch.Tensor], share):
            values = share(parts)
            return dict(zip(values, torch.hstack(tuple(values.values())).flatten().tolist()))
        """,
        Safety.UNSAFE,
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
            read.update(zip(parts, torch.hstack(tuple(parts.values())).flatten().tolist()))
            return read
        """,
        Safety.UNSAFE,
    ),
    Example(
        """
        import torch

        class MetricLogger:
            def update(self, **kwargs):
                for k, v in kwargs.items():
                    if isinstance(v, torch.Tensor):
                        v = v.item()  # !
                    assert isinstance(v, (float, int))
                    self.meters[k].update(v)
        """,
        """
        import torch

        class MetricLogger:
            def update(self, **kwargs):
                tensors = {k: v for k, v in kwargs.items() if isinstance(v, torch.Tensor)}
                if tensors:
                    kwargs.update(zip(tensors, torch.hstack(tuple(tensors.values())).flatten().tolist()))
                for k, v in kwargs.items():
                    assert isinstance(v, (float, int))
                    self.meters[k].update(v)
        """,
        Safety.UNSAFE,
    ),
    Example(
        """
        import torch

        def scales(parts: dict[str, torch.Tensor], tensors: list[torch.Tensor]):
            largest = {x.device: x.abs().max() for x in tensors}
            print({device: part.item() for device, part in parts.items()})  # !
            return {at: part.item() for at, part in largest.items()}  # !
        """,
    ),
)


ASKED = ("if isinstance({v:name}, {kind}):\n    {v} = {v}.item()",)


def rewrite(site: Site, function: Function) -> Fix | None:
    return in_comprehension(site, function) or in_a_loop(site, function) or where_tensors(site, function)


def in_comprehension(site: Site, function: Function) -> Fix | None:
    """The fix for `{k: t.item() for k, t in d.items()}`."""
    loop, tensor = function.parent(site.node), tensor_read(function, site.node)
    found = seen(function, loop, "{ {k:name}: {read} for {k}, {t:name} in {d}.items(*_, **_) }")
    if found is None or tensor is None or not function.same_name(tensor, found["t"]) or not isinstance(loop, ast.expr):
        return None
    if cannot_be_joined(function, found["d"]):
        return None
    join, read_all, changes = all_at_once(function.fact(tensor).ndim)
    draft, values = Draft(function), found["d"]
    if (read_from := named_once(draft, function, loop, values)) is None:
        return None
    draft.replace(loop, f"dict(zip({{d}}, {join}(tuple({{d}}.values())){read_all}))", d=read_from)
    return draft.fix("read all at once", Safety.UNSAFE, changes)


def named_once(draft: Draft, function: Function, loop: ast.expr, values: ast.expr) -> Part | None:
    """What the dict is called in new code that has it twice; None where something else would be computed before it."""
    statement = function.statement(values)
    if named(values):
        return values
    if statement is None or not function.runs_first(statement, loop) or function.indent(statement).strip():
        return None
    name = function.fresh("values")
    draft.insert_before(statement, f"{name} = {{d}}", d=values)
    return name


def in_a_loop(site: Site, function: Function) -> Fix | None:
    """The fix for `for k, t in d.items(): read[k] = t.item()`."""
    tensor, loop = tensor_read(function, site.node), function.loop(site.node)
    found = seen(function, loop, "for {k:name}, {t:name} in {d:name}.items(*_, **_):\n    {r:name}[{k}] = {read}")
    if found is None or loop is None or found["read"] is not site.node or function.same(found["d"], found["r"]):
        return None
    if tensor is None or not function.same_name(tensor, found["t"]):
        return None
    if cannot_be_joined(function, found["d"]):
        return None
    names = [function.file.text(found[part]) for part in ("k", "t")]
    if any(n.lineno > (loop.end_lineno or 0) for name in names for n in function.reads(name)):
        return None
    draft = Draft(function)
    join, read_all, changes = all_at_once(function.fact(tensor).ndim)
    all_read = f"{{r}}.update(zip({{d}}, {join}(tuple({{d}}.values())){read_all}))"
    draft.replace(loop, all_read, r=found["r"], d=found["d"])
    return draft.fix("read all at once", Safety.UNSAFE, f"{function.file.text(found['r'])} must be a dict", changes)


def where_tensors(site: Site, function: Function) -> Fix | None:
    """The fix for `for k, v in d.items(): if isinstance(v, torch.Tensor): v = v.item()`, as meters take what they are given."""
    loop = function.loop(site.node)
    found = seen(function, loop.body[0], *ASKED) if isinstance(loop, ast.For) else None
    over = seen(function, loop.iter, "{d:name}.items()") if found is not None and isinstance(loop, ast.For) else None
    if found is None or over is None or not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Tuple):
        return None
    value = loop.target.elts[-1]
    asked = loop.body[0]
    inside = isinstance(asked, ast.If) and any(n is site.node for n in ast.walk(asked.body[0]))
    if not inside or not function.same_name(found["v"], value) or function.indent(loop).strip() or len(loop.body) < 2:
        return None
    draft, name, indent = Draft(function), function.fresh("tensors"), function.indent(loop)
    picked = f"{name} = {{{{k}}: {{v}} for {{k}}, {{v}} in {{d}}.items() if isinstance({{v}}, {{kind}})}}"
    read = f"{{d}}.update(zip({name}, torch.hstack(tuple({name}.values())){FLATTENED}))"
    draft.insert_before(
        loop,
        f"{picked}\n{indent}if {name}:\n{indent}    {read}",
        d=over["d"],
        k=loop.target.elts[0],
        v=value,
        kind=found["kind"],
    )
    draft.remove(asked)
    text = function.file.text(over["d"])
    changes = (
        f"the tensors of {text} must have one dtype and one element in at most one dimension, and live on one device"
    )
    return draft.fix("read all tensors at once", Safety.UNSAFE, changes, f"{text} then holds numbers")
