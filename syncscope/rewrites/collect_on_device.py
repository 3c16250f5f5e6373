"""`history.append(loss.item())`, `history += [loss.item()]` in a loop: tensors are collected, and read together after it."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import NamedTuple

from syncscope.codemod.draft import Draft
from syncscope.codemod.enclosure import LOOPS
from syncscope.codemod.function import Function
from syncscope.codemod.pattern import seen
from syncscope.codemod.patterns.joined import all_at_once
from syncscope.codemod.patterns.reads import FLOATS, by_float, detached, stays_beside, tensor_read
from syncscope.codemod.patterns.totals import seen_half_done, starting
from syncscope.codemod.sharing import VIEWS, sharing
from syncscope.codemod.together import together
from syncscope.codemod.whereabouts import made_on_host
from syncscope.codemod.writes import overwritten
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety, Stays
from syncscope.project import conventions
from syncscope.project.syntax import name_of
from syncscope.rewrites import named, tried

STAYS = Stays.LAST
TOGETHER = "read after the loop"

EXAMPLES = (
    Example(
        """
        import torch

        class Trainer:
            def losses(self, loader, device):
                with torch.no_grad():
                    losses = []
                    for x, y in loader:
                        x, y = x.to(device), y.to(device)
                        loss = self.criterion(self.model(x), y)
                        losses.append(loss.item())  # !
                return losses
        """,
        """
        import torch

        class Trainer:
            def losses(self, loader, device):
                with torch.no_grad():
                    losses = []
                    for x, y in loader:
                        x, y = x.to(device), y.to(device)
                        loss = self.criterion(self.model(x), y)
                        losses.append(loss.detach())
                    losses = torch.hstack(losses).flatten().tolist() if losses else []
                return losses
        """,
        Safety.UNSAFE,
    ),
    Example(
        """
        import torch

        def train(model, criterion, optimizer, loader, bar, epochs: int):
            losses, best = [], None
            for epoch in range(epochs):
                for x, y in loader:
                    loss = criterion(model(x), y)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    losses.append(loss.item())  # !
                bar.write(f"epoch {epoch}")
            return losses
        """,
        """
        import torch

        def train(model, criterion, optimizer, loader, bar, epochs: int):
            losses, best = [], None
            for epoch in range(epochs):
                for x, y in loader:
                    loss = criterion(model(x), y)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    losses.append(loss.detach())
                bar.write(f"epoch {epoch}")
            losses = torch.hstack(losses).flatten().tolist() if losses else []
            return losses
        """,
        Safety.UNSAFE,
        "model: model; criterion: criterion; optimizer: optimizer; loader: loader; bar: bar; epochs: count",
    ),
    Example(
        """
        import torch

        def history(x: torch.Tensor):
            seen = []
            for number in range(4):
                seen.append((x * number).sigmoid().mean().item())  # !
            return seen
        """,
        """
        import torch

        def history(x: torch.Tensor):
            seen = []
            for number in range(4):
                seen.append((x * number).sigmoid().mean().detach())
            seen = torch.stack(seen).tolist() if seen else []
            return seen
        """,
        Safety.UNSAFE,
        "x: finite[n + 1]",
    ),
    Example(
        """
        import torch

        def clipped(ratios: torch.Tensor, coefficient: float):
            fractions = []
            for ratio in ratios:
                fractions += [((ratio - 1.0).abs() > coefficient).float().mean().item()]  # !
            return fractions
        """,
        """
        import torch

        def clipped(ratios: torch.Tensor, coefficient: float):
            fractions = []
            for ratio in ratios:
                fractions += [((ratio - 1.0).abs() > coefficient).float().mean().detach()]
            fractions = torch.stack(fractions).tolist() if fractions else []
            return fractions
        """,
        Safety.UNSAFE,
        "ratios: finite[n, m + 1]; coefficient: number",
    ),
    Example(
        """
        import torch

        def rows(x: torch.Tensor):
            values = []
            for row in x.split(1):
                values.append(row.exp().item())  # !
            return values
        """,
        """
        import torch

        def rows(x: torch.Tensor):
            values = []
            for row in x.split(1):
                values.append(row.exp().detach())
            values = torch.hstack(values).flatten().tolist() if values else []
            return values
        """,
        Safety.UNSAFE,
        "x: finite[n + 1, 1, 1]",
    ),
)


class Collected(NamedTuple):
    """The fix of one read, whatever is read beside it."""

    history: str
    fix: Fix
    by_float: bool


def rewrite(site: Site, function: Function) -> Fix | None:
    found = collects(site, function)
    statement = function.statement(site.node)
    if found is None or statement is None:
        return None
    beside = function.block(statement)
    reads = [
        s
        for s in function.sites
        if function.statement(s.node) in beside and s.confidence >= 2 and tensor_read(function, s.node) is not None
    ]
    every = [each for s in reads if (each := collects(s, function)) is not None]
    added = named("add_up_on_device")
    other = next((s for s in reads if collects(s, function) is None and tried(added, s, function) is None), None)
    if other is not None:
        said = stays_beside(function, other.node)
        return replace(found.fix, safety=Safety.SUGGEST, terms=(*found.fix.terms, said))
    if site not in reads or len(every) == 1:
        return found.fix
    return function.once("collected together", beside[0], lambda: all_of(every))


def all_of(every: list[Collected]) -> Fix:
    """One fix of several that stand beside each other."""
    names = list(dict.fromkeys(each.history for each in every))
    held = f"{', '.join(names[:-1])} and {names[-1]} hold tensors inside the loop"
    floats = [FLOATS] if any(each.by_float for each in every) else []
    changes = (held, "those of each must have one dtype and live on one device", *floats)
    return replace(together([each.fix for each in every]), terms=changes)


def collects(site: Site, function: Function) -> Collected | None:
    """The fix of one read, looked at once."""
    return function.once("collected", site.node, lambda: _collected(site, function))


def _collected(site: Site, function: Function) -> Collected | None:
    tensor, noted = tensor_read(function, site.node), note(function, site.node)
    if tensor is None or noted is None or site.fact.ndim not in (0, None):
        return None
    history, read = noted["history"], noted["read"]
    name = function.file.text(history)
    made = [s for s, value in starting(function, name) if isinstance(value, ast.List) and not value.elts]
    bound = [n for n in function.binds(name) if n is not history]
    loop = outermost(function, read, made[0]) if len(made) == 1 and len(bound) == 1 else None
    if loop is None:
        return function.declines(site.node, f"`{name}` is not made empty right before one loop, and bound there alone")
    if seen_half_done(function, name, loop):
        return function.declines(site.node, f"`{name}` may be looked at before the loop is over")
    inside = (n for n in function.names(name) if loop in function.around(n) and n is not history)
    early = [*inside, *(n for n in function.reads(name) if n.lineno < loop.lineno)]
    if early:
        return function.declines(site.node, f"line {early[0].lineno} uses `{name}` before the loop is over")
    if overwritten(function, tensor, site.node, loop):  # all that was noted of it would become its last value
        return function.declines(site.node, f"{function.file.quote(tensor)} is written in place")
    if made_on_host(function, tensor):  # in some passes, say: then what is noted lives on two devices
        return function.declines(site.node, f"{function.file.quote(tensor)} is made on the host in some passes")
    draft = Draft(function)
    own = ".detach()" if made_in(function, tensor, loop) else ".detach().clone()"
    draft.replace(read, f"{{t}}{own}", t=detached(function, tensor))
    join, read_all, _ = all_at_once(site.fact.ndim)
    draft.insert_after(loop, f"{name} = {join}({name}){read_all} if {name} else []")
    floats = by_float(function, site.node)
    fix = draft.fix(
        "collect on the device, read all after the loop",
        Safety.UNSAFE,
        f"{name} holds tensors inside the loop",
        "they must all have one dtype and live on one device",
        FLOATS if floats else "",
    )
    return Collected(name, fix, floats)


def note(function: Function, read: ast.AST) -> dict[str, ast.expr] | None:
    """What notes a number at the end of a list: `history.append(read)`, `history += [read]`."""
    outer = function.parent(read)
    return seen(function, outer, "{history:name}.append({read})") or seen(
        function, function.parent(outer) if outer is not None else None, "{history:name} += [{read}]"
    )


def made_in(function: Function, tensor: ast.expr, loop: ast.AST) -> bool:
    """Whether a tensor is made anew in each pass: what outlives it, a parameter say or what it is a part of, is written by
    others.
    """
    if isinstance(tensor, ast.Name):
        bound = any(loop in function.around(n) for n in function.binds(tensor.id))
        return bound and (
            is_fresh_loss(function, tensor.id) or sharing(function, tensor.id, surely=True) == {tensor.id}
        )
    return not isinstance(tensor, (ast.Attribute, ast.Subscript))


def is_fresh_loss(function: Function, name: str) -> bool:
    """Whether this is called a loss, and is what a call has just computed: `loss = self.criterion(x, y)`."""
    if not conventions.is_loss(name):
        return False
    made = [s.value if isinstance(s := function.statement(n), ast.Assign) else None for n in function.binds(name)]
    return all(isinstance(each, ast.Call) and name_of(each.func) not in VIEWS for each in made)


def outermost(function: Function, node: ast.AST, before: ast.stmt) -> ast.stmt | None:
    """The loop around a node that stands in the same block as a statement, and after it."""
    block = function.block(before)
    found = next((n for n in function.around(node) if isinstance(n, LOOPS) and n in block), None)
    return found if found is not None and block.index(before) < block.index(found) else None
