"""From a contraction to the queue: which schedule, which kernels, which workspace. Worked out once for each shape."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import pyopencl as cl
import torch
from torch import Tensor
from torch.types import Number

from syncscope.kernels import programs, queue, storage
from syncscope.kernels.device import device, is_gpu
from syncscope.kernels.generate import cpu, gpu, space, split, tensor_cores
from syncscope.kernels.generate.block import Schedule
from syncscope.kernels.generate.ir import Contraction, simplified
from syncscope.kernels.generate.text import fits
from syncscope.kernels.operators import NotNative
from syncscope.kernels.tuning import store

_SUM_GROUP = 128
_CPU_GROUP = (4, 2, 1)  # items that a thread makes one after the other
Ints = tuple[int, ...]


SHAPE = "gpu" if is_gpu else "cpu"


@dataclass(frozen=True, slots=True)
class Step:
    """A kernel that is ready to be enqueued, and the numbers it takes as its last argument."""

    kernel: cl.Kernel
    size: Ints
    group: Ints
    numbers: bytes
    room: int = 0  # elements of the buffer that it fills for the next
    kind: torch.dtype = torch.float32  # of these elements


@dataclass(frozen=True, slots=True)
class Plan:
    """What makes one contraction: perhaps a packed copy of an operand, the products, perhaps the sum of their parts."""

    main: Step
    pack_a: Step | None = None
    pack_b: Step | None = None
    adding: Step | None = None
    parts: int = 1  # of k, each with its own sums
    turned: bool = False  # whether rows and columns have changed places, and the operands with them

    def __call__(
        self, a: Tensor, b: Tensor, bias: Tensor | None, out: Tensor, alpha: Number = 1, beta: Number = 1
    ) -> None:
        """Enqueues it; places are counted from the first element of each tensor."""
        number = float if out.dtype.is_floating_point else int
        if self.turned:
            a, b = b, a
        if self.pack_a is not None:
            a = _packed(self.pack_a, a)
        if self.pack_b is not None:
            b = _packed(self.pack_b, b)
        operands = (storage.buffer(a), a.storage_offset(), storage.buffer(b), b.storage_offset())
        given = () if bias is None else (storage.buffer(bias), bias.storage_offset())
        end = (*given, storage.buffer(out), out.storage_offset(), number(alpha), number(beta))
        main, adding = self.main, self.adding
        if adding is None:
            queue.launch(main.kernel, main.size, main.group, *operands, *end, main.numbers)
            return
        parts = storage.empty([main.room], main.kind)
        room = (*given, storage.buffer(parts), 0, *end[-2:])
        queue.launch(main.kernel, main.size, main.group, *operands, *room, main.numbers)
        queue.launch(adding.kernel, adding.size, adding.group, storage.buffer(parts), self.parts, *end, adding.numbers)


def _packed(step: Step, x: Tensor) -> Tensor:
    panels = storage.empty([step.room], step.kind)
    at = (storage.buffer(x), x.storage_offset(), storage.buffer(panels))
    queue.launch(step.kernel, step.size, step.group, *at, step.numbers)
    return panels


def aligned(*tensors: Tensor) -> tuple[bool, ...]:
    """Of each, whether it begins at a multiple of four elements of its buffer, of halves eight."""
    return tuple(t.storage_offset() % (8 if t.dtype.itemsize == 2 else 4) == 0 for t in tensors)


@functools.lru_cache(4096)
def plan(
    c: Contraction,
    dtype: torch.dtype,
    aligned: tuple[bool, ...],
    schedule: Schedule | cpu.Schedule | None = None,
    tf32: bool = False,
    made: torch.dtype | None = None,
) -> Plan:
    """The plan of a contraction, by the given schedule or the best that is known. With `tf32` tensor cores multiply float32
    once, by eleven of its bits. Its result is of the operands' type, or of another one that is computed in.

    Raises:
        NotNative: its tensors have more than 2 ** 31 elements.
    """
    c = simplified(c)
    if not fits(c):
        raise NotNative
    if SHAPE == "cpu":
        assert not isinstance(schedule, Schedule)
        turned = schedule is None and space.turns(c)
        c = cpu.swapped(c) if turned else c
        return replace(_on_cpu(c, schedule or space.default_cpu(c), dtype, made), turned=turned)
    assert not isinstance(schedule, cpu.Schedule)
    copied = gpu.packed(c)
    if copied is None:
        return _on_gpu(c, schedule or _best(c, dtype, aligned, tf32), dtype, aligned, tf32, made)
    aligned = (True, *aligned[1:])
    text, numbers, room = gpu.packing(c)
    size, group = (_round(room, _SUM_GROUP),), (_SUM_GROUP,)
    pack = Step(_built(text, f"{c.name}_pack_a", dtype), size, group, numbers, room, dtype)
    best = schedule or _best(copied, dtype, aligned, tf32)
    return replace(_on_gpu(copied, best, dtype, aligned, tf32, made), pack_a=pack)


def _best(c: Contraction, dtype: torch.dtype, aligned: tuple[bool, ...], tf32: bool) -> Schedule:
    """What was found by tuning, where this very contraction can be made so, else the default."""
    found = store.known().get(space.problem(c, aligned, dtype, tf32))
    if found is not None and space.legal(c, found, aligned, dtype):
        return found
    return space.default(c, int(device.max_compute_units), aligned, dtype, tf32)


def _on_gpu(
    c: Contraction,
    s: Schedule,
    dtype: torch.dtype,
    aligned: tuple[bool, ...],
    tf32: bool,
    made: torch.dtype | None,
) -> Plan:
    kind = tensor_cores.kind(dtype, tf32)
    c = replace(c, name=c.name + tensor_cores.SUFFIXES[kind]) if s.cores else c
    text, numbers = gpu.source(c, s, aligned, kind)
    groups = -(-c.size("m") // s.bm) * -(-c.size("n") // s.bn)
    total = c.size("z") * c.size("m") * c.size("n")
    size = (groups * s.items, c.size("z") * s.split)
    inside = programs.computed(dtype)
    main = Step(_built(text, c.name, dtype, made), size, (s.items, 1), numbers, total * s.split, inside)
    if s.split == 1:
        return Plan(main)
    text, numbers = split.summing(c)
    adding = Step(_built(text, f"{c.name}_sum", dtype, made), (_round(total, _SUM_GROUP),), (_SUM_GROUP,), numbers)
    return Plan(main, adding=adding, parts=s.split)


def _on_cpu(c: Contraction, s: cpu.Schedule, dtype: torch.dtype, made: torch.dtype | None) -> Plan:
    def packing(label: str, width: int) -> Step:
        access, axis = (c.a, "m") if label == "a" else (c.b, "n")
        text, numbers = cpu.pack(c, label, width)
        panels = -(-c.size(axis) // width)
        copies = c.size("z") if cpu.depends_on_z(access) else 1
        size = (panels, max(1, -(-c.size("k") // cpu.block_of(c))), copies)
        room = copies * panels * c.size("k") * width
        kernel = _built(text, f"{c.name}_pack_{label}", dtype)
        return Step(kernel, size, (1, 1, 1), numbers, room, programs.computed(dtype))

    text, numbers = cpu.source(c, s)
    size = (_round(-(-c.size("m") // s.tm), _CPU_GROUP[0]), _round(cpu.tiles(c, s), _CPU_GROUP[1]), c.size("z"))
    main = Step(_built(text, c.name, dtype, made), size, _CPU_GROUP, numbers)
    return Plan(main, packing("a", s.tm) if s.pack_a else None, packing("b", s.tn) if s.pack_b else None)


def _built(text: str, name: str, dtype: torch.dtype, made: torch.dtype | None = None) -> cl.Kernel:
    macros = programs.elements(dtype, made)
    defines = "".join(f"#define {key} {value}\n" for key, value in macros.items())
    # fma() is of floats alone.
    own = "" if dtype.is_floating_point else "#undef FMA\n#define FMA(x, y, z) ((x) * (y) + (z))\n"
    return programs.build(f"{defines}{own}{text}", name, ("T", macros["T"]))


def _round(n: int, step: int) -> int:
    return -(-n // step) * step
