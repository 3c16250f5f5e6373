"""`one_hot(y)` with the `num_classes` that the code around knows.

It waits for code like torch_geometric's `label_prop.py`, `one_hot(y.view(-1))`, where the classes are known around it.
"""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.pattern import seen
from syncscope.codemod.patterns.positions import part_of
from syncscope.codemod.templates import Part
from syncscope.codemod.writes import disturbed
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

NAMES = {"num_classes", "n_classes", "num_class", "nclass", "num_labels", "n_class"}
COMPILES = True
EXAMPLES = (
    Example(
        """
        import torch
        import torch.nn.functional as F

        def forward(scores: torch.Tensor, label: torch.LongTensor):
            _, best = scores.max(dim=1)
            near = F.one_hot(label.clamp(0, 3)).sum()  # !
            return F.one_hot(best).sum(), near, F.one_hot(label % 4).sum()  # !
        """,
        """
        import torch
        import torch.nn.functional as F

        def forward(scores: torch.Tensor, label: torch.LongTensor):
            _, best = scores.max(dim=1)
            near = F.one_hot(label.clamp(0, 3), num_classes=4).sum()
            return F.one_hot(best, num_classes=scores.shape[1]).sum(), near, F.one_hot(label % 4, num_classes=4).sum()
        """,
        Safety.UNSAFE,
        "scores: finite[n + 1, 4]; label: label[m + 1] < 4",
    ),
    Example(
        """
        import torch
        import torch.nn.functional as F

        def forward(label: torch.LongTensor, num_classes: int):
            return F.one_hot(label).float()  # !
        """,
        """
        import torch
        import torch.nn.functional as F

        def forward(label: torch.LongTensor, num_classes: int):
            return F.one_hot(label, num_classes=num_classes).float()
        """,
        Safety.SUGGEST,
    ),
    Example(
        """
        import torch
        import torch.nn.functional as F

        def forward(scores: torch.Tensor):
            best = scores.argmax(dim=1)
            return F.one_hot(best)  # !
        """,
        """
        import torch
        import torch.nn.functional as F

        def forward(scores: torch.Tensor):
            best = scores.argmax(dim=1)
            return F.one_hot(best, num_classes=scores.shape[1])
        """,
        Safety.UNSAFE,
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    op = function.op(site.node)
    if op is None or not isinstance(site.node, ast.Call) or op.args or "num_classes" in op.keywords:
        return None
    draft = Draft(function)
    classes: Part | None = None
    title = "say how many classes there are"
    changes = "there is a column for every class, also for the last ones where they do not occur"
    if (found := best_of(function, op.base, site.node)) is not None:
        classes = draft.part("{x}.shape[{d}]", x=found[0], d=found[1])
    elif (bound := below(function, op.base)) is not None:
        classes = str(bound)
    if classes is not None:
        draft.replace(site.node, "{call}", call=draft.call(site.node, {}, num_classes=classes))
        return draft.fix(title, Safety.UNSAFE, changes)
    if (name := number_of_classes(function)) is None:
        return None
    draft.replace(site.node, "{call}", call=draft.call(site.node, {}, num_classes=name))
    return draft.fix(title, Safety.SUGGEST, f"{name} must be larger than every class", changes)


def best_of(function: Function, labels: ast.expr, use: ast.Call) -> tuple[ast.expr, ast.expr] | None:
    """The tensor and the dimension along which these are the places of the largest: `argmax`, or the indices of `max`."""
    best, part = function.op(function.value(labels)), part_of(function, labels)
    if part is not None and part[1] in (1, "indices"):
        best = function.op(part[0])
        if best is None or best.name not in ("max", "min"):
            return None
    elif best is None or best.name not in ("argmax", "argmin"):
        return None
    dim = best.argument(0, "dim")
    if dim is None or not isinstance(best.base, ast.Name) or function.constant(dim) is None:
        return None
    bound = function.binds(labels.id) if isinstance(labels, ast.Name) else []
    start = function.reaching_definition(labels) or (function.statement(bound[-1]) if bound else None)
    names = [n.id for n in (best.base, labels) if isinstance(n, ast.Name)]
    if start is not None and any(disturbed(function, n, start, use) for n in names):
        return None
    return best.base, dim


def below(function: Function, labels: ast.expr) -> int | None:
    """The number that all labels are surely less than: `y % 4`, `y.clamp(0, 3)`, `torch.randint(0, 4, ...)`."""
    made = function.value(labels)
    if (top := seen(function, made, "{y}.clamp({low}, {n}, *_, **_)", "{y}.clamp(*_, max={n}, **_)")) is not None:
        largest = function.constant(top["n"])
        return positive(largest + 1) if largest is not None else None
    drawn = seen(function, made, "torch.randint({low}, {n}, {size}, **_)")
    if drawn is not None and not isinstance(drawn["size"], (ast.Tuple, ast.List)):
        return None
    found = drawn or seen(function, made, "{y} % {n}")
    return positive(function.constant(found["n"])) if found is not None else None


def positive(value: int | float | None) -> int | None:
    """A number of classes, if it is one."""
    return value if isinstance(value, int) and value > 0 else None


def number_of_classes(function: Function) -> str | None:
    """What the code around calls the number of classes: a parameter, or an attribute of `self` that the class uses."""
    named = sorted(function.parameters & NAMES)
    if named:
        return named[0]
    around = function.file.class_around(function.scope)
    found = {
        n.attr
        for n in (ast.walk(around) if around is not None else ())
        if isinstance(n, ast.Attribute) and n.attr in NAMES and isinstance(n.value, ast.Name) and n.value.id == "self"
    }
    return f"self.{min(found)}" if found and "self" in function.parameters else None
