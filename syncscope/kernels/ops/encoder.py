"""What `torch.nn` calls where an encoder or attention has no gradient: all of a layer in one operator, made of its parts."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - as everybody calls it

from syncscope.kernels.operators import NotNative, op

_PADDING = 1  # a mask of keys, [batch, keys]; others broadcast to the scores as they are


@op("_nested_tensor_from_mask_left_aligned", keep=False)
def left_aligned(t: Tensor, mask: Tensor) -> bool:
    """Whether padding may be cut away, which makes nested tensors. The device has none, and need not wait to say so."""
    return False


@op("_nested_tensor_from_mask", keep=False)
def nested(t: Tensor, mask: Tensor, mask_check: bool = True) -> Tensor:
    """Not on this device.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError("ocl has no nested tensors: use nn.TransformerEncoder(..., enable_nested_tensor=False)")


@op("_native_multi_head_attention")
def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    mask: Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Attention with its four products; where the mask is not zero nothing is looked at."""
    if query.dim() != 3 or not query.numel():
        raise NotNative
    weights, biases = qkv_weight.chunk(3), qkv_bias.chunk(3)
    asked, found, given = (
        F.linear(x, w, b).view(x.shape[0], x.shape[1], num_head, -1).transpose(1, 2)
        for x, w, b in zip((query, key, value), weights, biases, strict=True)
    )
    hidden = None
    if mask is not None:
        hidden = mask if mask.dtype == torch.bool else mask != 0
        hidden = hidden[:, None, None, :] if mask_type == _PADDING and hidden.dim() == 2 else hidden
    seen = query.new_empty(0)
    if need_weights:
        scores = asked @ found.transpose(2, 3) / math.sqrt(embed_dim // num_head)
        seen = (scores if hidden is None else scores.masked_fill(hidden, -math.inf)).softmax(-1)
        made = seen @ given
        seen = seen.mean(1) if average_attn_weights else seen
    else:
        made = F.scaled_dot_product_attention(asked, found, given, attn_mask=None if hidden is None else ~hidden)
    return F.linear(made.transpose(1, 2).reshape(query.shape[0], query.shape[1], -1), proj_weight, proj_bias), seen


@op("_transformer_encoder_layer_fwd")
def layer(
    src: Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor,
    mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Tensor:
    """Attention and two products, each with what goes around it, and norms before or behind."""

    def norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return F.layer_norm(x, [embed_dim], weight, bias, eps)

    x = norm(src, norm_weight_1, norm_bias_1) if norm_first else src
    projections = (qkv_weight, qkv_bias, proj_weight, proj_bias)
    x = src + attention(x, x, x, embed_dim, num_heads, *projections, mask, False, True, mask_type)[0]
    x = x if norm_first else norm(x, norm_weight_1, norm_bias_1)
    inner = F.linear(norm(x, norm_weight_2, norm_bias_2) if norm_first else x, ffn_weight_1, ffn_bias_1)
    x = x + F.linear(F.gelu(inner) if use_gelu else inner.relu(), ffn_weight_2, ffn_bias_2)
    return x if norm_first else norm(x, norm_weight_2, norm_bias_2)
