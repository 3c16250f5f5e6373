"""LSTMs as a whole: what does not wait for the step before it is one product for all steps, forward and backward.

PyTorch makes them of single steps, each with its own gradients of the weights: eight launches more a step, and small ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - as everybody calls it

_cell = torch.ops.aten._thnn_fused_lstm_cell.default
_cell_backward = torch.ops.aten._thnn_fused_lstm_cell_backward_impl.default


def install(library: torch.library.Library) -> None:
    """Registers it before autograd, which then sees the parts."""
    library.impl("lstm.input", lstm, "AutogradPrivateUse1")


def lstm(
    input: Tensor, hx: Sequence[Tensor], params: Sequence[Tensor], has_biases: bool, num_layers: int, dropout: float,
    train: bool, bidirectional: bool, batch_first: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Several layers of LSTM; PyTorch's own way for half precision, under autocast, and with projections."""
    each, ways = 4 if has_biases else 2, 2 if bidirectional else 1
    alike = all(x.dtype == input.dtype and x.dtype in (torch.float32, torch.float64) for x in (*hx, *params))
    if not alike or len(params) != each * ways * num_layers or torch.is_autocast_enabled("ocl") or not input.numel():
        rest = (has_biases, num_layers, dropout, train, bidirectional, batch_first)
        composed: tuple[Tensor, Tensor, Tensor] = torch.ops.aten.lstm.input.decompose(input, hx, params, *rest)
        return composed
    x = input.transpose(0, 1) if batch_first else input
    last: list[tuple[Tensor, Tensor]] = []
    for layer in range(num_layers):
        if layer and train and dropout:
            x = F.dropout(x, dropout)
        made = []
        for way in range(ways):
            k = layer * ways + way
            to_gates, recurrent, *biases = params[each * k : each * (k + 1)]
            gates = F.linear(x.flip(0) if way else x, to_gates, biases[0] + biases[1] if biases else None)
            out, *state = _Recurrence.apply(gates, recurrent, hx[0][k], hx[1][k])
            made.append(out.flip(0) if way else out)
            last.append((state[0], state[1]))
        x = torch.cat(made, -1) if bidirectional else made[0]
    hidden, cells = (torch.stack(states) for states in zip(*last, strict=True))
    return x.transpose(0, 1) if batch_first else x, hidden, cells


def _steps(
    gates: Tensor, weight: Tensor, hidden: Tensor, cell: Tensor
) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """Of each step: what it shows, its cells, and its gates as the backward pass wants them."""
    shown, cells, kept = [hidden], [cell], []
    turned = weight.t()
    for given in gates.unbind(0):
        hidden, cell, workspace = _cell(given, hidden @ turned, cell)
        shown.append(hidden)
        cells.append(cell)
        kept.append(workspace)
    return shown, cells, kept


class _Recurrence(torch.autograd.Function):
    """Gates from the input (steps, sequences, 4 * units), weight and first state to all outputs and the last state."""

    @staticmethod
    def forward(ctx: Any, gates: Tensor, weight: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        shown, cells, kept = _steps(gates, weight, hidden, cell)
        out = torch.stack(shown[1:])
        ctx.save_for_backward(gates, weight, hidden, cell, out)
        ctx.cells, ctx.kept = cells, kept
        return out, shown[-1].clone(), cells[-1].clone()

    @staticmethod
    def backward(ctx: Any, to_out: Tensor, to_hidden: Tensor, to_cell: Tensor) -> Any:
        gates, weight, hidden, cell, out = ctx.saved_tensors
        if torch.is_grad_enabled():  # gradients of gradients: step by step, as PyTorch has it
            shown, cells, _ = _steps(gates, weight, hidden, cell)
            made = (torch.stack(shown[1:]), shown[-1], cells[-1])
            return torch.autograd.grad(
                made, (gates, weight, hidden, cell), (to_out, to_hidden, to_cell), create_graph=True
            )
        slopes = [*to_out.unbind(0)]
        slopes[-1] = slopes[-1] + to_hidden
        found: list[Tensor] = []
        for t in range(len(slopes) - 1, -1, -1):
            slope = torch.addmm(slopes[t], found[-1], weight) if found else slopes[t]
            step, to_cell, _ = _cell_backward(slope, to_cell, ctx.cells[t], ctx.cells[t + 1], ctx.kept[t], False)
            found.append(step)
        to_gates = torch.stack(found[::-1])
        before = torch.cat((hidden.unsqueeze(0), out[:-1]))
        to_weight = to_gates.flatten(0, 1).t() @ before.flatten(0, 1)
        return to_gates, to_weight, found[-1] @ weight, to_cell
