"""Gives a script that asks for `cuda` another device: `ocl`, or the CPU in dry mode. Nobody needs a GPU to look for waits.

`torch.device("cuda")` is the other device from then on, `.cuda()` and `.to("cuda")` go there, and `torch.cuda` says that there
is one. What a script asks of CUDA alone (graphs, NCCL, memory figures) stays as it is, or answers 0.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

from syncscope.tracers import dry_run
from syncscope.tracers.hooks.patches import patches

target: str | None = None

FACTORIES = [
    "zeros",
    "ones",
    "empty",
    "full",
    "rand",
    "randn",
    "randint",
    "randperm",
    "arange",
    "linspace",
    "logspace",
    "eye",
    "tensor",
    "as_tensor",
    "asarray",
    "empty_strided",
    "zeros_like",
    "ones_like",
    "empty_like",
    "full_like",
    "rand_like",
    "randn_like",
    "randint_like",
    "tril_indices",
    "triu_indices",
    "from_file",
    "scalar_tensor",
    "normal",
    "hann_window",
    "hamming_window",
    "blackman_window",
    "kaiser_window",
    "bartlett_window",
    "range",
]
NEW = ["new_zeros", "new_ones", "new_empty", "new_full", "new_tensor"]
NOTHING = [
    "set_device",
    "init",
    "reset_peak_memory_stats",
    "reset_max_memory_allocated",
    "empty_cache",
    "ipc_collect",
    "manual_seed",
    "manual_seed_all",
    "reset_accumulated_memory_stats",
]
ZERO = [
    "memory_allocated",
    "max_memory_allocated",
    "memory_reserved",
    "max_memory_reserved",
    "current_device",
    "initial_seed",
]


@contextlib.contextmanager
def to(device: str | None) -> Iterator[None]:
    """Everything that asks for cuda inside gets `device`; None changes nothing. "cpu" switches the dry mode on."""
    global target
    if device is None:
        yield
        return
    target = device
    forget = patches.when_imported("torch", _redirect)
    try:
        with dry_run.mode() if device == "cpu" else contextlib.nullcontext():
            yield
    finally:
        target = None
        forget()


def _redirect(torch: Any) -> None:
    """Replaces what takes a device, in torch as it is just imported."""
    if target == "ocl":
        import syncscope.kernels  # noqa: F401  (makes the device known)
    real = torch.device
    cast: Callable[[Any], Any] = lambda d: real(target) if _is_cuda(d, real) else d  # noqa: E731

    class Meta(type):
        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, real)

        def __subclasscheck__(cls, kind: type) -> bool:
            return issubclass(kind, real)

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            if kwargs.get("type", args[0] if args else None) is not None:
                kind = kwargs.get("type", args[0] if args else None)
                if isinstance(kind, int) or str(kind).partition(":")[0] == "cuda":
                    return real(target)
            return real(*args, **kwargs)

    device = Meta("device", (), {"__doc__": real.__doc__, "__module__": "torch"})
    patches.replace(torch, "device", device)

    def keyword(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            if kwargs.get("device") is not None:
                asked = kwargs["device"]
                kwargs["device"] = cast(asked)
                return dry_run.mark(original(*args, **kwargs)) if _is_cuda(asked, real) else original(*args, **kwargs)
            return original(*args, **kwargs)

        return call

    def moving(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            asked = any(_is_cuda(a, real) for a in (*args[:1], kwargs.get("device")))
            if args:
                args = (cast(args[0]), *args[1:])
            if "device" in kwargs:
                kwargs["device"] = cast(kwargs["device"])
            result = original(self, *args, **kwargs)
            return dry_run.mark(result) if asked else result

        return call

    def to_target(self: Any, device: Any = None, non_blocking: bool = False, **_: Any) -> Any:
        return dry_run.mark(self.to(real(target), non_blocking=non_blocking))

    def module_to_target(self: Any, device: Any = None) -> Any:
        return self.to(real(target))

    for name in FACTORIES:
        if hasattr(torch, name):
            patches.replace(torch, name, keyword(getattr(torch, name)))
    for name in NEW:
        patches.replace(torch.Tensor, name, keyword(getattr(torch.Tensor, name)))
    patches.replace(torch.Tensor, "to", moving(torch.Tensor.to))
    patches.replace(torch.Tensor, "cuda", to_target)
    patches.replace(torch.Tensor, "pin_memory", lambda self, *a, **k: self)
    patches.replace(torch.nn.Module, "to", moving(torch.nn.Module.to))
    patches.replace(torch.nn.Module, "cuda", module_to_target)
    _replace_load(torch, cast)
    _replace_cuda(torch, torch.cuda)
    _replace_amp(torch)


def _is_cuda(device: Any, real: type) -> bool:
    if isinstance(device, str):
        return device.partition(":")[0] == "cuda"
    if isinstance(device, real):
        return str(getattr(device, "type", "")) == "cuda"
    return isinstance(device, int) and not isinstance(device, bool)


def _replace_load(torch: Any, cast: Callable[[Any], Any]) -> None:
    load = torch.load

    @functools.wraps(load)
    def call(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        if map_location is None or isinstance(map_location, (str, torch.device)):
            map_location = cast(map_location) if map_location is not None else "cpu"
        return load(f, map_location, *args, **kwargs)

    patches.replace(torch, "load", call)


def _replace_cuda(torch: Any, cuda: Any) -> None:
    real: Any = getattr(torch, target or "", None)
    answers: dict[str, Any] = {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "device_count": lambda: 1,
        "get_device_name": lambda device=None: f"{target} in place of cuda",
        "get_device_capability": lambda device=None: (0, 0),
        "synchronize": getattr(real, "synchronize", lambda device=None: None)
        if target == "ocl"
        else lambda device=None: None,
        "is_bf16_supported": lambda *a, **k: False,
        "mem_get_info": lambda device=None: (0, 0),
        "memory_summary": lambda *a, **k: "",
    }
    answers |= {name: _always(None) for name in NOTHING} | {name: _always(0) for name in ZERO}
    if target == "ocl" and hasattr(real, "Event"):
        answers["Event"] = real.Event
    for name, answer in answers.items():
        if hasattr(cuda, name):
            patches.replace(cuda, name, answer)
    if hasattr(torch, "accelerator"):
        patches.replace(torch.accelerator, "is_available", lambda: True)


def _always(value: Any) -> Callable[..., Any]:
    """A function of its own for each name: torch's compiler keeps a table of them by identity."""
    return lambda *args, **kwargs: value


def _replace_amp(torch: Any) -> None:
    """Mixed precision for cuda is not for other devices: autocast does nothing there."""
    autocast = torch.autocast
    for owner in {id(o): o for o in (torch, torch.amp, torch.amp.autocast_mode)}.values():
        before = owner.autocast

        @functools.wraps(autocast, updated=())
        def make(
            device_type: Any = "cuda", *args: Any, enabled: bool = True, _make: Any = before, **kwargs: Any
        ) -> Any:
            if device_type == "cuda":
                return contextlib.nullcontext()
            return _make(device_type, *args, enabled=enabled, **kwargs)

        patches.replace(owner, "autocast", make)
