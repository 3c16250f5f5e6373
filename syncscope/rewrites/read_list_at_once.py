"""`[t.item() for t in tensors]` reads them all at once."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.mixed import asked_for_kinds
from syncscope.codemod.pattern import seen
from syncscope.codemod.patterns.joined import all_at_once
from syncscope.codemod.patterns.reads import tensor_read
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

        def bounds(x: torch.Tensor):
            least, most = x.amin(), x.amax()
            low, high = [t.item() for t in (least, most)]  # !
            return high - low
        """,
        """
        import torch

        def bounds(x: torch.Tensor):
            least, most = x.amin(), x.amax()
            low, high = torch.stack((least, most)).tolist()
            return high - low
        """,
        Safety.UNSAFE,
        "x: finite[n + 1]",
    ),
    Example(
        """
        import torch

        def losses(x: torch.Tensor):
            parts = {"error": x.square().mean(), "size": x.abs().mean()}
            every = [part.item() for part in parts.values()]  # !
            return every
        """,
        """
        import torch

        def losses(x: torch.Tensor):
            parts = {"error": x.square().mean(), "size": x.abs().mean()}
            every = torch.stack(tuple(parts.values())).tolist()
            return every
        """,
        Safety.UNSAFE,
        "x: finite[n + 1]",
    ),
    Example(
        """
        import torch

        def total(x: torch.Tensor):
            parts = [x.square().mean(), x.abs().mean()]
            return tuple(part.item() for part in parts)  # !
        """,
        """
        import torch

        def total(x: torch.Tensor):
            parts = [x.square().mean(), x.abs().mean()]
            return tuple(torch.stack(tuple(parts)).tolist())
        """,
        Safety.UNSAFE,
        "x: finite[n + 1]",
    ),
    Example(
        """
        import torch

        def overflows(per_device_found_inf: dict[str, torch.Tensor], scales: dict[torch.device, torch.Tensor]):
            found = sum(v.item() for v in per_device_found_inf.values())  # !
            return found, [v.item() for v in scales.values()]  # !
        """,
    ),
    Example(
        """
        import torch

        def rows(x: torch.Tensor):
            return [row.item() for row in x.exp().split(1)]  # !
        """,
        """
        import torch

        def rows(x: torch.Tensor):
            return torch.hstack(tuple(x.exp().split(1))).flatten().tolist()
        """,
        Safety.UNSAFE,
        "x: finite[n + 1, 1]",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    loop, tensor = function.parent(site.node), tensor_read(function, site.node)
    found = seen(function, loop, "[{read} for {t:name} in {all}]", "({read} for {t:name} in {all})")
    if found is None or tensor is None or not function.same_name(tensor, found["t"]) or not isinstance(loop, ast.expr):
        return None
    if cannot_be_joined(function, found["all"]) or asked_for_kinds(function, found["all"]):
        return None
    ndim = function.fact(tensor).ndim
    if ndim is not None and ndim > 1:
        return None
    draft = Draft(function)
    join, read_all, changes = all_at_once(ndim)
    parts: dict[str, ast.expr] = {"all": found["all"]}
    given = "tuple({all})"
    if isinstance(found["all"], (ast.Tuple, ast.List)) and len(found["all"].elts) > 1:
        parts = {f"t{n}": each for n, each in enumerate(found["all"].elts)}
        given = f"({', '.join(f'{{{each}}}' for each in parts)})"
    draft.replace(loop, f"{join}({given}){read_all}", **parts)
    return draft.fix("read all at once", Safety.UNSAFE, changes)
