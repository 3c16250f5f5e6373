"""softmax and log_softmax, forward and backward."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from syncscope.kernels import programs, queue, storage
from syncscope.kernels.operators import NotNative, op
from syncscope.kernels.ops.copying import dense
from syncscope.kernels.programs import computed, floating


def _run(name: str, inputs: list[Tensor], dim: int, out: Tensor) -> Tensor:
    """Runs a kernel over the lines along `dim`; a result in float32 may be made of halves, and one in halves of float32."""
    if not out.numel():
        return out
    shape, dtype = inputs[0].shape, inputs[0].dtype
    if not floating(dtype, out.dtype) or computed(dtype) != computed(out.dtype):
        raise NotNative
    inputs = [dense(x.to(dtype)) for x in inputs]
    made = out if out.is_contiguous() and not out.storage_offset() else storage.empty(shape, out.dtype)
    dim = dim % max(len(shape), 1)
    length = shape[dim] if shape else 1
    lines = out.numel() // length
    inner = math.prod(shape[dim + 1 :])
    arguments = [a for x in inputs for a in (storage.buffer(x), x.storage_offset())]
    if inner == 1:  # a team of items for each line, whose elements are neighbours
        group = programs.GROUP
        size = -(-lines // (group // programs.lanes(lines, length))) * group
        program = programs.rows_kernel("softmax_rows", name, dtype, lines, length, out.dtype)
    else:  # an item for each line: neighbours read neighbours
        group, size = 64, -(-lines // 64) * 64
        program = programs.kernel("softmax", name, **programs.elements(dtype, out.dtype))
    queue.launch(program, (size,), (group,), *arguments, storage.buffer(made), lines, length, inner)
    return out if made is out else out.copy_(made)


@op("_softmax.out")
def softmax(self: Tensor, dim: int, half_to_float: bool, *, out: Tensor) -> Tensor:
    """Exponentials along a dimension, divided by their sum."""
    return _run("softmax_forward", [self], dim, out)


@op("_log_softmax.out")
def log_softmax(self: Tensor, dim: int, half_to_float: bool, *, out: Tensor) -> Tensor:
    """Logarithm of softmax."""
    return _run("log_softmax_forward", [self], dim, out)


@op("_softmax_backward_data.out")
def softmax_backward(
    grad_output: Tensor, output: Tensor, dim: int, input_dtype: torch.dtype, *, grad_input: Tensor
) -> Tensor:
    """Gradient of softmax from its result."""
    return _run("softmax_backward", [grad_output, output], dim, grad_input)


@op("_log_softmax_backward_data.out")
def log_softmax_backward(
    grad_output: Tensor, output: Tensor, dim: int, input_dtype: torch.dtype, *, out: Tensor
) -> Tensor:
    """Gradient of log_softmax from its result."""
    return _run("log_softmax_backward", [grad_output, output], dim, out)
