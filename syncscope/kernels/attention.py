"""`scaled_dot_product_attention` as a whole: PyTorch leaves it to a device's own kernels only where they are in C++.

How their gradients are made PyTorch knows by itself, but for gradients of these.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from syncscope.kernels import operators, plans, precision, storage
from syncscope.kernels.programs import floating

_forward = torch.ops.aten._scaled_dot_product_fused_attention_overrideable.default
_BACKWARD = "_scaled_dot_product_fused_attention_overrideable_backward"
_parts = torch.ops.aten._scaled_dot_product_attention_math.default
_whole = torch.ops.aten.scaled_dot_product_attention.default


def install(library: torch.library.Library) -> None:
    """Registers it before autograd, and for where there is none; its backward pass before autograd, which knows no further."""
    for key in ("AutogradPrivateUse1", "PrivateUse1"):
        library.impl("scaled_dot_product_attention", attention, key)
    kernel = operators.watched(_BACKWARD, operators.native[_BACKWARD])

    def backward(*args: Any, scale: float | None = None) -> object:
        return _by_parts(*args, scale=scale) if torch.is_grad_enabled() else kernel(*args, scale=scale)

    library.impl(_BACKWARD, plans.followed(f"aten::{_BACKWARD}", backward, _settings), "AutogradPrivateUse1")


def _settings() -> int:
    return 2 if torch.is_grad_enabled() else int(precision.products())


def attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0, is_causal: bool = False,
    *, scale: float | None = None, enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    """Attention of (batch, heads, length, width); with dropout, grouped heads, or a mask's gradients by PyTorch's parts."""
    if dropout_p or enable_gqa or not _fits(query, key, value) or not _mask_fits(attn_mask, query, key, is_causal):
        composed: Tensor = _whole.decompose(
            query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
        )
        return composed
    made: Tensor = _forward(query, key, value, attn_mask, 0.0, is_causal, False, scale=scale)[0]
    return made


def _fits(query: Tensor, key: Tensor, value: Tensor) -> bool:
    return (
        query.dtype is key.dtype is value.dtype
        and query.device.type == key.device.type == value.device.type == storage.NAME
        and _shapes_fit(query.shape, key.shape, value.shape, query.dtype)
    )


@functools.lru_cache(1024)
def _shapes_fit(query: torch.Size, key: torch.Size, value: torch.Size, dtype: torch.dtype) -> bool:
    return (
        len(query) == len(key) == len(value) == 4
        and query[:2] == key[:2] == value[:2]
        and query[3] == key[3]
        and key[2] == value[2]
        and not any(0 in shape for shape in (query, key, value))
        and floating(dtype)
    )


def _mask_fits(mask: Tensor | None, query: Tensor, key: Tensor, causal: bool) -> bool:
    if mask is None:
        return True
    shape = (*query.shape[:3], key.shape[2])
    broadcasts = mask.dim() <= 4 and all(
        a in (1, b) for a, b in zip(reversed(mask.shape), reversed(shape), strict=False)
    )
    kind = mask.dtype in (query.dtype, torch.bool) and mask.device.type == storage.NAME
    return broadcasts and kind and not causal and not mask.requires_grad


def _by_parts(
    grad: Tensor, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, wanted: Sequence[bool], out: Tensor,
    logsumexp: Tensor, cum_seq_q: None, cum_seq_k: None, max_q: int, max_k: int, dropout_p: float, is_causal: bool, *_: None,
    scale: float | None = None,
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """Gradients that have gradients themselves: PyTorch's of its own parts."""
    given = [x for x, asked in zip((query, key, value), wanted, strict=False) if asked]
    anew = _parts(query, key, value, mask, 0.0, is_causal, scale=scale)[0]
    found = iter(torch.autograd.grad(anew, given, grad, create_graph=True))
    return (*(next(found) if asked else None for asked in wanted[:3]), None)
