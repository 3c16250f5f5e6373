"""What a program computes, noted as it runs: losses, parameters, and every value that it reads from a device, by line.

Where there is no device, what would be read from one is (`tracers.dry_run`). Nothing here is timed, so that the host may wait.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from syncscope.verify.held import NamesHeld
from syncscope.verify.request import HEAD, PARAMETERS, STATE, Request

if TYPE_CHECKING:
    from syncscope.tracers.hooks.patches import Patches

MOST_READS = 200_000
MOST_NUMBERS = 1 << 26  # of parameters that are kept; of more, evenly some

Waits = Callable[..., bool] | None
Before = Callable[[Any, tuple[Any, ...], dict[str, Any] | None], tuple[Any, ...] | None]


class Stepping(Protocol):
    """The run that is watched."""

    request: Request
    folder: Any
    count: int
    optimizers: dict[int, Any]


class Capture:
    """Listens to one run; `found` is what there is to tell at its end."""

    def __init__(self, watch: Stepping) -> None:
        self._watch = watch
        self._losses: list[tuple[int, Any]] = []
        self._reads: list[tuple[Any, str, int, str, list[float], str]] = []
        self._counts: list[Counter[tuple[Any, str]]] = []  # of whole steps
        self._now: Counter[tuple[Any, str]] = Counter()  # of the step that is under way
        self._noting = False
        self._held = NamesHeld()

    def listen(self, stack: contextlib.ExitStack) -> None:
        """Puts the hooks in place."""
        from syncscope.tracers.guard import dry_if
        from syncscope.tracers.hooks import listening
        from syncscope.tracers.hooks.listeners import Listener
        from syncscope.tracers.hooks.patches import Patches

        # on a CPU in place of cuda the dry run is on already
        dry = False if self._watch.request.program.device else None
        stack.enter_context(listening(Listener(read=self._counted, sync_debug=True)))
        stack.enter_context(dry_if(dry))
        own = Patches()  # taken back with us: others may hold theirs for as long as the program runs
        stack.callback(own.when_imported("torch", functools.partial(self._hear, own)))
        stack.enter_context(own.held())

    def _counted(self, record: Any) -> None:
        self._now[record.seen, record.op] += 1

    def boundary(self) -> None:
        """A step has ended."""
        self._counts.append(self._now)
        self._now = Counter()
        self._look(sys._getframe(1), self._watch.count - 1, ends=True)

    def _look(self, frame: Any, step: int, ends: bool) -> None:
        """What names hold; to look is no read of the program's."""
        from syncscope.tracers.hooks import reads

        before = self._noting, reads.local.inside
        self._noting = reads.local.inside = True
        try:
            self._held.look(frame, step, ends)
        finally:
            self._noting, reads.local.inside = before

    def _hear(self, own: Patches, torch: Any) -> None:
        """Hears results, from outside of the hooks that say what is a read."""
        from syncscope.tracers.hooks import methods
        from syncscope.tracers.hooks.torch import FUNCTIONS, METHODS

        hooks = methods.Hooks()
        for name, (op, waits) in METHODS.items():
            hooks.hear(torch._C.TensorBase, name, self._method(op, waits))
        for name, (op, waits) in FUNCTIONS.items():
            hooks.hear(torch._C._VariableFunctions, name, self._function(op, waits))
        hooks.hear(torch._C._ImperativeEngine, "run_backward", self._backward)
        hooks.put(once=True, patches=own)

    def _method(self, op: str, waits: Waits) -> Before:
        def before(tensor: Any, args: Any, kwargs: Any) -> tuple[Any, ...] | None:
            return self._begin(op, waits, (tensor, *args), kwargs, sys._getframe(1))

        return before

    def _function(self, op: str, waits: Waits) -> Before:
        def before(_: Any, args: Any, kwargs: Any) -> tuple[Any, ...] | None:
            return self._begin(op, waits, args, kwargs, sys._getframe(1)) if args else None

        return before

    def _begin(self, op: str, waits: Waits, args: Any, kwargs: Any, frame: Any) -> tuple[Any, ...] | None:
        from syncscope.tracers.hooks import reads

        if self._noting or reads.local.inside or len(self._reads) >= MOST_READS or not reads.on_device(args[0]):
            return None
        if waits is not None and not waits(*args, **(kwargs or {})):  # torch.where of three reads nothing
            return None
        seen, step = reads.here(frame), self._watch.count

        def after(result: Any) -> None:
            self._noting = True
            try:
                if result is not None:
                    self._reads.append((seen, op, step, *digest(numbers(result))))
            finally:
                self._noting = False

        return None, None, after

    def _backward(self, _: Any, args: Any, kwargs: Any) -> None:
        self._look(sys._getframe(1), self._watch.count, ends=False)
        for root in args[0] if args else ():
            if root.numel() == 1:
                self._losses.append((self._watch.count, root.detach().clone()))

    def found(self) -> dict[str, Any]:
        """What was noted in whole steps, as JSON values; the parameters go to a file."""
        from syncscope.tracers.hooks import reads

        self._noting = reads.local.inside = True  # what is read here is none of the program's
        np.savez(self._watch.folder / PARAMETERS, **dict(parameters(self._watch.optimizers.values())))
        held = list(state(self._watch.optimizers.values()))
        np.savez(self._watch.folder / STATE, **{f"values{n}": values for n, (_, _, values) in enumerate(held)})
        steps = self._watch.count
        return {
            "state": [[name, told] for name, told, _ in held],
            "losses": [[step, *digest(numbers(loss.cpu()))] for step, loss in self._losses if step < steps],
            "reads": [
                [*_place(seen), op, step, *rest, _function(seen)]
                for seen, op, step, *rest in self._reads
                if step < steps
            ],
            "counts": [[[*_place(seen), op, count] for (seen, op), count in own.items()] for own in self._counts],
            "libraries": sorted(
                {_spot(seen.inner) for own in self._counts[1:] for seen, _ in own if seen is not None and seen.inner}
            ),
            **self._held.found(steps),
            "full": len(self._reads) >= MOST_READS,
        }


def _place(seen: Any) -> tuple[str, int]:
    from syncscope.tracers.hooks import reads

    spot = reads.spot_of(seen)
    return ("", 0) if spot is None else _spot(spot)


def _function(seen: Any) -> str:
    from syncscope.tracers.hooks import reads

    spot = reads.spot_of(seen)
    return "" if spot is None else spot.code.co_qualname


def _spot(spot: Any) -> tuple[str, int]:
    from syncscope.tracers import places

    place, _ = places.resolve(spot)
    return place.path, place.line


def numbers(value: Any) -> Any:
    """A value as an array of numbers; of a tensor that stays on the device its shape, which is what was read of it."""
    if hasattr(value, "untyped_storage"):
        if not value.is_cpu or value.is_sparse:
            return np.array(tuple(value.shape), float)
        value = value.detach().resolve_conj().resolve_neg()
        return (value.float() if "float" in str(value.dtype) and value.dtype.itemsize < 4 else value).numpy()
    if isinstance(value, tuple) and any(hasattr(part, "untyped_storage") for part in value):
        return np.concatenate([np.asarray(numbers(part)).ravel() for part in value])
    if isinstance(value, str):
        return np.frombuffer(value.encode(), np.uint8)
    return np.asarray(value)


def digest(value: Any) -> tuple[str, list[float], str]:
    """What tells the value from any other; its first numbers, and behind them the sum of the sizes of all others; its kind."""
    value = np.ascontiguousarray(value)
    told, kind = hashlib.blake2b(value.tobytes(), digest_size=8).hexdigest(), value.dtype.kind
    if kind not in "biuf":
        return told, [], kind
    head, rest = np.split(value.ravel().astype(float), [HEAD])
    return told, [*head.tolist(), *([float(np.abs(rest).sum())] if len(rest) else [])], kind


def parameters(optimizers: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """What optimizers train, in their order: the digest of each, its numbers, and its dtype with its shape."""
    tensors = [p for one in optimizers for group in one.param_groups for p in group["params"]]
    each = max(1, -(-sum(p.numel() for p in tensors) // MOST_NUMBERS))
    for number, tensor in enumerate(tensors):
        values = np.ascontiguousarray(numbers(tensor.detach().cpu()))
        told = hashlib.blake2b(f"{tensor.dtype}".encode() + values.tobytes(), digest_size=16)
        yield f"digest{number}", np.frombuffer(told.digest(), np.uint8)
        yield f"values{number}", values.ravel()[::each]
        yield f"told{number}", np.array(f"{tensor.dtype} {tuple(tensor.shape)}")


def state(optimizers: Iterable[Any]) -> Iterator[tuple[str, str, Any]]:
    """What modules hold beside what optimizers train, as running statistics and averages of weights: its name in its module,
    the digest, and the numbers. Modules have no order; those of one name are as they were made, as far as that is known."""
    torch = sys.modules.get("torch")
    if torch is None:  # it failed before it was there
        return
    seen = {id(p) for one in optimizers for group in one.param_groups for p in group["params"]}
    held = []
    for module in gc.get_objects():
        if issubclass(type(module), torch.nn.Module):
            for name, tensor in {
                **module.__dict__.get("_parameters", {}),
                **module.__dict__.get("_buffers", {}),
            }.items():
                if tensor is not None and id(tensor) not in seen:
                    seen.add(id(tensor))
                    held.append((f"{type(module).__qualname__}.{name}", tensor.detach()))
    each = max(1, -(-sum(tensor.numel() for _, tensor in held) // MOST_NUMBERS))
    for name, tensor in held:
        with contextlib.suppress(Exception):  # one that is quantized, fake or not there yet has no numbers
            values = np.ascontiguousarray(numbers(tensor.cpu()))
            told = hashlib.blake2b(f"{tensor.dtype}".encode() + values.tobytes(), digest_size=8).hexdigest()
            yield f"{name} {tuple(tensor.shape)}", told, values.ravel()[::each]


def perturb(optimizers: Iterable[Any], seed: int) -> None:
    """Moves every parameter to the next number that its dtype knows, up or down."""
    torch = sys.modules["torch"]
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        trained = [p for one in optimizers for group in one.param_groups for p in group["params"]]
        for tensor in trained or _of_modules(torch):
            if not tensor.is_floating_point():
                continue
            host = tensor.detach().to("cpu", torch.promote_types(tensor.dtype, torch.float32))
            sign = torch.where(torch.rand(host.shape, generator=draw) < 0.5, -1.0, 1.0).to(host.dtype)
            moved = host + sign * host.abs() * torch.finfo(tensor.dtype).eps
            tensor.copy_(moved.to(tensor.dtype))


def _of_modules(torch: Any) -> list[Any]:
    """What a program without an optimizer may train."""
    modules = [one for one in gc.get_objects() if issubclass(type(one), torch.nn.Module)]
    held = (p for one in modules for p in one.__dict__.get("_parameters", {}).values() if p is not None)
    return [*{id(p): p for p in held if p.requires_grad}.values()]
