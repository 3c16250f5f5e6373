"""The door: a comprehension that can be called, differentiated, tuned and explained."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import monotonic_ns
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from syncscope.errors import UserError
from syncscope.kernels.comprehension import on_torch, tree
from syncscope.kernels.comprehension.algebra import Poly, poly
from syncscope.kernels.comprehension.derived import tidied
from syncscope.kernels.comprehension.gradient import Gradient, gradient
from syncscope.kernels.comprehension.notation import INTEGERS, parse
from syncscope.kernels.comprehension.program import Program, bind
from syncscope.kernels.comprehension.ranges import Ranges, infer
from syncscope.kernels.comprehension.tree import Function, Name
from syncscope.kernels.comprehension.words import NotationError

_KEPT = 256  # shapes whose plans are kept
Backward = Callable[..., Sequence[Tensor | None]]


class Comprehension:
    """A function in index notation, called with tensors and numbers in the order of its parameters.

    `float` stands for the tensors' own floating-point type, `int` for any integers. Results are new tensors: one, or a tuple.
    `backward` gives what cannot be derived: called with all arguments and then the gradients of the results, it gives a
    gradient or None for each argument. `sizes` are those of `example`, which `syncscope bench` asks for its inputs.

    Raises:
        NotationError: the text is no comprehension; a call's arguments do not fit it. The line is shown, with a caret.
    """

    def __init__(self, text: str, *, backward: Backward | None = None, sizes: Mapping[str, int] | None = None) -> None:
        self.function = parse(text)
        self.ranges = infer(self.function)
        self.__name__ = self.function.name
        self.__doc__ = tree.show_function(self.function)
        self._backward = backward
        self._sizes = dict(sizes or {})
        self._made: dict[Any, _Made] = {}
        self._told: dict[str, str] = {}  # by line: the name under which observers hear of a call there
        self._kept: Callable[..., tuple[Tensor, ...]] | None = None  # follows its own notes, see kernels/plans.py
        self._gradients: dict[frozenset[str], tuple[Gradient, Comprehension, Comprehension]] = {}

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
        return tree.show_function(tidied(gradient(self.function, self.ranges).function))

    def results(self, args: Sequence[Any], line: str = "") -> tuple[Tensor, ...]:
        """The results in order, without a gradient; `line` is whose they are, for whoever observes, else the caller's own."""
        if not any(isinstance(x, Tensor) and x.device.type == "ocl" for x in args):
            return self._computed(*args)
        from syncscope.kernels import plans, queue

        begin = monotonic_ns()
        if self._kept is None:
            self._kept = plans.kept(self._computed)
        results: tuple[Tensor, ...] = self._kept(*args)
        if queue.observers:
            line = line or _caller()
            name = self._told.setdefault(
                line, f"comprehension::{self.__name__} at {line}"
            )  # observers know it by identity
            for observer in queue.observers:
                observer(name, begin, False, tuple(args), {}, results)
        return results

    def _computed(self, *args: Any) -> tuple[Tensor, ...]:
        known = self.made(args).run(args)
        return tuple(known[name] for name in self.function.results)

    def made(self, args: Sequence[Any]) -> _Made:
        """What runs these arguments, and any others that are like them."""
        key = tuple(_like(p.type, x) for p, x in zip(self.function.parameters, args, strict=False)), len(args)
        found = self._made.get(key)
        if found is None:
            if len(self._made) >= _KEPT:
                self._made.clear()
            found = self._made[key] = _Made(self.function, self.ranges, args)
        return found

    def forget(self) -> None:
        """Plans are made anew, as after tuning."""
        from syncscope.kernels import plans

        plans.forget()
        self._made.clear()
        for _, forward, backward in self._gradients.values():
            forward.forget()
            backward.forget()

    def parts(self, wanted: frozenset[str]) -> tuple[Gradient, Comprehension, Comprehension]:
        """The gradient to some inputs; the function that also gives what it needs; and what computes it."""
        if wanted not in self._gradients:
            found = gradient(self.function, self.ranges, wanted)
            inputs = {p.name for p in self.function.parameters}
            kept = [name for name in found.takes if name not in inputs and name not in self.function.results]
            longer = tree.Function(
                self.function.name, self.function.parameters, (*self.function.results, *kept), self.function.statements,
                self.function.text, self.function.at,
            )  # fmt: skip
            self._gradients[wanted] = found, _of(longer, self.ranges), _of(found.function, infer(found.function))
        return self._gradients[wanted]

    def explain(self, *args: Any) -> str:
        """Which statements became which kernel, over which ranges, and how near to the device's limits each of them is."""
        from syncscope.kernels.comprehension.explain import explain

        return explain(self, args)

    def source(self, *args: Any) -> str:
        """The OpenCL C of these arguments' kernels; that of products is the device's own."""
        plan = self.made(args).plan
        if plan is None:
            raise UserError(
                f"{self.function.name} has no kernels of its own for these arguments",
                "they run through torch; give tensors on ocl",
            )
        return "\n".join(ready.source for ready in plan.units if ready.source)

    def tune(self, *args: Any, seconds: float = 30, quiet: bool = False) -> str:
        """Searches for faster kernels on this device for about `seconds`, and keeps them for arguments of this size.

        Ctrl-C ends the search and keeps what was found. Gives a line for each kernel: how many times as fast it became.
        """
        from syncscope.kernels.comprehension.tune import tune

        return tune(self, args, seconds, quiet)

    def example(self, device: str, batch: int) -> tuple[Any, ...]:
        """Arguments at random: the first size is `batch`, others are those of `sizes`, else 64; integers are below 8."""
        sizes: dict[str, int] = {}
        generator = torch.Generator().manual_seed(0)
        found: list[Any] = []
        for p in self.function.parameters:
            for dim in p.dims or ():
                if isinstance(dim, Name):
                    sizes.setdefault(dim.name, self._sizes.get(dim.name, 64) if sizes else batch)
        numbers = {p.name: self._sizes.get(p.name, 1) for p in self.function.parameters if p.dims is None}
        for p in self.function.parameters:
            if p.dims is None:
                found.append(numbers[p.name])
                continue
            given = {name: Poly.of(int(value)) for name, value in (sizes | numbers).items()}
            shape = [poly(dim).replaced(given).number or 0 for dim in p.dims]
            if p.type in INTEGERS:
                x = torch.randint(0, 8, shape, generator=generator)
            elif p.type == "bool":
                x = torch.rand(shape, generator=generator) < 0.5
            else:
                x = torch.randn(shape, generator=generator)
            found.append(x.to(device))
        return tuple(found)


def _of(function: Function, ranges: Ranges) -> Comprehension:
    """A comprehension that is parsed already."""
    made = Comprehension.__new__(Comprehension)
    made.function, made.ranges = function, ranges
    made.__name__, made.__doc__ = function.name, ""
    made._backward, made._sizes, made._made, made._gradients, made._kept, made._told = None, {}, {}, {}, None, {}
    return made


def _like(type_: str, x: Any) -> Any:
    """What of an argument its plan depends on."""
    if isinstance(x, Tensor):
        return x.dtype, x.shape, x.stride(), x.storage_offset() % 4, x.device
    return x if type_ in INTEGERS else type(x)


class _Made:
    """What a comprehension is for certain shapes: the program, and on ocl the plan."""

    def __init__(self, function: Function, ranges: Ranges, args: Sequence[Any]) -> None:
        self.program: Program = bind(function, ranges, args)
        self.names = tuple(p.name for p in function.parameters)
        self.plan: Any = None
        tensors = {n: x for n, x in zip(self.names, args, strict=True) if isinstance(x, Tensor)}
        devices = {x.device for x in tensors.values()}
        if len(devices) > 1:
            said = ", ".join(f"{n} on {x.device}" for n, x in tensors.items())
            raise NotationError(
                function.text, function.at, f"the tensors of {function.name} are on several devices", said
            )
        if any(x.is_complex() for x in tensors.values()):
            raise NotationError(
                function.text, function.at, "complex numbers are no comprehension's", "give real and imaginary parts"
            )
        if devices and devices.pop().type == "ocl":
            from syncscope.kernels.comprehension import on_ocl
            from syncscope.kernels.operators import NotNative

            with contextlib.suppress(NotNative):  # then it runs through torch, operator by operator
                self.plan = on_ocl.plan(bind(function, ranges, args), tensors)

    def strides(self, args: Sequence[Any]) -> dict[str, tuple[int, ...]]:
        """How all tensors of the plan lie."""
        from syncscope.kernels.storage import contiguous_stride

        program = self.plan.program
        found = {name: tuple(contiguous_stride(shape)) for name, shape in program.shapes.items()}
        return found | {n: tuple(x.stride()) for n, x in zip(self.names, args, strict=True) if isinstance(x, Tensor)}

    def run(self, args: Sequence[Any]) -> Mapping[str, Tensor]:
        """Everything that these arguments give, by name."""
        known = dict(zip(self.names, args, strict=True))
        found: Mapping[str, Tensor] = self.plan(known) if self.plan is not None else on_torch.run(self.program, known)
        return found


_OURS = (str(Path(__file__).parents[2]) + "/", str(Path(torch.__file__).parent) + "/")


def _caller() -> str:
    """The user's line among the callers, as file:line."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


class _Differentiable(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, made: Comprehension, *args: Any) -> tuple[Tensor, ...]:
        ctx.made, ctx.arguments, ctx.line = made, [None if isinstance(x, Tensor) else x for x in args], _caller()
        inputs = [x for x in args if isinstance(x, Tensor)]
        if made._backward is not None:
            ctx.save_for_backward(*inputs)
            return _marked(ctx, made.results(args))
        names = [p.name for p in made.function.parameters]
        wanted = frozenset(n for n, x in zip(names, args, strict=True) if isinstance(x, Tensor) and x.requires_grad)
        ctx.gradient, forward, ctx.backward_of = made.parts(wanted)
        results = forward.results(args)
        count = len(made.function.results)
        ctx.kept = forward.function.results[count:]
        ctx.save_for_backward(*inputs, *results)
        return _marked(ctx, results[:count])

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, *given: Tensor) -> tuple[Any, ...]:
        made: Comprehension = ctx.made
        saved = iter(ctx.saved_tensors)
        args = [next(saved) if x is None else x for x in ctx.arguments]
        if made._backward is not None:
            return None, *made._backward(*args, *given)
        names = [p.name for p in made.function.parameters]
        known = dict(zip(names, args, strict=True)) | dict(zip((*made.function.results, *ctx.kept), saved, strict=True))
        found: Gradient = ctx.gradient
        incoming = dict(zip(made.function.results, given, strict=True))
        arguments = [*(known[n] for n in found.takes), *(incoming[n] for n in found.given)]
        gradients = dict(zip(found.makes, ctx.backward_of.results(arguments, ctx.line), strict=True))
        return None, *(_fitting(gradients.get(n), x) for n, x in zip(names, args, strict=True))


def _marked(ctx: Any, results: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    ctx.mark_non_differentiable(*(x for x in results if not x.dtype.is_floating_point))
    return results


def _fitting(gradient: Tensor | None, argument: Any) -> Tensor | None:
    return None if gradient is None else gradient.to(argument.dtype)
