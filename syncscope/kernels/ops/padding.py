"""Padding by what lies inside: mirrored at the edge, or the edge itself repeated; of one, two and three dimensions."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from syncscope.kernels.operators import NotNative, op

Ints = Sequence[int]


def _sides(x: Tensor, padding: Ints) -> list[tuple[int, int, int]]:
    """The dimension, and how much comes before and behind it, for each that is padded.

    Raises:
        NotNative: it cuts, or there is nothing: the CPU knows what to say.
    """
    if min(padding) < 0 or not x.numel():
        raise NotNative
    pairs = zip(range(-1, -4, -1), padding[::2], padding[1::2], strict=False)
    return [(dim, before, behind) for dim, before, behind in pairs if before or behind]


def _mirrored(x: Tensor, padding: Ints) -> Tensor:
    for dim, before, behind in _sides(x, padding):
        last = x.shape[dim] - 1
        if max(before, behind) > last:
            raise NotNative
        ends = (x.narrow(dim, 1, before).flip(dim), x, x.narrow(dim, last - behind, behind).flip(dim))
        x = torch.cat([part for part in ends if part.shape[dim]], dim)
    return x


def _mirrored_backward(grad_output: Tensor, padding: Ints) -> Tensor:
    grad = grad_output
    for dim, before, behind in _sides(grad, padding):
        last = grad.shape[dim] - before - behind - 1
        inner = grad.narrow(dim, before, last + 1).clone()
        if before:
            inner.narrow(dim, 1, before).add_(grad.narrow(dim, 0, before).flip(dim))
        if behind:
            inner.narrow(dim, last - behind, behind).add_(grad.narrow(dim, before + last + 1, behind).flip(dim))
        grad = inner
    return grad


def _repeated(x: Tensor, padding: Ints) -> Tensor:
    for dim, before, behind in _sides(x, padding):
        sizes = list(x.shape)
        parts = []
        for count, at in ((before, 0), (behind, x.shape[dim] - 1)):
            sizes[dim] = count
            parts.append(x.narrow(dim, at, 1).expand(sizes))
        x = torch.cat([part for part in (parts[0], x, parts[1]) if part.shape[dim]], dim)
    return x


def _repeated_backward(grad_output: Tensor, padding: Ints) -> Tensor:
    grad = grad_output
    for dim, before, behind in _sides(grad, padding):
        last = grad.shape[dim] - before - behind - 1
        inner = grad.narrow(dim, before, last + 1).clone()
        for count, start, at in ((before, 0, 0), (behind, before + last + 1, last)):
            if count:
                inner.narrow(dim, at, 1).add_(grad.narrow(dim, start, count).sum(dim, keepdim=True))
        grad = inner
    return grad


@op("reflection_pad1d.out", "reflection_pad3d.out")
def reflection_pad_out(self: Tensor, padding: Ints, *, out: Tensor) -> Tensor:
    """Goes on beyond the edge as in a mirror."""
    return out.copy_(_mirrored(self, padding))


@op("reflection_pad2d")
def reflection_pad2d(self: Tensor, padding: Ints) -> Tensor:
    """Likewise of images."""
    return _anew(_mirrored(self, padding), self)


@op("reflection_pad1d_backward.grad_input", "reflection_pad3d_backward.grad_input")
def reflection_pad_backward_out(grad_output: Tensor, self: Tensor, padding: Ints, *, grad_input: Tensor) -> Tensor:
    """What was mirrored gets both gradients."""
    return grad_input.copy_(_mirrored_backward(grad_output, padding))


@op("reflection_pad2d_backward")
def reflection_pad2d_backward(grad_output: Tensor, self: Tensor, padding: Ints) -> Tensor:
    """Likewise of images."""
    return _anew(_mirrored_backward(grad_output, padding), grad_output)


@op("replication_pad1d.out", "replication_pad2d.out", "replication_pad3d.out")
def replication_pad_out(self: Tensor, padding: Ints, *, out: Tensor) -> Tensor:
    """Goes on beyond the edge with the edge."""
    return out.copy_(_repeated(self, padding))


@op("replication_pad1d_backward.grad_input")
def replication_pad_backward_out(grad_output: Tensor, self: Tensor, padding: Ints, *, grad_input: Tensor) -> Tensor:
    """The edge gets the sum of the gradients beyond it."""
    return grad_input.copy_(_repeated_backward(grad_output, padding))


@op("replication_pad2d_backward", "replication_pad3d_backward")
def replication_pad_backward(grad_output: Tensor, self: Tensor, padding: Ints) -> Tensor:
    """Likewise of images and volumes."""
    return _anew(_repeated_backward(grad_output, padding), grad_output)


def _anew(made: Tensor, given: Tensor) -> Tensor:
    """Never the tensor given: what is padded by nothing is a copy."""
    return made.clone() if made is given else made
