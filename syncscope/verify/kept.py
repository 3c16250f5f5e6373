"""Values that a loop has been given, to be given once more as they were, with what drawing them did to random numbers."""

from __future__ import annotations

import copy
import random
import sys
from collections.abc import Callable
from typing import Any

from syncscope.verify.snapshot import PLAIN

Again = Callable[[], Any]


def keep(value: Any, drawn: Any) -> Again:
    """What gives a value again; `drawn` is the state of random numbers before it was given the first time."""
    again, after = _again(value), drawing()
    if after == drawn:
        return again

    def given() -> Any:
        _draw(after)
        return again()

    return given


def drawing() -> tuple[Any, ...]:
    """The state of the host's random numbers, to be compared and put back."""
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    of_numpy: Any = None
    if numpy is not None:
        name, keys, *rest = numpy.random.get_state()
        of_numpy = name, keys.tobytes(), *rest
    return random.getstate(), of_numpy, torch.get_rng_state().numpy().tobytes() if torch else None


def _draw(state: tuple[Any, ...]) -> None:
    of_python, of_numpy, of_torch = state
    random.setstate(of_python)
    if of_numpy is not None:
        numpy = sys.modules["numpy"]
        name, keys, *rest = of_numpy
        numpy.random.set_state((name, numpy.frombuffer(keys, "uint32"), *rest))
    if of_torch is not None:
        torch = sys.modules["torch"]
        torch.set_rng_state(torch.frombuffer(bytearray(of_torch), dtype=torch.uint8))


def _again(value: Any) -> Again:
    """Containers are made anew, for a step may put other things into them; so is what nobody knows."""
    torch = sys.modules["torch"]
    if isinstance(value, PLAIN):
        return lambda: value
    if isinstance(value, torch.Tensor):
        return _of_tensor(value)
    if type(value) is dict:
        parts = {key: _again(part) for key, part in value.items()}
        return lambda: {key: part() for key, part in parts.items()}
    if type(value) in (list, tuple):
        kind, each = type(value), [_again(part) for part in value]
        return lambda: kind(part() for part in each)
    if isinstance(value, torch.nn.Module) or callable(value):
        return lambda: value
    try:
        before = copy.deepcopy(value)
    except Exception:  # a file, a lock, a part of a graph: the same it is
        return lambda: value
    return lambda: copy.deepcopy(before)


def _of_tensor(tensor: Any) -> Again:
    """The very one, pinned as it is; its numbers where a step has changed them."""
    if tensor.requires_grad or not tensor.is_cpu:
        return lambda: tensor
    numbers, version = tensor.detach().clone(), tensor._version

    def given() -> Any:
        if tensor._version != version:
            tensor.data.copy_(numbers)
        return tensor

    return given
