"""Batch, layer and group normalization: two launches a pass at most.

Tensors in half precision are computed in float, and so are what is kept of them: statistics, weights and sums.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import pyopencl as cl
from torch import Tensor

from syncscope.kernels import programs, queue, storage
from syncscope.kernels.device import device
from syncscope.kernels.operators import NotNative, op
from syncscope.kernels.ops.copying import dense
from syncscope.kernels.programs import computed, floating, rows_kernel
from syncscope.kernels.walks import collapse

Gradients = tuple[Tensor | None, Tensor | None, Tensor | None]
_CHUNK = 4096 if programs.GROUP > 1 else 512  # neighbouring elements of an image that are one unit of work
_HELD = 8  # elements of a row that an item keeps, if there are enough items; twice as many at most
_KEEPING = ("row_norm_forward", "layer_norm_backward")  # the kernels that do
_LINES = 480  # partial sums of weight and bias in a layer norm's backward pass


def _dense(x: Tensor) -> Tensor:
    """Row-major, and of a dtype that kernels load and store."""
    if not floating(x.dtype):
        raise NotNative
    return dense(x)


def _like(x: Tensor, given: Tensor | None) -> Tensor | None:
    """A weight, bias or statistic in the dtype that is computed in for `x`."""
    return None if given is None else dense(given.to(computed(x.dtype)))


def _at(x: Tensor) -> tuple[cl.Buffer, int]:
    return storage.buffer(x), x.storage_offset()


def _optional(x: Tensor | None, stand_in: Tensor) -> tuple[cl.Buffer, int, int]:
    return (storage.buffer(stand_in), 0, 0) if x is None else (storage.buffer(x), x.storage_offset(), 1)


class _Shares:
    """How the channels of a row-major (images, channels, columns) tensor are dealt out to work-groups."""

    def __init__(self, x: Tensor) -> None:
        self.images, self.channels = x.shape[:2]
        self.columns = math.prod(x.shape[2:])
        chunks = -(-self.columns // _CHUNK)
        units = self.images * chunks
        wanted = -(-device.max_compute_units * (8 if programs.GROUP > 1 else 4) // self.channels)
        length = max(-(-units // wanted), 1)
        self.shares = -(-units // length)
        self.sizes = (self.columns, chunks, units, length)
        self.dtype = x.dtype
        self.whole = self.shares == 1  # a work-group has all that a channel is

    def launch(self, name: str, *arguments: queue.Argument, training: bool = True) -> None:
        program = rows_kernel(
            "batch_norm", name, self.dtype, self.images * self.channels, min(self.columns, _CHUNK), CHUNK=_CHUNK,
            TRAINING=int(training), WHOLE=int(self.whole), FEW=int(programs.GROUP == 1 and self.columns < programs.WIDTH),
        )  # fmt: skip
        group = (programs.GROUP, 1)
        queue.launch(program, (programs.GROUP * self.channels, self.shares), group, *arguments)

    def parts(self, of_each: int) -> Tensor:
        """Room for what the shares find."""
        return storage.empty([self.channels, self.shares, of_each], computed(self.dtype))


@op("native_batch_norm", "_native_batch_norm_legit")
def batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalizes each channel by its own, or the running, mean and variance; gives the mean and 1 / deviation it used."""
    x = _dense(input)
    if not training and (running_mean is None or running_var is None):
        raise NotNative
    if (running_mean is None) != (running_var is None):
        raise NotNative
    weight, bias = _like(x, weight), _like(x, bias)
    mean, var = _like(x, running_mean), _like(x, running_var)
    made = storage.empty(x.shape, x.dtype)
    saved = [storage.empty([x.shape[1] if training else 0], computed(x.dtype)) for _ in range(2)]
    if x.numel():
        shares = _Shares(x)
        alone = shares.whole or not training
        parts = made if alone else shares.parts(3)
        if not alone:
            shares.launch("batch_norm_statistics", *_at(x), storage.buffer(parts), *shares.sizes)
        shares.launch(
            "batch_norm_forward", *_at(x), storage.buffer(parts), *_optional(weight, x), *_optional(bias, x),
            *_optional(mean, x)[:2], *_optional(var, x), *map(storage.buffer, saved), storage.buffer(made),
            momentum, eps, *shares.sizes, training=training,
        )  # fmt: skip
        if training:
            for given, moved in ((running_mean, mean), (running_var, var)):
                if given is not None and moved is not given:
                    given.copy_(moved)
    return made, saved[0], saved[1]


@op("_native_batch_norm_legit.no_stats")
def batch_norm_without_statistics(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, training: bool, momentum: float, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """As `native_batch_norm`, of a module that tracks nothing."""
    made: tuple[Tensor, Tensor, Tensor] = batch_norm(input, weight, bias, None, None, training, momentum, eps)
    return made


@op("native_batch_norm_backward")
def batch_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    weight: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    save_mean: Tensor | None,
    save_invstd: Tensor | None,
    train: bool,
    eps: float,
    output_mask: Sequence[bool],
) -> Gradients:
    """Gradients of input, weight and bias."""
    x, grad = _dense(input), _dense(grad_out)
    mean, scale = (save_mean, save_invstd) if train else (running_mean, running_var)
    if mean is None or scale is None or grad.dtype != x.dtype:
        raise NotNative
    mean, weight = _like(x, mean), _like(x, weight)
    scale = _like(x, scale) if train else (scale.to(computed(x.dtype)) + eps).rsqrt()
    to_input = storage.empty(x.shape if output_mask[0] else [0], x.dtype)
    to_weight, to_bias = (storage.empty([x.shape[1]], computed(x.dtype)) for _ in range(2))
    if not x.numel():
        to_weight.zero_(), to_bias.zero_()
    else:
        shares = _Shares(x)
        parts = to_weight if shares.whole else shares.parts(2)
        if not shares.whole:
            shares.launch("batch_norm_slopes", *_at(grad), *_at(x), *_at(mean), storage.buffer(parts), *shares.sizes)
        shares.launch(
            "batch_norm_backward", *_at(grad), *_at(x), *_at(mean), *_at(scale), storage.buffer(parts), *_optional(weight, x),
            storage.buffer(to_input), int(output_mask[0]), storage.buffer(to_weight), storage.buffer(to_bias), *shares.sizes,
            x.numel() // x.shape[1], training=train,
        )  # fmt: skip
    made = (to_input, to_weight, to_bias)
    return tuple(x if wanted else None for x, wanted in zip(made, output_mask, strict=True))  # type: ignore[return-value]


def _teams(rows: int, columns: int) -> tuple[int, int]:
    """Items that take a row side by side, and how many elements of it each keeps: 0 where it reads them again."""
    lanes = programs.lanes(rows, columns)
    if programs.GROUP == 1:
        return lanes, 0
    while lanes < programs.GROUP and lanes * _HELD < columns:
        lanes *= 2
    held = -(-columns // lanes)
    return (lanes, held) if held <= 2 * _HELD else (programs.lanes(rows, columns), 0)


def _rows(
    name: str, x: Tensor, rows: int, columns: int, *arguments: queue.Argument, groups: int = 0, **macros: int
) -> None:
    """Launches a kernel of teams: as many as there are rows, or as `groups` work-groups hold."""
    lanes, held = _teams(rows, columns) if name in _KEEPING else (programs.lanes(rows, columns), 0)
    teams = programs.GROUP // lanes
    program = rows_kernel(
        "layer_norm", name, x.dtype, rows, columns, **{"BY_CHANNEL": 0, "LANES": lanes, "HELD": held, **macros}
    )
    queue.launch(program, (programs.GROUP * (groups or -(-rows // teams)),), (programs.GROUP,), *arguments)


def _lying(x: Tensor, last: int, rows: int) -> tuple[Tensor, tuple[int, int, int]]:
    """A tensor whose `last` dimensions are a row, copied where kernels cannot read it as it lies; and how its rows lie: so many
    in a run, the step from one run to the next, and from row to row."""
    columns = math.prod(x.shape[-last:])
    if rows and columns and floating(x.dtype) and _teams(rows, columns)[1]:
        sizes, (steps,) = collapse(tuple(x.shape[:-last]), [x.stride()[:-last]], sort=False)
        whole = x.stride()[-last:] == tuple(storage.contiguous_stride(x.shape[-last:]))
        if whole and len(sizes) <= 2 and not x.is_contiguous():
            return x, (sizes[1] if len(sizes) == 2 else 1, steps[0], steps[-1])
    return _dense(x), (1, columns, 0)


def _normalized(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, rows: int, eps: float, groups: int = 0, last: int = 0
) -> tuple[Tensor, Tensor, Tensor]:
    """Rows without their mean and deviation, and these; the weights are by channel where there are groups of them."""
    x, lying = _lying(input, last, rows) if last else (_dense(input), (1, input.numel() // max(rows, 1), 0))
    weight, bias = (
        _like(x, weight),
        _like(x, bias),
    )  # held until the launch: else one's memory would be lent to the other
    made = storage.empty(x.shape, x.dtype)
    mean, scale = (storage.empty([rows], computed(x.dtype)) for _ in range(2))
    if x.numel():
        columns = x.numel() // rows
        pixels = math.prod(x.shape[2:]) if groups else 1
        _rows(
            "row_norm_forward", x, rows, columns, *_at(x), *lying, *_optional(weight, x), *_optional(bias, x),
            storage.buffer(made), storage.buffer(mean), storage.buffer(scale), rows, columns, groups, pixels, eps,
            BY_CHANNEL=int(bool(groups)),
        )  # fmt: skip
    return made, mean, scale


@op("native_layer_norm")
def layer_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalizes the last dimensions by their own mean and variance; gives the mean and 1 / deviation."""
    outer = input.shape[: input.dim() - len(normalized_shape)]
    made, mean, scale = _normalized(input, weight, bias, math.prod(outer), eps, last=len(normalized_shape))
    kept = [*outer, *[1] * len(normalized_shape)]
    return made, mean.view(kept), scale.view(kept)


@op("native_layer_norm_backward")
def layer_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    normalized_shape: Sequence[int],
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    output_mask: Sequence[bool],
) -> Gradients:
    """Gradients of input, weight and bias."""
    columns, rows = math.prod(normalized_shape), mean.numel()
    (x, lying), (grad, grad_lying) = (_lying(one, len(normalized_shape), rows) for one in (input, grad_out))
    mean, scale, wide = _like(x, mean), _like(x, rstd), _like(x, weight)
    if grad.dtype != x.dtype or mean is None or scale is None:
        raise NotNative
    wanted = (output_mask[0], output_mask[1] and weight is not None, output_mask[2] and bias is not None)
    to_input = storage.empty(x.shape if wanted[0] else [0], x.dtype)
    sums = [storage.empty(normalized_shape, computed(x.dtype)) for _ in range(2)]
    if not x.numel():
        sums[0].zero_(), sums[1].zero_()
    else:
        teams = programs.GROUP // _teams(rows, columns)[0]
        groups = min(-(-rows // teams), max(_LINES // teams, 1), device.max_compute_units * 8)
        parts = storage.empty([2, groups * teams, columns if any(wanted[1:]) else 0], computed(x.dtype))
        _rows(
            "layer_norm_backward", x, rows, columns, *_at(grad), *grad_lying, *_at(x), *lying, *_at(mean), *_at(scale),
            *_optional(wide, x), storage.buffer(to_input), int(wanted[0]), storage.buffer(parts), int(any(wanted[1:])),
            rows, columns, groups=groups,
        )  # fmt: skip
        if any(wanted[1:]):
            program = rows_kernel("layer_norm", "layer_norm_sums", x.dtype, rows, columns, BY_CHANNEL=0, HELD=0)
            size, group = (-(-columns // 32) * programs.GROUP, 2), (programs.GROUP, 1)
            queue.launch(program, size, group, *map(storage.buffer, (parts, *sums)), groups * teams, columns)
    return (
        to_input if wanted[0] else None,
        sums[0].to(weight.dtype) if weight is not None and wanted[1] else None,
        sums[1].to(bias.dtype) if bias is not None and wanted[2] else None,
    )


@op("native_group_norm")
def group_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    N: int,  # noqa: N803 - PyTorch's names
    C: int,  # noqa: N803
    HxW: int,  # noqa: N803
    group: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalizes groups of an image's channels by their own mean and variance; gives the mean and 1 / deviation."""
    made, mean, scale = _normalized(input, weight, bias, N * group, eps, group)
    return made, mean.view(N, group).to(input.dtype), scale.view(N, group).to(input.dtype)


@op("native_group_norm_backward")
def group_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    N: int,  # noqa: N803 - PyTorch's names
    C: int,  # noqa: N803
    HxW: int,  # noqa: N803
    group: int,
    output_mask: Sequence[bool],
) -> Gradients:
    """Gradients of input, weight and bias."""
    x, grad = _dense(input), _dense(grad_out)
    means, scale, wide = _like(x, mean), _like(x, rstd), _like(x, weight)
    if grad.dtype != x.dtype or means is None or scale is None:
        raise NotNative
    to_input = storage.empty(x.shape if output_mask[0] else [0], x.dtype)
    to_weight, to_bias = (storage.empty([C], computed(x.dtype)) for _ in range(2))
    if not x.numel():
        to_weight.zero_(), to_bias.zero_()
    else:
        parts = storage.empty([N * C, 2], to_weight.dtype)
        where = (*_at(grad), *_at(x), *_at(means), *_at(scale), storage.buffer(parts))
        _rows("group_norm_slopes", x, N * C, HxW, *where, N * C, HxW, C // group)
        _rows(
            "group_norm_backward", x, N * group, HxW, *where, *_optional(wide, x), storage.buffer(to_input),
            int(output_mask[0]), storage.buffer(to_weight), storage.buffer(to_bias), N * group, group, C // group, HxW,
        )  # fmt: skip
    made = (to_input, to_weight.to(input.dtype), to_bias.to(input.dtype))
    return tuple(x if wanted else None for x, wanted in zip(made, output_mask, strict=True))  # type: ignore[return-value]
