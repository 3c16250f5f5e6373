"""`rows = nonzero(m).squeeze(1)` that serve for counts and sums only: `x[rows].sum() / len(rows)` with the mask itself.

It waits for code like mmdet's `ssd_head.py`, whose rows serve a count and sums; most that are looked for are needed as such.
"""

from __future__ import annotations

import ast
import re

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.pattern import around
from syncscope.codemod.patterns.lengths import length, number_of_elements
from syncscope.codemod.patterns.losses import enclosing_loss
from syncscope.codemod.patterns.positions import Rows, lookup, rows_of
from syncscope.codemod.writes import disturbed
from syncscope.model.example import Example
from syncscope.model.fact import Dtype, Site
from syncscope.model.finding import Adds, Fix, Safety
from syncscope.rewrites.sum_losses_by_mask import PER_ELEMENT, for_all, total_of

OF_ROWS = re.compile(r"_?(inds?|idxs?|index|indexes|indices|ids|rows|positions)$")
TOTALS = {"sum": "torch.where({m}, {x}, 0).sum()", "mean": "torch.where({m}, {x}, 0.0).sum() / {m}.sum()"}
ROWS = ("the sums may differ in their last bits", "what was counted is a tensor that stays on the device")
ADDS = Adds.ROWS
ROUNDS = True
EXAMPLES = (
    Example(
        """
        import torch

        def loss(error: torch.Tensor, label: torch.LongTensor):
            error, label = error.flatten(), label.flatten()
            rows = torch.nonzero(label > 0).squeeze(1)  # !
            total = error[rows].sum() / (rows.numel() + 1)
            return total, error[rows].mean()
        """,
        """
        import torch

        def loss(error: torch.Tensor, label: torch.LongTensor):
            error, label = error.flatten(), label.flatten()
            rows_mask = label > 0
            total = torch.where(rows_mask, error, 0).sum() / (rows_mask.sum() + 1)
            return total, torch.where(rows_mask, error, 0.0).sum() / rows_mask.sum()
        """,
        Safety.UNSAFE,
        "error: finite[n, m]; label: label[n, m]",
    ),
    Example(
        """
        import torch
        import torch.nn.functional as F

        def loss(guess: torch.Tensor, wanted: torch.Tensor, label: torch.LongTensor):
            rows = ((label >= 0) & (label < 3)).nonzero().reshape(-1)  # !
            count = len(rows)
            return F.l1_loss(guess[rows], wanted[rows], reduction="sum") / (count + 1)
        """,
        """
        import torch
        import torch.nn.functional as F

        def loss(guess: torch.Tensor, wanted: torch.Tensor, label: torch.LongTensor):
            rows_mask = (label >= 0) & (label < 3)
            count = rows_mask.sum()
            return torch.where(rows_mask, F.l1_loss(guess, wanted, reduction="none"), 0.0).sum() / (count + 1)
        """,
        Safety.SUGGEST,
        "guess: finite[n]; wanted: finite[n]; label: label[n]",
    ),
)


class Unrowed:
    """A name of rows that becomes the name of their mask."""

    def __init__(self, function: Function, draft: Draft, rows: Rows) -> None:
        self.function, self.draft, self.rows = function, draft, rows
        self.mask = ""  # what it is called
        self.losses: list[ast.Call] = []  # those that were written with it
        self.selected: list[ast.expr] = []  # the tensors that were selected from: they have the mask's shape

    def of_all(self) -> bool:
        """Write the mask down in the place of the rows, and each use with the mask; False where a use does not serve."""
        function, rows, mask = self.function, self.rows, self.rows.mask
        uses = function.seen_by(rows.statement)
        if not uses or not function.alone(rows.statement) or not function.pure(mask) or rows.tupled:
            return False
        if isinstance(mask, ast.Name) and not any(disturbed(function, mask.id, rows.statement, u) for u in uses):
            self.mask = mask.id
            self.draft.remove(rows.statement)
        else:
            self.mask = function.fresh(f"{OF_ROWS.sub('', rows.name) or rows.name}_mask")
            self.draft.replace(rows.statement, f"{self.mask} = {{m}}", m=mask)
        return all(map(self.used, uses))

    def used(self, use: ast.Name) -> bool:
        """Write one use with the mask: a count, a sum over what is selected, or a loss of its elements; whether it is one."""
        count = length(self.function, use) or number_of_elements(self.function, use)
        if count is not None:
            self.draft.replace(count, f"{self.mask}.sum()")
            return not decides(self.function, count)
        return self.lost(use) or self.totalled(use)

    def lost(self, use: ast.Name) -> bool:
        """Write `mse_loss(x[rows], t[rows])` with the mask, if the use is in one; whether it is. The first does it for both."""
        loss = enclosing_loss(self.function, self.function.parent(use) or use, PER_ELEMENT)
        template = total_of(loss) if loss is not None else None
        if loss is None or template is None:
            return False
        if loss.call not in self.losses:
            made = for_all(self.function, self.draft, loss, use)
            if made is None:
                return False
            self.draft.replace(loss.call, template, m=self.mask, each=made[0])
            self.losses.append(loss.call)
            self.selected += made[1]
        return True

    def totalled(self, use: ast.Name) -> bool:
        """Write `x[rows].sum()` with the mask, if the use is in one; whether it is."""
        for name, template in TOTALS.items():
            total = around(self.function, use, f"{{x}}[{{it}}].{name}()")
            if total is None:
                continue
            x = total.parts["x"]
            if self.function.fact(x).dtype not in (Dtype.FLOAT, Dtype.UNKNOWN) or not self.function.pure(x):
                return False
            self.draft.replace(total.node, template, m=self.mask, x=x)
            self.selected.append(x)
            return True
        return False

    def supposed(self) -> str:
        """What must hold though it is not proved; nothing where all is."""
        function = self.function
        unfit = [x for x in self.selected if function.fact(x).ndim != 1]
        if not unfit and function.fact(self.rows.mask).ndim == 1:
            return ""
        texts = [*dict.fromkeys(map(function.file.text, unfit))]
        return f"{', '.join(texts)}{' and ' * bool(texts)}the masks must have one dimension"


def decides(function: Function, count: ast.expr) -> bool:
    """Whether a number is asked for by a condition: as a tensor it would be waited for there."""
    child: ast.AST = count
    for n in function.around(count):
        if isinstance(n, (ast.If, ast.While, ast.IfExp, ast.Assert)):
            return n.test is child
        if isinstance(n, ast.stmt):
            return False
        child = n
    return False


def rewrite(site: Site, function: Function) -> Fix | None:
    if lookup(site, function) is None:
        return None
    statement = function.statement(site.node)
    uses = function.seen_by(statement) if isinstance(statement, ast.Assign) else []
    rows = rows_of(function, uses[0]) if uses else None
    if rows is None or rows.call is not site.node:
        return None
    draft = Draft(function)
    gone = Unrowed(function, draft, rows)
    if not gone.of_all() or not gone.selected:
        return None
    title = "use the mask, not the positions"
    if unfit := gone.supposed():
        return draft.fix(title, Safety.SUGGEST, unfit, *ROWS)
    return draft.fix(title, Safety.UNSAFE, *ROWS)
