"""What operators enqueue, kept: one that is called like before enqueues the same again, without deciding anything anew.

To work out shapes, strides, kernels and numbers takes an operator's Python 20 to 150 us, and it comes to the same whenever the
arguments look the same: dtypes, shapes, strides, offsets, numbers. So the second such call is noted down (memory taken, kernels
and copies enqueued, what was given back), and from the third on the notes are followed, with the new tensors' buffers for the
old. What depends on more than that is never kept: who reads from the device, writes to it from the host, falls back to the CPU,
gives a view, or changes the layout of an argument.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyopencl as cl
import torch

from syncscope.kernels import generator, in_c, memory, programs, queue, storage
from syncscope.kernels.memo import Memo

_TENSORS = frozenset((torch.Tensor, torch.nn.Parameter))
_SEQUENCES = frozenset((list, tuple, torch.Size))
_GENERATOR = torch._C.Generator
_PLAIN = frozenset((int, float, bool))  # of a list of these all are of one type
_plans: Memo[Plan | None] = Memo()
_seen: Memo[None] = Memo()  # hashes of keys that came once
decided = 0  # calls so far that looked like none before


@dataclass(frozen=True, slots=True)
class Command:
    """A copy or fill by the queue's function, which of its arguments are buffers, and the launches that come before it."""

    before: tuple[queue.Ready, ...]
    enqueue: Callable[..., None]
    arguments: tuple[object, ...]
    holes: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Made:
    """A result that is new: which memory, where it begins, and its layout."""

    slot: int
    offset: int
    layout: storage.Layout
    alone: bool  # whether it is all there is in that memory


@dataclass(frozen=True, slots=True)
class Constant:
    """A result that is a number."""

    value: int


# The number is that of an argument, which is the result.
Result: TypeAlias = "Made | Constant | int | list[Result] | tuple[Result, ...] | None"


@dataclass(frozen=True, slots=True)
class Plan:
    """Slots are the buffers of the tensors given, in their order, then those of the memory taken."""

    taken: tuple[int, ...]  # bytes
    launches: tuple[queue.Ready, ...]
    others: tuple[Command, ...]  # with launches of their own before them
    results: Result

    def follow(self, given: list[torch.Tensor], buffers: list[cl.Buffer]) -> object:
        """Enqueues it for the tensors given, whose buffers are given, too."""
        leases = []
        for size in self.taken:
            leases.append(one := memory.lease(size))
            buffers.append(one.buffer)
        for command in self.others:
            queue.launch_again(command.before, buffers)
            arguments = list(command.arguments)
            for at, slot in command.holes:
                arguments[at] = buffers[slot]
            command.enqueue(*arguments)
        queue.launch_again(self.launches, buffers)
        what = self.results
        if type(what) is Made:
            return what.layout.make(leases[what.slot]) if what.alone else _new(what, leases, {})
        return _results(what, given, leases)


def _results(what: Result, given: list[torch.Tensor], leases: list[memory.Lease]) -> object:
    """The results of a plan that are not one new tensor; those that share memory share a storage."""
    if type(what) is int:
        return given[what]
    if what is None:
        return None
    if type(what) is Constant:
        return what.value
    assert isinstance(what, (list, tuple))
    storages: dict[int, torch.UntypedStorage] = {}
    made = [_new(one, leases, storages) if type(one) is Made else _results(one, given, leases) for one in what]
    return made if type(what) is list else tuple(made)


def _new(made: Made, leases: list[memory.Lease], storages: dict[int, torch.UntypedStorage]) -> torch.Tensor:
    if made.alone:
        return made.layout.make(leases[made.slot])
    if made.slot not in storages:
        storages[made.slot] = storage.over(leases[made.slot])
    return made.layout.on(storages[made.slot], made.offset)


def forget() -> None:
    """For whoever changes how kernels are made."""
    _plans.clear()
    _seen.clear()
    if in_c.module is not None:
        in_c.module.forget()


_default_dtype = torch.get_default_dtype
_numbers = itertools.count()


def _nothing() -> int:
    return 0


def kept(kernel: Callable[..., object], asks: Callable[[], int] = _nothing) -> Callable[..., Any]:
    """An operator's function that follows its own notes where it can. `asks` says what beside the arguments decides."""
    name = next(_numbers)

    def run(*args: Any, **kwargs: Any) -> object:
        global decided
        # An operator within one that is noted down, or in a step that is captured; or kernels are not there yet.
        if queue.recorders or queue.backlog:
            return kernel(*args, **kwargs)
        key: list[object] = [name, _default_dtype(), asks()]
        given: list[torch.Tensor] = []
        buffers: list[cl.Buffer] = []
        try:
            for x in args:
                kind = type(x)
                if kind in _TENSORS:
                    buffers.append(x.untyped_storage().lease.buffer)
                    given.append(x)
                    key += (x.dtype, x.shape, x.is_contiguous() or x.stride(), x.storage_offset())
                elif kind in _SEQUENCES:
                    _listed(x, key, given, buffers)
                else:
                    key += (kind, x or repr(x))  # -0.0 is equal to 0.0
            for word, x in kwargs.items():
                kind = type(x)
                if kind in _TENSORS:
                    buffers.append(x.untyped_storage().lease.buffer)
                    given.append(x)
                    key += (word, x.dtype, x.shape, x.is_contiguous() or x.stride(), x.storage_offset())
                elif kind in _SEQUENCES:
                    key.append(word)
                    _listed(x, key, given, buffers)
                elif kind is _GENERATOR:  # which is another object each time
                    return kernel(*args, **kwargs)
                else:
                    key += (word, kind, x or repr(x))
            if len(buffers) > 1 and len(set(map(id, buffers))) < len(buffers):  # tensors that share memory
                key.append(tuple(map(buffers.index, buffers)))
            known = tuple(key)
            plan = _plans.get(known, _UNKNOWN)
        except (AttributeError, TypeError):  # a tensor of another device; an argument that cannot be looked up
            return kernel(*args, **kwargs)
        if plan is _UNKNOWN:
            decided += 1
            looks = hash(known)
            if looks in _seen:
                return _noted(known, given, buffers, kernel, args, kwargs)
            _seen[looks] = None
        elif plan is not None:
            return plan.follow(given, buffers)
        return kernel(*args, **kwargs)

    return run


_UNKNOWN: Any = object()


def followed(label: str | None, run: Callable[..., Any], asks: Callable[[], int] | None = None) -> Callable[..., Any]:
    """An operator's function, whose plans are followed in C where that can be: observers are told `label`, or nothing."""
    if in_c.module is None:
        return run
    quick: Callable[..., Any] = in_c.module.Operator(label, run, asks)
    return quick


def _listed(values: Sequence[Any], key: list[object], given: list[torch.Tensor], buffers: list[cl.Buffer]) -> None:
    """A list or tuple of an operator's arguments, perhaps of tensors."""
    if not values or type(values[0]) in _PLAIN:
        key.append(repr(values) if values and type(values[0]) is float else tuple(values))
        return
    key.append(len(values))
    for x in values:
        if type(x) in _TENSORS:
            buffers.append(x.untyped_storage().lease.buffer)
            key += (x.dtype, x.shape, x.is_contiguous() or x.stride(), x.storage_offset())
            given.append(x)
        else:
            key += (type(x), x)


class _Notes:
    """What one thread does while an operator runs."""

    def __init__(self, buffers: list[cl.Buffer]) -> None:
        self.thread = threading.get_ident()
        self.slots = {id(buffer): slot for slot, buffer in enumerate(buffers)}
        self.given = len(buffers)
        self.leases: list[memory.Lease] = []  # held, so that no two have one buffer
        self.launches: list[queue.Ready] = []
        self.others: list[Command] = []
        self.whole = True  # whether it can be repeated

    def lent(self, lease: memory.Lease) -> None:
        if threading.get_ident() == self.thread:
            self.slots[id(lease.buffer)] = self.given + len(self.leases)
            self.leases.append(lease)

    def enqueued(self, enqueue: Callable[..., None], *arguments: Any) -> None:
        if threading.get_ident() != self.thread:
            return
        holes = [(at, x) for at, x in enumerate(arguments) if isinstance(x, cl.Buffer)]
        if enqueue not in (queue.launch, queue.copy, queue.fill) or any(id(x) not in self.slots for _, x in holes):
            self.whole = False
        elif enqueue is queue.launch:
            kernel, size, group, *values = arguments
            places = tuple((at - 3, self.slots[id(x)]) for at, x in holes)
            drawn = queue.draws(values)
            if drawn is not None and drawn.generator is not generator.default:
                self.whole = False
            self.launches.append(queue.Ready(programs.with_arguments(kernel, values), size, group, places, drawn))
        else:
            places = tuple((at, self.slots[id(x)]) for at, x in holes)
            open_ = tuple(None if isinstance(x, cl.Buffer) else x for x in arguments)
            self.others.append(Command(tuple(self.launches), enqueue, open_, places))
            self.launches.clear()


def _noted(
    key: Hashable,
    given: list[torch.Tensor],
    buffers: list[cl.Buffer],
    kernel: Callable[..., object],
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> object:
    """Runs an operator, and keeps what it did if that can be repeated."""
    notes = _Notes(buffers)
    before = [_look(x) for x in given]
    queue.recorders.append(notes.enqueued)
    memory.lenders.append(notes.lent)
    try:
        result = kernel(*args, **kwargs)
    finally:
        queue.recorders.remove(notes.enqueued)
        memory.lenders.remove(notes.lent)
    plan = None
    if notes.whole and before == [_look(x) for x in given]:
        slots = {id(lease): slot for slot, lease in enumerate(notes.leases)}
        try:
            results = _described(result, given, slots)
            taken = tuple(lease.size for lease in notes.leases)
            plan = Plan(taken, tuple(notes.launches), tuple(notes.others), results)
        except ValueError:
            pass
    if plan is not None and _offered(plan, given):
        return result
    _plans[key] = plan
    return result


def _offered(plan: Plan, given: list[torch.Tensor]) -> bool:
    """Whether plans.c follows a plan from now on."""
    if in_c.module is None or plan.others:
        return False
    results = plan.results
    described = [_in_c(one) for one in results] if isinstance(results, tuple) else _in_c(results)
    if isinstance(results, list) or described is _UNKNOWN or (isinstance(described, list) and _UNKNOWN in described):
        return False
    taken = tuple((memory.size_class(size), size) for size in plan.taken)
    launches = tuple(
        (r.kernel, r.size, r.group, r.holes, None if r.draws is None else (r.draws.at, r.draws.ahead))
        for r in plan.launches
    )
    return bool(in_c.module.offer(given, taken, launches, described))


def _in_c(result: Result) -> object:
    """A result as plans.c reads it; _UNKNOWN where it cannot make it."""
    if type(result) is Constant:
        return (result.value,)
    if type(result) is not Made:
        return result
    code = storage.CODES.get(result.layout.dtype)
    if code is None or not result.alone:
        return _UNKNOWN
    layout = result.layout
    return result.slot, code, 8 * layout.dtype.itemsize, tuple(layout.shape), tuple(layout.stride)


def _look(x: torch.Tensor) -> tuple[object, ...]:
    return x.dtype, x.shape, x.stride(), x.storage_offset(), id(x.untyped_storage().lease)


def _described(result: Any, given: list[torch.Tensor], slots: dict[int, int]) -> Result:
    """How to make a result again.

    Raises:
        ValueError: it is a view of an argument, or of a kind that nobody knows.
    """
    if result is None:
        return None
    if type(result) is int:
        return Constant(result)
    if type(result) in (list, tuple):
        many: list[Result] | tuple[Result, ...] = type(result)(_described(x, given, slots) for x in result)
        return many
    for number, x in enumerate(given):
        if x is result:
            return number
    if type(result) is torch.Tensor and not result.is_conj() and not result.is_neg():
        slot = slots.get(id(getattr(result.untyped_storage(), "lease", None)))
        if slot is not None:
            layout = storage.Layout.of(result)
            return Made(slot, result.storage_offset(), layout, layout.size == result.untyped_storage().nbytes())
    raise ValueError
