"""What an annotation says of a value."""

from __future__ import annotations

import ast
from functools import reduce

from syncscope.model.fact import UNKNOWN, Fact
from syncscope.project.modules import Class, Module
from syncscope.project.names import lookup, member
from syncscope.project.syntax import each_of, name_of
from syncscope.tensors.facts import (
    ANY_DTYPE,
    FLOAT,
    FLOATING,
    INTEGER,
    LOADER,
    MODULE,
    NONE,
    NP_ARRAY,
    NUMBER,
    OTHER,
    SIZE,
    STRING,
    TENSOR,
    THING,
    TRUTH,
    Either,
    Items,
    Tag,
    items,
    listed,
    sequence,
    tensor,
)
from syncscope.tensors.instances import instance
from syncscope.tensors.joins import join
from syncscope.tensors.libraries import jaxtyping
from syncscope.tensors.torch.signatures import DTYPE_NAMED

_PLAIN = {
    "builtins.int": INTEGER,
    "builtins.float": FLOATING,
    "builtins.bool": TRUTH,
    "builtins.complex": NUMBER,
    "builtins.str": STRING,
    "builtins.bytes": STRING,
    "builtins.None": NONE,
    "torch.Size": SIZE,
    "torch.device": Fact(OTHER, ref=Tag.DEVICE, confidence=3),
    "torch.dtype": Fact(OTHER, ref=Tag.DTYPE, confidence=3),
    "numbers.Number": NUMBER,
    "torch.Generator": THING,
    "typing.Any": UNKNOWN,
    "typing.Callable": THING,
    "collections.abc.Callable": THING,
}
_LISTS = frozenset(
    """list List Sequence Iterable Iterator Collection set Set frozenset Generator deque MutableSequence""".split()
)
_DICTS = {"dict", "Dict", "Mapping", "MutableMapping", "OrderedDict", "defaultdict", "DefaultDict"}
_ARRAYS = {"ndarray", "NDArray", "ArrayLike"}
_ANNOTATED_ARRAY = NP_ARRAY.but(confidence=2)  # `isinstance(x, Tensor)` is still asked where callers pass both
_SAME = {"Optional", "Final", "Annotated", "Required", "NotRequired", "ClassVar", "Type"}


def annotated(module: Module, node: ast.expr | None, why: str = "") -> Fact:
    """The fact behind an annotation, UNKNOWN when it says nothing; a tensor's comes with `why` it is one."""
    if node is None:
        return UNKNOWN
    word = node.id if isinstance(node, ast.Name) else ""
    known = module.announced.get(word) if word else None
    if known is None:
        known = module.announced.get((node, why))
    if known is None:
        circles = module.project.circles
        known = _read(module, node, why)
        if known is not UNKNOWN or module.project.circles == circles:  # else it may be a name that is being resolved
            plain = word and known.kind is not TENSOR  # it is the same wherever the name stands
            module.announced[word if plain else (node, why)] = known
    return known


def _read(module: Module, node: ast.expr, why: str) -> Fact:
    if isinstance(node, (ast.Name, ast.Attribute)):
        return meaning(_target(module, node), why)
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            try:
                return annotated(module, ast.parse(node.value, mode="eval").body, why)
            except (SyntaxError, RecursionError, ValueError):
                return UNKNOWN
        return NONE if node.value is None else UNKNOWN
    if isinstance(node, ast.BinOp):
        return _one_of(module, _parts(node), why) if isinstance(node.op, ast.BitOr) else UNKNOWN
    return _subscripted(module, node, why) if isinstance(node, ast.Subscript) else UNKNOWN


def _parts(node: ast.expr) -> list[ast.expr]:
    """The types that `a | b | c` names."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return [*_parts(node.left), *_parts(node.right)]
    return [node]


def _one_of(module: Module, types: list[ast.expr], why: str) -> Fact:
    """What is of one of these types: a tensor that may be something else keeps what, for tests that ask."""
    each = [annotated(module, one, why) for one in types]
    found = reduce(_either, each)
    if found.kind is TENSOR and found.confidence == 1 and found.ref is None:
        found.ref = Either(tuple(one for one in each if one is not NONE))
    return found


def _either(a: Fact, b: Fact) -> Fact:
    """One of a Union: Optional keeps its sureness, a tensor beside something else is only a guess."""
    for one, other in ((a, b), (b, a)):
        if other is NONE:
            return one
        if one.kind is TENSOR and other.kind is not TENSOR:
            return tensor(one.dtype, confidence=1, why="one of the types it is annotated with is Tensor")
    if (_is_dict(a) and b.elements) or (_is_dict(b) and a.elements):
        return UNKNOWN  # `dict[str, Tensor] | tuple[dict[str, Tensor], ...]`: what one is unpacked to, the other is not
    return join(a, b) if a.kind is b.kind else UNKNOWN


def _is_dict(fact: Fact) -> bool:
    return isinstance(fact.ref, Items) and fact.ref.keys is not None


def _target(module: Module, node: ast.expr) -> Fact:
    if isinstance(node, ast.Name):
        return lookup(module, node.id)
    if isinstance(node, ast.Attribute):
        of = _target(module, node.value)
        return member(of, node.attr) if of is not UNKNOWN else UNKNOWN
    return UNKNOWN


def meaning(target: Fact, why: str = "") -> Fact:
    """What an object of a class is, where the class is known."""
    ref = target.ref
    if isinstance(ref, Class):
        return instance(ref)
    if not isinstance(ref, str):
        return UNKNOWN
    plain = _PLAIN.get(ref)
    if plain is not None:
        return plain
    word = ref.rpartition(".")[2]
    if ref.startswith("torch."):
        if word in ("Tensor", "Parameter", "Buffer"):
            return tensor(confidence=3, why=why or "annotated as a tensor")
        if word.endswith("Tensor") and word in DTYPE_NAMED:
            # People write FloatTensor for any tensor that is not of integers.
            dtype = DTYPE_NAMED[word]
            return tensor(dtype if dtype is not FLOAT else ANY_DTYPE, confidence=3, why=why or f"annotated as {word}")
        if ref.startswith("torch.nn.") and word[:1].isupper():
            return Fact(MODULE, confidence=3, ref=ref)
        if ref.startswith(("torch.distributions.", "torch.optim.")):
            return Fact(OTHER, confidence=3, ref=f"{ref}()")
        if ref.startswith("torch.utils.data.") and word == "DataLoader":
            return Fact(OTHER, confidence=3, ref=LOADER)
        if word == "Variable":
            return tensor(confidence=3, why=why or "annotated as a tensor")
        if word[:1].isupper():
            # `DeviceMesh`, `Generator`: no tensor, whatever it is used like
            return Fact(OTHER, confidence=3, ref=f"{ref}()")
    if word == "Tensor":
        return tensor(confidence=3, why=why or "annotated as a tensor")
    if ref.startswith("numpy.") and word in _ARRAYS:
        return _ANNOTATED_ARRAY
    if ref in ("builtins.list", "typing.List"):
        return listed(UNKNOWN)
    if ref.startswith("builtins."):
        return Fact(OTHER, confidence=3, ref=ref + "()")
    return UNKNOWN


def _kept(fact: Fact) -> Fact:
    """A value of a dictionary: tensors of the host are kept in one beside others, sizes and what was drawn."""
    return fact.but(confidence=2) if fact.kind is TENSOR and fact.confidence == 3 else fact


def _subscripted(module: Module, node: ast.Subscript, why: str) -> Fact:
    target = _target(module, node.value)
    word = target.ref.rpartition(".")[2] if isinstance(target.ref, str) else ""
    if not word:
        word = name_of(node.value)
    inner = each_of(node.slice)
    if not inner:
        return UNKNOWN
    if word in _SAME:
        return annotated(module, inner[0], why)
    if word == "Union":
        return _one_of(module, inner, why)
    if word in ("tuple", "Tuple"):
        if len(inner) == 2 and isinstance(inner[1], ast.Constant) and inner[1].value is ...:
            return items(annotated(module, inner[0], why))
        return sequence(*(annotated(module, each, why) for each in inner))
    if word in _ARRAYS:
        return meaning(target, why)
    if word in _LISTS:
        return (listed if word in ("list", "List") else items)(annotated(module, inner[0], why))
    if word in _DICTS and len(inner) == 2:
        return items(_kept(annotated(module, inner[1], why)), {})
    if word in jaxtyping.DTYPES and target.ref != "builtins.bool":
        fact = annotated(module, inner[0], why)
        return tensor(jaxtyping.DTYPES[word], confidence=3, why=why) if fact.kind is TENSOR else fact
    return UNKNOWN
