"""How kernels walk tensors of different shapes and layouts together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch


def broadcast_stride(x: torch.Tensor, shape: Sequence[int]) -> tuple[int, ...]:
    """Strides, in elements, that read `x` as if it had this shape."""
    if x.shape == shape:
        return tuple(x.stride())
    return tuple(x.expand(shape).stride())


def collapse(
    shape: tuple[int, ...], layouts: Sequence[tuple[int, ...]], sort: bool = True
) -> tuple[list[int], list[list[int]]]:
    """The fewest dimensions that visit the same elements of every layout together, slowest first.

    Sizes of one vanish, dimensions are sorted by the first layout (unless told not to), and neighbours merge where every
    layout steps through them evenly.
    """
    dims = [i for i, size in enumerate(shape) if size != 1]
    if sort:
        dims.sort(key=lambda i: -layouts[0][i] if layouts[0][i] else 0)
    sizes: list[int] = []
    strides: list[list[int]] = [[] for _ in layouts]
    for i in dims:
        if sizes and all(s[-1] == layout[i] * shape[i] for s, layout in zip(strides, layouts, strict=True)):
            sizes[-1] *= shape[i]
            for s, layout in zip(strides, layouts, strict=True):
                s[-1] = layout[i]
        else:
            sizes.append(shape[i])
            for s, layout in zip(strides, layouts, strict=True):
                s.append(layout[i])
    return sizes, strides


def result_shape(tensors: Iterable[torch.Tensor | float]) -> Sequence[int]:
    """The shape that inputs broadcast to; PyTorch's own function for it takes longer than a launch."""
    shapes: list[Sequence[int]] = [x.shape for x in tensors if isinstance(x, torch.Tensor)]
    longest = max(shapes, key=len)
    if all(shape == longest or not shape for shape in shapes):
        return longest
    rank = len(longest)
    made = list(longest)
    for shape in shapes:
        for d, size in enumerate(shape, rank - len(shape)):
            if made[d] == 1:
                made[d] = size
            elif size not in (1, made[d]):
                raise RuntimeError(
                    f"The size of tensor a ({made[d]}) must match the size of tensor b ({size}) at non-singleton dimension {d}"
                )
    return tuple(made)
