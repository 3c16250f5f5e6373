"""Attention in three launches forward, five backward: products as the tensors lie, and one pass over the scores between them.

Scores of halves are kept in float32 until they are probabilities.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from syncscope.kernels import flash, precision, programs, queue, storage
from syncscope.kernels.generate import run
from syncscope.kernels.generate.ir import Access, Contraction, Index
from syncscope.kernels.operators import NotNative, op
from syncscope.kernels.programs import computed, floating

Strides = tuple[int, ...]


def _multiply(a: Tensor, b: Tensor, out: Tensor, alpha: float = 1.0, padded: bool = False) -> Tensor:
    """`alpha * a @ b`, of (batch, heads, rows, columns) with any strides; halves may be multiplied into float32. Where `a` is
    `padded` its rows go on with zeros."""
    tf32 = a.dtype is torch.float32 and precision.products()
    sizes = (*out.shape, a.shape[-1])
    strides, even = (a.stride(), b.stride(), out.stride()), run.aligned(a, b, out)
    plan = _plan(sizes, *strides, a.dtype, out.dtype, even, run.SHAPE, tf32, padded)
    plan(a, b, None, out, alpha, 0)
    return out


@functools.lru_cache(4096)
def _plan(
    sizes: tuple[int, ...], a: Strides, b: Strides, out: Strides, dtype: torch.dtype, made: torch.dtype,
    aligned: tuple[bool, ...], shape: str, tf32: bool, padded: bool,
) -> run.Plan:  # fmt: skip
    contraction = Contraction(
        "gemm", sizes[:2], sizes[2:3], sizes[3:4], sizes[4:],
        Access(Index(0, z=a[:2], m=a[2:3], k=a[3:]), padded=padded), Access(Index(0, z=b[:2], k=b[2:3], n=b[3:])),
        Index(0, z=out[:2], m=out[2:3], n=out[3:]),
    )  # fmt: skip
    return run.plan(contraction, dtype, aligned, tf32=tf32, made=made)


def _beside(like: Tensor, columns: int) -> Tensor:
    """Room for (batch, heads, rows, columns) in which a row's heads lie side by side: what follows wants whole rows."""
    batch, heads, rows = like.shape[:3]
    return storage.empty([batch, rows, heads, columns], like.dtype).transpose(1, 2)


def _scores(query: Tensor, key: Tensor, dtype: torch.dtype) -> Tensor:
    """Room for a row of each query, which begins at a multiple of eight elements."""
    return storage.empty([*query.shape[:3], -(-key.shape[2] // 8) * 8], dtype)


def _rows(
    name: str,
    scores: Tensor,
    length: int,
    made: torch.dtype,
    causal: bool,
    *arguments: queue.Argument,
    **macros: str | int,
) -> None:
    """An item, or a team of them, for the row of each query."""
    pitch, queries = scores.shape[3], scores.shape[2]
    lines = scores.numel() // pitch
    program = programs.rows_kernel("attention", name, scores.dtype, lines, length, made, **macros)
    size = -(-lines // (programs.GROUP // programs.lanes(lines, length))) * programs.GROUP
    queue.launch(program, (size,), (programs.GROUP,), *arguments, lines, length, pitch, queries, int(causal))


@op("_scaled_dot_product_fused_attention_overrideable", asks=precision.products)
def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_bias: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    return_debug_mask: bool = False,
    *,
    scale: float | None = None,
) -> tuple[object, ...]:
    """What queries see of values, and probabilities, which the backward pass takes in the place of a logarithm."""
    if dropout_p or query.dim() != 4 or not floating(query.dtype):
        raise NotNative
    factor = _factor(query, scale)
    given = flash.Given(query, key, value, attn_bias, is_causal, factor)
    if given.fits():
        out, logs = flash.forward(given)
        return out, logs, None, None, query.shape[2], key.shape[2], None, None, None
    scores, length = _scores(query, key, computed(query.dtype)), key.shape[2]
    _multiply(query, key.transpose(2, 3), scores[..., :length], factor)
    seen = scores if scores.dtype is query.dtype else _scores(query, key, query.dtype)
    bias = query if attn_bias is None else attn_bias.expand(*query.shape[:3], length)
    kind = 0 if attn_bias is None else 2 if bias.dtype is torch.bool else 1
    holds = "uchar" if kind == 2 else programs.elements(query.dtype)["S"]
    buffers = map(storage.buffer, (scores, seen, bias))
    _rows(
        "attention_softmax", scores, length, query.dtype, is_causal, *buffers, bias.storage_offset(), *bias.stride(),
        scores.shape[1], BIAS=kind, B=holds,
    )  # fmt: skip
    out = _multiply(seen[..., :length], value, _beside(query, value.shape[3]), padded=True)
    return out, seen, None, None, query.shape[2], length, None, None, None


@op("_scaled_dot_product_fused_attention_overrideable_backward", asks=precision.products)
def attention_backward(
    grad_out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_bias: Tensor | None,
    grad_input_mask: Sequence[bool],
    out: Tensor | None,
    logsumexp: Tensor,
    cum_seq_q: Tensor | None,
    cum_seq_k: Tensor | None,
    max_q: int,
    max_k: int,
    dropout_p: float,
    is_causal: bool,
    philox_seed: Tensor | None,
    philox_offset: Tensor | None,
    *,
    scale: float | None = None,
) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
    """Gradients of query, key and value; `logsumexp` are the probabilities, in rows that end in zeros, but for `flash`."""
    if out is not None and logsumexp.dim() == 3:
        given = flash.Given(query, key, value, attn_bias, is_causal, _factor(query, scale))
        made = flash.backward(given, grad_out, out, logsumexp, keys_too=any(grad_input_mask[1:3]))
        to_query, to_key, to_value = (x if asked else None for x, asked in zip(made, grad_input_mask, strict=False))
        return to_query, to_key, to_value, None
    seen, factor, length = logsumexp, _factor(query, scale), key.shape[2]
    to_query = to_key = to_value = None
    if grad_input_mask[2]:
        turned = seen[..., :length].transpose(2, 3)
        to_value = _multiply(turned, grad_out, _beside(value, value.shape[3]), padded=True)
    if not any(grad_input_mask[:2]):
        return None, None, to_value, None
    slopes = _scores(query, key, computed(query.dtype))
    _multiply(grad_out, value.transpose(2, 3), slopes[..., :length])
    made = slopes if slopes.dtype is seen.dtype else _scores(query, key, seen.dtype)
    buffers = map(storage.buffer, (slopes, seen, made))
    _rows("attention_softmax_backward", slopes, length, seen.dtype, is_causal, *buffers, BIAS=0, B="uchar")
    to_scores = made[..., :length]
    if grad_input_mask[0]:
        to_query = _multiply(to_scores, key, _beside(query, query.shape[3]), factor, padded=True)
    if grad_input_mask[1]:
        to_key = _multiply(to_scores.transpose(2, 3), query, _beside(key, key.shape[3]), factor, padded=True)
    return to_query, to_key, to_value, None


def _factor(query: Tensor, scale: float | None) -> float:
    return 1 / math.sqrt(query.shape[-1]) if scale is None else scale
