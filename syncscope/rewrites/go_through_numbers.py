"""`for t in ts: use(t.item())` goes through `ts.tolist()`: a loop that reads each element of a tensor reads all at once."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TypeGuard

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.mixed import mixed
from syncscope.codemod.patterns.asked import may_be_none
from syncscope.codemod.patterns.passes import Loop, bound_again, element_of, in_every_pass, loop_of
from syncscope.codemod.patterns.reads import as_listed, in_size, read_of
from syncscope.codemod.writes import disturbed, exposed
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety, Stays
from syncscope.project.syntax import walk

STAYS = Stays.FIRST
TOGETHER = True
EXAMPLES = (
    Example(
        """
        import torch

        def chosen(x: torch.Tensor, labels: torch.Tensor):
            kinds = labels.flatten().abs().long()
            return [x[: kind.item()].sum() for kind in kinds]  # !
        """,
        """
        import torch

        def chosen(x: torch.Tensor, labels: torch.Tensor):
            kinds = labels.flatten().abs().long()
            return [x[:kind].sum() for kind in kinds.tolist()]
        """,
        Safety.SAFE,
        "x: finite[n]; labels: label[m]",
        rule="host-read",
    ),
    Example(
        """
        import torch

        def spread(x: torch.Tensor, lengths: torch.LongTensor):
            parts = []
            for i, length in enumerate(lengths):
                if i:
                    parts.append(x[: int(length)] * float(length))  # !
            return parts
        """,
        """
        import torch

        def spread(x: torch.Tensor, lengths: torch.LongTensor):
            parts = []
            for i, length in enumerate(lengths.tolist()):
                if i:
                    parts.append(x[:length] * float(length))
            return parts
        """,
        Safety.UNSAFE,
        "x: finite[n]; lengths: int[m]",
        rule="host-read",
    ),
    Example(
        """
        import torch

        def cut(x: torch.Tensor, lengths: torch.LongTensor):
            lengths = lengths.flatten().clamp(min=1)
            for i, length in enumerate(lengths):
                x[i, length - 1 :] = 0.0  # !
            return x
        """,
        """
        import torch

        def cut(x: torch.Tensor, lengths: torch.LongTensor):
            lengths = lengths.flatten().clamp(min=1)
            for i, length in enumerate(lengths.tolist()):
                x[i, length - 1 :] = 0.0
            return x
        """,
        Safety.SAFE,
        "x: finite[4, n]; lengths: index[4] < n",
        rule="tensor-as-size",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    read = as_listed(function, site.node)
    element = read[0] if read is not None else in_size(function, site)
    if not isinstance(element, ast.Name) or function.captured(element.id):
        return None
    name = element.id
    found = loop_of(function, element)
    tensor = element_of(function, found[1], found[2], name) if found is not None else None
    if found is None or tensor is None or bound_again(function, found[0], name):
        return None
    loop, fact = found[0], function.fact(tensor)
    statement = function.statement(loop)
    if statement is None or (isinstance(tensor, ast.Name) and may_be_none(function, tensor, statement)):
        return None
    if fact.confidence < 2 or not fact.is_tensor or fact.ndim not in (1, None) or mixed(function, tensor):
        return None
    uses = [n for n in function.reads(name) if loop_of(function, n) == found]
    reads = [read_of(function, use) for use in uses]
    kept = {n.id for n in walk(tensor) if isinstance(n, ast.Name)}
    if not all(reads) or any(disturbed(function, n, loop, uses[-1], within=True) for n in kept):
        return None
    draft = Draft(function)
    if only_reads(loop, reads, tensor):  # [t.item() for t in ts]
        draft.replace(loop, "{t}.tolist()", t=tensor)
    else:
        draft.replace(tensor, "{t}.tolist()", t=tensor)
        for _, whole in filter(None, reads):
            if not isinstance(whole, ast.Name):  # which it may be in `int(t)`
                draft.replace(whole, name)
    text = function.file.text(tensor)
    changes = [f"{text} must have one dimension"] * (fact.ndim is None)
    if any(exposed(function, n, loop, uses[-1]) for n in kept):
        changes.append(f"nothing may write what {text} holds in the loop")
    shorter = (
        tensor is not found[2] and function.dotted(getattr(found[2], "func", found[2])) == "zip"
    )  # than the others
    if shorter or not any(in_every_pass(function, whole, loop) for _, whole in filter(None, reads)):
        changes.append("it waits once, also where no pass reads")
    return draft.fix("read all at once", Safety.UNSAFE if changes else Safety.SAFE, "; ".join(changes))


def only_reads(loop: Loop, reads: Sequence[tuple[ast.expr, ast.expr] | None], tensor: ast.expr) -> TypeGuard[ast.expr]:
    """Whether a comprehension gives what is read and nothing else: then the list of numbers is all of it."""
    if not isinstance(loop, (ast.ListComp, ast.GeneratorExp)) or loop.generators[0].ifs:
        return False
    return len(reads) == 1 and reads[0] is not None and loop.elt is reads[0][1] and loop.generators[0].iter is tensor
