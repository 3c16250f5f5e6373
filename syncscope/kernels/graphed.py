"""Modules and functions whose passes are recorded once and replayed: what `torch.cuda.make_graphed_callables` is."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

from syncscope.errors import UserError
from syncscope.kernels import memory, queue
from syncscope.kernels.capture import Graph, made, recorded


def make_graphed_callables(
    callables: Any,
    sample_args: Any,
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: object = None,
) -> Any:
    """As `torch.cuda.make_graphed_callables`: the callable, or each of a tuple with a tuple of arguments of its own, made so
    that forward and backward are replays. A module's `forward` is replaced, and runs as before where it is not in the mode,
    training or evaluation, that it was recorded in.

    Arguments are tensors on the device, of the samples' shapes and dtypes from then on. What comes out, gradients too, lives
    until the next call, which overwrites it; what is kept as `.grad` stays. `pool` is taken for likeness: each callable has
    memory of its own.

    Raises:
        UserError: a pass waits for the device, or is not the same each time; an argument that is no tensor of the device; a
            module with hooks.
    """
    if not isinstance(callables, tuple):
        return _graphed(callables, sample_args, num_warmup_iters, allow_unused_input)
    if len(callables) != len(sample_args):
        raise UserError(
            f"{len(callables)} callables and arguments for {len(sample_args)}",
            "sample_args is a tuple of one tuple for each",
        )
    return tuple(
        _graphed(one, args, num_warmup_iters, allow_unused_input)
        for one, args in zip(callables, sample_args, strict=True)
    )


def _graphed(of: Any, sample_args: tuple[Any, ...], warm: int, unused: bool) -> Any:
    given, form = tree_flatten(sample_args)
    if not all(isinstance(x, Tensor) and x.device.type == "ocl" for x in given):
        raise UserError("an argument is no tensor of ocl", "what a graph reads lies on the device: x.to('ocl')")
    if isinstance(of, nn.Module) and any((of._forward_hooks, of._forward_pre_hooks, of._backward_hooks)):
        raise UserError(
            "the module has hooks, which a replay does not call", "register them after make_graphed_callables"
        )
    parameters = tuple(of.parameters()) if isinstance(of, nn.Module) else ()
    inputs = (*given, *parameters)
    passes = _Passes(functools.partial(of, *sample_args), inputs, len(given), max(1, warm), unused)

    class Replayed(torch.autograd.Function):
        @staticmethod
        def forward(ctx: FunctionCtx, *now: Tensor) -> tuple[Tensor, ...]:
            passes.leave_gradients()
            passes.take(now)
            passes.forward.replay()
            return tuple(x.detach() for x in passes.outputs)

        @staticmethod
        def backward(ctx: FunctionCtx, *slopes: Tensor) -> tuple[Tensor | None, ...]:
            return passes.slopes(slopes)

    @functools.wraps(of.forward if isinstance(of, nn.Module) else of)
    def run(*args: object) -> object:
        now, its_form = tree_flatten(args)
        if its_form != form:
            raise UserError(
                "the arguments are nested otherwise than those it was recorded with", "call it as sample_args say"
            )
        return tree_unflatten(Replayed.apply(*now, *parameters), passes.form)

    if not isinstance(of, nn.Module):
        return run
    plainly, training = of.forward, of.training
    of.forward = lambda *args, **kwargs: (
        run(*args) if of.training is training and not kwargs else plainly(*args, **kwargs)
    )
    return of


class _Passes:
    """A forward and a backward pass, recorded on memory of their own, and the tensors that go in and come out."""

    def __init__(
        self, call: Callable[[], object], inputs: tuple[Tensor, ...], given: int, warm: int, unused: bool
    ) -> None:
        self.inputs, self.given = inputs, given
        self.asked = tuple(x for x in inputs if x.requires_grad)
        self.form: TreeSpec | None = None

        def forward() -> tuple[Tensor, ...]:
            flat, self.form = tree_flatten(call())
            return tuple(flat)

        def backward(outputs: tuple[Tensor, ...]) -> tuple[Tensor | None, ...]:
            roots = [x for x in outputs if x.requires_grad]
            given_slopes = [g for g, x in zip(self.given_slopes, outputs, strict=True) if x.requires_grad]
            if not roots or not self.asked:
                return ()
            slopes: tuple[Tensor | None, ...] = torch.autograd.grad(
                roots, self.asked, given_slopes, allow_unused=unused
            )
            return slopes

        for _ in range(warm):
            outputs = forward()
            self.given_slopes = [torch.empty_like(x) for x in outputs]
            backward(outputs)
        queue.settle()
        pool, runs = memory.new_pool(), []
        with memory.taken_from(pool):
            for _ in range(2):
                there = recorded(forward)
                back = recorded(functools.partial(backward, there[2]))
                runs.append((there, back))
        (first, first_back), (second, second_back) = runs
        self.forward: Graph = made((first[0], second[0]), second[1], None, pool)
        self.backward: Graph = made((first_back[0], second_back[0]), second_back[1], None, pool)
        self.outputs: tuple[Tensor, ...] = second[2]
        found = iter(second_back[2])
        self.found = tuple(next(found, None) if x.requires_grad else None for x in inputs)

    def take(self, now: tuple[Tensor, ...]) -> None:
        """Puts what a call was given to where the recording read it."""
        for kept, x in zip(self.inputs[: self.given], now, strict=False):
            if x.shape != kept.shape or x.dtype != kept.dtype:
                was = f"{tuple(kept.shape)} of {kept.dtype}"
                raise UserError(
                    f"an argument is {tuple(x.shape)} of {x.dtype}, and was {was} when it was recorded",
                    "a graph is of fixed shape: make another one, or pad",
                )
            if x.data_ptr() != kept.data_ptr():
                with torch.no_grad():
                    kept.copy_(x)

    def leave_gradients(self) -> None:
        """Gives gradients memory of their own: PyTorch may have taken ours for them, and they may be added to."""
        for x, found in zip(self.inputs, self.found, strict=True):
            if found is not None and x.grad is not None and x.grad.data_ptr() == found.data_ptr():
                x.grad = x.grad.clone()

    def slopes(self, given: tuple[Tensor, ...]) -> tuple[Tensor | None, ...]:
        """The gradients of the inputs."""
        for kept, slope in zip(self.given_slopes, given, strict=True):
            if slope is not None and slope.data_ptr() != kept.data_ptr():
                kept.copy_(slope)
        self.backward.replay()
        return tuple(None if x is None else x.detach() for x in self.found)
