"""`scaled_dot_product_attention` as a whole: PyTorch leaves it to a device's own kernels only where they are in C++."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx

from syncscope.kernels import storage
from syncscope.kernels.programs import floating

_forward = torch.ops.aten._scaled_dot_product_fused_attention_overrideable.default
_backward = torch.ops.aten._scaled_dot_product_fused_attention_overrideable_backward.default
_parts = torch.ops.aten._scaled_dot_product_attention_math.default
_whole = torch.ops.aten.scaled_dot_product_attention.default


def install(library: torch.library.Library) -> None:
    """Registers it before autograd, and for where there is none."""
    for key in ("AutogradPrivateUse1", "PrivateUse1"):
        library.impl("scaled_dot_product_attention", attention, key)


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
    if not (torch.is_grad_enabled() and any(x.requires_grad for x in (query, key, value))):
        made: Tensor = _forward(query, key, value, attn_mask, 0.0, is_causal, False, scale=scale)[0]
        return made
    out: Tensor = _Attention.apply(query, key, value, attn_mask, is_causal, scale)
    return out


def _fits(query: Tensor, key: Tensor, value: Tensor) -> bool:
    tensors = (query, key, value)
    alike = all(x.dim() == 4 and x.dtype is query.dtype and x.device.type == storage.NAME for x in tensors)
    return (
        alike
        and floating(query.dtype)
        and query.shape[:2] == key.shape[:2] == value.shape[:2]
        and query.shape[3] == key.shape[3]
        and key.shape[2] == value.shape[2]
        and all(x.numel() for x in tensors)
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


class _Attention(torch.autograd.Function):
    """It keeps the probabilities, or the result and the logarithms of their sums."""

    @staticmethod
    def forward(
        ctx: FunctionCtx,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        causal: bool,
        scale: float | None,
    ) -> Tensor:
        out, seen, *_ = _forward(query, key, value, mask, 0.0, causal, False, scale=scale)
        ctx.save_for_backward(query, key, value, mask, out if seen.dim() == 3 else None, seen)
        ctx.causal, ctx.scale = causal, scale
        made: Tensor = out
        return made

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, mask, out, seen = ctx.saved_tensors
        wanted = [*ctx.needs_input_grad[:3], False]
        if torch.is_grad_enabled():  # gradients of gradients: by PyTorch's parts
            given = [x for x, asked in zip((query, key, value), wanted, strict=False) if asked]
            anew = _parts(query, key, value, mask, 0.0, ctx.causal, scale=ctx.scale)[0]
            found = iter(torch.autograd.grad(anew, given, grad, create_graph=True))
            return (*(next(found) if asked else None for asked in wanted), None, None)
        lengths = query.shape[2], key.shape[2]
        made = _backward(
            grad, query, key, value, mask, wanted, out, seen, None, None, *lengths, 0.0, ctx.causal, None, None,
            scale=ctx.scale,
        )  # fmt: skip
        return (*made[:3], None, None, None)
