"""Dry runs: on the CPU, tensors that come from parameters and batches count as tensors of a device.

A tensor counts if it is a parameter or a buffer of a module, needs a gradient, was marked, or was computed from one that
counts. Batches of a DataLoader and of `syncscope.steps` are marked, and what is sent to a device or made there: `.to(device)`,
`device=`, a default device. What `.cpu()`, `.numpy()` or `.item()` gave back is the host's. torch.compile runs the code as it
was written: compiled code has no lines.

The CPU is then two places under one name. One object of torch.device is kept for each: the device of a tensor is the one of its
place. Any other is the device's, unless the program was lent a device by name (`redirect`): then it said which is which.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
import weakref
from collections.abc import Iterator
from typing import Any

from syncscope.model.ops import Op
from syncscope.tracers.hooks import methods, reads
from syncscope.tracers.hooks.listeners import listeners
from syncscope.tracers.hooks.patches import patches
from syncscope.tracers.places import LIBRARY, USER, kind_of

HOST = {"cpu", "numpy", "item", "tolist", "__bool__", "__float__", "__int__", "__index__", "__repr__", "__format__"}
MASKED = {"__getitem__": Op.MASK_READ, "__setitem__": Op.MASK_WRITE, "masked_select": Op.MASKED_SELECT}
SIZED = {
    "combinations": Op.COMBINATIONS,
    **{f"to_sparse{kind}": Op.SPARSE for kind in ("", "_coo", "_csr", "_csc", "_bsr", "_bsc")},
}  # what they make is as large as their values say, which on a device torch's sync debug mode tells
HOOKED = ("register_hook", "register_post_accumulate_grad_hook")  # what they call is given what autograd has made
INDEXED = ("__getitem__", "__setitem__")
_users = 0
_keepers = 0
_asked = [0]  # how often a tensor was found to count
_devices: dict[str, Any] = {}  # the one torch.device of each place
_local = threading.local()  # `hooks`: how many that are followed are under way
_lent = False  # whether the program asked for a device by name, and got the CPU


class _Mark(weakref.ref[Any]):
    """Says of a tensor, beside it, whether it counts: what stands in its attributes would be seen, and saved."""

    __slots__ = ("counts", "key")
    counts: bool
    key: int


_marks: dict[int, _Mark] = {}  # by id


def _gone(gone: Any) -> None:
    key: int = gone.key
    if _marks.get(key) is gone:
        del _marks[key]


def _set(tensor: Any, value: bool) -> None:
    said: _Mark = _Mark(tensor, _gone)
    said.key, said.counts = id(tensor), value
    _marks[said.key] = said


def mark(value: Any) -> Any:
    """Counts the tensors in a nest of lists, tuples and dicts as a device's; returns the nest."""
    torch = sys.modules.get("torch") if _users else None  # where it was never imported there are no tensors
    if torch is not None:
        if isinstance(value, torch.Tensor):
            _set(value, True)
        elif isinstance(value, dict):
            for item in value.values():
                mark(item)
        elif isinstance(value, (list, tuple)):
            for item in value:
                mark(item)
    return value


def counts(tensor: Any) -> bool:
    """Whether this tensor of the CPU is treated as one of a device."""
    known = _marks.get(id(tensor))
    found = known.counts if known is not None and known() is tensor else _needs_gradient(tensor) or _unfollowed()
    _asked[0] += found
    return found


def lend() -> Any:
    """The torch.device that a program gets which asks for a device by its name."""
    global _lent
    _lent = True
    return _place(True)


def is_lent(device: Any) -> bool:
    """Whether this means the device: what was lent, or a tensor that counts."""
    return device is _devices.get("device") or (_is_tensor(device) and counts(device))


def _place(on_device: bool) -> Any:
    name = "device" if on_device else "host"
    if name not in _devices:
        _devices[name] = sys.modules["torch"].device("cpu")
    return _devices[name]


def counted() -> int:
    """How often so far a tensor of the CPU was treated as one of a device: where it stays the same, nothing was checked."""
    return _asked[0]


def _needs_gradient(tensor: Any) -> bool:
    lib = sys.modules["torch"]._C
    if not lib._has_torch_function_unary(tensor):
        return bool(tensor.requires_grad)
    with lib.DisableTorchFunctionSubclass():
        return bool(tensor.requires_grad)


def _unfollowed() -> bool:
    """Whether a backward pass has called something that is not followed, as a function's own `backward`: what that is given,
    and computes of it, is where the loss is."""
    torch = sys.modules["torch"]
    task = getattr(torch._C, "_current_graph_task_id", None)  # since torch 2.0
    return task is not None and task() != -1 and not getattr(_local, "hooks", 0)


@contextlib.contextmanager
def mode() -> Iterator[None]:
    """Inside, this thread's tensors are followed; works before torch is imported."""
    global _users, _lent
    _users += 1
    stack = contextlib.ExitStack()
    listeners.pretend = counts

    def begin(torch: Any) -> None:
        follower = _follower(torch)()
        follower.__enter__()
        stack.callback(_leave, torch.overrides, follower)

    stack.callback(patches.when_imported("torch", begin))
    stack.callback(patches.when_imported("torch.nn.modules.module", _members))
    stack.callback(patches.when_imported("torch.utils.data.dataloader", _batches))
    stack.callback(patches.when_imported("torch._dynamo", _eager))
    try:
        with stack, patches.held():
            yield
    finally:
        _users -= 1
        if not _users:
            listeners.pretend = None
            _lent = False
            _forget()


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """Inside, what one dry run has marked counts in the next, too."""
    global _keepers
    _keepers += 1
    try:
        yield
    finally:
        _keepers -= 1
        _forget()


def _forget() -> None:
    if not _users and not _keepers:
        _marks.clear()


def _leave(overrides: Any, follower: Any) -> None:
    """Takes our mode from torch's stack. A fixture may have put another above it, which stays: torch would take that one."""
    above = []
    while overrides._len_torch_function_stack() and (mode := overrides._pop_mode()) is not follower:
        above.append(mode)
    for mode in reversed(above):
        overrides._push_mode(mode)


@functools.cache
def _follower(torch: Any) -> Any:
    class Follower(torch.overrides.TorchFunctionMode):
        """Marks what is computed from what is marked."""

        def around(self, function: Any, args: Any, kwargs: Any) -> Any:
            if (in_c := _in_c(function)) is not None:
                return self.followed(in_c, args, kwargs, in_c(*args, **(kwargs or {})))
            if function.__name__ in HOOKED and len(args) > 1 and counts(args[0]):
                args = (args[0], _given_marked(args[1]), *args[2:])
            op = reads.named.get(function.__code__)  # what it calls in turn is not followed
            if op is None or reads.local.inside or not _is_tensor(args[0]) or not counts(args[0]):
                result = function(*args, **(kwargs or {}))
            else:
                result = reads.noted(op, sys._getframe(1), function, args, kwargs or {})
            return self.followed(function, args, kwargs, result)

        def followed(self, function: Any, args: Any, kwargs: Any, result: Any) -> Any:
            name = getattr(function, "__name__", "")
            if name in MASKED and not reads.local.inside and len(args) > 1 and _chosen_by_mask(*args):
                reads.noted(MASKED[name], sys._getframe(1), int, (), {})  # who hears it asks only the tensor
            if name in SIZED and not reads.local.inside and _sized_by_values(args[0]):
                reads.noted(SIZED[name], sys._getframe(1), int, (), {})
            if name in INDEXED and not reads.local.inside and len(args) > 1:
                for _ in range(_numbers_among(args[1])):
                    reads.noted(Op.SCALAR_INDEX, sys._getframe(1), int, (), {})
            if name in HOST:
                return _on_host(function, args[0], result) if name == "cpu" else result
            if name == "__get__" and isinstance(result, torch.device):
                return _place(counts(args[0])) if result.type == "cpu" else result
            if _any_counts(args) or (kwargs and _any_counts(kwargs.values())) or _sent(function, name, args, kwargs):
                mark(result)
            return result

    methods.following(Follower)
    return Follower


def _sent(function: Any, name: str, args: Any, kwargs: Any) -> bool:
    """Whether a call says that its result is on the device: by `.to(device)`, `device=`, or a default device."""
    device = (kwargs or {}).get("device")
    if device is None and name == "to":
        device = args[1] if len(args) > 1 else None
    elif device is None:
        defaults = sys.modules.get("torch.utils._device")
        device = getattr(defaults, "CURRENT_DEVICE", None)
        if device is None or function not in defaults._device_constructors():  # type: ignore[union-attr]
            return False
    if isinstance(device, str):
        return not _lent and device.partition(":")[0] == "cpu" and not _written_out(sys._getframe(2))
    if not isinstance(device, sys.modules["torch"].device) or device.type != "cpu":
        return False
    if device is _devices.get("device"):
        return True
    return not (_lent or device is _devices.get("host") or _written_out(sys._getframe(2)))


def _written_out(frame: Any) -> bool:
    """Whether "cpu" is written where the call is, with no other choice beside it: that means the host."""
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("syncscope.tracers."):
        frame = frame.f_back
    texts = [text for text in frame.f_code.co_consts if isinstance(text, str)]
    return "cpu" in texts and not any(text.startswith("cuda") for text in texts)


@functools.lru_cache(256)
def _in_c(function: Any) -> Any:
    """What torch has in C below a method of tensors that the program has replaced by this function; None where it is none.

    Torch looks methods up by name before it asks a mode: so the mode is given the replacement, which is running already.
    """
    if kind_of(function.__code__) not in (USER, LIBRARY):
        return None
    torch = sys.modules["torch"]
    names = [name for name, value in vars(torch.Tensor).items() if value is function]
    return next((getattr(torch._C.TensorBase, name, None) for name in names), None)


def _on_host(cpu: Any, tensor: Any, result: Any) -> Any:
    """The result of `.cpu()`, which is the tensor itself here, and still counts: another of the same memory does not.

    A leaf stays what it is: it has the gradient, and an optimizer asks for it.
    """
    if result is tensor and counts(result) and not (tensor.is_leaf and tensor.requires_grad):
        result = cpu(tensor.view_as(tensor))
        _set(result, False)
    return result


def _chosen_by_mask(tensor: Any, key: Any, *written: Any) -> bool:
    """Whether a mask that counts says which elements of a tensor that does not count are taken, or written from another.

    What is made in a step without saying where, `torch.arange(n)[mask]`, has to be the device's there, or the mask could not
    index it: of that nothing tells here but the mask.
    """
    if not _is_tensor(tensor) or counts(tensor) or not all(_is_tensor(value) and value.dim() for value in written):
        return False  # a number is filled in without a wait
    masks = [k for k in (key if isinstance(key, tuple) else (key,)) if _is_tensor(k) and k.dim() > 0 and counts(k)]
    return any(str(mask.dtype) in ("torch.bool", "torch.uint8") for mask in masks)


def _given_marked(hook: Any) -> Any:
    """A hook that follows what autograd gives it: a gradient is where its tensor is, and autograd calls without a mode."""

    @functools.wraps(hook)
    def marked(given: Any) -> Any:
        torch = sys.modules["torch"]
        followed = not _users or torch.overrides._len_torch_function_stack()
        _local.hooks = getattr(_local, "hooks", 0) + 1
        try:
            with contextlib.nullcontext() if followed else _follower(torch)():
                return hook(mark(given))
        finally:
            _local.hooks -= 1

    return marked


def _sized_by_values(tensor: Any) -> bool:
    """Whether it counts and has all of its elements: of a sparse one it is known how many there are."""
    return _is_tensor(tensor) and tensor.layout is sys.modules["torch"].strided and counts(tensor)


def _numbers_among(key: Any) -> int:
    """How many tensors without dimensions an index has that count: PyTorch reads each of them, to give a view of a row."""
    parts = key if isinstance(key, tuple) else (key,)
    return sum(_is_tensor(part) and not part.dim() and counts(part) for part in parts)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, sys.modules["torch"]._C.TensorBase)


def _any_counts(values: Any) -> bool:
    for value in values:
        if _is_tensor(value):
            if counts(value):
                return True
        elif isinstance(value, (list, tuple)) and _any_counts(value):
            return True
    return False


def _eager(module: Any) -> None:
    """What torch.compile made runs as it was written: compiled code has no lines, and its tensors cannot be followed."""
    stance = module.set_stance("force_eager")
    stance.__enter__()
    patches.later(stance.__exit__, None, None, None)


def _members(module: Any) -> None:
    """Parameters and buffers are where their module is, which is the device, if anything is: whoever sent it, and when.

    While it is made it is the host's. A program that was lent a device has said which modules it sends there.
    """
    owner = module.Module

    def met(value: Any) -> Any:
        known = _marks.get(id(value))
        if not _lent and _is_tensor(value) and (known is None or known() is not value) and not _in_the_making(owner):
            _set(value, True)
        return value

    def member(original: Any) -> Any:
        return functools.wraps(original)(lambda self, name: met(original(self, name)))

    def named(original: Any) -> Any:
        def members(*args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
            return ((name, met(value)) for name, value in original(*args, **kwargs))

        return functools.wraps(original)(members)

    replaced = {"__getattr__": member, "named_parameters": named, "named_buffers": named}
    patches.replace_all((owner, name, around(getattr(owner, name))) for name, around in replaced.items())


def _in_the_making(kind: type) -> bool:
    """Whether an object of this kind is being made by one of the callers."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_name == "__init__" and isinstance(frame.f_locals.get(frame.f_code.co_varnames[0]), kind):
            return True
        frame = frame.f_back
    return False


def _batches(dataloader: Any) -> None:
    """A DataLoader's batches are on their way to a device."""
    iterator = dataloader._BaseDataLoaderIter
    original = iterator.__next__

    @functools.wraps(original)
    def following(self: Any) -> Any:
        return mark(original(self))

    patches.replace(iterator, "__next__", following)
