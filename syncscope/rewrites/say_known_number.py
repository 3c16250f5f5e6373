"""`nonzero(m)` of a mask that is known to have k true elements as `torch.nonzero_static(m, size=k)`."""

from __future__ import annotations

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.known_counts import counted_beforehand, said_of
from syncscope.codemod.patterns.positions import lookup, positions
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            x = x.flatten()
            best = torch.zeros_like(x, dtype=torch.bool)
            best.scatter_(0, x.topk(3).indices, True)
            return x[best.nonzero().squeeze(1)] * 2  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor):
            x = x.flatten()
            best = torch.zeros_like(x, dtype=torch.bool)
            best.scatter_(0, x.topk(3).indices, True)
            return x[torch.nonzero_static(best, size=3).squeeze(1)] * 2
        """,
        Safety.SUGGEST,
        "x: finite[3 + n]",
    ),
    Example(
        """
        import torch
        import torch.nn.functional as F

        def forward(x: torch.Tensor, label: torch.LongTensor):
            rows, columns = F.one_hot(label, 4).nonzero(as_tuple=True)  # !
            return x[rows, columns] + 1
        """,
        """
        import torch
        import torch.nn.functional as F

        def forward(x: torch.Tensor, label: torch.LongTensor):
            rows, columns = torch.nonzero_static(F.one_hot(label, 4), size=label.numel()).unbind(1)
            return x[rows, columns] + 1
        """,
        Safety.SUGGEST,
        "x: finite[n, 4]; label: index[n] < 4",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    found = lookup(site, function)
    if found is None:
        return None
    call, op, tupled = found
    counted = counted_beforehand(site, function, op.base)
    if counted is None or op.args or op.keywords.keys() - {"as_tuple"}:
        return None
    size, known = counted
    row = positions(function, call, tupled) if tupled else None
    draft = Draft(function)
    number = draft.part("{n}.numel()", n=size) if size is known else draft.node(size)
    static = draft.part("torch.nonzero_static({m}, size={k})", m=op.base, k=number)
    if tupled:
        draft.replace(row or call, "{s}[:, 0]" if row is not None else "{s}.unbind(1)", s=static)
    else:
        draft.replace(call, "{s}", s=static)
    return draft.fix("say how many there are", Safety.SUGGEST, said_of(function, size, known))
