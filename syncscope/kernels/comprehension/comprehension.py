"""The door: a comprehension that can be called, differentiated, tuned and explained."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from syncscope.errors import UserError
from syncscope.kernels.comprehension.expressions import Name, Poly, poly
from syncscope.kernels.comprehension.gradient import Gradient, gradient, tidied
from syncscope.kernels.comprehension.notation import INTEGERS, parse
from syncscope.kernels.comprehension.runner import Runner, calling_line
from syncscope.kernels.comprehension.statements import show_function

Backward = Callable[..., Sequence[Tensor | None]]


class Comprehension(Runner):
    """A function in index notation, called with tensors and numbers in the order of its parameters.

    `float` stands for the tensors' own floating-point type, `int` for any integers. Results are new tensors: one, or a tuple.
    `backward` gives what cannot be derived: called with all arguments and then the gradients of the results, it gives a
    gradient or None for each argument. `sizes` are those of `example`, which `syncscope bench` asks for its inputs.

    Raises:
        NotationError: the text is no comprehension; a call's arguments do not fit it. The line is shown, with a caret.
    """

    def __init__(self, text: str, *, backward: Backward | None = None, sizes: Mapping[str, int] | None = None) -> None:
        super().__init__(parse(text))
        self.__name__ = self.function.name
        self.__doc__ = show_function(self.function)
        self._backward = backward
        self._sizes = dict(sizes or {})
        self._gradients: dict[frozenset[str], tuple[Gradient, Runner, Runner]] = {}

    def __repr__(self) -> str:
        return self.__doc__ or ""

    def __call__(self, *args: Any) -> Any:
        """The result, or a tuple of them. Nothing waits for the device."""
        if torch.is_grad_enabled() and any(isinstance(x, Tensor) and x.requires_grad for x in args):
            made = _Differentiable.apply(self, *args)
        else:
            made = self.results(args)
        return made[0] if len(made) == 1 else made

    @property
    def grad(self) -> str:
        """The gradient to all inputs of floating point, as a comprehension."""
        return show_function(tidied(gradient(self.function, self.ranges).function))

    def parts(self, wanted: frozenset[str]) -> tuple[Gradient, Runner, Runner]:
        """The gradient to some inputs; the function that also gives what it needs; and what computes it."""
        if wanted not in self._gradients:
            found = gradient(self.function, self.ranges, wanted)
            there = {*self.function.results, *(p.name for p in self.function.parameters)}
            results = (*self.function.results, *(name for name in found.takes if name not in there))
            longer = Runner(replace(self.function, results=results), self.ranges)
            self._gradients[wanted] = found, longer, Runner(found.function)
        return self._gradients[wanted]

    def forget(self) -> None:
        from syncscope.kernels import plans

        plans.forget()
        super().forget()
        for _, forward, backward in self._gradients.values():
            forward.forget()
            backward.forget()

    def explain(self, *args: Any) -> str:
        """Which statements became which kernel, over which ranges, and how near to the device's limits each of them is."""
        from syncscope.kernels.comprehension.explain import explain

        return explain(self, args)

    def source(self, *args: Any) -> str:
        """The OpenCL C of these arguments' kernels; that of products is the device's own."""
        plan = self.made(args).plan
        if plan is None:
            message = f"{self.function.name} has no kernels of its own for these arguments"
            raise UserError(message, "they run through torch; give tensors on ocl")
        return "\n".join(ready.source for ready in plan.units if ready.source)

    def tune(self, *args: Any, seconds: float = 30, quiet: bool = False) -> str:
        """Searches for faster kernels on this device for about `seconds`, and keeps them for arguments of this size.

        Ctrl-C ends the search and keeps what was found. Gives a line for each kernel: how many times as fast it became.
        """
        from syncscope.kernels.comprehension.tune import tune

        return tune(self, args, seconds, quiet)

    def example(self, device: str, batch: int) -> tuple[Any, ...]:
        """Arguments at random: the first size is `batch`, others are those of `sizes`, else 64; integers are below 8."""
        generator = torch.Generator().manual_seed(0)
        parameters = self.function.parameters
        sizes = {p.name: self._sizes.get(p.name, 1) for p in parameters if p.dims is None}
        names = dict.fromkeys(d.name for p in parameters for d in p.dims or () if isinstance(d, Name))
        sizes |= {name: batch if i == 0 else self._sizes.get(name, 64) for i, name in enumerate(names)}
        given = {name: Poly.of(int(value)) for name, value in sizes.items()}
        found: list[Any] = []
        for p in parameters:
            if p.dims is None:
                found.append(sizes[p.name])
                continue
            shape = [poly(dim).replaced(given).number or 0 for dim in p.dims]
            if p.type in INTEGERS:
                x = torch.randint(0, 8, shape, generator=generator)
            elif p.type == "bool":
                x = torch.rand(shape, generator=generator) < 0.5
            else:
                x = torch.randn(shape, generator=generator)
            found.append(x.to(device))
        return tuple(found)


class _Differentiable(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, made: Comprehension, *args: Any) -> tuple[Tensor, ...]:
        ctx.made, ctx.arguments, ctx.line = made, [None if isinstance(x, Tensor) else x for x in args], calling_line()
        inputs = [x for x in args if isinstance(x, Tensor)]
        if made._backward is not None:
            ctx.save_for_backward(*inputs)
            return _marked(ctx, made.results(args))
        names = [p.name for p in made.function.parameters]
        wanted = frozenset(n for n, x in zip(names, args, strict=True) if isinstance(x, Tensor) and x.requires_grad)
        ctx.gradient, ctx.forward_of, ctx.backward_of = made.parts(wanted)
        results = ctx.forward_of.results(args)
        ctx.save_for_backward(*inputs, *results)
        return _marked(ctx, results[: len(made.function.results)])

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, *given: Tensor) -> tuple[Any, ...]:
        made: Comprehension = ctx.made
        saved = iter(ctx.saved_tensors)
        args = [next(saved) if x is None else x for x in ctx.arguments]
        if made._backward is not None:
            return None, *made._backward(*args, *given)
        names = [p.name for p in made.function.parameters]
        known = dict(zip(names, args, strict=True)) | dict(zip(ctx.forward_of.function.results, saved, strict=True))
        found: Gradient = ctx.gradient
        incoming = dict(zip(made.function.results, given, strict=True))
        arguments = [*(known[n] for n in found.takes), *(incoming[n] for n in found.given)]
        gradients = dict(zip(found.makes, ctx.backward_of.results(arguments, ctx.line), strict=True))
        return None, *(gradients[n].to(x.dtype) if n in gradients else None for n, x in zip(names, args, strict=True))


def _marked(ctx: Any, results: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    ctx.mark_non_differentiable(*(x for x in results if not x.dtype.is_floating_point))
    return results
