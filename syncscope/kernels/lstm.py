"""LSTMs as a whole: what does not wait for the step before it is one product for all steps, forward and backward.

PyTorch makes them of single steps, each with its own gradients of the weights: eight launches more a step, and small ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx
from torch.nn import functional as F  # noqa: N812 - as everybody calls it

from syncscope.kernels import operators, plans, precision, storage
from syncscope.kernels.ops import recurrent
from syncscope.kernels.ops.copying import dense
from syncscope.kernels.ops.matmul import multiply

_cell = torch.ops.aten._thnn_fused_lstm_cell.default


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
        composed, *states = torch.ops.aten.lstm.input.decompose(input, hx, params, *rest)
        hidden, cells = (made.view_as(given) for made, given in zip(states, hx, strict=True))
        return composed, hidden, cells  # in torch 2.11 a projected state has one dimension more
    x = input.transpose(0, 1) if batch_first else input
    last: list[tuple[Tensor, Tensor]] = []
    for layer in range(num_layers):
        if layer and train and dropout:
            x = F.dropout(x, dropout)
        made = []
        for way in range(ways):
            k = layer * ways + way
            to_gates, turned, *biases = params[each * k : each * (k + 1)]
            gates = F.linear(x.flip(0) if way else x, to_gates, biases[0] + biases[1] if biases else None)
            out, *state = _Recurrence.apply(gates, turned, hx[0][k], hx[1][k])
            made.append(out.flip(0) if way else out)
            last.append((state[0], state[1]))
        x = torch.cat(made, -1) if bidirectional else made[0]
    hidden, cells = (torch.stack(states) for states in zip(*last, strict=True))
    return x.transpose(0, 1) if batch_first else x, hidden, cells


def _ahead(gates: Tensor, weight: Tensor, shown: Tensor, cells: Tensor, kept: Tensor) -> None:
    """Some steps: what each shows, its cells, its gates as the backward pass wants them. The former two begin with those of the
    step before."""
    product = storage.empty(gates.shape[1:], gates.dtype)
    for t, given in enumerate(gates):
        multiply(shown[t], weight.t(), None, 1, 0, product, tf32=precision.recurrent)
        state, rest = cells[t], (shown[t + 1], cells[t + 1], kept[t])
        recurrent.launch("lstm_cell", state, given, product, given, product, 0, state, *rest)


def _back(
    slopes: Tensor, after: Tensor | None, weight: Tensor, to_cell: Tensor, cells: Tensor, kept: Tensor, to_gates: Tensor
) -> None:
    """The same steps from behind: gradients of their gates, from those of what they showed and of the gates of the step
    `after`. The cell's goes from step to step."""
    slope = storage.empty(slopes.shape[1:], slopes.dtype)
    for t in range(len(slopes) - 1, -1, -1):
        given = slopes[t]
        if after is not None:
            given = multiply(after, weight, given, 1, 1, slope, tf32=precision.recurrent)
        after = to_gates[t]
        states = (cells[t], cells[t + 1], kept[t])
        recurrent.launch("lstm_cell_backward", cells[t], given, 1, to_cell, 1, *states, after, to_cell)


def _followed(steps: Callable[..., None]) -> Callable[..., None]:
    """Enqueued without Python in between from the third time on."""
    name = "lstm.input"
    operators.asked[name] = precision.recurrent
    return plans.followed("aten::lstm", operators.watched(name, steps), precision.recurrent)


_ahead_as_known, _back_as_known = _followed(_ahead), _followed(_back)
_AT_ONCE = 16  # steps; those that are left over go one by one, so that lengths share what is known


def _parts(steps: int) -> Iterator[slice]:
    whole = steps - steps % _AT_ONCE
    yield from (slice(k, k + _AT_ONCE) for k in range(0, whole, _AT_ONCE))
    yield from (slice(k, k + 1) for k in range(whole, steps))


def _and_before(part: slice) -> slice:
    return slice(part.start, part.stop + 1)


class _Recurrence(torch.autograd.Function):
    """Gates from the input (steps, sequences, 4 * units), weight and first state to all outputs and the last state."""

    @staticmethod
    def forward(
        ctx: FunctionCtx, gates: Tensor, weight: Tensor, hidden: Tensor, cell: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        gates, weight = dense(gates), dense(weight)
        steps, sequences, width = gates.shape
        shown = storage.empty([steps + 1, sequences, width // 4], gates.dtype)
        cells, kept = torch.empty_like(shown), torch.empty_like(gates)
        shown[0], cells[0] = hidden, cell
        for part in _parts(steps):
            before = _and_before(part)
            _ahead_as_known(gates[part], weight, shown[before], cells[before], kept[part])
        ctx.save_for_backward(gates, weight, hidden, cell, shown)
        ctx.cells, ctx.kept = cells, kept
        return shown[1:].clone(), shown[-1].clone(), cells[-1].clone()

    @staticmethod
    def backward(ctx: FunctionCtx, to_out: Tensor, to_hidden: Tensor, to_cell: Tensor) -> tuple[Tensor, ...]:
        gates, weight, hidden, cell, shown = ctx.saved_tensors
        if torch.is_grad_enabled():  # gradients of gradients: step by step, as PyTorch has it
            made = _singly(gates, weight, hidden, cell)
            given, of_made = (gates, weight, hidden, cell), (to_out, to_hidden, to_cell)
            found: tuple[Tensor, ...] = torch.autograd.grad(made, given, of_made, create_graph=True)
            return found
        slopes, to_cell, to_gates = (
            to_out.clone(memory_format=torch.contiguous_format),
            to_cell.clone(),
            torch.empty_like(gates),
        )
        slopes[-1] += to_hidden
        for part in reversed([*_parts(len(gates))]):
            after = None if part.stop == len(gates) else to_gates[part.stop]
            before = ctx.cells[_and_before(part)]
            _back_as_known(slopes[part], after, weight, to_cell, before, ctx.kept[part], to_gates[part])
        to_weight = to_gates.flatten(0, 1).t() @ shown[:-1].flatten(0, 1)
        return to_gates, to_weight, to_gates[0] @ weight, to_cell


def _singly(gates: Tensor, weight: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    shown = []
    for given in gates.unbind(0):
        hidden, cell, _ = _cell(given, hidden @ weight.t(), cell)
        shown.append(hidden)
    return torch.stack(shown), hidden, cell
