"""A program on the device: units to kernels, once for each shape, and kernels to the queue."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from syncscope.kernels import programs, queue, storage
from syncscope.kernels.comprehension import schedules, tuned
from syncscope.kernels.comprehension.fuse import Nest, Unit, fused, lies_along
from syncscope.kernels.comprehension.nests import Schedule, Written
from syncscope.kernels.comprehension.products import Product, contraction
from syncscope.kernels.comprehension.program import Program
from syncscope.kernels.device import device, is_gpu
from syncscope.kernels.generate import run as generated
from syncscope.kernels.generate.ir import Contraction
from syncscope.kernels.operators import NotNative
from syncscope.kernels.storage import contiguous_stride

Ints = tuple[int, ...]
Known = dict[str, Any]  # tensors and numbers by name
Makes = tuple[tuple[str, storage.Layout], ...]
_UNITS = int(device.max_compute_units)
_WANTED = _UNITS * (2 if is_gpu else 4)  # points that fill the device
_WIDER = {torch.float16: torch.float32, torch.bfloat16: torch.float32}
_NAME = 48  # letters of a kernel's name


@dataclass(frozen=True, slots=True)
class Ready:
    """A unit that can be enqueued: `enqueue` reads and writes tensors by name; `done` are those that nobody needs after it."""

    unit: Unit
    kernel: str
    makes: Makes
    enqueue: Callable[[Known], None]
    done: tuple[str, ...]
    schedule: Schedule | None = None
    source: str = ""
    contraction: Contraction | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that one call enqueues."""

    program: Program
    units: tuple[Ready, ...]

    def __call__(self, known: Known) -> Known:
        """Enqueues it; `known` holds the arguments, and then the results."""
        for ready in self.units:
            for name, layout in ready.makes:
                known[name] = layout.make()
            ready.enqueue(known)
            for name in ready.done:
                del known[name]
        return known


def plan(program: Program, tensors: Mapping[str, Tensor], keep: frozenset[str] = frozenset(),
         chosen: Mapping[int, Schedule] | None = None) -> Plan:  # fmt: skip
    """Kernels for a program and tensors that lie as these do; `chosen` are schedules by the number of a unit.

    Raises:
        NotNative: there is nothing to compute, or more than 2 ** 31 elements, or a function that OpenCL does not have.
    """
    if any(0 in shape for shape in program.shapes.values()) or any(0 in map(s.size, s.ranges) for s in program.steps):
        raise NotNative
    given = {name: tuple(x.stride()) for name, x in tensors.items()}
    units = fused(program, _WANTED, lambda name: given.get(name) or tuple(contiguous_stride(program.shapes[name])))
    strides = {name: tuple(contiguous_stride(shape)) for name, shape in program.shapes.items()} | given
    if any(storage.extent(shape, strides[name]) >= 1 << 31 for name, shape in program.shapes.items()):
        raise NotNative
    made: set[str] = set()
    ready: list[Ready] = []
    for i, unit in enumerate(units):
        makes = tuple((name, _layout(program, name)) for name in unit.writes if name not in made)
        made.update(unit.writes)
        later = {name for u in units[i + 1 :] for name in (*u.reads, *u.writes)}
        done = tuple(sorted(made - set(program.results) - later))
        made.difference_update(done)
        if isinstance(unit, Product):
            ready.append(_product(unit, program, strides, tensors, makes, done))
        else:
            choice = (chosen or {}).get(i) or tuned.schedule(nest_class(unit, program, strides))
            schedule = choice or schedules.default(unit, strides.__getitem__, _UNITS, is_gpu)
            ready.append(nest(unit, program, strides, schedule, makes, done))
    return Plan(program, tuple(ready))


def _layout(program: Program, name: str) -> storage.Layout:
    shape = program.shapes[name]
    return storage.Layout(shape, contiguous_stride(shape), program.dtypes[name])


def _named(program: Program, names: list[str]) -> str:
    own = [n for n in names if not n.startswith(f"{program.name}_part")] or [
        n.removeprefix(f"{program.name}_") for n in names
    ]
    text = "_".join((program.name, *own))
    return text if len(text) <= _NAME else f"{text[: _NAME - 4]}_etc"


def nest_class(unit: Nest, program: Program, strides: Mapping[str, Ints]) -> str:
    """What schedules are kept under: what is computed, and the sizes by powers of two."""
    sizes = "x".join(str((size - 1).bit_length()) for size in unit.points.values())
    inner = max(1, unit.length).bit_length()
    along = "along" if lies_along(unit, strides.__getitem__) else "across"
    kinds = ",".join(f"{s.op}{'!' if s.reduced else ''}{s.dtype.itemsize}" for s in unit.steps)
    return f"{program.name} {kinds} {along} {sizes} {inner} {unit.shares}"


def nest(
    unit: Nest, program: Program, strides: Mapping[str, Ints], schedule: Schedule, makes: Makes = (), done: tuple[str, ...] = ()
) -> Ready:  # fmt: skip
    """A nest's kernel, and what enqueues it."""
    name = _named(program, [s.target for s in unit.steps])
    written = Written(unit, schedule, name, program, strides)
    kernel = programs.build(written.source, name)
    size, group = written.launch
    tensors, given, numbers = (*written.inputs, *written.outputs), tuple(written.given), written.numbers

    def enqueue(known: Known) -> None:
        arguments: list[Any] = []
        for tensor in tensors:
            x = known[tensor]
            arguments += (storage.buffer(x), x.storage_offset())
        queue.launch(kernel, size, group, *arguments, *(float(known[n]) for n in given), numbers)

    return Ready(unit, name, makes, enqueue, done, schedule, written.source)


def _product(
    unit: Product, program: Program, strides: Mapping[str, Ints], tensors: Mapping[str, Tensor], makes: Makes,
    done: tuple[str, ...],
) -> Ready:  # fmt: skip
    """A product by the device's generator."""
    dtype = _WIDER.get(unit.step.dtype, unit.step.dtype)
    widened = dtype != unit.step.dtype
    if widened:  # operands are made anew
        strides = {**strides} | {n: tuple(contiguous_stride(program.shapes[n])) for n in (unit.a.tensor, unit.b.tensor)}
        if unit.bias is not None or not unit.step.sets:
            raise NotNative
    name = _named(program, [unit.name])
    c = contraction(unit, name, program.shapes, strides)
    even = tuple(
        widened or n not in tensors or tensors[n].storage_offset() % 4 == 0 for n in (unit.a.tensor, unit.b.tensor)
    )
    made = generated.plan(c, dtype, (*even, True))
    a, b, out, alpha, numbers = unit.a.tensor, unit.b.tensor, unit.name, unit.alpha, unit.numbers
    bias = unit.bias.tensor if unit.bias is not None else None if unit.step.sets else out

    def enqueue(known: Known) -> None:
        factor = alpha
        for number in numbers:
            factor *= float(known[number])
        if widened:
            wide = storage.empty(program.shapes[out], dtype)
            made(known[a].to(dtype).contiguous(), known[b].to(dtype).contiguous(), None, wide, factor)
            known[out].copy_(wide)
        else:
            made(known[a], known[b], None if bias is None else known[bias], known[out], factor)

    return Ready(unit, name, makes, enqueue, done, contraction=c)
