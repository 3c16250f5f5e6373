"""A bool tensor on the device as an index: `x[mask]`.

Why it waits
------------
The result has a row for each true element of the mask. The host must know how many there are to make it, so it waits until
the device has computed the mask and everything before it.

Fix safety
----------
Most selections end in a reduction, and that can be computed over everything with a neutral value where the mask is false.
What differs is said with each fix: a sum taken in another order differs in its last bits; an empty selection gives NaN from
`mean` as before, but -inf from `max` instead of an error; what is left out must be finite, or gradients become NaN where
indexing gave zero. `any` and `all` are safe. A loss with `ignore_index` is the same loss. Where one mask serves several
times it is enough to look for its true elements once: safe where all shapes are known to fit. The fixed shape does the work
of all rows: if a mask keeps very few and the work is heavy, one wait may be cheaper.
"""

from __future__ import annotations

import ast

from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety
from syncscope.rules import Example, Family, Function, Severity, View
from syncscope.rules._class_columns import all_columns
from syncscope.rules._hardest import hardest
from syncscope.rules._masked_loss import cross_entropy, per_element
from syncscope.rules._masked_reduction import indexed_once, reduced, supposed
from syncscope.rules._masked_write import chosen, one_column
from syncscope.rules._positions import selected

FAMILY = Family.SHAPE
SEVERITY = Severity.WARNING
OPS = ("mask_read",)
SEEN_AS = ("aten::index", "aten::nonzero")
EXAMPLES = (
    Example(
        """
        import torch
        import torch.nn.functional as F

        IGNORE = -1

        def loss(logits: torch.Tensor, target: torch.LongTensor):
            keep = target != IGNORE
            return F.cross_entropy(logits[keep], target[keep])  # !
        """,
        """
        import torch
        import torch.nn.functional as F

        IGNORE = -1

        def loss(logits: torch.Tensor, target: torch.LongTensor):
            return F.cross_entropy(logits.flatten(0, -2), target.flatten(), ignore_index=IGNORE)
        """,
        Safety.UNSAFE,
        "logits: finite[n, 4]; target: label[n] < 4",
    ),
    Example(
        """
        import torch
        from torch import nn

        def loss(logits: torch.Tensor, target: torch.LongTensor):
            keep = target != -1
            scores = logits.permute(0, 2, 3, 1)
            chosen = keep.unsqueeze(-1).expand_as(scores)
            return nn.CrossEntropyLoss()(scores[chosen].view(-1, 4), target[keep])  # !
        """,
        """
        import torch
        from torch import nn

        def loss(logits: torch.Tensor, target: torch.LongTensor):
            return nn.CrossEntropyLoss(ignore_index=-1)(logits, target)
        """,
        Safety.UNSAFE,
        "logits: finite[n, 4, h, w]; target: label[n, h, w] < 4",
    ),
    Example(
        """
        import torch
        import torch.nn.functional as F

        def loss(logits: torch.Tensor, target: torch.LongTensor):
            good = (target > 0) & (target < 3)
            return F.cross_entropy(
                logits[good],  # !
                target[good],  # !
                reduction="sum",
            )
        """,
        """
        import torch
        import torch.nn.functional as F

        def loss(logits: torch.Tensor, target: torch.LongTensor):
            good = (target > 0) & (target < 3)
            return F.cross_entropy(
                logits.flatten(0, -2),
                torch.where(good, target, -100).flatten(),
                reduction="sum",
                ignore_index=-100,
            )
        """,
        Safety.UNSAFE,
        "logits: finite[n, 4]; target: label[n] < 4",
    ),
    Example(
        """
        import torch

        def loss(error: torch.Tensor):
            large = error > 1
            return error[large].mean()  # !
        """,
        """
        import torch

        def loss(error: torch.Tensor):
            large = error > 1
            return torch.where(large, error, 0.0).sum() / large.sum()
        """,
        Safety.UNSAFE,
        "error: float[n, m]",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            x = x.flatten()
            y = x.sigmoid()
            good = x > 0
            return x[good] + y[good]  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor):
            x = x.flatten()
            y = x.sigmoid()
            good = x > 0
            good_index = good.nonzero(as_tuple=True)
            return x[good_index] + y[good_index]
        """,
        Safety.SAFE,
        "x: float[...]",
    ),
    Example(
        """
        import torch

        def loss(error: torch.Tensor):
            error = error.square()
            large = error[error > 1]  # !
            rest = error.mean()
            return rest + large.sum()
        """,
        """
        import torch

        def loss(error: torch.Tensor):
            error = error.square()
            rest = error.mean()
            return rest + torch.where(error > 1, error, 0).sum()
        """,
        Safety.UNSAFE,
        "error: finite[n, m]",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            d = x.abs()
            good = ~torch.isnan(d)
            return d[good].mean() if d[good].numel() > 0 else 0.0  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor):
            d = x.abs()
            good = ~torch.isnan(d)
            return torch.where(good, d, 0.0).sum() / good.sum().clamp(min=1)
        """,
        Safety.UNSAFE,
        "x: float[n, m]",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            good = x > 0
            near = x < 1
            return near[good].any(), near[good].all()  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor):
            good = x > 0
            near = x < 1
            return (near & good).any(), (near | ~good).all()
        """,
        Safety.SAFE,
        "x: float[...]",
    ),
    Example(
        """
        import torch

        def accuracy(label: torch.LongTensor):
            best = label.clone().relu()
            known = label != -1
            return (best[known] == label[known]).sum() / known.sum()  # !
        """,
        """
        import torch

        def accuracy(label: torch.LongTensor):
            best = label.clone().relu()
            known = label != -1
            return torch.where(known, best == label, 0).sum() / known.sum()
        """,
        Safety.SAFE,
        "label: label[...]",
    ),
    Example(
        """
        import torch

        def loss(x: torch.Tensor):
            near = x.detach().round()
            known = x > 0
            return ((x[known] - near[known]) * 2).abs().mean()  # !
        """,
        """
        import torch

        def loss(x: torch.Tensor):
            near = x.detach().round()
            known = x > 0
            return torch.where(known, ((x - near) * 2).abs(), 0.0).sum() / known.sum()
        """,
        Safety.UNSAFE,
        "x: finite[n, m]",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor, y: torch.Tensor):
            good = x > 0
            return x[good] - y[good] * x[good].sigmoid()  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor, y: torch.Tensor):
            good = x > 0
            good_index = good.nonzero(as_tuple=True)
            return x[good_index] - y[good_index] * x[good_index].sigmoid()
        """,
        Safety.UNSAFE,
        "x: finite[n, m]; y: finite[n, m]",
    ),
    Example(
        """
        import torch

        def loss(scores: torch.Tensor, label: torch.LongTensor):
            goal = torch.zeros_like(scores)
            found = label >= 0
            goal[found, label[found]] = 1.0  # !
            return goal
        """,
        """
        import torch

        def loss(scores: torch.Tensor, label: torch.LongTensor):
            goal = torch.zeros_like(scores)
            found = label >= 0
            goal.masked_fill_(found[:, None] & (label[:, None] == torch.arange(goal.shape[1], device=goal.device)), 1.0)
            return goal
        """,
        Safety.UNSAFE,
        "scores: finite[n, 4]; label: label[n] < 4",
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

        def loss(guess: torch.Tensor, depth: torch.Tensor):
            known = depth > 0
            return torch.mean(torch.abs(guess[known] - depth[known]))  # !
        """,
        """
        import torch

        def loss(guess: torch.Tensor, depth: torch.Tensor):
            known = depth > 0
            return torch.where(known, torch.abs(guess - depth), 0.0).sum() / known.sum()
        """,
        Safety.UNSAFE,
        "guess: finite[n, m]; depth: finite[n, m]",
    ),
    Example(
        """
        import torch

        def loss(depth: torch.Tensor):
            error = depth.square() - 1
            error = error[depth > 0]  # !
            return error.abs().mean()
        """,
        """
        import torch

        def loss(depth: torch.Tensor):
            error = depth.square() - 1
            return torch.where(depth > 0, error.abs(), 0.0).sum() / (depth > 0).sum()
        """,
        Safety.UNSAFE,
        "depth: finite[n, m]",
    ),
    Example(
        """
        import torch

        def loss(error: torch.Tensor, label: torch.LongTensor):
            error = torch.where(label > 0, error, error.sigmoid()).flatten()
            negative = error < 0.7
            count = negative.sum() // 2
            hard, _ = error[negative].topk(count)  # !
            return hard.sum()
        """,
        """
        import torch

        def loss(error: torch.Tensor, label: torch.LongTensor):
            error = torch.where(label > 0, error, error.sigmoid()).flatten()
            negative = error < 0.7
            count = negative.sum() // 2
            hard = error.masked_fill(~negative, float("-inf")).flatten().sort(descending=True).values
            return torch.where(torch.arange(hard.shape[-1], device=hard.device) < count, hard, 0).sum()
        """,
        Safety.UNSAFE,
        "error: normal[n, m]; label: label[n, m]",
    ),
    Example(
        """
        import torch
        from torch import nn

        class Tagger(nn.Module):
            def __init__(self):
                super().__init__()
                self.criterion = nn.CrossEntropyLoss()

            def loss(self, logits: torch.Tensor, labels: torch.LongTensor):
                active = labels.view(-1) != -100
                return self.criterion(logits.view(-1, 4)[active], labels.view(-1)[active])  # !
        """,
        """
        import torch
        from torch import nn

        class Tagger(nn.Module):
            def __init__(self):
                super().__init__()
                self.criterion = nn.CrossEntropyLoss()

            def loss(self, logits: torch.Tensor, labels: torch.LongTensor):
                return self.criterion(logits.view(-1, 4), labels.view(-1))
        """,
        Safety.UNSAFE,
    ),
    Example(
        """
        import torch

        def loss(error: torch.Tensor, label: torch.LongTensor):
            kept = label > 0
            return error[kept].mean() if kept.any() else error.sum() * 0  # !
        """,
        """
        import torch

        def loss(error: torch.Tensor, label: torch.LongTensor):
            kept = label > 0
            return torch.where(kept, error, 0.0).sum() / kept.sum().clamp(min=1)
        """,
        Safety.SUGGEST,
        "error: finite[n, m]; label: label[n, m]",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            x = x.flatten()
            _, best = x.topk(3)
            chosen = torch.zeros_like(x, dtype=torch.bool)
            chosen[best] = True
            return x[chosen] * 2  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor):
            x = x.flatten()
            _, best = x.topk(3)
            chosen = torch.zeros_like(x, dtype=torch.bool)
            chosen[best] = True
            return x[torch.nonzero_static(chosen, size=3)[:, 0]] * 2
        """,
        Safety.SUGGEST,
        "x: finite[3 + n]",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            x = x.float()
            return x[~torch.isnan(x)].max()  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor):
            x = x.float()
            return x.masked_fill(~(~torch.isnan(x)), float("-inf")).max()
        """,
        Safety.UNSAFE,
        "x: holes[n, m]",
    ),
)


def message(site: Site, view: View) -> str | None:
    mask, taken = view.quote(site.operand), view.quote(site.node)
    return f"{mask} is a bool tensor on the device: {taken} waits to learn how many rows it keeps"


def rewrite(site: Site, function: Function) -> Fix | None:
    if site.sure < 2:  # a guess is no ground to change code on
        return None
    return (
        alone(site, function)
        or selected(site, function)
        or indexed_once(site, function, with_own_fix(function))
        or supposed(site, function)
    )


def alone(site: Site, function: Function) -> Fix | None:
    """The fix that needs no other site."""
    taken = site.node
    if not isinstance(taken, ast.Subscript) or not isinstance(taken.ctx, ast.Load):
        return None
    return (
        cross_entropy(site, function)
        or per_element(site, function)
        or reduced(site, function, taken.value, taken.slice)
        or chosen(site, function)
        or one_column(site, function)
        or all_columns(site, function)
        or hardest(site, function)
    )


def with_own_fix(function: Function) -> frozenset[int]:
    """The selections of a function that become something better than an index."""
    if function.mended is None:
        function.mended = frozenset(own_fixes(function))
    return function.mended


def own_fixes(function: Function) -> set[int]:
    """As `with_own_fix`, worked out."""
    found = {id(s.node) for s in function.sites if s.op == "mask_read" and alone(s, function) is not None}
    writes = (s for s in function.sites if s.op == "mask_write")
    return found | {
        id(s.node) for s in writes if chosen(s, function) or one_column(s, function) or all_columns(s, function)
    }
