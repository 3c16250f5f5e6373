"""What a program's next steps depend on, taken at a moment and put back: what modules and optimizers hold, random numbers, what
the program's own objects and modules have in plain attributes, and the local names of functions that are under way.

Objects stay the same, and so do tensors: their numbers are put back into them. What is no tensor, no generator and no container
of plain values is left as it is. So not all is put back that a program may have changed: whether it is enough is found out by
making the same steps twice.
"""

from __future__ import annotations

import ctypes
import gc
import random
import sys
import threading
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from types import CellType, FrameType, FunctionType
from typing import Any

PLAIN = (int, float, complex, bool, str, bytes, type(None))
MANY = 10_000  # elements of a container that is one of data, and stays as it is
LARGE = 1 << 24  # bytes of an array of the host that is, too
PART = 0.25  # of the memory that tensors have on the device, which a copy may take there; else it is the host's
KEEPERS = (
    ("torch.optim.optimizer", "Optimizer"),
    ("torch.optim.lr_scheduler", "LRScheduler"),
    ("torch.amp.grad_scaler", "GradScaler"),
)  # beside modules, by module and name

PutBack = Callable[[], object]


class Snapshot:
    """All of it, as it is now. `bytes` is how much of tensors was copied."""

    def __init__(self) -> None:
        self._torch = sys.modules["torch"]
        self._steps: list[PutBack] = []
        self._seen: set[int] = set()
        self.bytes = 0
        self._left = _room(self._torch)
        kinds = _kinds(self._torch)
        for holder in _holders(self._torch, kinds):
            self._most = float("inf") if isinstance(holder, kinds) else LARGE
            self._attributes(holder)
        self._most = LARGE
        for cell in _cells():
            self._take(cell.cell_contents)
            self._steps.append(_into_cell(cell))
        self._random = list(_random(self._torch))
        self._locals: list[PutBack] = []
        self.look()

    def look(self) -> Snapshot:
        """Takes the functions, too, that are under way by now; this snapshot."""
        for frame in _frames():
            names = dict(frame.f_locals)
            for value in names.values():
                self._take(value)
            self._locals.append(_into_frame(frame, names))
        return self

    def put_back(self) -> None:
        """Everything is as it was."""
        for step in (*self._steps, *self._locals, *self._random):
            step()

    def _attributes(self, holder: Any) -> None:
        names = vars(holder)
        if isinstance(holder, types.ModuleType):  # of one's own: functions and classes are no state
            names = {name: value for name, value in names.items() if not name.startswith("__")}
            self._steps.append(_back_into(vars(holder), names))
        else:
            kept = dict(names)
            self._steps.append(lambda: _replace(holder.__dict__, kept))
        for value in names.values():
            self._take(value)

    def _take(self, value: Any) -> None:
        """What a value holds, if it can change."""
        if isinstance(value, PLAIN) or id(value) in self._seen:
            return
        if isinstance(value, self._torch.Tensor):
            if value.requires_grad or value.numel() * value.element_size() <= self._most:  # else one of data
                self._seen.add(id(value))
                self._tensor(value)
        elif type(value) in (dict, OrderedDict, defaultdict) and len(value) <= MANY:
            self._seen.add(id(value))
            kept = dict(value)
            self._steps.append(lambda: _replace(value, kept))
            for one in kept.values():
                self._take(one)
        elif type(value) in (list, deque) and len(value) <= MANY:
            self._seen.add(id(value))
            elements = list(value)
            self._steps.append(lambda: _refill(value, elements))
            for one in elements:
                self._take(one)
        elif type(value) is set and len(value) <= MANY:
            self._seen.add(id(value))
            members = set(value)
            self._steps.append(lambda: _fill(value, members))
        elif isinstance(value, tuple) and len(value) <= MANY:
            for one in value:
                self._take(one)
        elif (step := _of_generator(value, self._torch)) is not None:
            self._seen.add(id(value))
            self._steps.append(step)
        elif type(value).__name__ == "ndarray" and value.nbytes <= LARGE and value.flags.writeable:
            self._seen.add(id(value))
            numbers = value.copy()
            self._steps.append(lambda: value.__setitem__(..., numbers))

    def _tensor(self, tensor: Any) -> None:
        numbers = self._copied(tensor)
        self._steps.append(lambda: tensor.data.copy_(numbers))  # its `data`: no graph is told of that
        if tensor.is_leaf and tensor.requires_grad:
            gradient = tensor.grad
            before = None if gradient is None else self._copied(gradient)

            def back() -> None:
                if before is not None and tensor.grad is not None:
                    tensor.grad.data.copy_(before)
                elif tensor.grad is not gradient:
                    tensor.grad = gradient
                    if before is not None:
                        gradient.data.copy_(before)

            self._steps.append(back)

    def _copied(self, tensor: Any) -> Any:
        size = tensor.numel() * tensor.element_size()
        self.bytes += size
        if not tensor.is_cpu and size > self._left:
            return tensor.detach().cpu()
        self._left -= 0 if tensor.is_cpu else size
        return tensor.detach().clone()


def _kinds(torch: Any) -> tuple[type, ...]:
    kinds = [torch.nn.Module]
    for module, name in KEEPERS:
        kinds += [kind] if (kind := getattr(sys.modules.get(module), name, None)) else []
    return tuple(kinds)


def _holders(torch: Any, kinds: tuple[type, ...]) -> Iterator[Any]:
    """Modules, optimizers and what goes with them; objects of the program's own classes, and its own modules."""
    others = type, threading.Thread, BaseException, torch.Tensor
    own: dict[type, bool] = {}
    for one in gc.get_objects():
        kind = type(one)
        if kind not in own:
            its = _is_own(sys.modules.get(kind.__module__)) and not issubclass(kind, others)
            own[kind] = issubclass(kind, kinds) or its
        if own[kind] and isinstance(getattr(one, "__dict__", None), dict):
            yield one
    for module in list(sys.modules.values()):
        if _is_own(module) and isinstance(module, types.ModuleType):
            yield module


def _is_own(module: Any) -> bool:
    """Whether it is the program's; what has no file is, if it is run by hand: `python -c`, a notebook."""
    from syncscope.tracers import places

    home = getattr(module, "__file__", None)
    if home is None:
        return getattr(module, "__name__", "") == "__main__"
    return isinstance(home, str) and places.kind_of_file(home) == places.USER


def _cells() -> Iterator[CellType]:
    """What the program's own functions share with functions around them, which may have ended."""
    from syncscope.tracers import places

    found = {}
    for one in gc.get_objects():
        if type(one) is FunctionType and one.__closure__ and places.kind_of(one.__code__) == places.USER:
            found.update({id(cell): cell for cell in one.__closure__ if _is_filled(cell)})
    yield from found.values()


def _is_filled(cell: CellType) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


def _frames() -> Iterator[FrameType]:
    """Functions that are under way in this thread, and are no part of torch, of Python or of ours."""
    from syncscope.tracers import places

    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        kind = places.kind_of_file(frame.f_code.co_filename)
        if kind in (places.USER, places.LIBRARY) and frame.f_locals is not frame.f_globals:
            yield frame
        frame = frame.f_back


def _into_frame(frame: FrameType, names: dict[str, Any]) -> PutBack:
    """Local names mean what they did. Before Python 3.13 what is set in `f_locals` is to be handed over, as debuggers do."""

    def back() -> None:
        frame.f_locals.update(names)
        if sys.version_info < (3, 13):
            ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))

    return back


def _into_cell(cell: CellType) -> PutBack:
    kept = cell.cell_contents
    return lambda: setattr(cell, "cell_contents", kept)


def _room(torch: Any) -> float:
    """Bytes of copies that may lie on the device."""
    if getattr(torch.cuda, "_initialized", False):
        return float(min(PART * torch.cuda.memory_allocated(), torch.cuda.mem_get_info()[0] / 2))
    return float("inf")


def _random(torch: Any) -> Iterator[PutBack]:
    """The states from which random numbers are drawn."""
    python = random.getstate()
    yield lambda: random.setstate(python)
    if "numpy" in sys.modules:
        numpy = sys.modules["numpy"].random
        state = numpy.get_state()
        yield lambda: numpy.set_state(state)
    host = torch.get_rng_state()
    yield lambda: torch.set_rng_state(host)
    for name in ("cuda", "xpu", "ocl"):
        device = getattr(torch, name, None)
        if name != "ocl" and not getattr(device, "_initialized", False):
            continue
        if device is not None and hasattr(device, "get_rng_state_all"):
            yield _back(device.set_rng_state_all, device.get_rng_state_all())


def _of_generator(value: Any, torch: Any) -> PutBack | None:
    """Of a generator of random numbers."""
    if isinstance(value, random.Random):
        return _back(value.setstate, value.getstate())
    if isinstance(value, torch.Generator):
        return _back(value.set_state, value.get_state())
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.random.RandomState):
        return _back(value.set_state, value.get_state())
    if numpy is not None and isinstance(value, numpy.random.Generator):
        state = value.bit_generator.state
        return lambda: setattr(value.bit_generator, "state", state)
    return None


def _back(call: Callable[[Any], object], state: Any) -> PutBack:
    return lambda: call(state)


def _back_into(names: dict[str, Any], kept: dict[str, Any]) -> PutBack:
    return lambda: names.update(kept)


def _replace(names: Any, kept: dict[Any, Any]) -> None:
    """In their order, too."""
    if names.keys() != kept.keys():
        names.clear()
    names.update(kept)


def _fill(value: set[Any], members: set[Any]) -> None:
    value.clear()
    value.update(members)


def _refill(value: Any, elements: list[Any]) -> None:
    value.clear()
    value.extend(elements)
