"""Losses of single elements over what a mask selects, `mse_loss(x[m], t[m])`: computed for all, and the mask's summed up."""

from __future__ import annotations

from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety
from syncscope.rules import Example
from syncscope.rules._function import Function
from syncscope.rules._guards import guard_of, nothing
from syncscope.rules._loss_calls import enclosing_loss, reduction, selection, setting
from syncscope.rules._proofs import same_rank

PER_ELEMENT = {
    "torch.nn.functional.mse_loss", "torch.nn.functional.l1_loss", "torch.nn.functional.smooth_l1_loss",
    "torch.nn.functional.huber_loss", "torch.nn.functional.binary_cross_entropy_with_logits",
}  # fmt: skip  # fmt: skip
EXAMPLES = (
    Example(
        """
        import torch
        import torch.nn.functional as F

        def loss(x: torch.Tensor):
            near = x.detach().round()
            good = x > 0
            return F.mse_loss(x[good], near[good])  # !
        """,
        """
        import torch
        import torch.nn.functional as F

        def loss(x: torch.Tensor):
            near = x.detach().round()
            good = x > 0
            return torch.where(good, F.mse_loss(x, near, reduction="none"), 0.0).sum() / good.sum()
        """,
        Safety.UNSAFE,
        "x: finite[n, m]",
    ),
)


def per_element(site: Site, function: Function) -> Fix | None:
    """`mse_loss(x[m], t[m])` over everything, then only what the mask keeps."""
    loss = enclosing_loss(site.node, function, PER_ELEMENT)
    how = reduction(loss) if loss is not None else None
    if loss is None or how not in ("mean", "sum") or loss.settings is not loss.call or setting(loss, "weight"):
        return None
    x, t = selection(loss.input, site, function), selection(loss.target, site, function)
    if x is None or t is None or x.gone or t.gone or not function.same(x.mask, t.mask) or not function.pure(x.mask):
        return None
    if not same_rank(site, function, x.mask, x.base) or not same_rank(site, function, t.mask, t.base):
        return None
    draft = function.draft()
    each = draft.call(loss.call, {loss.input: x.base, loss.target: t.base}, reduction='"none"')
    template = "torch.where({m}, {each}, 0.0).sum()" + (" / {m}.sum()" if how == "mean" else "")
    changes = "the sum may differ in its last bits, and what is left out must be finite or its gradient is NaN"
    guard = guard_of(function, loss.call, x.mask, [loss.input, loss.target])
    if guard is not None and nothing(function, guard.other):
        template = guard.head + template + (".clamp(min=1)" if how == "mean" else "")
        changes = f"{changes}; where nothing is selected it is a zero tensor, no Python number"
        draft.replace(guard.node, template, m=x.mask, each=each)
    else:
        draft.replace(loss.call, template, m=x.mask, each=each)
    return draft.fix("compute all, keep what the mask selects", Safety.UNSAFE, changes)
