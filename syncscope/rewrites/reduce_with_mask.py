"""A reduction of what a mask selects, `x[m].sum()`, over all of x, with what is left out neutral."""

from __future__ import annotations

import ast

from syncscope.codemod.function import Function
from syncscope.codemod.patterns.over_all import reduced
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Adds, Fix, Safety

COMPILES = True
ADDS = Adds.ROWS
TOGETHER = True
ROUNDS = True
EXAMPLES = (
    Example(
        """
        import torch

        def spread(x: torch.Tensor):
            x = x.float()
            known = x[~torch.isnan(x)]  # !
            mean = known.mean() if known.numel() > 0 else x.new_zeros(())
            worst = known.max() if known.numel() > 0 else x.new_zeros(())
            return mean, worst, len(known)
        """,
        """
        import torch

        def spread(x: torch.Tensor):
            x = x.float()
            known_mask = ~torch.isnan(x)
            mean = torch.where(known_mask, x, 0.0).sum() / known_mask.sum().clamp(min=1)
            worst = torch.where(known_mask.any(), x.masked_fill(~known_mask, float("-inf")).max(), x.new_zeros(()))
            return mean, worst, known_mask.sum()
        """,
        Safety.UNSAFE,
        "x: holes[n + 1]",
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
            error_mask = depth > 0
            return torch.where(error_mask, error.abs(), 0.0).sum() / error_mask.sum()
        """,
        Safety.UNSAFE,
        "depth: finite[n, m]",
    ),
    Example(
        """
        import torch

        def loss(x: torch.Tensor):
            error = torch.mean(x[x > 1.0])  # !
            return error
        """,
        """
        import torch

        def loss(x: torch.Tensor):
            kept = x > 1.0
            error = torch.where(kept, x, 0.0).sum() / kept.sum()
            return error
        """,
        Safety.UNSAFE,
        "x: finite[n, m]",
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
            return x.masked_fill(torch.isnan(x), float("-inf")).max()
        """,
        Safety.UNSAFE,
        "x: holes[n, m]",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    taken = site.node
    if isinstance(taken, ast.Subscript) and isinstance(taken.ctx, ast.Load):
        return reduced(site, function, taken.value, taken.slice)
    return None
