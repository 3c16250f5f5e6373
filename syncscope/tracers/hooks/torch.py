"""What torch has that reads: methods of tensors, functions, operators, `.to`; `record_function` and the backward pass."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from time import monotonic_ns
from typing import Any

from syncscope.model.ops import Op
from syncscope.tracers.hooks import methods, reads, sync_debug
from syncscope.tracers.hooks.listeners import RowsKept, listeners
from syncscope.tracers.hooks.patches import patches
from syncscope.tracers.lines import library as lines
from syncscope.tracers.places import seen_from

Waits = Callable[..., bool] | None


def _is_mask(key: Any) -> bool:
    torch = sys.modules["torch"]
    if type(key) is torch.Tensor:
        return key.dtype in (torch.bool, torch.uint8) and key.dim() > 0
    return type(key) is tuple and any(type(k) is torch.Tensor and _is_mask(k) for k in key)


def _reads_index(tensor: Any, key: Any) -> bool:
    return _is_mask(key)


def _writes_index(tensor: Any, key: Any, value: Any) -> bool:
    """A number is filled in under a mask; a tensor needs to know how many elements there are."""
    return _is_mask(key) and isinstance(value, sys.modules["torch"].Tensor) and value.dim() > 0


def _has_duplicates(tensor: Any) -> bool:
    """Perhaps; torch's own debug mode does not know of this wait, which is a library's (thrust)."""
    return bool(tensor.is_sparse and not tensor.is_coalesced())


def _tensor_repeats(tensor: Any, repeats: Any = None, *args: Any, **kwargs: Any) -> bool:
    unknown = kwargs.get("output_size") is None
    return unknown and (repeats is None or isinstance(repeats, sys.modules["torch"].Tensor))


def _condition_alone(*args: Any, **kwargs: Any) -> bool:
    return len(args) + len(kwargs) == 1


def _no_output_size(*args: Any, **kwargs: Any) -> bool:
    return len(args) < 2 and kwargs.get("num_classes", -1) == -1


def _rows_of_mask(arguments: tuple[Any, ...], result: Any) -> RowsKept | None:
    """x[mask], or x[:, mask]: of each element of the mask one row of x, or none."""
    x, key = arguments[:2]
    masks = (
        [key]
        if type(key) is not tuple
        else [k for k in key if k is not ... and not (type(k) is slice and k == slice(None))]
    )
    if len(masks) != 1 or not masks[0].numel() or not x.numel():
        return None
    rows = masks[0].numel()
    return RowsKept(result.numel() * rows // x.numel(), rows, result.requires_grad)


def _rows_found(arguments: tuple[Any, ...], result: Any) -> RowsKept | None:
    """Of each element one row of the result, or none; of several results the first."""
    first = result[0] if isinstance(result, tuple) else result
    return RowsKept(len(first), arguments[0].numel(), first.requires_grad)


def _elements_found(arguments: tuple[Any, ...], result: Any) -> RowsKept | None:
    """masked_select, where either may be expanded to the other."""
    return RowsKept(len(result), max(t.numel() for t in arguments[:2]), result.requires_grad)


def _distinct(arguments: tuple[Any, ...], result: Any) -> RowsKept | None:
    """Distinct elements, or along a dimension, which is then the second argument."""
    first, x = result[0] if isinstance(result, tuple) else result, arguments[0]
    if first.dim() < 2:
        return RowsKept(len(first), x.numel(), False)
    along = arguments[1] if len(arguments) > 1 else 0
    return RowsKept(first.shape[along], x.shape[along], False)


SELECTS: dict[Op, reads.Selects] = {
    Op.NONZERO: _rows_found,
    Op.ARGWHERE: _rows_found,
    Op.WHERE: _rows_found,
    Op.MASKED_SELECT: _elements_found,
    Op.UNIQUE: _distinct,
    Op.UNIQUE_CONSECUTIVE: _distinct,
}
BOTH: dict[str, tuple[Op, Waits]] = {  # methods, and functions of the same name
    "nonzero": (Op.NONZERO, None),
    "argwhere": (Op.ARGWHERE, None),
    "masked_select": (Op.MASKED_SELECT, None),
    "bincount": (Op.BINCOUNT, None),
    "equal": (Op.EQUAL, None),
    "allclose": (Op.ALLCLOSE, None),
    "is_nonzero": (Op.IS_NONZERO, None),
    "repeat_interleave": (Op.REPEAT_INTERLEAVE, _tensor_repeats),
}
METHODS: dict[str, tuple[Op, Waits]] = BOTH | {
    "item": (Op.ITEM, None),
    "tolist": (Op.TOLIST, None),
    "__bool__": (Op.BOOL, None),
    "__float__": (Op.FLOAT, None),
    "__int__": (Op.INT, None),
    "__index__": (Op.INDEX, None),
    "__complex__": (Op.COMPLEX, None),
    "cpu": (Op.CPU, None),
    "numpy": (Op.NUMPY, None),
    "coalesce": (Op.COALESCE, _has_duplicates),
}
FUNCTIONS: dict[str, tuple[Op, Waits]] = BOTH | {
    "_unique2": (Op.UNIQUE, None),  # what torch.unique is made of
    "unique_dim": (Op.UNIQUE, None),
    "unique_consecutive": (Op.UNIQUE_CONSECUTIVE, None),
    "where": (Op.WHERE, _condition_alone),
}
SYNCHRONIZE = (
    ("_cuda_synchronize", ""),
    ("_CudaStreamBase", "synchronize"),
    ("_CudaEventBase", "synchronize"),
    ("_xpu_synchronize", ""),
    ("_XpuStreamBase", "synchronize"),
    ("_XpuEventBase", "synchronize"),
    ("_accelerator_synchronizeDevice", ""),
)


@functools.cache
def _hooks(torch: Any) -> methods.Hooks:
    """What is heard whenever somebody listens."""
    base, functions, hooks = torch._C.TensorBase, torch._C._VariableFunctions, methods.Hooks()
    for name, (op, waits) in METHODS.items():
        hooks.hear(base, name, reads.method(op, waits, SELECTS.get(op)))
    hooks.hear_slot(base, methods.ITEM, reads.method(Op.MASK_READ, _reads_index, _rows_of_mask))
    hooks.hear_slot(base, methods.SET, reads.method(Op.MASK_WRITE, _writes_index))
    for name, (op, waits) in FUNCTIONS.items():
        hooks.hear(functions, name, reads.function(op, waits, SELECTS.get(op)))
    hooks.hear(torch._C._nn, "one_hot", reads.function(Op.ONE_HOT, _no_output_size))
    global uploads_wait
    uploads_wait = frozenset({"cuda"} if torch.version.cuda or torch.version.hip else ())
    hooks.hear(base, "to", _to)
    hooks.hear(base, "cuda", _cuda)
    for owner, name in SYNCHRONIZE:
        kind = getattr(torch._C, owner, None)
        if name and kind is not None:
            hooks.hear(kind, name, reads.always(Op.SYNCHRONIZE))
        elif kind is not None:
            hooks.hear(torch._C, owner, reads.always(Op.SYNCHRONIZE))
    hooks.hear(torch._C._ImperativeEngine, "run_backward", _backward)
    reads.module_type = torch.nn.Module
    tensor = torch.Tensor
    named = {"__repr__": Op.FORMAT, "__format__": Op.FORMAT, "__contains__": Op.BOOL, "__array__": Op.ASARRAY}
    reads.named.update({getattr(tensor, name).__code__: op for name, op in named.items()})
    return hooks


def _torch(torch: Any) -> None:
    _hooks(torch).put()
    patches.replace(torch._tensor_str, "_str", _printed(torch._tensor_str._str))


@functools.cache
def _printed(original: Callable[..., Any]) -> Callable[..., Any]:
    """What `repr` and `str` of a tensor are made of: many reads, which are one."""

    def text(self: Any, **kwargs: Any) -> Any:
        if reads.local.inside or not reads.on_device(self):
            return original(self, **kwargs)
        return reads.noted(Op.FORMAT, sys._getframe(1), original, (self,), kwargs)

    return text


def _torchvision(ops: Any) -> None:
    for module in (ops, ops.boxes):
        patches.replace(module, "nms", _nms(module.nms))


@functools.cache
def _nms(original: Callable[..., Any]) -> Callable[..., Any]:
    quiet = sync_debug.quiet(original)

    def nms(boxes: Any, *args: Any, **kwargs: Any) -> Any:
        if reads.local.inside or not reads.on_device(boxes):
            return quiet(boxes, *args, **kwargs)
        return reads.noted(Op.NMS, sys._getframe(1), quiet, (boxes, *args), kwargs)

    return nms


# Devices to which a copy from ordinary memory makes the host wait; to our own it goes while the host goes on.
uploads_wait: frozenset[str] = frozenset()


def _to(tensor: Any, args: Any, kwargs: Any) -> methods.Answer | None:
    """`.to(...)` waits when it leaves the device. In a dry run it is the way to the device."""
    if reads.local.inside:
        return None
    if reads.on_device(tensor) and not tensor.is_cpu:
        waits = _goes_to_cpu(args, kwargs or {})
        return (None, None, reads.begin(Op.CPU, sys._getframe(1), tensor)) if waits else None
    return _uploaded(tensor, kwargs)


def _cuda(tensor: Any, args: Any, kwargs: Any) -> methods.Answer | None:
    return None if reads.local.inside else _uploaded(tensor, kwargs)


def _uploaded(tensor: Any, kwargs: Any) -> methods.Answer | None:
    """A copy to the device, noted where the host waits for it: from memory that is not pinned, or without non_blocking."""
    if not uploads_wait or reads.on_device(tensor) or sys.modules["torch"]._C._has_torch_function_unary(tensor):
        return None
    own = sys._getframe(1)
    frame = own.f_back or own  # a thread of autograd may have no other
    reads.local.inside = True
    muted = reads.mute is not None and reads.mute()
    start = monotonic_ns()

    def after(result: Any) -> None:
        reads.local.inside = False
        if muted and reads.unmute is not None:
            reads.unmute()
        if result is None or result.device.type not in uploads_wait:
            return
        if not ((kwargs or {}).get("non_blocking") and tensor.is_pinned()):
            reads.tell(Op.TO_DEVICE, frame, reads.here(frame), start, monotonic_ns(), int(tensor.nbytes))

    return None, None, after


def _goes_to_cpu(args: Any, kwargs: Any) -> bool:
    target = kwargs.get("device", args[0] if args else None)
    if isinstance(target, sys.modules["torch"].Tensor):
        target = target.device
    return str(target).partition(":")[0] == "cpu" and not kwargs.get("non_blocking")


_begun: dict[int, tuple[str, int]] = {}  # regions, by the operator's own handle


@functools.cache
def _region_hooks(torch: Any) -> methods.Hooks:
    def enter(_: Any, args: Any, kwargs: Any) -> methods.Answer:
        name, start = str(args[0]), monotonic_ns()

        def after(handle: Any) -> None:
            _begun[id(handle)] = name, start

        return None, None, after

    def leave(_: Any, args: Any, kwargs: Any) -> methods.Answer | None:
        known = _begun.pop(id(args[0]), None)
        if known is None:
            return None

        def after(_: Any) -> None:
            for region in listeners.regions:
                region(*known, monotonic_ns())

        return None, None, after

    hooks = methods.Hooks()
    hooks.hear(torch.ops.profiler._record_function_enter_new, "_op", enter)
    hooks.hear(torch.ops.profiler._record_function_exit._RecordFunction, "_op", leave)
    return hooks


def regions(torch: Any) -> None:
    """Has `record_function` report to the listeners; for recordings only, it is called more often than it seems."""
    _begun.clear()  # of an earlier recording: their handles may be others by now
    _region_hooks(torch).put()


def _backward(*_: Any) -> methods.Answer | None:
    """Reads of the autograd threads, which have no frame of the user, get the line that called backward."""
    seen = seen_from(sys._getframe(1))
    in_c = lines.library()
    noted = in_c is not None and in_c.pass_begins()
    if seen.user is not None:
        reads.backward.append(seen)
    begun = monotonic_ns()

    def after(_: Any) -> None:
        if noted:
            in_c.pass_ends()
        if seen.user is None:
            return
        reads.backward.remove(seen)
        if reads.passes is not None:
            reads.passes.append((begun, monotonic_ns(), seen))

    return None, None, after


def _compiler(_: Any) -> None:
    methods.look_away(sys.modules["torch"])


INSTALL = (("torch", _torch), ("torch._dynamo", _compiler), ("torchvision.ops", _torchvision))
