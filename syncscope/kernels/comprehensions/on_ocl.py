"""A program on the device: units to kernels, once for each shape, and kernels to the queue."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from syncscope.kernels import programs, queue, storage
from syncscope.kernels.comprehensions import schedules
from syncscope.kernels.comprehensions.dtypes import Argument
from syncscope.kernels.comprehensions.fuse import Nest, Strides, Unit, fused
from syncscope.kernels.comprehensions.nests import Schedule, Written
from syncscope.kernels.comprehensions.products import Product, contraction
from syncscope.kernels.comprehensions.program import Program
from syncscope.kernels.device import device, is_gpu
from syncscope.kernels.generate import run as generated
from syncscope.kernels.generate.ir import Contraction
from syncscope.kernels.operators import NotNative
from syncscope.kernels.storage import contiguous_stride

Known = dict[str, Argument]  # tensors and numbers by name
Enqueue = Callable[[Known], None]
_UNITS = int(device.max_compute_units)
_WANTED = _UNITS * (2 if is_gpu else 4)  # points that fill the device
_WIDER = {torch.float16: torch.float32, torch.bfloat16: torch.float32}
_NAME = 48  # letters of a kernel's name


@dataclass(frozen=True, slots=True)
class Ready:
    """A unit that can be enqueued: `enqueue` reads and writes tensors by name; `done` are those that nobody needs after it."""

    unit: Unit
    kernel: str
    enqueue: Enqueue
    schedule: Schedule | None = None
    source: str = ""
    contraction: Contraction | None = None
    makes: tuple[tuple[str, storage.Layout], ...] = ()
    done: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that one call enqueues; how all its tensors lie."""

    program: Program
    units: tuple[Ready, ...]
    strides: Strides

    def __call__(self, known: Known, keep: bool = False) -> Known:
        """Enqueues it; `known` holds the arguments, and then the results, or all that was made."""
        for ready in self.units:
            for name, layout in ready.makes:
                known[name] = layout.make()
            ready.enqueue(known)
            for name in () if keep else ready.done:
                del known[name]
        return known


def plan(program: Program, tensors: Mapping[str, Tensor], chosen: Mapping[int, Schedule] | None = None) -> Plan:
    """Kernels for a program and tensors that lie as these do; `chosen` are schedules by the number of a unit.

    Raises:
        NotNative: there is nothing to compute, or more than 2 ** 31 elements, or a function that OpenCL does not have.
    """
    if any(0 in shape for shape in program.shapes.values()) or any(s.count() == 0 for s in program.steps):
        raise NotNative
    program = program.copy()
    given = {name: tuple(x.stride()) for name, x in tensors.items()}

    def strides(name: str) -> tuple[int, ...]:
        return given[name] if name in given else tuple(contiguous_stride(program.shapes[name]))

    units = fused(program, _WANTED, strides)
    if any(storage.extent(shape, strides(name)) >= 1 << 31 for name, shape in program.shapes.items()):
        raise NotNative

    def ready(i: int) -> Ready:
        unit = units[i]
        if isinstance(unit, Product):
            return _product(unit, program, strides, tensors)
        choice = (chosen or {}).get(i) or schedules.known().get(schedules.class_of(unit, program.name, strides))
        return nest(unit, program, strides, choice or schedules.default(unit, strides, _UNITS, is_gpu))

    every = programs.side_by_side(ready, range(len(units)))
    made: set[str] = set()
    for i, unit in enumerate(units):
        fresh = [name for name in unit.writes if name not in made]
        made.update(fresh)
        later = {name for u in units[i + 1 :] for name in (*u.reads, *u.writes)}
        done = made - set(program.results) - later
        made -= done
        makes = tuple((name, _layout(program, name)) for name in fresh)
        every[i] = replace(every[i], makes=makes, done=tuple(sorted(done)))
    return Plan(program, tuple(every), strides)


def _layout(program: Program, name: str) -> storage.Layout:
    shape = program.shapes[name]
    return storage.Layout(shape, contiguous_stride(shape), program.dtypes[name])


def _named(program: Program, names: list[str]) -> str:
    own = [n for n in names if not n.startswith(f"{program.name}_part")]
    text = "_".join((program.name, *(own or [n.removeprefix(f"{program.name}_") for n in names])))
    return text if len(text) <= _NAME else f"{text[: _NAME - 4]}_etc"


def nest(unit: Nest, program: Program, strides: Strides, schedule: Schedule) -> Ready:
    """A nest's kernel, and what enqueues it."""
    name = _named(program, [s.target for s in unit.steps])
    written = Written(unit, schedule, name, program, strides)
    kernel = programs.build(written.source, name)
    size, group = written.launch
    tensors, given, numbers = (*written.inputs, *written.outputs), tuple(written.given), written.numbers

    def enqueue(known: Known) -> None:
        arguments: list[queue.Argument] = []
        for tensor in tensors:
            x = known[tensor]
            arguments += (storage.buffer(x), x.storage_offset())
        queue.launch(kernel, size, group, *arguments, *(float(known[n]) for n in given), numbers)

    return Ready(unit, name, enqueue, schedule, written.source)


def _product(unit: Product, program: Program, strides: Strides, tensors: Mapping[str, Tensor]) -> Ready:
    """A product by the device's generator."""
    a, b, out, alpha, numbers = unit.a.tensor, unit.b.tensor, unit.target, unit.alpha, unit.numbers
    dtype = _WIDER.get(unit.step.dtype, unit.step.dtype)
    widened = dtype != unit.step.dtype
    if widened and unit.bias is not None:
        raise NotNative
    lie = {n: tuple(contiguous_stride(program.shapes[n])) if widened else strides(n) for n in (a, b)}  # made anew
    name = _named(program, [out])
    c = contraction(unit, name, lambda n: lie[n] if n in lie else strides(n))
    even = tuple(widened or n not in tensors or tensors[n].storage_offset() % 4 == 0 for n in (a, b))
    made = generated.plan(c, dtype, (*even, True))
    bias = unit.bias.tensor if unit.bias is not None else None

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

    return Ready(unit, name, enqueue, contraction=c)
