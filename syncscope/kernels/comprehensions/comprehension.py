"""The door: a comprehension that can be called, differentiated, tuned and explained."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from syncscope.errors import UserError
from syncscope.kernels.comprehensions.dtypes import Argument
from syncscope.kernels.comprehensions.expressions import Poly
from syncscope.kernels.comprehensions.gradient import gradient, gradient_of, tidied
from syncscope.kernels.comprehensions.notation import INTEGERS, parse
from syncscope.kernels.comprehensions.runner import Runner, calling_line
from syncscope.kernels.comprehensions.statements import show_function

Backward = Callable[..., Sequence[Tensor | None]]


@dataclass(frozen=True, slots=True)
class Parts:
    """What a call with gradients of some inputs runs, and how it hands over: tensors go by their numbers."""

    forward: Runner  # also gives what the gradient needs
    backward: Runner
    takes: tuple[int, ...]  # of backward's arguments, before gradients: which of forward's arguments and then results
    given: tuple[int, ...]  # behind these: the gradients of which results
    made: tuple[int | None, ...]  # of each argument: which result of backward is its gradient


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
        self._gradients: dict[frozenset[str], Parts] = {}

    def __repr__(self) -> str:
        return self.__doc__ or ""

    def __call__(self, *args: Argument) -> Any:
        """The result, or a tuple of them. Nothing waits for the device."""
        if torch.is_grad_enabled() and any(isinstance(x, Tensor) and x.requires_grad for x in args):
            made = _Differentiable.apply(self, *args)
        else:
            made = self.results(args)
        return made[0] if len(made) == 1 else made

    @property
    def grad(self) -> str:
        """The gradient to all inputs of floating point, as a comprehension."""
        return show_function(tidied(gradient(self.function)))

    def parts(self, wanted: frozenset[str]) -> Parts:
        """What computes the results and then the gradient to some inputs."""
        if wanted not in self._gradients:
            found = gradient(self.function, wanted)
            results, takes = self.function.results, [p.name for p in found.parameters]
            own = [gradient_of(self.function, name) for name in results]
            longer = (*results, *(name for name in takes if name not in {*results, *self.names, *own}))
            known, made = (*self.names, *longer), {name: i for i, name in enumerate(found.results)}
            if not takes:  # nothing depends on an input
                made = {}
            self._gradients[wanted] = Parts(
                Runner(replace(self.function, results=longer)),
                Runner(found),
                tuple(known.index(name) for name in takes if name not in own),
                tuple(own.index(name) for name in takes if name in own),
                tuple(made.get(gradient_of(self.function, name)) for name in self.names),
            )
        return self._gradients[wanted]

    def forget(self) -> None:
        from syncscope.kernels import plans

        plans.forget()
        super().forget()
        for parts in self._gradients.values():
            parts.forward.forget()
            parts.backward.forget()

    def explain(self, *args: Argument) -> str:
        """Which statements became which kernel, over which ranges, and how near to the device's limits each of them is."""
        from syncscope.kernels.comprehensions.explain import explain

        return explain(self, args)

    def source(self, *args: Argument) -> str:
        """The OpenCL C of these arguments' kernels; that of products is the device's own."""
        plan = self.made(args).plan
        if plan is None:
            message = f"{self.function.name} has no kernels of its own for these arguments"
            raise UserError(message, "they run through torch; give tensors on ocl")
        return "\n".join(ready.source for ready in plan.units if ready.source)

    def tune(self, *args: Argument, seconds: float = 30, quiet: bool = False) -> str:
        """Searches for faster kernels on this device for about `seconds`, and keeps them for arguments of this size.

        Ctrl-C ends the search and keeps what was found. Gives a line for each kernel: how many times as fast it became.
        """
        from syncscope.kernels.comprehensions.tune import tune

        return tune(self, args, seconds, quiet)

    def example(self, device: str, batch: int) -> tuple[Argument, ...]:
        """Arguments at random: the first size is `batch`, others are those of `sizes`, else 64; integers are below 8."""
        generator = torch.Generator().manual_seed(0)
        parameters = self.function.parameters
        sizes = {p.name: self._sizes.get(p.name, 1) for p in parameters if p.dims is None}
        names = dict.fromkeys(d.name for p in parameters for d in p.dims or () if d.name)
        sizes |= {name: batch if i == 0 else self._sizes.get(name, 64) for i, name in enumerate(names)}
        given = {name: Poly.of(int(value)) for name, value in sizes.items()}
        found: list[Argument] = []
        for p in parameters:
            if p.dims is None:
                found.append(sizes[p.name])
                continue
            shape = [dim.replaced(given).number or 0 for dim in p.dims]
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
    def forward(ctx: FunctionCtx, made: Comprehension, *args: Argument) -> tuple[Tensor, ...]:
        ctx.made = made
        if made._backward is not None:
            return _kept(ctx, args, made.results(args))
        ctx.line = line = calling_line()
        ctx.parts = parts = made.parts(frozenset(compress(made.names, ctx.needs_input_grad[1:])))
        results = parts.forward.results(args, line)
        known = (*args, *results)
        return _kept(ctx, [known[i] for i in parts.takes], results[: len(made.function.results)])

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: FunctionCtx, *given: Tensor) -> tuple[Argument, ...]:
        saved = iter(ctx.saved_tensors)
        taken = [next(saved) if x is None else x for x in ctx.taken]
        if ctx.made._backward is not None:
            return None, *ctx.made._backward(*taken, *given)
        parts: Parts = ctx.parts
        gradients = parts.backward.results([*taken, *(given[i] for i in parts.given)], ctx.line)
        # autograd converts to the inputs' dtypes
        return None, *(None if i is None else gradients[i] for i in parts.made)


def _kept(ctx: FunctionCtx, taken: Sequence[Argument], results: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """The results, with what backward takes kept."""
    ctx.taken = [None if isinstance(x, Tensor) else x for x in taken]
    ctx.save_for_backward(*(x for x in taken if isinstance(x, Tensor)))
    ctx.mark_non_differentiable(*(x for x in results if not x.dtype.is_floating_point))
    return results
