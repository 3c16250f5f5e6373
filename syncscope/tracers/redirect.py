"""Gives a script that asks for `cuda` another device: `ocl`, or the CPU in a dry run. Nobody needs a GPU to look for waits.

`torch.device("cuda")` is the other device from then on, `.cuda()` and `.to("cuda")` go there, and `torch.cuda` says that there
is one. What a script asks of CUDA alone (graphs, NCCL, memory figures) stays as it is, or answers 0. Classes and functions that
take a device are torch's own: only what they are given is another.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from syncscope.tracers import dry_run
from syncscope.tracers.hooks import methods
from syncscope.tracers.hooks.patches import patches

target: str | None = None

FACTORIES = """
    zeros ones empty full rand randn randint randperm arange linspace logspace eye tensor as_tensor asarray
    empty_strided zeros_like ones_like empty_like full_like rand_like randn_like randint_like tril_indices
    triu_indices from_file scalar_tensor normal hann_window hamming_window blackman_window kaiser_window
    bartlett_window range
""".split()
NEW = """
    new_zeros new_ones new_empty new_full new_tensor new_empty_strided
""".split()
NOTHING = """
    set_device init reset_peak_memory_stats reset_max_memory_allocated empty_cache ipc_collect manual_seed
    manual_seed_all reset_accumulated_memory_stats
""".split()
ZERO = """
    memory_allocated max_memory_allocated memory_reserved max_memory_reserved current_device initial_seed
""".split()


@contextlib.contextmanager
def to(device: str | None) -> Iterator[None]:
    """Everything that asks for cuda inside gets `device`; None changes nothing. "cpu" makes it a dry run."""
    global target
    if device is None:
        yield
        return
    target = device
    forget = patches.when_imported("torch", _redirect)
    try:
        with dry_run.mode() if device == "cpu" else contextlib.nullcontext(), patches.held():
            yield
    finally:
        target = None
        forget()


def _redirect(torch: Any) -> None:
    """Hears what takes a device, in torch as it is just imported."""
    if target == "ocl":
        import syncscope.kernels  # noqa: F401  (makes the device known)
    base, functions = torch._C.TensorBase, torch._C._VariableFunctions
    methods.hear_slot(torch.device, methods.MAKE, _made)
    methods.hear_slot(torch.Generator, methods.MAKE, _generator)
    for name in FACTORIES:
        owner = functions if hasattr(functions, name) else torch
        if hasattr(owner, name):
            methods.hear(owner, name, _keyword)
    for name in NEW:
        methods.hear(base, name, _keyword)
    methods.hear(base, "to", _moved)
    methods.hear(torch._C._nn, "_parse_to", _moved)  # how modules read what they are given
    methods.hear(base, "cuda", _to_target)
    methods.hear(base, "pin_memory", lambda tensor, args, kwargs: (tensor,))
    _load_elsewhere(torch)
    _replace_cuda(torch, torch.cuda)


def _is_cuda(device: Any) -> bool:
    """Whether this asks for cuda: its name, or a number. A torch.device never does, for it was made by one of these."""
    if isinstance(device, str):
        return device.partition(":")[0] == "cuda"
    return isinstance(device, int) and not isinstance(device, bool)


def _marked(result: Any) -> None:
    if result is not None:
        dry_run.mark(result)


def _made(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> methods.Answer | None:
    asked = args[0] if args else next(iter((kwargs or {}).values()), None)
    return ((target,), None, None) if _is_cuda(asked) else None


def _generator(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> methods.Answer | None:
    """Random numbers of the other device are drawn on the host."""
    asked = args[0] if args else (kwargs or {}).get("device")
    return (("cpu",), None, None) if _is_cuda(asked) or str(asked) == target else None


def _keyword(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> methods.Answer | None:
    if kwargs is None or not _is_cuda(kwargs.get("device")):
        return None
    return args, {**kwargs, "device": target}, _marked


def _moved(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> methods.Answer | None:
    if args and _is_cuda(args[0]):
        return (target, *args[1:]), kwargs, _marked
    return _keyword(_, args, kwargs)


def _to_target(tensor: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> methods.Answer | None:
    """`.cuda(device, non_blocking, memory_format)`; what these cannot be is for torch to say."""
    given = dict(zip(("device", "non_blocking"), args, strict=False)) | (kwargs or {})
    device = given.pop("device", None)
    if len(args) > 2 or not (device is None or _is_cuda(device) or str(device) == target):
        return None
    return (dry_run.mark(tensor.to(target, **given)),)


def _load_elsewhere(torch: Any) -> None:
    """What was saved on a GPU, or is to be loaded there, goes to the other device."""
    serialization = torch.serialization

    def restored(storage: Any, location: str) -> Any:
        return serialization.default_restore_location(storage, target) if location.startswith("cuda") else None

    entry = (0, lambda storage: None, restored)  # before torch's own
    serialization._package_registry.insert(0, entry)
    patches.stack.callback(serialization._package_registry.remove, entry)


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
        "is_bf16_supported": lambda *a, **k: True,
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
