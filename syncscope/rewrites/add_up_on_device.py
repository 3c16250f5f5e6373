"""`total += loss.item()` in a loop: the total stays on the device, and is read once after the loop."""

from __future__ import annotations

import ast
from dataclasses import replace

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.devices import knows_float64
from syncscope.codemod.patterns.reads import detached, is_apart, number_of, read_again, stays_beside
from syncscope.codemod.patterns.total_fixes import IN_FLOAT32, Total, all_of, musts_of
from syncscope.codemod.patterns.totals import (
    Addition,
    addition,
    goes_round_devices,
    is_long,
    is_one_number,
    is_wide,
    read_in_passes,
    read_inside,
    same_in_float64,
    starts_of,
    summed,
    used_after,
)
from syncscope.codemod.whereabouts import made_on_host
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety, Stays, Way
from syncscope.project.syntax import without_gradients
from syncscope.rewrites.collect_on_device import collects

STAYS = Stays.LAST
WAY = Way.ADDS_UP
TOGETHER = "read after the loop"

ROUNDS = True
EXAMPLES = (
    Example(
        """
        import torch
        from torch import nn

        @torch.no_grad()
        def evaluate(model: nn.Module, loss_fn: nn.Module, loader, device):
            test_loss, correct = 0, 0
            for x, y in loader:
                x = x.to(device)
                scores, y = model(x), y.to(x.device)
                test_loss += loss_fn(scores, y).item() * x.size(0)  # !
                correct += (scores.argmax(1) == y).type(torch.float).sum().item()  # !
            correct /= len(loader) + 1
            test_loss /= len(loader) + 1
            return f"{correct:.1f} right, loss {test_loss:.3f}"
        """,
        """
        import torch
        from torch import nn

        @torch.no_grad()
        def evaluate(model: nn.Module, loss_fn: nn.Module, loader, device):
            test_loss, correct = 0, 0
            for x, y in loader:
                x = x.to(device)
                scores, y = model(x), y.to(x.device)
                test_loss += loss_fn(scores, y).detach().float() * x.size(0)
                correct += (scores.argmax(1) == y).type(torch.float).sum().detach().float()
            test_loss = float(test_loss)
            correct = float(correct)
            correct /= len(loader) + 1
            test_loss /= len(loader) + 1
            return f"{correct:.1f} right, loss {test_loss:.3f}"
        """,
        Safety.UNSAFE,
        "model: model; loss_fn: criterion; loader: loader; device: cpu",
        rule="host-read",
    ),
    Example(
        """
        import torch

        def train(model, criterion, optimizer, loader, every: int):
            total_loss, seen = 0., []
            for batch, (x, y) in enumerate(loader):
                loss = criterion(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total_loss = total_loss + loss.detach().item() / every  # !
                if batch % 2 == 1:
                    seen.append(total_loss)
                    total_loss = 0
            return seen
        """,
        """
        import torch

        def train(model, criterion, optimizer, loader, every: int):
            total_loss, seen = 0., []
            for batch, (x, y) in enumerate(loader):
                loss = criterion(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total_loss = total_loss + loss.detach().float() / every
                if batch % 2 == 1:
                    seen.append(total_loss.detach())
                    total_loss = 0
            seen = torch.hstack(seen).flatten().tolist() if seen else []
            return seen
        """,
        Safety.UNSAFE,
        "model: model; criterion: criterion; optimizer: optimizer; loader: loader; every: count",
        rule="host-read",
    ),
    Example(
        """
        import torch

        def train(x: torch.Tensor, steps: int):
            seen = []
            running_loss = 0.0
            for i in range(steps):
                loss = (x - i).square().mean()
                running_loss += loss.item()  # !
                if i % 3 == 2:
                    seen.append(running_loss / 3)  # every three steps
                    running_loss = 0.0
            return seen
        """,
        """
        import torch

        def train(x: torch.Tensor, steps: int):
            seen = []
            running_loss = 0.0
            for i in range(steps):
                loss = (x - i).square().mean()
                running_loss = running_loss + loss.detach().float()
                if i % 3 == 2:
                    seen.append(float(running_loss) / 3)  # every three steps
                    running_loss = 0.0
            return seen
        """,
        Safety.UNSAFE,
        "x: finite[n + 1]; steps: count",
        rule="host-read",
    ),
    Example(
        """
        import torch

        def mean_norm(norms: list[torch.Tensor]):
            total = 0.0
            for norm in norms:
                total += norm.float().sum().item()  # !
            return total / len(norms)
        """,
        """
        import torch

        def mean_norm(norms: list[torch.Tensor]):
            total = 0.0
            for norm in norms:
                total += norm.float().sum().detach()
            total = float(total)
            return total / len(norms)
        """,
        Safety.UNSAFE,
        rule="host-read",
    ),
    Example(
        """
        import torch

        def mean_error(errors: list[torch.Tensor]):
            total, worst = 0.0, 0
            for number, error in enumerate(errors):
                total += error.mean().item() * 2  # !
                if number % 2:
                    print(total)
            return total
        """,
        """
        import torch

        def mean_error(errors: list[torch.Tensor]):
            total, worst = 0.0, 0
            for number, error in enumerate(errors):
                total = total + error.mean().detach().float() * 2
                if number % 2:
                    print(float(total))
            total = float(total)
            return total
        """,
        Safety.UNSAFE,
        rule="host-read",
    ),
    Example(
        """
        import torch
        from torch import nn

        def count(model: nn.Linear, loader):
            right = seen = 0
            for x, y in loader:
                right += model(x).argmax(dim=1).eq(y).sum().item()  # !
                seen += len(y)
            return right, seen
        """,
        """
        import torch
        from torch import nn

        def count(model: nn.Linear, loader):
            right = seen = 0
            for x, y in loader:
                right += model(x).argmax(dim=1).eq(y).sum()
                seen += len(y)
            right = int(right)
            return right, seen
        """,
        Safety.SAFE,
        "model: model; loader: loader",
        rule="host-read",
    ),
    Example(
        """
        import torch
        import torch.nn.functional as F
        from torch import nn

        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

        def mean_loss(model: nn.Linear, loader):
            total, seen = 0, 1
            for x, y in loader:
                loss = F.cross_entropy(model(x), y)
                total += loss.item() * len(y)  # !
                seen += len(y)
            return total / seen
        """,
        """
        import torch
        import torch.nn.functional as F
        from torch import nn

        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

        def mean_loss(model: nn.Linear, loader):
            total, seen = 0, 1
            for x, y in loader:
                loss = F.cross_entropy(model(x), y)
                total += loss.detach().double() * len(y)
                seen += len(y)
            total = float(total)
            return total / seen
        """,
        Safety.SAFE,
        "model: model; loader: loader",
        rule="host-read",
    ),
    Example(
        """
        import torch

        def mean_error(x: torch.Tensor, y: torch.Tensor):
            total = 0.0
            for number in range(3):
                total += float((x - y).square().mean().detach().cpu().item())  # !
            return total
        """,
        """
        import torch

        def mean_error(x: torch.Tensor, y: torch.Tensor):
            total = 0.0
            for number in range(3):
                total += (x - y).square().mean().detach().float()
            total = float(total)
            return total
        """,
        Safety.UNSAFE,
        "x: finite[n + 1]; y: finite[n + 1]",
        rule="host-copy",
    ),
)

FEW = 2  # reads of the sum inside of the loop: with more of them it is a tensor that is a number almost everywhere


def rewrite(site: Site, function: Function) -> Fix | None:
    found, loop = total_of(site, function), function.loop(site.node)
    if found is None or loop is None:
        return None
    reads = [s for s in function.sites if s.confidence >= 2 and function.loop(s.node) is loop]
    totals = [each for s in reads if (each := total_of(s, function)) is not None]
    alike = [each for each in totals if each.fix.safety is found.fix.safety]
    fix = found.fix
    if found in alike and len(alike) > 1:
        fix = function.once(f"added up, {fix.safety.value}", loop, lambda: all_of(alike))
    other = (
        None if fix.safety is Safety.SAFE else function.once("read anyway", loop, lambda: read_anyway(function, loop))
    )
    if other is None:
        return fix
    return replace(fix, safety=Safety.SUGGEST, terms=(*fix.terms, stays_beside(function, other)))


def read_anyway(function: Function, loop: ast.AST) -> ast.AST | None:
    """What each pass reads that is neither added up nor collected: then the host waits for that as long; None: nothing."""
    sites = [s for s in function.sites if function.loop(s.node) is loop]
    mended = [s for s in sites if total_of(s, function) is not None or collects(s, function) is not None]
    later = {id(node) for s in mended for node in (s.node, *function.around(s.node))}  # `x.cpu().item()` of `x.cpu()`
    return next((node for node in read_in_passes(function, loop) if id(node) not in later), None)


def total_of(site: Site, function: Function) -> Total | None:
    """The fix of one read, unless the same number is read beside it all the same: then the wait only moves there."""
    found = _once(site, function)
    if found is None:
        return None
    again = (s for s in read_again(function, site) if _once(s, function) is None and not collects(s, function))
    if (stays := next(again, None)) is not None:
        return function.declines(site.node, f"line {stays.place.line} reads the same number all the same")
    return found


def _once(site: Site, function: Function) -> Total | None:
    return function.once("added up", site.node, lambda: _total_of(site, function))


def _total_of(site: Site, function: Function) -> Total | None:
    tensor, read = number_of(function, site.node)
    loop, added = function.loop(site.node), addition(function, read)
    if tensor is None or loop is None or added is None:
        return None
    total = added.total.id
    if function.once("goes round devices", loop, lambda: goes_round_devices(loop)):
        return function.declines(site.node, "each pass of the loop may be on another device")
    starts, inside = starts_of(function, added, loop), read_inside(function, added, loop)
    if starts is None:
        return function.declines(site.node, f"what `{total}` begins with, or who sees it half done, is unknown")
    often = next((n for n in inside if not function.sometimes(n, loop, added.statement)), None)
    if often is not None:
        return function.declines(site.node, f"line {often.lineno} reads `{total}` in each pass of the loop")
    sum_of = summed(function, site, tensor, added, starts)
    if sum_of is None:
        return function.declines(site.node, f"the dtype of {function.file.quote(tensor)} is unknown")
    if sum_of.whole and isinstance(read, ast.Call) and function.dotted(read.func) == "float":
        return function.declines(site.node, "whole numbers are made floats here, and their sum is one")
    if site.fact.ndim != 0 and made_on_host(function, tensor):
        return function.declines(site.node, f"{function.file.quote(tensor)} is made on the host in some passes")
    exact = not sum_of.whole and knows_float64(function)  # as Python adds; elsewhere the device may have no float64
    draft = _drafted(function, tensor, added, inside, sum_of.whole, exact)
    title = "add up on the device, read once after the loop"
    one = is_one_number(function, site, tensor) and not inside and not (sum_of.whole and sum_of.counted is not None)
    if one and (sum_of.whole or (exact and same_in_float64(function, tensor, added, starts))):
        return Total(total, draft.fix(title, Safety.SAFE))
    musts = musts_of(function, tensor, added, sum_of)
    tier = Safety.UNSAFE if len(inside) <= FEW else Safety.SUGGEST
    in_float32 = not (sum_of.whole or exact)
    inside_it = f"{total} is a tensor inside the loop{IN_FLOAT32 * in_float32}"
    return Total(total, draft.fix(title, tier, inside_it, *musts), musts, in_float32)


def _drafted(
    function: Function, tensor: ast.expr, added: Addition, inside: list[ast.Name], whole: bool, exact: bool
) -> Draft:
    draft, total, number = Draft(function), added.total.id, "int" if whole else "float"
    asked = kept_as(function, tensor, whole, exact)
    if _without_graph(function, added.statement) or is_apart(detached(function, tensor)):
        asked = asked.replace(".detach()", "")
    kept = draft.part(f"{{t}}{asked}", t=detached(function, tensor) if asked else tensor)
    alone = not inside and not made_on_host(function, tensor)  # the total is a tensor that nobody else has
    takes_more = b"inference_mode" not in function.file.code  # made in there, it takes nothing in place outside of it
    in_place = alone and takes_more and isinstance(added.statement, ast.AugAssign)
    template = f"{total} += {added.template}" if in_place else f"{total} = {total} + {added.template}"
    draft.replace(added.statement, template, t=kept, factor=added.factor or "1")
    for name in inside:
        draft.replace(name, f"{number}({total})")
    loop = function.loop(added.statement)
    if loop is not None and used_after(function, total, loop):
        draft.insert_after(loop, f"{total} = {number}({total})")
    return draft


def _without_graph(function: Function, statement: ast.stmt) -> bool:
    """Whether a sum is added to where no graph is made: there is none to be kept apart from."""
    return any(isinstance(each, ast.With) and without_gradients(each) for each in function.around(statement))


def kept_as(function: Function, tensor: ast.expr, whole: bool, exact: bool) -> str:
    """What a number of the device is asked for before it is added up: its dtype, apart from the graph that it came of."""
    if whole:
        return "" if is_long(function, tensor) else ".detach().long()"
    return ".detach().double()" if exact else ".detach()" if is_wide(function, tensor) else ".detach().float()"
