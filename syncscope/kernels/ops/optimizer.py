"""Fused optimizers (`fused=True`): one kernel for each parameter and step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from syncscope.kernels import queue, storage
from syncscope.kernels.operators import NotNative, native
from syncscope.kernels.programs import C_TYPE, kernel, supported

Tensors = Sequence[Tensor]


def _check(lists: Sequence[Tensors], scale: Any, found_inf: Any) -> None:
    for tensors in lists:
        for x in tensors:
            if (
                not (supported(x.dtype) and x.dtype.is_floating_point and x.is_contiguous())
                or x.dtype != lists[0][0].dtype
            ):
                raise NotNative
    if scale is not None or found_inf is not None:
        raise NotNative


def _launch(name: str, p: Tensor, *arguments: Any) -> None:
    if p.numel():
        size = (-(-p.numel() // 64) * 64,)
        queue.launch(kernel("optimizer", name, T=C_TYPE[p.dtype]), size, (64,), *_at(p), *arguments, p.numel())


def _at(x: Tensor) -> tuple[Any, int]:
    return storage.buffer(x), x.storage_offset()


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
    _check((self, grads, momentum_buffer_list), grad_scale, found_inf)
    rate = _number(lr)
    for i, (p, grad) in enumerate(zip(self, grads, strict=True)):
        buffer = momentum_buffer_list[i] if momentum_buffer_list else p
        _launch(
            "sgd_step", p, *_at(grad), *_at(buffer), int(bool(momentum_buffer_list)), int(is_first_step), int(nesterov),
            int(maximize), rate, momentum, dampening, weight_decay,
        )  # fmt: skip


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
        """Adam, or AdamW if the decay is decoupled."""
        _check((self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs), grad_scale, found_inf)
        if any(t.dtype != torch.float32 for t in state_steps):
            raise NotNative
        rate = _number(lr)
        for i, p in enumerate(self):
            largest = max_exp_avg_sqs[i] if amsgrad else p
            _launch(
                "adam_step", p, *_at(grads[i]), *_at(exp_avgs[i]), *_at(exp_avg_sqs[i]), *_at(largest), int(amsgrad),
                *_at(state_steps[i]), int(decoupled), int(maximize), rate, beta1, beta2, weight_decay, eps,
            )  # fmt: skip

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
