"""Samples: ones with given probabilities, classes of a distribution, permutations. None of them waits for the device."""

from __future__ import annotations

import math

import torch
from torch import Generator, Tensor

from syncscope.kernels import generator as generators
from syncscope.kernels import programs, queue, storage
from syncscope.kernels.fallback import NotNative
from syncscope.kernels.operators import op
from syncscope.kernels.ops.copying import dense as row_major
from syncscope.kernels.ops.sort import sort_rows
from syncscope.kernels.streams import GROUP, TEAM, dense, items

_EACH_DRAWS = 12  # as CUDA's kernel counts it
_BLOCK = 128  # of CUDA's, in which neighbouring samples of a row are drawn
_UNEQUAL = 0.9  # the probability that no two keys of a permutation are equal


def _groups(n: int, group: int = GROUP) -> int:
    return -(-n // group) * group


@op("bernoulli_.Tensor")
def bernoulli_each(self: Tensor, p: Tensor, *, generator: Generator | None = None) -> Tensor:
    """Ones with the probability of each element, else zeros. Probabilities outside 0 and 1 are not told of: that would wait."""
    ours = generators.of(generator)
    known = programs.supported(self.dtype) or self.dtype in programs.HALVES
    if ours is None or not known or p.device.type != storage.NAME:
        host = torch.empty_strided(self.shape, self.stride(), dtype=self.dtype, device="cpu")
        return self.copy_(host.bernoulli_(p.cpu(), generator=generators.on_host(generator)))
    if not p.dtype.is_floating_point:
        raise RuntimeError(f"expected probabilities tensor to have floating type, got {p.dtype}")
    if not self.numel():
        return self
    made = self if dense(self) else torch.empty_like(self)
    wide = self.dtype == torch.float64
    chances = torch.empty_like(made, dtype=torch.float64 if wide else torch.float32).copy_(p)
    queue.launch(
        programs.kernel("sampling", "bernoulli_each", **_stored(self.dtype), P="double" if wide else "float"),
        items(-(-self.numel() // 4)), TEAM,
        storage.buffer(chances), chances.storage_offset(), storage.buffer(made), made.storage_offset(), self.numel(),
        ours.draw(_EACH_DRAWS),
    )  # fmt: skip
    return self if made is self else self.copy_(made)


def _stored(dtype: torch.dtype) -> dict[str, str]:
    made = programs.elements(dtype)
    return {"O": made["O"], "MADE": made["MADE"]}


@op("bernoulli.out")
def bernoulli(self: Tensor, *, generator: Generator | None = None, out: Tensor) -> Tensor:
    """Ones with the probabilities given."""
    if out.shape != self.shape:
        storage.resize(out, self.shape)
    return bernoulli_each(out, self, generator=generator)


@op("multinomial")
def multinomial(
    self: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """Classes, by the probabilities of each row. What is no probability is not told of: that would wait."""
    if self.dim() not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if not self.dtype.is_floating_point:
        raise RuntimeError(f"multinomial only supports floating-point dtypes for input, got: {self.dtype}")
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > self.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    ours = generators.of(generator)
    if ours is None or not self.numel() or not programs.floating(self.dtype):
        host = torch.multinomial(self.cpu(), num_samples, replacement, generator=generators.on_host(generator))
        return storage.upload(host)
    if (
        not replacement or num_samples == 1
    ):  # the largest of p / e, where e is exponential (Efraimidis and Spirakis, 2006)
        race = self / torch.empty_like(self).exponential_(generator=generator)
        return race.argmax(-1, keepdim=True) if num_samples == 1 else race.topk(num_samples, -1)[1]
    chances = self.float() if self.dtype in programs.HALVES else self
    rows, classes = (1, self.shape[0]) if self.dim() == 1 else self.shape
    sums = row_major((chances / chances.sum(-1, keepdim=True)).cumsum(-1))
    out = storage.empty([*self.shape[:-1], num_samples], torch.int64)
    queue.launch(
        programs.kernel("sampling", "multinomial", T=programs.C_TYPE[sums.dtype]),
        (_groups(num_samples, _BLOCK), rows), (_BLOCK, 1),
        storage.buffer(sums), storage.buffer(out), rows, classes, num_samples, _groups(num_samples, _BLOCK), ours.draw(4),
    )  # fmt: skip
    return out


@op("multinomial.out")
def multinomial_out(
    self: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None, out: Tensor
) -> Tensor:
    """As above, into a tensor."""
    made = multinomial(self, num_samples, replacement, generator=generator)
    if out.shape != made.shape:
        storage.resize(out, made.shape)
    return out.copy_(made)


@op("randperm.generator_out")
def randperm(n: int, *, generator: Generator | None = None, out: Tensor) -> Tensor:
    """The numbers below `n` in random order: those of random keys that are sorted, as on CUDA."""
    if out.shape != (n,):
        storage.resize(out, [n])
    ours = generators.of(generator)
    if ours is None:
        return out.copy_(torch.randperm(n, generator=generators.on_host(generator), dtype=out.dtype, device="cpu"))
    if not programs.supported(torch.int64):
        raise NotNative
    if not n:
        return out
    bits = min(64, math.ceil(math.log2(n - (6 * n * n + 1) / (12 * math.log(_UNEQUAL)))))
    keys = storage.empty([n], torch.int32 if bits <= 32 else torch.int64)
    least = torch.iinfo(keys.dtype).min
    keys.random_(least, torch.iinfo(keys.dtype).max, generator=generator)
    if bits not in (32, 64):
        keys = keys.bitwise_and((1 << bits) - 1)
    keys, places = sort_rows(keys.long(), descending=False)
    queue.launch(
        programs.kernel("sampling", "shuffle_equal"), (_groups(n),), (GROUP,),
        storage.buffer(keys), storage.buffer(places), n, ours.draw(n),
    )  # fmt: skip
    return out.copy_(places)
