"""Attention of halves where tensor cores serve: one kernel forward, two backward, and scores are never written (`cl/flash.cl`).

Nothing is added up by more than one work-group: results repeat bit for bit.
"""

from __future__ import annotations

import functools
import struct
from dataclasses import dataclass

import pyopencl as cl
import torch
from torch import Tensor

from syncscope.kernels import programs, queue, storage
from syncscope.kernels.coming import Coming
from syncscope.kernels.generate import tensor_cores

# Rows of the other side that a warp walks over at a time: registers and local memory are left for several work-groups.
TILES = {"flash_forward": 32, "flash_to_query": 16, "flash_to_key_value": 16}
_WARPS = 4  # of a work-group, each with 16 rows of its own
_WIDEST = 128  # elements of a head: more sums than registers hold
_PLACED = ("query", "key", "value", "out", "grad", "to_query", "to_key", "to_value")  # as `Numbers` has them


@dataclass(frozen=True, slots=True)
class Given:
    """What is asked: tensors of (batch, heads, length, width), and what scores are multiplied by."""

    query: Tensor
    key: Tensor
    value: Tensor
    bias: Tensor | None
    causal: bool
    factor: float

    def fits(self) -> bool:
        """Whether the kernels are for it: they copy eight halves at once, and take the largest score before it is scaled."""
        width = self.query.shape[3]
        return (
            self.query.dtype.itemsize == 2
            and width == self.value.shape[3] <= _WIDEST
            and width % 8 == 0
            and self.factor > 0
            and all(map(_even, (self.query, self.key, self.value)))
            and tensor_cores.serve(self.query.dtype)
        )


def _even(x: Tensor) -> bool:
    steps = [step for size, step in zip(x.shape[:3], x.stride(), strict=False) if size > 1]
    return x.stride(3) == 1 and not any(step % 8 for step in (x.storage_offset(), *steps))


def forward(given: Given) -> tuple[Tensor, Tensor]:
    """What queries see of values, and of each query the logarithm of two of its scores' sum of exponentials."""
    out, logs = _as(given.query), storage.empty(given.query.shape[:3], torch.float32)
    _launch("flash_forward", given, out=out, logs=logs)
    return out, logs


def backward(
    given: Given, grad: Tensor, out: Tensor, logs: Tensor, keys_too: bool
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Gradients of query and, where they are asked for, of key and value."""
    grad = grad if _even(grad) else grad.contiguous()
    to_query, dots = _as(given.query), storage.empty(logs.shape, torch.float32)
    _launch("flash_to_query", given, out=out, grad=grad, logs=logs, dots=dots, to_query=to_query)
    if not keys_too:
        return to_query, None, None
    to_key, to_value = _as(given.key), _as(given.value)
    _launch("flash_to_key_value", given, grad=grad, logs=logs, dots=dots, to_key=to_key, to_value=to_value)
    return to_query, to_key, to_value


def _as(like: Tensor) -> Tensor:
    """Room in which rows lie as they do there, side by side: what made them by views has the result by views, too."""
    stride, step = [1] * 4, like.shape[3]
    for i in sorted(range(3), key=lambda i: like.stride(i)):
        stride[i] = step
        step *= like.shape[i]
    return storage.empty(like.shape, like.dtype, stride)


def _launch(name: str, given: Given, **tensors: Tensor) -> None:
    """Enqueues a kernel that takes what is given and these tensors, in this order."""
    query, key, bias = given.query, given.key, given.bias
    batch, heads, queries, width = query.shape
    keys = key.shape[2]
    known = {"query": query, "key": key, "value": given.value, **tensors}
    places = [number for one in _PLACED for number in (_place(known[one]) if one in known else (0,) * 4)]
    places += (0,) * 5 if bias is None else _place(bias.expand(batch, heads, queries, keys), 4)
    kind = 0 if bias is None else 2 if bias.dtype is torch.bool else 1
    program = _kernel(name, query.dtype, width, kind, given.causal, TILES[name])
    rows = keys if name == "flash_to_key_value" else queries
    size = -(-rows // (16 * _WARPS)) * 32 * _WARPS, batch * heads
    buffers = map(storage.buffer, (query, key, given.value, query if bias is None else bias, *tensors.values()))
    numbers = struct.pack("=37q3if", *places, heads, queries, keys, given.factor)
    queue.launch(program, size, (32 * _WARPS, 1), *buffers, numbers)


def _place(x: Tensor, count: int = 3) -> tuple[int, ...]:
    """Where it begins, and its steps."""
    return x.storage_offset(), *x.stride()[:count]


@functools.lru_cache(1024)
def _kernel(name: str, dtype: torch.dtype, width: int, bias: int, causal: bool, tile: int) -> cl.Kernel | Coming:
    macros = programs.elements(dtype) | {
        "HEAD": width, "BIAS": bias, "B": "uchar" if bias == 2 else "ushort", "CAUSAL": int(causal), "WARPS": _WARPS,
        "TILE": tile,
    }  # fmt: skip
    defines = "".join(f"#define {key} {value}\n" for key, value in macros.items())
    return programs.build(f"{defines}{tensor_cores.text('halves')}{programs.text(name)}", name)
