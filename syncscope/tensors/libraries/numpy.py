"""numpy, and the libraries over its arrays: a tensor that it is given is copied to the host, where arrays live."""

from __future__ import annotations

from syncscope.model.fact import UNKNOWN, Fact
from syncscope.model.ops import Op
from syncscope.project.names import named
from syncscope.tensors.call import Call
from syncscope.tensors.facts import (
    DEVICE,
    FLOATING,
    INTEGER,
    NONE,
    NP_ARRAY,
    NUMBER,
    NUMBERS,
    SCALAR,
    SIZE,
    TENSOR,
    THING,
    array,
    holds_tensor,
    items,
)
from syncscope.tensors.frame import of_host

_NO_ARRAYS = frozenset("""isscalar ndim shape random.seed random.default_rng errstate dtype set_printoptions""".split())
_PYTHON_FLOATS = frozenset(("double", "float64"))  # they derive from Python's, and ask a tensor as `float(x)` does
_DRAWN = frozenset("choice randint uniform normal rand randn random beta exponential poisson binomial".split())
# else behind two parameters
_SIZE_AT = {"choice": 1, "rand": 0, "randn": 0, "random": 0, "exponential": 1, "poisson": 1}
_BY_DIMENSION = frozenset("nonzero tril_indices triu_indices diag_indices unravel_index ix_ meshgrid".split())
"""Functions and methods that give an array for each dimension; `where` does so of a condition alone."""
_OF_NUMBERS = frozenset("prod isscalar ndim log2 ceil floor sqrt".split())  # of a number they give a number
_ATTRIBUTES = {
    **dict.fromkeys(("T", "real", "imag", "flat"), NP_ARRAY),
    "shape": SIZE,
    **dict.fromkeys(("size", "ndim"), INTEGER),
}


def call(call: Call) -> Fact:
    """A function of numpy."""
    name = call.name.removeprefix("numpy.")
    if name in ("finfo", "iinfo"):
        return named(f"torch.{name}()")  # numbers of the same names
    if name in _NO_ARRAYS:
        return THING
    if name in _PYTHON_FLOATS and call.first.kind in (TENSOR, SCALAR):
        if call.first.kind is TENSOR:
            call.emit(Op.FLOAT, call.first_node, call.first)
        return FLOATING
    if name.startswith("random.") and _is_one(call):
        return NUMBER
    for at, fact in zip(call.nodes, call.args, strict=False):
        held = holds_tensor(fact)
        if held is not None:
            if held.device is DEVICE:
                call.emit(Op.ASARRAY, at, held)
            else:
                of_host(call.frame, at, fact)
            return items(array(held)) if _by_dimension(call) else array(held)
    if _by_dimension(call):
        return items(NP_ARRAY)
    return NUMBER if name in _OF_NUMBERS and call.first.kind is SCALAR else NP_ARRAY


def _by_dimension(call: Call) -> bool:
    return call.word in _BY_DIMENSION or (call.word == "where" and len(call.args) == 1 and not call.spread)


def _is_one(call: Call) -> bool:
    """Whether one number is drawn, of a range or from numbers: no size is asked for."""
    asked = call.given(_SIZE_AT.get(call.word, 2), "size", NONE)
    told = call.word == "choice" or all(fact.kind is SCALAR for fact in call.args)
    return call.word in _DRAWN and told and asked is NONE and not call.spread and call.first.kind is not TENSOR


def over_arrays(call: Call) -> Fact:
    """A function of a library that calculates with arrays of numpy: it takes them, or what becomes one, and gives them."""
    if not call.word.islower():
        return UNKNOWN  # a class
    for at, fact in zip(call.nodes, call.args, strict=False):
        if holds_tensor(fact) is not None:
            of_host(call.frame, at, fact)
    return NP_ARRAY.but(confidence=2)


CALLS = dict.fromkeys(("scipy", "sklearn", "skimage", "cv2", "librosa"), over_arrays)


def method(word: str) -> Fact:
    """A method of an array."""
    if word in _BY_DIMENSION:
        return items(NP_ARRAY)
    return NUMBER if word == "item" else NUMBERS if word == "tolist" else NP_ARRAY


def attribute(word: str) -> Fact:
    """An attribute of an array."""
    return _ATTRIBUTES.get(word, UNKNOWN)
