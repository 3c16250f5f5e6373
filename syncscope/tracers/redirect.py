"""Gives a script that asks for `cuda` another device: `ocl`, or the CPU in a dry run. Nobody needs a GPU to look for waits.

`torch.device("cuda")` is the other device from then on, `.cuda()` and `.to("cuda")` go there, and `torch.cuda` says that there
is one. What a script asks of CUDA alone (graphs, NCCL, memory in use) stays as it is, or answers 0. Classes and functions that
take a device are torch's own: only what they are given is another.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from time import perf_counter
from types import SimpleNamespace
from typing import Any

from syncscope.model.ops import Op
from syncscope.tracers import dry_run
from syncscope.tracers.hooks import methods, reads
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
MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")  # bytes: scripts say which part of all they use
LIGHTNING = ("lightning.pytorch", "lightning.fabric", "pytorch_lightning", "lightning_fabric")


@contextlib.contextmanager
def to(device: str | None) -> Iterator[None]:
    """Everything that asks for cuda inside gets `device`; None changes nothing. "cpu" makes it a dry run."""
    global target
    if device is None:
        yield
        return
    target = device
    with contextlib.ExitStack() as stack:
        stack.callback(_forget)
        stack.callback(patches.when_imported("torch", _redirect))
        stack.callback(patches.when_imported("torch.nn.parallel.data_parallel", _data_parallel))
        for package in LIGHTNING:
            stack.callback(patches.when_imported(f"{package}.accelerators.cuda", _lightning))
        if device == "cpu":
            stack.enter_context(dry_run.mode())
        stack.enter_context(patches.held())
        yield


def _forget() -> None:
    global target
    target = None


def _redirect(torch: Any) -> None:
    """Hears what takes a device, in torch as it is just imported."""
    if target == "ocl":
        import syncscope.kernels  # noqa: F401  (makes the device known)
    base, functions = torch._C.TensorBase, torch._C._VariableFunctions
    hooks = methods.Hooks()
    hooks.hear_slot(torch.device, methods.MAKE, _made)
    hooks.hear_slot(torch.Generator, methods.MAKE, _generator)
    for name in FACTORIES:
        owner = functions if hasattr(functions, name) else torch
        if hasattr(owner, name):
            hooks.hear(owner, name, _keyword)
    for name in NEW:
        hooks.hear(base, name, _keyword)
    hooks.hear(base, "to", _moved)
    hooks.hear(torch._C._nn, "_parse_to", _parsed)  # how modules read what they are given
    hooks.hear(base, "cuda", _to_target)
    hooks.hear(base, "pin_memory", lambda tensor, args, kwargs: (tensor,))
    hooks.put(once=True)
    _load_elsewhere(torch)
    _replace_cuda(torch, torch.cuda)
    _replace_accelerator(torch, getattr(torch, "accelerator", None))


def _lent() -> Any:
    """What stands for cuda: in a dry run an object of its own, since the program may mean the CPU by "cpu"."""
    return dry_run.lend() if target == "cpu" else target


def _is_cuda(device: Any) -> bool:
    """Whether this asks for cuda: its name, or a number. A torch.device does only where its making is not heard, for want of
    a C compiler: else it was made by one of these."""
    if isinstance(device, str):
        return device.partition(":")[0] == "cuda"
    if getattr(device, "type", "") == "cuda":
        return True
    return isinstance(device, int) and not isinstance(device, bool)


def _marked(result: Any) -> None:
    if result is not None:
        dry_run.mark(result)


def _made(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> methods.Answer | None:
    asked = args[0] if args else next(iter((kwargs or {}).values()), None)
    if target == "cpu":
        return (_lent(),) if _is_cuda(asked) or dry_run.is_lent(asked) else None
    return ((target,), None, None) if _is_cuda(asked) else None


def _generator(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> methods.Answer | None:
    """Random numbers of the other device are drawn on the host."""
    asked = args[0] if args else (kwargs or {}).get("device")
    return (("cpu",), None, None) if _is_cuda(asked) or str(asked) == target else None


def _keyword(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> methods.Answer | None:
    if kwargs is None or not _is_cuda(kwargs.get("device")):
        return None
    return args, {**kwargs, "device": _lent()}, _marked


def _moved(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> methods.Answer | None:
    if args and _is_cuda(args[0]):
        return (_lent(), *args[1:]), kwargs, _marked
    return _keyword(_, args, kwargs)


def _parsed(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> methods.Answer | None:
    """What torch reads from `module.to(...)`: the device in it is a new object, which has to be the one that was lent."""
    given = kwargs or {}
    first = args[0] if args else given.get("device")
    if target != "cpu" or not (_is_cuda(first) or dry_run.is_lent(first)):
        return _moved(_, args, kwargs)
    torch = sys.modules["torch"]
    plain = torch.empty(0, dtype=first.dtype) if isinstance(first, torch.Tensor) else torch.device("cpu")
    others, named = ((plain, *args[1:]), given) if args else ((), given | {"device": plain})
    return ((_lent(), *torch._C._nn._parse_to(*others, **named)[1:]),)


def _to_target(tensor: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> methods.Answer | None:
    """`.cuda(device, non_blocking, memory_format)`; what these cannot be is for torch to say."""
    given = dict(zip(("device", "non_blocking"), args, strict=False)) | (kwargs or {})
    device = given.pop("device", None)
    if len(args) > 2 or not (device is None or _is_cuda(device) or str(device) == target):
        return None
    return (dry_run.mark(tensor.to(_lent(), **given)),)


def _load_elsewhere(torch: Any) -> None:
    """What was saved on a GPU, or is to be loaded there, goes to the other device, and what is saved says that it was on a GPU:
    it outlives the program, and PyTorch alone cannot read what is said to lie on `ocl`.
    """
    serialization = torch.serialization

    def restored(storage: Any, location: str) -> Any:
        return serialization.default_restore_location(storage, target) if location.startswith("cuda") else None

    def saved(storage: Any) -> str | None:
        return "cuda:0" if storage.device.type == "ocl" else None

    entry = (0, saved, restored)  # before torch's own
    serialization._package_registry.insert(0, entry)
    patches.later(serialization._package_registry.remove, entry)


def _lightning(module: Any) -> None:
    """Lightning's accelerator for cuda refuses a device that says that it is another."""
    patches.replace(module.CUDAAccelerator, "setup_device", lambda self, device: None)


def _data_parallel(module: Any) -> None:
    """`nn.DataParallel` over one device only runs its module, as it does by itself where there is no GPU."""
    patches.replace(module, "_get_available_device_type", lambda: None)


def _replace_cuda(torch: Any, cuda: Any) -> None:
    """What `torch.cuda` answers: there is one device, which has done nothing yet."""
    real: Any = getattr(torch, target or "", None) if target == "ocl" else _Host
    answers: dict[str, Any] = {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "is_current_stream_capturing": lambda: False,
        "device_count": lambda: 1,
        "get_device_name": lambda device=None: f"{target} in place of cuda",
        "get_device_capability": lambda device=None: (0, 0),
        "get_device_properties": lambda device=None: SimpleNamespace(
            name=f"{target} in place of cuda",
            major=0,
            minor=0,
            total_memory=MEMORY,
            multi_processor_count=1,
            warp_size=32,
        ),
        "is_bf16_supported": lambda *a, **k: True,
        "mem_get_info": lambda device=None: (MEMORY, MEMORY),
        "memory_summary": lambda *a, **k: "",
        "memory_stats": lambda device=None: {},
        "get_arch_list": list,
        "get_rng_state": lambda device=None: torch.get_rng_state(),
        "set_rng_state": lambda state, device=None: torch.set_rng_state(state),
        "get_rng_state_all": lambda: [torch.get_rng_state()],
        "set_rng_state_all": lambda states: torch.set_rng_state(states[0]),
        "device": lambda device: contextlib.nullcontext(),
        "Event": real.Event,
        "Stream": real.Stream,
        "synchronize": lambda device=None: real.synchronize(),
        "current_stream": lambda device=None: real.current_stream(),
        "default_stream": lambda device=None: real.current_stream(),
        "stream": lambda which: real.stream(which),
    }
    answers |= {name: _always(None) for name in NOTHING} | {name: _always(0) for name in ZERO}
    for name, answer in answers.items():
        if hasattr(cuda, name):
            patches.replace(cuda, name, answer)


def _replace_accelerator(torch: Any, accelerator: Any) -> None:
    """What `torch.accelerator` answers: it asks the build of torch, which may be for CUDA where there is no driver."""
    real: Any = getattr(torch, target or "", None) if target == "ocl" else _Host
    index = _always(0)
    answers: dict[str, Any] = {
        "current_accelerator": lambda check_available=False: torch.device(_lent()),
        "is_available": _always(True),
        "device_count": _always(1),
        "current_device_index": index,
        "current_device_idx": index,
        "set_device_index": _always(None),
        "set_device_idx": _always(None),
        "get_device_capability": lambda device=None: {},
        "current_stream": lambda device=None: real.current_stream(),
        "set_stream": _always(None),
        "synchronize": lambda device=None: real.synchronize(),
        "memory_stats": lambda device=None: {},
        "get_memory_info": lambda device=None: (MEMORY, MEMORY),
    }
    answers |= {name: _always(None) for name in NOTHING} | {name: _always(0) for name in ZERO}
    for name, answer in answers.items():
        if hasattr(accelerator, name):
            patches.replace(accelerator, name, answer)


def _always(value: Any) -> Callable[..., Any]:
    """A function of its own for each name: torch's compiler keeps a table of them by identity."""
    return lambda *args, **kwargs: value


class _Host:
    """What a device offers, where the CPU stands for it: nothing is queued, and waiting is counted."""

    @staticmethod
    def synchronize(device: Any = None) -> None:
        """Counts a wait."""
        reads.noted(Op.SYNCHRONIZE, sys._getframe(1), _always(None), (), {})

    class Event:
        """A moment of the host's clock."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self._at = 0.0

        def record(self, stream: Any = None) -> None:
            """Now."""
            self._at = perf_counter()

        def query(self) -> bool:
            """It has passed."""
            return True

        def wait(self, stream: Any = None) -> None:
            """Nothing to do."""

        def synchronize(self) -> None:
            """Counts a wait."""
            reads.noted(Op.SYNCHRONIZE, sys._getframe(1), _always(None), (), {})

        def elapsed_time(self, end: Any) -> float:
            """Milliseconds."""
            return (float(end._at) - self._at) * 1e3

    class Stream:
        """The order in which the host works."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self.device = target

        def synchronize(self) -> None:
            """Counts a wait."""
            reads.noted(Op.SYNCHRONIZE, sys._getframe(1), _always(None), (), {})

        def query(self) -> bool:
            """Nothing is queued."""
            return True

        def record_event(self, event: Any = None) -> Any:
            """A moment."""
            event = event or _Host.Event()
            event.record()
            return event

        def wait_event(self, event: Any) -> None:
            """Nothing to do."""

        def wait_stream(self, stream: Any) -> None:
            """Nothing to do."""

    @staticmethod
    def current_stream(device: Any = None) -> Any:
        """The one there is."""
        return _Host.Stream()

    @staticmethod
    @contextlib.contextmanager
    def stream(which: Any) -> Iterator[None]:
        """A region on it."""
        yield
