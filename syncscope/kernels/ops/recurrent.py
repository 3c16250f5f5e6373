"""One step of LSTM and GRU, which PyTorch expects of a device as a whole; written in the device's own pointwise operators."""

from __future__ import annotations

import torch
from torch import Tensor

from syncscope.kernels.operators import op


def _with_biases(
    input_gates: Tensor, hidden_gates: Tensor, input_bias: Tensor | None, hidden_bias: Tensor | None
) -> Tensor:
    gates = input_gates + hidden_gates
    for bias in (input_bias, hidden_bias):
        if bias is not None:
            gates = gates + bias
    return gates


@op("_thnn_fused_lstm_cell")
def lstm_cell(
    input_gates: Tensor,
    hidden_gates: Tensor,
    cx: Tensor,
    input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The next hidden and cell state, and the gates (input, forget, cell, output) for the backward step."""
    into, forget, cell, out = _with_biases(input_gates, hidden_gates, input_bias, hidden_bias).chunk(4, 1)
    into, forget, cell, out = into.sigmoid(), forget.sigmoid(), cell.tanh(), out.sigmoid()
    cy = forget * cx + into * cell
    return out * cy.tanh(), cy, torch.cat((into, forget, cell, out), 1)


@op("_thnn_fused_lstm_cell_backward_impl")
def lstm_cell_backward(
    grad_hy: Tensor | None, grad_cy: Tensor | None, cx: Tensor, cy: Tensor, workspace: Tensor, has_bias: bool
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Gradients of the gates, the cell state before the step, and the biases."""
    if grad_hy is None and grad_cy is None:
        return None, None, None
    into, forget, cell, out = workspace.chunk(4, 1)
    squashed = cy.tanh()
    through = torch.zeros_like(cy) if grad_cy is None else grad_cy
    to_out = torch.zeros_like(cy)
    if grad_hy is not None:
        through = through + grad_hy * out * (1 - squashed * squashed)
        to_out = grad_hy * squashed * out * (1 - out)
    gates = torch.cat(
        (
            through * cell * into * (1 - into),
            through * cx * forget * (1 - forget),
            through * into * (1 - cell * cell),
            to_out,
        ),
        1,
    )
    return gates, through * forget, gates.sum(0) if has_bias else None


@op("_thnn_fused_gru_cell")
def gru_cell(
    input_gates: Tensor,
    hidden_gates: Tensor,
    hx: Tensor,
    input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The next hidden state, and (reset, update, new, state, hidden part of new) for the backward step."""
    given = input_gates if input_bias is None else input_gates + input_bias
    kept = hidden_gates if hidden_bias is None else hidden_gates + hidden_bias
    given_reset, given_update, given_new = given.chunk(3, 1)
    kept_reset, kept_update, kept_new = kept.chunk(3, 1)
    reset, update = (given_reset + kept_reset).sigmoid(), (given_update + kept_update).sigmoid()
    new = (given_new + reset * kept_new).tanh()
    return new + update * (hx - new), torch.cat((reset, update, new, hx, kept_new), 1)


@op("_thnn_fused_gru_cell_backward")
def gru_cell_backward(
    grad_hy: Tensor, workspace: Tensor, has_bias: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]:
    """Gradients of both gates, the state before the step, and both biases."""
    reset, update, new, hx, kept_new = workspace.chunk(5, 1)
    to_new = grad_hy * (1 - update) * (1 - new * new)
    to_update = grad_hy * (hx - new) * update * (1 - update)
    to_reset = to_new * kept_new * reset * (1 - reset)
    given = torch.cat((to_reset, to_update, to_new), 1)
    kept = torch.cat((to_reset, to_update, to_new * reset), 1)
    return given, kept, grad_hy * update, given.sum(0) if has_bias else None, kept.sum(0) if has_bias else None
