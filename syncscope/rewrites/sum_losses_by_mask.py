"""`mse_loss(x[m], t[m])` as the loss of every element, of which those that the mask keeps are summed up.

It waits for code like PyG's `graphland.py`, `F.mse_loss(outputs[mask], data.y[mask])`, with a mask of known shape.
"""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.bounds import bounded
from syncscope.codemod.patterns.guards import guard_of, nothing
from syncscope.codemod.patterns.losses import Loss, enclosing_loss, reduction, setting
from syncscope.codemod.patterns.reductions import finite
from syncscope.codemod.proofs import is_mask, pointwise, same_rank
from syncscope.codemod.templates import Part
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Adds, Fix, Safety

PER_ELEMENT = {
    "torch.nn.functional.mse_loss", "torch.nn.functional.l1_loss", "torch.nn.functional.smooth_l1_loss",
    "torch.nn.functional.huber_loss", "torch.nn.functional.binary_cross_entropy_with_logits",
}  # fmt: skip
MODULES = {  # and what of it makes the same loss of each element
    f"torch.nn.{name}": (function, settings)
    for name, function, settings in (
        ("MSELoss", "mse_loss", ()), ("L1Loss", "l1_loss", ()), ("SmoothL1Loss", "smooth_l1_loss", ("beta",)),
        ("HuberLoss", "huber_loss", ("delta",)), ("BCEWithLogitsLoss", "binary_cross_entropy_with_logits", ()),
    )
}  # fmt: skip
CHANGES = "the sum may differ in its last bits, and what is left out must be finite or its gradient is NaN"
COMPILES = True
ADDS = Adds.ROWS
ROUNDS = True
EXAMPLES = (
    Example(
        """
        import torch
        import torch.nn.functional as F

        def loss(scores: torch.Tensor, label: torch.LongTensor):
            valid = label >= 0
            total = F.mse_loss(scores[valid], label[valid].to(torch.float32), reduction="sum")  # !
            return total / 256
        """,
        """
        import torch
        import torch.nn.functional as F

        def loss(scores: torch.Tensor, label: torch.LongTensor):
            valid = label >= 0
            total = torch.where(valid, F.mse_loss(scores, label.to(torch.float32), reduction="none"), 0.0).sum()
            return total / 256
        """,
        Safety.UNSAFE,
        "scores: finite[n, m]; label: label[n, m] < 2",
    ),
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
    Example(
        """
        import torch
        from torch import nn

        class Depth(nn.Module):
            def __init__(self):
                super().__init__()
                self.criterion = nn.SmoothL1Loss(beta=0.5)

            def loss(self, guess: torch.Tensor, depth):
                known = depth > 0
                return self.criterion(guess[known], depth[known])  # !
        """,
        """
        import torch
        import torch.nn.functional as F
        from torch import nn

        class Depth(nn.Module):
            def __init__(self):
                super().__init__()
                self.criterion = nn.SmoothL1Loss(beta=0.5)

            def loss(self, guess: torch.Tensor, depth):
                known = depth > 0
                return torch.where(known, F.smooth_l1_loss(guess, depth, beta=0.5, reduction="none"), 0.0).sum() / known.sum()
        """,
        Safety.UNSAFE,
        "guess: finite[n, m]; depth: finite[n, m]",
    ),
    Example(
        """
        import torch
        import torch.nn.functional as F

        def loss(guess: torch.Tensor, truth: torch.Tensor):
            known = ~torch.isnan(truth)
            return F.mse_loss(guess[known], truth[known])  # !
        """,
        """
        import torch
        import torch.nn.functional as F

        def loss(guess: torch.Tensor, truth: torch.Tensor):
            known = ~torch.isnan(truth)
            return (
                torch.where(known, F.mse_loss(guess, torch.where(known, truth, 0.0), reduction="none"), 0.0).sum() / known.sum()
            )
        """,
        Safety.UNSAFE,
        "guess: finite[n, m]; truth: holes[n, m]",
    ),
    Example(
        """
        import torch
        import torch.nn.functional as F

        def loss(guess: torch.Tensor, depth: torch.Tensor):
            known = depth > 0
            return F.mse_loss(guess[known], depth[known].log())  # !
        """,
        """
        import torch
        import torch.nn.functional as F

        def loss(guess: torch.Tensor, depth: torch.Tensor):
            known = depth > 0
            return (
                torch.where(known, F.mse_loss(guess, torch.where(known, depth, 1).log(), reduction="none"), 0.0).sum()
                / known.sum()
            )
        """,
        Safety.UNSAFE,
        "guess: finite[n, m]; depth: finite[n, m]",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    loss, mask = enclosing_loss(function, site.node, PER_ELEMENT | MODULES.keys()), getattr(site.node, "slice", None)
    template = total_of(loss) if loss is not None else None
    if loss is None or template is None or not isinstance(mask, ast.expr) or not is_mask(site.fact_of(mask)):
        return None
    draft = Draft(function)
    made = for_all(function, draft, loss, mask)
    if made is None or not function.pure(mask) or not any(same_rank(site, function, mask, b) for b in made[1]):
        return None
    guard = guard_of(function, loss.call, mask, [loss.input, loss.target])
    zero = ""
    if guard is not None and nothing(function, guard.other):
        template = guard.head + template + (".clamp(min=1)" if template.endswith("{m}.sum()") else "")
        zero = "where nothing is selected it is a zero tensor, no Python number"
        draft.replace(guard.node, template, m=mask, each=made[0])
    else:
        draft.replace(loss.call, template, m=mask, each=made[0])
    return draft.fix("compute all, keep what the mask selects", Safety.UNSAFE, CHANGES, zero)


def total_of(loss: Loss) -> str | None:
    """The sum or mean of what a mask {m} keeps of {each}; None where the loss is not reduced to that."""
    how, known = reduction(loss), {"reduction", *MODULES.get(loss.name, ("", ()))[1]}
    if how not in ("mean", "sum") or setting(loss, "weight") is not None:
        return None
    if loss.settings is not loss.call and not {k.arg for k in loss.settings.keywords} <= known:
        return None  # weights of classes, which are as many as one of the selected rows has elements
    return "torch.where({m}, {each}, 0.0).sum()" + (" / {m}.sum()" if how == "mean" else "")


def for_all(function: Function, draft: Draft, loss: Loss, selector: ast.expr) -> tuple[Part, list[ast.expr]] | None:
    """The loss of each element, and the tensors that are selected from; None where an argument is made of anything else."""
    bases: list[ast.expr] = []
    instead: dict[ast.expr, Part] = {}
    for argument in (loss.input, loss.target):
        found: list[ast.expr] = []
        if not pointwise(function, argument, selector, None, found) or not found:
            return None
        bases += found
        taken = [n for n in ast.walk(argument) if isinstance(n, ast.Subscript) and function.same(n.slice, selector)]
        guarded = bounded(function, argument, taken)
        whole: dict[ast.expr, Part] = {
            n: finite(function, draft, selector, n.value, guarded=n in guarded) for n in taken
        }
        instead[argument] = whole[taken[0]] if taken == [argument] else draft.swapped(argument, whole)
    if loss.settings is loss.call:
        return draft.call(loss.call, instead, reduction='"none"'), bases
    name, settings = MODULES[loss.name]
    kept: dict[str, Part] = {word: value for word in settings if (value := setting(loss, word)) is not None}
    if not all(function.pure(value) for value in kept.values() if isinstance(value, ast.expr)):
        return None
    said = "".join(f", {word}={{{word}}}" for word in kept)
    template = f'F.{name}({{x}}, {{t}}{said}, reduction="none")'
    return draft.part(template, x=instead[loss.input], t=instead[loss.target], **kept), bases
