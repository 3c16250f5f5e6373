"""One step of LSTM and GRU, which PyTorch expects as a whole: a launch each way. Half precision is computed in float."""

from __future__ import annotations

import torch
from torch import Tensor

from syncscope.kernels import queue, storage
from syncscope.kernels.operators import op
from syncscope.kernels.ops.copying import dense
from syncscope.kernels.programs import C_TYPE, kernel


def _wide(*tensors: Tensor | None) -> list[Tensor | None]:
    halves = (torch.float16, torch.bfloat16)
    return [None if x is None else dense(x.float() if x.dtype in halves else x) for x in tensors]


def launch(name: str, state: Tensor, *arguments: queue.Argument) -> None:
    """An item for each unit of each sequence; a tensor stands for its buffer and offset."""
    flat = [a for x in arguments for a in ((storage.buffer(x), x.storage_offset()) if isinstance(x, Tensor) else (x,))]
    total = state.numel()
    if total:
        program = kernel("recurrent", name, T=C_TYPE[state.dtype])
        queue.launch(program, (-(-total // 64) * 64,), (64,), *flat, total, state.shape[1])


def _new(state: Tensor, *gates: int) -> list[Tensor]:
    """Tensors for so many values of each unit."""
    return [storage.empty([state.shape[0], k * state.shape[1]], state.dtype) for k in gates]


@op("_thnn_fused_lstm_cell")
def lstm_cell(
    input_gates: Tensor,
    hidden_gates: Tensor,
    cx: Tensor,
    input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The next hidden and cell state, and the gates (input, forget, cell, output) for the backward step."""
    given, kept, state, b, c = _wide(input_gates, hidden_gates, cx, input_bias, hidden_bias)
    assert state is not None
    made = _new(state, 1, 1, 4)
    biases = (given if b is None else b, kept if c is None else c)
    launch("lstm_cell", state, given, kept, *biases, int(b is not None), state, *made)
    hy, cy, workspace = (x.to(cx.dtype) for x in made)
    return hy, cy, workspace


@op("_thnn_fused_lstm_cell_backward_impl")
def lstm_cell_backward(
    grad_hy: Tensor | None, grad_cy: Tensor | None, cx: Tensor, cy: Tensor, workspace: Tensor, has_bias: bool
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Gradients of the gates, the cell state before the step, and the biases."""
    if grad_hy is None and grad_cy is None:
        return None, None, None
    to_hy, to_cy, before, after, kept = _wide(grad_hy, grad_cy, cx, cy, workspace)
    assert before is not None
    made = _new(before, 4, 1)
    slopes = [a for x in (to_hy, to_cy) for a in (before if x is None else x, int(x is not None))]
    launch("lstm_cell_backward", before, *slopes, before, after, kept, *made)
    gates, to_cx = (x.to(cx.dtype) for x in made)
    return gates, to_cx, gates.sum(0) if has_bias else None


@op("_thnn_fused_gru_cell")
def gru_cell(
    input_gates: Tensor,
    hidden_gates: Tensor,
    hx: Tensor,
    input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The next hidden state, and (reset, update, new, state, hidden part of new) for the backward step."""
    given, kept, state, b, c = _wide(input_gates, hidden_gates, hx, input_bias, hidden_bias)
    assert state is not None
    made = _new(state, 1, 5)
    biases = (given if b is None else b, kept if c is None else c)
    launch("gru_cell", state, given, kept, *biases, int(b is not None), state, *map(storage.buffer, made))
    hy, workspace = (x.to(hx.dtype) for x in made)
    return hy, workspace


@op("_thnn_fused_gru_cell_backward")
def gru_cell_backward(
    grad_hy: Tensor, workspace: Tensor, has_bias: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]:
    """Gradients of both gates, the state before the step, and both biases."""
    grad, kept = _wide(grad_hy, workspace)
    assert grad is not None
    made = _new(grad, 3, 3, 1)
    launch("gru_cell_backward", grad, grad, kept, *map(storage.buffer, made))
    to_given, to_kept, to_hx = (x.to(grad_hy.dtype) for x in made)
    return to_given, to_kept, to_hx, to_given.sum(0) if has_bias else None, to_kept.sum(0) if has_bias else None
