"""Runs code as written and as fixed on random tensors, and says where they differ.

Inputs are described in words: `"x: float[n, c]; keep: bool[n]"`. Letters are sizes, drawn from 0 to 5 and equal where the
letter is; `n + 1` is never 0. Kinds:

    float   half, bfloat16, single or double, with NaN and inf in any place
    holes   as float, without inf
    finite  single or double, no NaN, no inf
    normal  as finite, but of one element apart from the others: no two are equal
    int     any of the signed integers
    label   int64 of a few values, `label[n] < 4` of -1 to 3; -1 and 9 are frequent
    index   int64 of 0 to k - 1: `index[n] < k`, k a number or a letter
    bool    none, some or all true
    number  a Python float
    count   a Python int of 0 to 5
    counts  a list of Python ints of 0 to 3
    cpu     the device
    model   a linear layer from 3 features to 4 classes
    loader  0 to 4 batches of such features and classes
    optimizer   plain gradient descent on the models before it
    criterion   cross-entropy
    bar     something with `set_postfix`, `update` and `write` that keeps what it is told

A function that runs for more than a few thousand lines is stopped with an error: no example may hold a test for ever.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from syncscope.model.finding import Safety

RUNS: Counter[str] = Counter()  # how many random inputs each safety has seen
EXAMPLE, LINES = "<example>", 5000
SIZES = (0, 1, 2, 3, 5)
WORD = re.compile(r"\s*(\w+)\s*:\s*(\w+)\s*(?:\[([^\]]*)\])?\s*(?:<\s*(\w+))?\s*$")
FLOATS = {
    "float": (torch.float16, torch.bfloat16, torch.float32, torch.float64),
    "finite": (torch.float32, torch.float64),
}
FLOATS["holes"] = FLOATS["float"]
FLOATS["normal"] = FLOATS["finite"]
INTS = (torch.int8, torch.int16, torch.int32, torch.int64)


@dataclass(frozen=True)
class Outcome:
    """What came out of a run: the value or the error, the arguments afterwards, the gradients."""

    value: Any
    error: str
    arguments: list[Any]
    gradients: list[Any]


@st.composite
def arguments(draw: st.DrawFn, inputs: str) -> dict[str, Any]:
    """Arguments as described."""
    sizes: dict[str, int] = {}
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**20)))
    dtype = draw(st.integers(0, 3))
    made = {}
    for word in filter(str.strip, inputs.split(";")):
        parsed = WORD.match(word)
        assert parsed, f"not an input: {word!r}"
        name, kind, dims, below = parsed.groups()
        shape = [size(d, sizes, draw) for d in filter(str.strip, (dims or "").replace("...", "").split(","))]
        if "..." in (dims or ""):
            rank = sizes.setdefault("...", draw(st.integers(0, 3)))
            shape = [size(f"any_{k}", sizes, draw) for k in range(rank)] + shape
        if kind == "optimizer":
            weights = [w for m in made.values() if isinstance(m, torch.nn.Module) for w in m.parameters()]
            made[name] = torch.optim.SGD(weights, lr=0.1)
        else:
            made[name] = tensor(draw, generator, kind, shape, dtype, sizes.get(below, below))
    return made


def size(word: str, sizes: dict[str, int], draw: st.DrawFn) -> int:
    """The size a word stands for: `3`, `n`, `n + 1`."""
    total = 0
    for part in word.replace(" ", "").split("+"):
        if not part.isdigit() and part not in sizes:
            sizes[part] = draw(st.sampled_from(SIZES))
        total += int(part) if part.isdigit() else sizes[part]
    return total


def tensor(draw: st.DrawFn, generator: torch.Generator, kind: str, shape: list[int], dtype: int, below: Any) -> Any:
    """One argument."""
    share = draw(st.sampled_from((0.0, 0.3, 1.0)))
    chance = torch.rand(shape, generator=generator)
    if kind == "counts":
        return torch.randint(0, 4, shape, generator=generator).tolist()
    if kind == "cpu":
        return torch.device("cpu")
    if kind == "loader":
        return batches(generator, draw(st.integers(0, 4)))
    if kind in MODULES:
        torch.manual_seed(draw(st.integers(0, 9)))
        return MODULES[kind]()
    if kind == "bool":
        made = chance < share
    elif kind == "number":
        return draw(st.sampled_from((0.0, 1.0, -2.5)))
    elif kind == "count":
        return draw(st.integers(0, 5))
    elif kind == "label":
        high = int(below) if below else 6
        made = torch.randint(0, high, shape, generator=generator)
        special = -1 if below else draw(st.sampled_from((-1, 9)))
        made = torch.where(chance < share, special, made)
    elif kind == "index":
        made = torch.randint(0, max(int(below), 1), shape, generator=generator)
    elif kind == "int":
        made = torch.randint(-4, 5, shape, generator=generator).to(INTS[dtype])
    else:
        kinds = FLOATS[kind]
        made = torch.randn(shape, generator=generator, dtype=torch.float64)
        if kind != "normal":
            made = torch.where(torch.rand(shape, generator=generator) < 0.3, made.round(), made)  # zeros and equal ones
        if kind in ("float", "holes"):
            hole = torch.tensor([float("nan"), float("inf"), -float("inf")], dtype=torch.float64)
            which = torch.randint(0, 3 if kind == "float" else 1, shape, generator=generator)
            made = torch.where(chance < share * draw(st.sampled_from((0.0, 0.5))), hole[which], made)
        made = made.to(kinds[dtype % len(kinds)])
    if made.dim() and draw(st.booleans()):  # the same values, not side by side
        spread = made.new_zeros([*shape[:-1], 2 * shape[-1]])[..., ::2]
        made = spread.copy_(made)
    if made.is_floating_point() and draw(st.booleans()):
        made.requires_grad_()
    return made


def batches(generator: torch.Generator, number: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """What a loader gives."""
    sizes = [int(torch.randint(1, 5, (), generator=generator)) for _ in range(number)]
    return [(torch.randn(n, 3, generator=generator), torch.randint(0, 4, (n,), generator=generator)) for n in sizes]


class Told:
    """What a progress bar, a meter or a log was told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def set_postfix(self, **values: Any) -> None:
        self.told.append(values)

    def update(self, *values: Any) -> None:
        self.told.append(values)

    def write(self, *values: Any) -> None:
        self.told.append(values)


MODULES = {"model": lambda: torch.nn.Linear(3, 4), "criterion": torch.nn.CrossEntropyLoss, "bar": Told}


def assert_equivalent(written: str, fixed: str, inputs: str, safety: Safety, examples: int) -> None:
    """Run the last function of two pieces of code on so many random inputs."""
    before, after = last_function(written), last_function(fixed)

    @settings(max_examples=examples, database=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def same(data: st.DataObject) -> None:
        values = data.draw(arguments(inputs))
        assert_same(run(before, values), run(after, values), safety)

    same()


def run(function: Any, given: dict[str, Any]) -> Outcome:
    """Call a function with copies of the arguments, and go back through what it gives."""
    tensors = {
        k: v.detach().clone().requires_grad_(v.requires_grad) for k, v in given.items() if isinstance(v, torch.Tensor)
    }
    others = copy.deepcopy(
        {k: v for k, v in given.items() if k not in tensors}
    )  # together: an optimizer knows its model
    given = {k: tensors.get(k, others.get(k)) for k in given}
    leaves = [v for v in given.values() if isinstance(v, torch.Tensor) and v.requires_grad]
    value, error = None, ""
    try:
        with within(LINES):
            value = function(**given)
        floats = [t for t in flat(value) if isinstance(t, torch.Tensor) and t.requires_grad]
        if floats:
            weights = (torch.linspace(0.5, 2, t.numel(), dtype=torch.float64).reshape(t.shape).to(t) for t in floats)
            torch.autograd.backward([(t * w).sum() for t, w in zip(floats, weights, strict=True)])
    except Exception as raised:
        error = f"{type(raised).__name__}: {raised}"
    return Outcome(value, error, list(given.values()), [leaf.grad for leaf in leaves])


@contextlib.contextmanager
def within(lines: int) -> Iterator[None]:
    """Stop code of the examples that runs for more lines than these.

    Raises:
        RuntimeError: it did.
    """
    left = lines

    def line(frame: Any, event: str, _: Any) -> Any:
        nonlocal left
        left -= event == "line"
        if left < 0:
            raise RuntimeError(f"runs for more than {lines} lines")
        return line

    def call(frame: Any, event: str, _: Any) -> Any:
        return line if frame.f_code.co_filename == EXAMPLE else None

    before = sys.gettrace()
    sys.settrace(call)
    try:
        yield
    finally:
        sys.settrace(before)


def flat(value: Any) -> list[Any]:
    """A result as a list of its parts."""
    if isinstance(value, Told):
        value = value.told
    if isinstance(value, torch.nn.Module):
        value = [w.detach() for w in value.parameters()]
    if isinstance(value, torch.optim.Optimizer):
        return []
    if isinstance(value, dict):
        return [x for v in value.values() for x in flat(v)]
    return [x for v in value for x in flat(v)] if isinstance(value, (list, tuple)) else [value]


def last_function(code: str) -> Any:
    """The last function that a piece of code defines, or the last method of its last class, made without arguments."""
    space: dict[str, Any] = {"__name__": EXAMPLE}
    exec(compile(inspect.cleandoc(code), EXAMPLE, "exec"), space)
    last = [v for v in space.values() if getattr(v, "__module__", "") == EXAMPLE][-1]
    if not inspect.isclass(last):
        return last
    torch.manual_seed(0)
    return getattr(last(), [name for name, v in vars(last).items() if inspect.isfunction(v)][-1])


def assert_same(written: Outcome, fixed: Outcome, safety: Safety) -> None:
    """What a fix of this safety promises.

    SAFE: the same value, dtype, type, error, gradient and arguments, bit for bit. UNSAFE and SUGGEST: the same within
    rounding wherever the code as written gives a value; a number may have become a tensor.
    """
    RUNS[safety.name] += 1
    if safety is Safety.SAFE:
        assert written.error == fixed.error
        pairs = [
            *zip(flat(written.value), flat(fixed.value), strict=True),
            *zip(flat(written.arguments), flat(fixed.arguments), strict=True),
            *zip(written.gradients, fixed.gradients, strict=True),
        ]
        for a, b in pairs:
            assert type(a) is type(b), (a, b)
            if isinstance(a, torch.Tensor):
                assert a.dtype == b.dtype
                assert a.shape == b.shape
                assert torch.equal(a.isnan(), b.isnan())
                assert torch.equal(a.nan_to_num(), b.nan_to_num()), (a, b)
            else:
                assert a == b or (a != a and b != b)
        return
    if written.error:
        return
    assert not fixed.error, fixed.error
    kept = [[a for a in o.arguments if isinstance(a, (torch.nn.Module, Told))] for o in (written, fixed)]
    for a, b in zip(flat([written.value, kept[0]]), flat([fixed.value, kept[1]]), strict=True):
        close(a, b, same_dtype=isinstance(a, torch.Tensor))
    for a, b in zip(written.gradients, fixed.gradients, strict=True):
        close(zeros(a, b), zeros(b, a), same_dtype=True)


def zeros(gradient: Any, other: Any) -> Any:
    """A gradient; zeros where there is none because nothing came back."""
    return torch.zeros_like(other) if gradient is None and other is not None else gradient


def close(a: Any, b: Any, same_dtype: bool) -> None:
    """Equal within rounding."""
    if a is None or isinstance(a, (str, bool)):
        assert a == b
        return
    x, y = (torch.as_tensor(v) for v in (a, b))
    if same_dtype:
        assert x.dtype == y.dtype, (x.dtype, y.dtype)
    assert x.shape == y.shape, (x.shape, y.shape)
    coarse = {torch.float16: 4e-3, torch.bfloat16: 3e-2, torch.float32: 1e-4}.get(x.dtype, 1e-6)
    torch.testing.assert_close(x.double(), y.double(), rtol=coarse, atol=coarse, equal_nan=True)
