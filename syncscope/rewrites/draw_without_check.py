"""`torch.normal(mean, std)` as `mean + std * torch.randn_like(mean + std)`: torch waits for whether a deviation is negative."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.mixed import mixed
from syncscope.codemod.pattern import seen
from syncscope.codemod.patterns.distributions import in_no_grad
from syncscope.codemod.proofs import one_value, same_shape
from syncscope.codemod.templates import Part
from syncscope.model.example import Example
from syncscope.model.fact import Site, Value
from syncscope.model.finding import Fix, Safety

CALLS = ("torch.normal({m}, {s})", "torch.normal(mean={m}, std={s})", "torch.normal({m}, std={s})")
ZEROS = ("torch.zeros_like({x})", "0", "0.0")
ONES = ("torch.ones_like({x})", "torch.ones_like({x}) * {c}", "{c} * torch.ones_like({x})")
EXAMPLES = (
    Example(
        """
        import torch

        def sample(mean: torch.Tensor, log_variance: torch.Tensor):
            std = torch.exp(0.5 * log_variance)
            with torch.no_grad():
                return torch.normal(mean, std)  # !
        """,
        """
        import torch

        def sample(mean: torch.Tensor, log_variance: torch.Tensor):
            std = torch.exp(0.5 * log_variance)
            with torch.no_grad():
                return mean + std * torch.randn_like(mean + std)
        """,
        Safety.UNSAFE,
    ),
    Example(
        """
        import torch

        def disturbed(x: torch.Tensor, scale: float):
            spread = scale * x.std(dim=0, keepdim=True).expand_as(x)
            with torch.no_grad():
                noise = torch.normal(mean=0.0, std=spread)  # !
            return x + noise, torch.normal(torch.zeros_like(x), torch.ones_like(x))  # !
        """,
        """
        import torch

        def disturbed(x: torch.Tensor, scale: float):
            spread = scale * x.std(dim=0, keepdim=True).expand_as(x)
            with torch.no_grad():
                noise = spread * torch.randn_like(spread)
            return x + noise, torch.randn_like(x)
        """,
        Safety.UNSAFE,
    ),
    Example(
        """
        import torch

        def smeared(x: torch.Tensor, scale: float):
            b, n = x.shape
            return x * torch.normal(mean=1, std=scale * torch.ones((b, n), device=x.device))  # !
        """,
        """
        import torch

        def smeared(x: torch.Tensor, scale: float):
            b, n = x.shape
            return x * (1 + scale * torch.randn((b, n), device=x.device))
        """,
        Safety.UNSAFE,
    ),
    Example(
        """
        import torch

        def encoded(mean: torch.Tensor, log_variance: torch.Tensor):
            return torch.normal(mean, torch.exp(log_variance))  # !
        """,
        """
        import torch

        def encoded(mean: torch.Tensor, log_variance: torch.Tensor):
            std = torch.exp(log_variance)
            return mean + std * torch.randn_like(mean + std)
        """,
        Safety.SUGGEST,
    ),
)
FILLED = ("torch.ones(*_, **_)", "{c} * torch.ones(*_, **_)", "torch.ones(*_, **_) * {c}")
CHECKED = "a negative deviation no longer raises an error"


def rewrite(site: Site, function: Function) -> Fix | None:
    call = site.node
    found = seen(function, call, *CALLS)
    if found is None or not isinstance(call, ast.Call):
        return None
    mean, std = found["m"], found["s"]
    if not function.fact(std).is_tensor or mixed(function, std):
        return None
    draft, changes, text = Draft(function), [CHECKED], function.file.text
    centred, even = seen(function, mean, *ZEROS) is not None, seen(function, std, *ONES)
    parts: dict[str, Part] = {}
    if even is not None and all(function.pure(part) for part in even.values()):
        noise, parts = "{c} * torch.randn_like({x})" if "c" in even else "torch.randn_like({x})", {**even}
    elif (centred or one_value(function, function.fact(mean), mean)) and (filled := spread(function, std)) is not None:
        number, ones = filled
        noise, parts["drawn"] = "{drawn}", draft.swapped(std, {ones.func: draft.part("torch.randn")})
        if number is not None and function.fact(number).kind is not Value.SCALAR:
            changes.append(f"{text(number)} must be a number")
        even = {}
    else:
        parts["s"] = name = draft.named(std, "std")
        if name is std and not function.pure(std):
            return None
        noise = "{s} * torch.randn_like({s})"
    safety = Safety.UNSAFE
    if not centred and not one_value(function, function.fact(mean), mean) and not same_shape(function, mean, std):
        if even is None and function.pure(mean):
            # the one may be spread to the other's shape
            noise, parts["of"] = "{s} * torch.randn_like({of} + {s})", mean
        else:
            changes.append(f"{text(mean)} and {text(std)} must have one shape")
            safety = Safety.SUGGEST
    parts_of = [*([] if centred else [mean]), *([] if even is not None else [std])]
    through = [text(part) for part in parts_of if function.fact(part).is_tensor]
    if through and not in_no_grad(function, call):
        safety = Safety.SUGGEST
        changes.append(f"gradients go through {' and '.join(through)}, which it had kept back")
    draft.replace(call, noise if centred else f"{{m}} + {noise}", m=mean, **parts)
    return draft.fix("draw the noise, and scale it", safety, *changes)


def spread(function: Function, std: ast.expr) -> tuple[ast.expr | None, ast.Call] | None:
    """The number, if any, and the call of `scale * torch.ones(shape)`: a deviation that is the same everywhere."""
    found = seen(function, std, *FILLED)
    calls = (n for n in ast.walk(std) if isinstance(n, ast.Call) and function.dotted(n.func) == "torch.ones")
    ones, number = next(calls, None), found.get("c") if found is not None else None
    if found is None or ones is None or (number is not None and function.fact(number).is_tensor):
        return None
    return number, ones
