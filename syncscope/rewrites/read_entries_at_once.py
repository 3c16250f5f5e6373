"""`for k, t in d.items(): read[k] = t.item()` reads them all at once."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.reads import TOGETHER, tensor_read
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

EXAMPLES = (
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


def rewrite(site: Site, function: Function) -> Fix | None:
    tensor, assign, loop = tensor_read(function, site.node), function.parent(site.node), function.loop(site.node)
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
    draft = Draft(function)
    all_read = "{r}.update(zip({d}, torch.stack(tuple({d}.values())).tolist()))"
    draft.replace(loop, all_read, r=target.value, d=items.func.value)
    return draft.fix("read all at once", Safety.UNSAFE, f"{target.value.id} must be a dict; {TOGETHER}")
