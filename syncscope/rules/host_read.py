"""A number of the device read by the host: `.item()`, `.tolist()`, `float(t)`, `int(t)`, `bool(t)`.

Why it waits
------------
To give a Python number the host waits until the device has computed everything that was asked for before, and asks for
nothing more meanwhile. In a loop the device then has nothing to do at the beginning of every pass.

Fix safety
----------
A value that is only logged every n steps need only be read then: safe where nothing but plain expressions stands between.
A running total can stay on the device in float64, in which Python adds too, so the sums are equal bit for bit; unsafe,
because the total is a tensor inside the loop (and MPS has no float64). Several reads side by side become one: safe where
they are of one tensor, else unsafe, because all must live on one device. `max(t.item(), 1)` can stay a tensor: unsafe,
because what needs a Python number will read it. Logging on some passes only, and meters that add up on the device, are
suggested, not applied: what is written down changes.
"""

from __future__ import annotations

import ast

from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety
from syncscope.rules import Example, Family, Function, Severity, View
from syncscope.rules._hardest import hardest
from syncscope.rules._reads import checked_later, clamped
from syncscope.rules._reads_later import accumulated, collected, logged_rarely, metered, only_where_logged
from syncscope.rules._reads_together import merged, merged_in_statement, stacked, stacked_entries, stacked_values

FAMILY = Family.READ
SEVERITY = Severity.WARNING
OPS = ("item", "tolist", "float", "int", "bool", "complex", "index")
SEEN_AS = ("aten::item", "aten::_local_scalar_dense")
EXAMPLES = (
    Example(
        """
        import torch

        def train(model, loader, optimizer):
            total = 0.0
            for x, y in loader:
                loss = torch.nn.functional.mse_loss(model(x.cuda()), y.cuda())
                loss.backward()
                optimizer.step()
                total += loss.item()  # !
            return total / len(loader)
        """,
        """
        import torch

        def train(model, loader, optimizer):
            total = 0.0
            for x, y in loader:
                loss = torch.nn.functional.mse_loss(model(x.cuda()), y.cuda())
                loss.backward()
                optimizer.step()
                total = total + loss.detach().double()
            total = float(total)
            return total / len(loader)
        """,
        Safety.UNSAFE,
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
                running_loss = running_loss + loss.detach().double()
                if i % 3 == 2:
                    seen.append(float(running_loss) / 3)  # every three steps
                    running_loss = 0.0
            running_loss = float(running_loss)
            return seen
        """,
        Safety.UNSAFE,
        "x: finite[n + 1]; steps: count",
    ),
    Example(
        """
        import torch

        def train(model, loader, optimizer, meter):
            for step, (x, y) in enumerate(loader):
                loss = torch.nn.functional.mse_loss(model(x), y)
                loss.backward()
                optimizer.step()
                meter.update(loss.item(), len(x))  # !
                print(
                    f"{step}: loss {loss.item():.4f}",  # !
                )
        """,
        """
        import torch

        def train(model, loader, optimizer, meter):
            for step, (x, y) in enumerate(loader):
                loss = torch.nn.functional.mse_loss(model(x), y)
                loss.backward()
                optimizer.step()
                meter.update(loss.detach(), len(x))
                if step % 50 == 0:
                    print(
                        f"{step}: loss {loss.item():.4f}",
                    )
        """,
        Safety.SUGGEST,
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
                total = total + error.mean().detach().double() * 2
                if number % 2:
                    print(float(total))
            total = float(total)
            return total
        """,
        Safety.UNSAFE,
    ),
    Example(
        """
        import torch

        def mean_error(x: torch.Tensor, y: torch.Tensor):
            total = 0.0
            for number in range(3):
                total += (x - y).square().mean().item() * 2  # !
            return total
        """,
        """
        import torch

        def mean_error(x: torch.Tensor, y: torch.Tensor):
            total = 0.0
            for number in range(3):
                total = total + (x - y).square().mean().detach().double() * 2
            total = float(total)
            return total
        """,
        Safety.UNSAFE,
        "x: finite[n + 1]; y: finite[n + 1]",
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

        def extremes(x: torch.Tensor):
            low = x.min().item()  # !
            high = x.max().item()  # !
            return low, high
        """,
        """
        import torch

        def extremes(x: torch.Tensor):
            low, high = torch.stack((x.min(), x.max())).tolist()
            return low, high
        """,
        Safety.SAFE,
        "x: int[...]",
    ),
    Example(
        """
        import torch

        def extremes(x: torch.Tensor):
            x, y = x.exp(), x.cos()
            low, high = x.mean().item(), y.mean().item()  # !
            return low, high
        """,
        """
        import torch

        def extremes(x: torch.Tensor):
            x, y = x.exp(), x.cos()
            low, high = torch.stack((x.mean(), y.mean())).tolist()
            return low, high
        """,
        Safety.UNSAFE,
        "x: float[n, m]",
    ),
    Example(
        """
        import torch

        def watch(x: torch.Tensor):
            loss, norm = x.sigmoid().mean(), x.float().norm()
            return {"loss": loss.item(), "norm": norm.item() / 2}  # !
        """,
        """
        import torch

        def watch(x: torch.Tensor):
            loss, norm = x.sigmoid().mean(), x.float().norm()
            loss_value, norm_value = torch.stack((loss, norm)).tolist()
            return {"loss": loss_value, "norm": norm_value / 2}
        """,
        Safety.UNSAFE,
        "x: finite[n]",
    ),
    Example(
        """
        import torch

        def watch(x: torch.Tensor, y: torch.Tensor, value: int):
            return x.mean().item(), y.mean().item(), y.mean().item() + value  # !
        """,
        """
        import torch

        def watch(x: torch.Tensor, y: torch.Tensor, value: int):
            mean_value, mean_value_2, mean_value_3 = torch.stack((x.mean(), y.mean(), y.mean())).tolist()
            return mean_value, mean_value_2, mean_value_3 + value
        """,
        Safety.UNSAFE,
        "x: finite[n]; y: finite[n]; value: count",
    ),
    Example(
        """
        import torch

        def losses(x: torch.Tensor):
            parts = {"error": x.square().mean(), "size": x.abs().mean()}
            every = [part.item() for part in parts.values()]  # !
            named = {name: part.item() for name, part in parts.items()}  # !
            return every, named
        """,
        """
        import torch

        def losses(x: torch.Tensor):
            parts = {"error": x.square().mean(), "size": x.abs().mean()}
            every = torch.stack(tuple(parts.values())).tolist()
            named = dict(zip(parts, torch.stack(tuple(parts.values())).tolist()))
            return every, named
        """,
        Safety.UNSAFE,
        "x: finite[n + 1]",
    ),
    Example(
        """
        import torch

        def loss(x: torch.Tensor):
            found = (x > 0).sum().item()  # !
            return x.sum() / max(found, 1)
        """,
        """
        import torch

        def loss(x: torch.Tensor):
            found = (x > 0).sum()
            return x.sum() / found.clamp(min=1)
        """,
        Safety.UNSAFE,
        "x: finite[n, m]",
    ),
    Example(
        """
        import torch

        def loss(error: torch.Tensor, label: torch.LongTensor):
            error, label = error.flatten(), label.flatten()
            negative = label == 0
            count = min(int((label > 0).sum()) * 3, int(negative.sum()))  # !
            hard, _ = error.masked_fill(~negative, 0).topk(count)
            return hard.sum() / (count + 1)
        """,
        """
        import torch

        def loss(error: torch.Tensor, label: torch.LongTensor):
            error, label = error.flatten(), label.flatten()
            negative = label == 0
            count = torch.minimum((label > 0).sum() * 3, negative.sum())
            hard = error.masked_fill(~negative, 0).sort(descending=True).values
            return torch.where(torch.arange(hard.shape[-1], device=hard.device) < count, hard, 0).sum() / (count + 1)
        """,
        Safety.UNSAFE,
        "error: normal[n, m]; label: label[n, m]",
    ),
    Example(
        """
        import torch

        def loss(error: torch.Tensor, label: torch.LongTensor):
            label = label.flatten()
            count = (label > 0).sum().item()  # !
            hard = error.flatten().sort(descending=True)[0][:count]
            return hard.mean()
        """,
        """
        import torch

        def loss(error: torch.Tensor, label: torch.LongTensor):
            label = label.flatten()
            count = (label > 0).sum()
            hard = error.flatten().sort(descending=True).values
            return torch.where(torch.arange(hard.shape[-1], device=hard.device) < count, hard, 0).sum() / count
        """,
        Safety.UNSAFE,
        "error: normal[n, m]; label: label[n, m]",
    ),
    Example(
        """
        import math
        import torch

        def step(x: torch.Tensor):
            loss = x.mean()
            if not math.isfinite(loss.item()):  # !
                raise ValueError("the loss is gone")
            return loss
        """,
        """
        import math
        import torch

        def step(x: torch.Tensor):
            loss = x.mean()
            torch._assert_async(torch.isfinite(loss), 'not math.isfinite(loss.item())')
            return loss
        """,
        Safety.SUGGEST,
        "x: finite[n + 1]",
    ),
    Example(
        """
        import math
        import sys
        import torch

        def step(x: torch.Tensor):
            loss = x.mean()
            value = loss.item()  # !
            if not math.isfinite(value):
                print(f"the loss is {value}")
                sys.exit(1)
            if torch.isnan(x).any().item():  # !
                raise ValueError("no numbers")
            return loss
        """,
        """
        import math
        import sys
        import torch

        def step(x: torch.Tensor):
            loss = x.mean()
            torch._assert_async(torch.isfinite(loss), 'not math.isfinite(value)')
            torch._assert_async(~torch.isnan(x).any(), 'torch.isnan(x).any().item()')
            return loss
        """,
        Safety.SUGGEST,
        "x: finite[n + 1]",
    ),
    Example(
        """
        import torch

        def values(parts: dict[str, torch.Tensor]):
            read = {}
            for name, part in parts.items():
                read[name] = part.item()  # !
            return read
        """,
        """
        import torch

        def values(parts: dict[str, torch.Tensor]):
            read = {}
            read.update(zip(parts, torch.stack(tuple(parts.values())).tolist()))
            return read
        """,
        Safety.UNSAFE,
    ),
    Example(
        """
        import torch

        def train(x: torch.Tensor, steps: int):
            seen = 0.0
            for step in range(steps):
                mean = (x * step).sigmoid().mean()
                value = mean.item()  # !
                if step % 3 == 0:
                    seen = value
            return seen
        """,
        """
        import torch

        def train(x: torch.Tensor, steps: int):
            seen = 0.0
            for step in range(steps):
                mean = (x * step).sigmoid().mean()
                if step % 3 == 0:
                    value = mean.item()
                    seen = value
            return seen
        """,
        Safety.SAFE,
        "x: float[...]; steps: count",
    ),
)


def message(site: Site, view: View) -> str | None:
    text = f"{view.quote(site.node)} waits for the device"
    return f"{text} on every pass of the loop" if in_loop(site) else text


def in_loop(site: Site) -> bool:
    """Whether the read stands in a loop of its function."""
    if site.function is None:
        return site.hot
    loops = (n for n in ast.walk(site.function) if isinstance(n, (ast.For, ast.While, ast.AsyncFor)))
    return any(n.lineno < site.place.line <= (n.end_lineno or 0) for n in loops)


def rewrite(site: Site, function: Function) -> Fix | None:
    if site.sure < 2:  # a guess is no ground to change code on
        return None
    return (
        hardest(site, function)
        or accumulated(site, function)
        or only_where_logged(site, function)
        or collected(site, function)
        or stacked(site, function)
        or stacked_values(site, function)
        or stacked_entries(site, function)
        or merged(site, function)
        or merged_in_statement(site, function)
        or clamped(site, function)
        or checked_later(site, function)
        or logged_rarely(site, function)
        or metered(site, function)
    )
