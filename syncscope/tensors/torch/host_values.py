"""Values of the host among those of the device: CUDA copies them first, and the host waits for the copy.

What waits and what does not was measured (tests/rules/cuda_waits.txt): a number that fills waits for nothing, a number that
is put at positions, at one element, or into a distribution is copied; a tensor of the host is copied wherever it is an index,
a choice of `torch.where` or the source of `copy_`, and is taken along as an argument of a kernel elsewhere.
"""

from __future__ import annotations

import ast

from syncscope.model.fact import UNKNOWN, Fact
from syncscope.model.ops import Op
from syncscope.project import conventions
from syncscope.project.of_file import kept
from syncscope.project.syntax import dotted, each_of, name_of, walk
from syncscope.tensors.call import Call
from syncscope.tensors.facts import (
    ANY_DTYPE,
    ARRAY,
    BOOL,
    DEVICE,
    DYNAMIC,
    HOST,
    NONE,
    SCALAR,
    SEQUENCE,
    SOMEWHERE,
    TENSOR,
    TEXT,
    tensor,
)
from syncscope.tensors.frame import Frame, evaluate
from syncscope.tensors.joins import element
from syncscope.tensors.sent_later import is_sent_later
from syncscope.tensors.torch.host_indices import in_a_module
from syncscope.tensors.torch.moves import of_arrays
from syncscope.tensors.torch.positions import is_computed, mask_like


def number_written(frame: Frame, target: ast.Subscript, base: Fact, fact: Fact, value: ast.expr | None) -> None:
    """`x[i] = 1.0` at integer positions and `x[0, 0] = 1.0` at one element: the number is copied to the device.

    Rows and slices, `x[0] = 1.0`, are filled, and so is what a mask selects: the number is an argument of the kernel.
    """
    if base is UNKNOWN and isinstance(target.slice, ast.Tuple) and fact.kind is SCALAR:
        base = _picked_by_tensors(frame, target.slice)
    if base.kind is not TENSOR or base.device is HOST or not (fact.kind is SCALAR or _host_number(fact)):
        return
    path = dotted(target.value)
    if base.ndim is None and path and path in frame.read_whole:
        base = base.but(ndim=1)  # one element, and an index takes it: a ring's pointer, `torch.zeros(1)`
    found = _positions(frame, target.slice, base)
    if found is not None and not is_sent_later(frame, target.value):
        frame.emit(Op.NUMBER_WRITE, target, value, base, min(found, max(_certainty(base), 2)))


def _picked_by_tensors(frame: Frame, index: ast.Tuple) -> Fact:
    """What has an element for several tensors of positions that live on the device: no dict or array does."""
    found = [evaluate(frame, part) for part in index.elts]
    on_device = (each.kind is TENSOR and each.device is not HOST and each.confidence >= 2 for each in found)
    return tensor(confidence=2, why=index) if len(found) > 1 and all(on_device) else UNKNOWN


def _host_number(fact: Fact) -> bool:
    return fact.kind is TENSOR and fact.device is HOST and fact.ndim == 0


def _positions(frame: Frame, index: ast.expr, base: Fact) -> int | None:
    """How sure it is that an index gives positions, or one element; None where a fill writes what it selects."""
    parts = each_of(index)
    selected = _Selected(len(parts))
    for part in parts:
        if isinstance(part, ast.Slice) or (isinstance(part, ast.Constant) and part.value in (None, ...)):
            selected.whole = False
            continue
        fact = evaluate(frame, part)
        if fact.kind is SEQUENCE and not isinstance(part, ast.List) and element(fact).kind is TENSOR:
            fact = element(fact)  # positions, a tensor for each dimension: what `nonzero(as_tuple=True)` gives
        if fact.dtype is BOOL or (fact.dtype is ANY_DTYPE and mask_like(part) and not is_computed(fact)):
            return None
        selected.take(part, fact)
        if selected.gathered is None and selected.filled:
            return None
    return selected.certainty(base.ndim)


class _Selected:
    """What the parts of an index select, as far as they were gone through."""

    def __init__(self, parts: int) -> None:
        self._parts = parts
        self.gathered: int | None = None  # how surely one of them is positions
        # whether one is known to be positions, and whether one may as well be a mask
        self._sure = self._guessed = False
        self._single = self._several = 0
        self._unknown = 0  # of which nothing is known: a number each, or positions
        self.whole = True  # every part takes one element of its dimension
        self.filled = False  # the only part is nothing that is known to select elements

    def take(self, part: ast.expr, fact: Fact) -> None:
        """Take one more, which is no slice and no mask."""
        if fact.kind is SCALAR or (fact.kind is TENSOR and fact.ndim == 0):
            self._single += 1
        elif fact.kind is TENSOR:
            self._several += 1
            guessed = fact.dtype is ANY_DTYPE and not _called_positions(part)
            self._guessed, self._sure = self._guessed or guessed, self._sure or not guessed
            self._gather(1 if guessed else min(fact.confidence, 2) if fact.shape is DYNAMIC else fact.confidence)
        elif fact.kind is ARRAY or (fact.kind is SEQUENCE and isinstance(part, ast.List) and part.elts):
            self._gather(2)
        else:
            open_ = fact is UNKNOWN and isinstance(part, ast.Name)
            self._unknown += open_
            self._several += open_
            self.whole = False
            self.filled = fact is not NONE and self._parts == 1

    def _gather(self, confidence: int) -> None:
        self.gathered = confidence if self.gathered is None else min(self.gathered, confidence)

    def certainty(self, ndim: int | None) -> int | None:
        """How sure it is that these are positions, or one element, of what has so many dimensions."""
        parts, single = self._parts, self._single
        if self.gathered is not None:
            if self._several == parts > 1:  # no fill writes what several tensors select, not even masks
                return max(self.gathered, 2)
            return 2 if self._guessed and self._sure else self.gathered  # a mask stands beside no positions
        if parts > 1 and self._unknown + single == parts and ndim in (None, parts):
            # numbers or positions: what is put there is copied for both
            return 2 if ndim is not None or single == 0 else 1
        if not self.whole:
            return None
        if ndim is None:
            return 1 if single > 1 else None  # most often a matrix
        return 3 if single == ndim else None


def _called_positions(part: ast.expr) -> bool:
    """Whether a part of an index is made of what people call positions."""
    return any(conventions.is_positions(name_of(n)) for n in walk(part) if isinstance(n, (ast.Name, ast.Attribute)))


def chosen_from_host(call: Call, condition: Fact, *choices: tuple[ast.expr, Fact]) -> None:
    """`torch.where(m, x, torch.tensor(1.0))`: a number of the host that is a tensor is copied; `1.0` is not."""
    others = [condition, *(fact for _, fact in choices)]
    beside = next((f for f in others if f.kind is TENSOR and f.device is DEVICE), None)
    beside = beside or next((f for f in others if f.kind is TENSOR and f.device is not HOST), None)
    at = next((at for at, fact in choices if _host_number(fact)), None)
    if at is not None and beside is not None:
        call.emit(Op.WHERE_HOST, at, beside, _certainty(beside))


def copied_in(
    frame: Frame, node: ast.AST, at: ast.expr, into: Fact, value: Fact, index: ast.expr | None = None
) -> None:
    """`x.copy_(y)` and `x[0] = y` with tensors of two places: a blocking copy, one way or the other.

    At an `index` a tensor of the host without dimensions fills, and is not copied.
    """
    if into.kind is not TENSOR or value.kind is not TENSOR or (index is not None and _is_a_key(frame, index)):
        return
    if into.device is HOST:
        if not of_arrays(value):
            frame.emit(Op.CPU, node, at, value, 2)
    elif (_made_for_a_device(into) or _is_host_in_a_module(frame, value)) and _is_sent(value, into, index):
        frame.emit(Op.TO_DEVICE, node, at, value.but(device=DEVICE), 2)


def _is_a_key(frame: Frame, index: ast.expr) -> bool:
    """Whether a text stands there, or one of the keys over which the function goes: a dict keeps what it is given."""
    if isinstance(index, ast.Tuple | ast.Slice):
        return False
    if evaluate(frame, index).ref is TEXT:
        return True
    return isinstance(index, ast.Name) and frame.function is not None and index.id in _keys_of(frame.function.node)


@kept(8)  # asked for what one function writes
def _keys_of(function: ast.AST) -> frozenset[str]:
    """The names that a function gives to keys: `for k, v in parts.items()`, `for k in parts.keys()`."""
    found = []
    for each in walk(function):
        if isinstance(each, ast.For | ast.comprehension) and isinstance(each.iter, ast.Call):
            word = each.iter.func.attr if isinstance(each.iter.func, ast.Attribute) else ""
            pair = each.target.elts if isinstance(each.target, ast.Tuple) else []
            key = pair[0] if word == "items" and len(pair) == 2 else each.target if word == "keys" else None
            found += [key.id] if isinstance(key, ast.Name) else []
    return frozenset(found)


def _is_host_in_a_module(frame: Frame, value: Fact) -> bool:
    """Whether a tensor surely lives on the host, and stands in a module, whose own lie on the device."""
    return value.device is HOST and value.confidence == 3 and in_a_module(frame)


def _is_sent(value: Fact, into: Fact, index: ast.expr | None) -> bool:
    """Whether a value lives on the host, or was most often an array, and is no number that fills."""
    if value.device is HOST:
        return index is None or value.ndim != 0
    return value.device is SOMEWHERE and of_arrays(value) and _is_array_for(into, index)


def _is_array_for(base: Fact, index: ast.expr | None) -> bool:
    """Whether what is put there is no single number: all of a tensor is written, a row of a matrix, a slice."""
    parts = each_of(index) if index is not None else []
    if not parts or any(isinstance(part, ast.Slice) for part in parts):
        return True
    plain = all(isinstance(part, (ast.Name, ast.Attribute, ast.Constant, ast.BinOp)) for part in parts)
    return plain and base.ndim is not None and len(parts) < base.ndim


def _made_for_a_device(fact: Fact) -> bool:
    """Whether it lies on the device, or was made where one is named, though not which: a tensor of the host does not."""
    made = fact.provenance
    named = isinstance(made, ast.Call) and (
        any(k.arg == "device" for k in made.keywords) or (name_of(made.func) == "to" and fact.device is SOMEWHERE)
    )
    return fact.device is DEVICE or (fact.device is SOMEWHERE and named)


# Distributions that bring their parameters to one shape: a Python number among them becomes a tensor of the device. The number
# is how many of the parameters that may be given are so brought; a default among them is a Python number as well.
_BROADCAST = {
    "Beta": 2, "Binomial": 2, "Cauchy": 2, "FisherSnedecor": 2, "Gamma": 2, "GeneralizedPareto": 3, "Gumbel": 2,
    "InverseGamma": 2, "Kumaraswamy": 2, "Laplace": 2, "LogNormal": 2, "NegativeBinomial": 2, "Normal": 2, "Pareto": 2,
    "StudentT": 3, "Uniform": 2, "VonMises": 2, "Weibull": 2,
}  # fmt: skip
_WITH_A_NUMBER = frozenset("Chi2 HalfCauchy HalfNormal Multinomial".split())  # they give one to their base themselves
_DEFAULTS = frozenset(["Binomial", "StudentT"])
_SWITCHES = ("validate_args",)


def numbers_broadcast(call: Call) -> None:
    """`Normal(mean, 1.0)`: the number becomes a tensor like `mean`, with a copy that the host waits for."""
    word, node = call.word, call.node
    many = _BROADCAST.get(word, 0)
    if not many and word not in _WITH_A_NUMBER:
        return
    given = [*zip(call.nodes, call.args, strict=True)]
    given += [(k.value, call.keywords[k.arg]) for k in node.keywords if k.arg is not None and k.arg not in _SWITCHES]
    beside = next((f for _, f in given if f.kind is TENSOR), None)
    if beside is None or call.starred:
        return
    number = next((at for at, fact in given[:many] if fact.kind is SCALAR), None)
    if number is not None or word in _WITH_A_NUMBER or (word in _DEFAULTS and len(given) < many):
        call.emit(Op.DISTRIBUTION_NUMBER, number, beside, 3 if beside.device is DEVICE else 2)


def _certainty(beside: Fact) -> int:
    """A copy needs two places: where the tensor lives must be known, since code that runs on the host looks the same."""
    return 3 if beside.device is DEVICE else 1
