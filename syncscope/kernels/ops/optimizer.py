"""Fused optimizers (`fused=True`): a few launches for all parameters and a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from syncscope.kernels import lists, storage
from syncscope.kernels.operators import NotNative, native
from syncscope.kernels.programs import text

Tensors = Sequence[Tensor]
_STEPS = text("optimizer")


def _check(parameters: Tensors) -> None:
    if not all(p.dtype.is_floating_point for p in parameters):
        raise NotNative


def _scaled(
    step: lists.Listwise, grad_scale: Tensor | None, found_inf: Tensor | None, otherwise: str = ""
) -> tuple[lists.Listwise, list[Tensor]]:
    """A step as GradScaler wants it, and what it reads besides: gradients divided by the scale, and where one of them was
    infinite, `otherwise` in place of the step."""
    divided = "" if grad_scale is None else "STORE(LOAD(grad, i) / grad_scale[0], grad, i); "
    skipped = "" if found_inf is None else f"if (found_inf[0] != 0) {{ {otherwise} continue; }} "
    given = {"grad_scale": grad_scale, "found_inf": found_inf}
    common = {name: tensor for name, tensor in given.items() if tensor is not None}
    return replace(step, statement=skipped + divided + step.statement, common=tuple(common)), list(common.values())


def _sgd(
    self: Tensors,
    grads: Tensors,
    momentum_buffer_list: Tensors,
    *,
    weight_decay: float,
    momentum: float,
    lr: float | Tensor,
    dampening: float,
    nesterov: bool,
    maximize: bool,
    is_first_step: bool,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
) -> None:
    """Stochastic gradient descent, with momentum if there are buffers for it."""
    _check(self)
    flags = [int(bool(momentum_buffer_list)), int(is_first_step), int(nesterov), int(maximize)]
    step = lists.Listwise(
        "sgd_step",
        f"sgd_step(p, grad, momenta, i, {', '.join(map(str, flags))}, lr, momentum, dampening, weight_decay);",
        ("p", "grad", "momenta"),
        numbers=("lr", "momentum", "dampening", "weight_decay"),
        helpers=_STEPS,
    )
    numbers = (_number(lr), momentum, dampening, weight_decay)
    # A momentum that was never written is not a momentum of the next step.
    step, scaling = _scaled(
        step, grad_scale, found_inf, "STORE(0, momenta, i);" * (is_first_step and bool(momentum_buffer_list))
    )
    lists.run(step, (self, grads, momentum_buffer_list or self), numbers=numbers, common=scaling)


def _adam(decoupled: bool) -> Callable[..., None]:
    def step(
        self: Tensors,
        grads: Tensors,
        exp_avgs: Tensors,
        exp_avg_sqs: Tensors,
        max_exp_avg_sqs: Tensors,
        state_steps: Tensors,
        *,
        lr: float | Tensor,
        beta1: float,
        beta2: float,
        weight_decay: float,
        eps: float,
        amsgrad: bool,
        maximize: bool,
        grad_scale: Tensor | None = None,
        found_inf: Tensor | None = None,
    ) -> None:
        """Adam, or AdamW if the decay is decoupled; `state_steps` are on the device and counted up already."""
        _check(self)
        if any(t.dtype != torch.float32 for t in state_steps):
            raise NotNative
        flags = f"{int(amsgrad)}, {int(decoupled)}, {int(maximize)}"
        step = lists.Listwise(
            "adam_step",
            f"adam_step(p, grad, means, squares, largest, i, {flags}, for_means, for_roots, "
            "lr, beta1, beta2, weight_decay, eps);",
            ("p", "grad", "means", "squares", "largest"),
            numbers=("lr", "beta1", "beta2", "weight_decay", "eps"),
            statistics=("step",),
            setup="CORRECTIONS(step[0])",
            helpers=_STEPS,
        )
        largest = max_exp_avg_sqs if amsgrad else self
        numbers = (_number(lr), beta1, beta2, weight_decay, eps)
        step, scaling = _scaled(step, grad_scale, found_inf)
        lists.run(step, (self, grads, exp_avgs, exp_avg_sqs, largest, state_steps), numbers=numbers, common=scaling)

    return step


def _number(lr: float | Tensor) -> float:
    if isinstance(lr, Tensor):
        if lr.device.type == storage.NAME:
            raise NotNative
        return float(lr.item())
    return lr


for _variant in ("", ".tensor_lr"):
    native["_fused_sgd_" + _variant] = _sgd
    native["_fused_adam_" + _variant] = _adam(decoupled=False)
    native["_fused_adamw_" + _variant] = _adam(decoupled=True)
