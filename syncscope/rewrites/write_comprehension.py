"""A number made of what a mask selects, as a comprehension: index notation that keeps the shape, and is one or two kernels."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.new_imports import import_edit
from syncscope.codemod.patterns.masked import Masked
from syncscope.codemod.proofs import is_mask
from syncscope.codemod.text import CannotRewrite
from syncscope.codemod.writes import changed
from syncscope.model.example import Example
from syncscope.model.fact import Dtype, Site
from syncscope.model.finding import Edit, Fix, Safety
from syncscope.model.source import Span

BESIDE = True
IMPORT = "from syncscope.kernels import comprehension"
FUSED = ("fused on the device ocl, torch's operators elsewhere", "sums may differ in their last bits")
IMPORTED = "your code then imports syncscope, which has to be installed where it runs"
ROUNDS = True
EXAMPLES = (
    Example(
        """
        import torch

        def distance(a: torch.Tensor, b: torch.Tensor):
            valid = b > 0
            return (a - b)[valid].abs().mean()  # !
        """,
        safety=Safety.SUGGEST,
        inputs="a: finite[n, m]; b: finite[n, m]",
        instead='''
        import torch
        from syncscope.kernels import comprehension

        masked_distance = comprehension("""
            def masked_distance(bool(N) valid, float(N) a, float(N) b) -> (result) {
                total +=! valid(n) ? fabs(a(n) - b(n)) : 0
                kept +=! valid(n)
                result = total / kept
            }
        """)


        def distance(a: torch.Tensor, b: torch.Tensor):
            valid = b > 0
            return masked_distance(valid.flatten(), a.flatten(), b.flatten())
        ''',
    ),
    Example(
        """
        import torch
        import torch.nn.functional as F

        def loss(logits: torch.Tensor, target: torch.LongTensor):
            valid = target != -1
            picked = F.log_softmax(logits, dim=-1)[valid]  # !
            return -picked.gather(1, target[valid].unsqueeze(1)).mean()  # !
        """,
        safety=Safety.UNSAFE,
        inputs="logits: finite[n, 4]; target: label[n] < 4",
        instead='''
        import torch
        import torch.nn.functional as F
        from syncscope.kernels import comprehension

        masked_loss = comprehension("""
            def masked_loss(bool(N) valid, float(N, C) logits, int(N) target) -> (result) {
                most(n) max=! logits(n, c)
                parts(n) +=! exp(logits(n, c) - most(n))
                own(n) +=! c == target(n) ? logits(n, c) - (most(n) + log(parts(n))) : 0
                total +=! valid(n) ? own(n) : 0
                kept +=! valid(n)
                result = -total / kept
            }
        """)


        def loss(logits: torch.Tensor, target: torch.LongTensor):
            valid = target != -1
            return masked_loss(valid.flatten(), logits.flatten(0, -2), target.flatten())
        ''',
    ),
    Example(
        """
        import torch

        def z_loss(logits: torch.Tensor, target: torch.LongTensor):
            valid = target != -1
            return 1e-4 * (torch.logsumexp(logits[valid], dim=1) ** 2).mean()  # !
        """,
        '''
        import torch
        from syncscope.kernels import comprehension

        masked_z_loss = comprehension("""
            def masked_z_loss(bool(N) valid, float(N, C) logits) -> (result) {
                most(n) max=! logits(n, c)
                parts(n) +=! exp(logits(n, c) - most(n))
                total +=! valid(n) ? pow(most(n) + log(parts(n)), 2) : 0
                kept +=! valid(n)
                result = 0.0001 * total / kept
            }
        """)


        def z_loss(logits: torch.Tensor, target: torch.LongTensor):
            valid = target != -1
            return masked_z_loss(valid.flatten(), logits.flatten(0, -2))
        ''',
        Safety.SUGGEST,
        "logits: finite[n, 4]; target: label[n] < 4",
    ),
    Example(
        """
        import torch

        def scale_invariant(guess: torch.Tensor, depth: torch.Tensor):
            valid = depth > 0
            error = (guess[valid] - depth[valid]) ** 2  # !
            return torch.sqrt(error.mean() + 0.85 * error.sum() / valid.sum())
        """,
        safety=Safety.UNSAFE,
        inputs="guess: finite[n, m]; depth: finite[n, m]",
        instead='''
        import torch
        from syncscope.kernels import comprehension

        masked_scale_invariant = comprehension("""
            def masked_scale_invariant(bool(N) valid, float(N) guess, float(N) depth) -> (result) {
                total +=! valid(n) ? pow(guess(n) - depth(n), 2) : 0
                kept +=! valid(n)
                result = sqrt(total / kept + ((0.85 * total) / kept))
            }
        """)


        def scale_invariant(guess: torch.Tensor, depth: torch.Tensor):
            valid = depth > 0
            return masked_scale_invariant(valid.flatten(), guess.flatten(), depth.flatten())
        ''',
    ),
    Example(
        """
        import torch

        def weighted(guess: torch.Tensor, truth: torch.Tensor, weight: torch.Tensor):
            valid = truth > 0
            x = guess[valid]  # !
            y = truth[valid]  # !
            return (weight[valid] * torch.abs(x - y)).sum() / valid.sum().clamp(min=1)  # !
        """,
        safety=Safety.UNSAFE,
        inputs="guess: finite[n, m]; truth: finite[n, m]; weight: finite[n, m]",
        instead='''
        import torch
        from syncscope.kernels import comprehension

        masked_weighted = comprehension("""
            def masked_weighted(bool(N) valid, float(N) weight, float(N) guess, float(N) truth) -> (result) {
                total +=! valid(n) ? weight(n) * fabs(guess(n) - truth(n)) : 0
                kept +=! valid(n)
                result = total / max(kept, 1)
            }
        """)


        def weighted(guess: torch.Tensor, truth: torch.Tensor, weight: torch.Tensor):
            valid = truth > 0
            return masked_weighted(valid.flatten(), weight.flatten(), guess.flatten(), truth.flatten())
        ''',
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    taken, op = site.node, function.op(site.node)
    mask = taken.slice if isinstance(taken, ast.Subscript) and isinstance(taken.ctx, ast.Load) else None
    if mask is None or op is not None or not is_mask(site.fact_of(mask)) or isinstance(function.scope, ast.Module):
        return None
    if function.file.project.needs().listed and "comprehension" not in function.file.at_hand:
        return None  # a package takes no dependency for one loss
    for root in roots(site, function):
        masked = Masked(site, function, mask)
        try:
            result = masked.scalar(root)
        except CannotRewrite:
            continue
        if any(x is taken for x in masked.selections) and steady(function, masked, root):
            return written(site, function, masked, root, result)
    return None


def roots(site: Site, function: Function) -> Iterator[ast.expr]:
    """What may be the number: the expressions around the selection, the largest first, else around what it is assigned to."""
    node: ast.AST = site.node
    for _ in range(4):
        around = list(function.around(node))
        statement = function.statement(node)
        end = next((i for i, x in enumerate(around) if x is statement), 0)
        yield from (x for x in reversed(around[:end]) if isinstance(x, ast.expr))
        uses = function.seen_by(statement) if isinstance(statement, ast.Assign) else []
        if not uses:
            return
        node = uses[-1]


def steady(function: Function, masked: Masked, root: ast.expr) -> bool:
    """Whether all that is seen through serves the number alone, and what it is made of stays as it is until then."""
    inside = {id(n) for whole in (root, *masked.gone) for n in ast.walk(whole)}
    for gone in masked.gone:
        if isinstance(gone, ast.Assign):
            uses = function.seen_by(gone)
            if not uses or any(id(use) not in inside for use in uses):
                return False
        if changed(function, gone, root, *(expr for _, _, expr in masked.inputs.values())):
            return False
    return True


def written(site: Site, function: Function, masked: Masked, root: ast.expr, result: str) -> Fix:
    draft = Draft(function)
    name = function.fresh(f"masked_{getattr(function.scope, 'name', 'number')}", everywhere=True)
    lines = "\n".join(f"    {line}" for line in masked.text(name, result))
    flat = {"": "{x}", "N": "{x}.flatten()", "N, C": "{x}.flatten(0, -2)"}
    arguments = ", ".join(
        draft.code(flat[sizes] if function.fact(expr).ndim != len(sizes.split()) else "{x}", x=expr)
        for _, sizes, expr in masked.inputs.values()
    )
    draft.replace(root, f"{name}({arguments})")
    draft.drop_unused([root], arguments)
    fix = draft.fix("write it as a comprehension", Safety.SUGGEST, *said(site, function, masked))
    file = function.file
    head = file.on_top(root.lineno)
    assert head is not None
    line = min([head.lineno, *(d.lineno for d in getattr(head, "decorator_list", ()))])
    start = file.starts[line - 1]
    edits = [*fix.edits, Edit(Span(start, start), f'{name} = comprehension("""\n{lines}\n""")\n\n\n')]
    if "comprehension" not in file.at_hand:
        edits.append(import_edit(file, IMPORT))
    return replace(fix, edits=tuple(sorted(edits, key=lambda e: e.span)))


def said(site: Site, function: Function, masked: Masked) -> list[str]:
    """What must hold, as far as it is not known."""
    text = function.file.text
    shaped = [text(e) for _, sizes, e in masked.inputs.values() if sizes and e is not masked.mask]
    floats = [
        text(e) for kind, _, e in masked.inputs.values() if kind == "float" and site.fact_of(e).dtype is not Dtype.FLOAT
    ]
    rows = [text(e) for _, sizes, e in masked.inputs.values() if sizes == "N, C"]
    told = [
        f"{', '.join(shaped)} must have the shape of {text(masked.mask)}"
        + (f", {', '.join(rows)} with classes last" if rows else "")
    ]
    if floats:
        told.append(f"{', '.join(floats)} must be floating point")
    return [*told, *FUSED, IMPORTED]
