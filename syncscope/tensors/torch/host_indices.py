"""An index that lives on the host, of a tensor that may not: it is sent there first, which waits."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from syncscope.model.fact import UNKNOWN, Fact
from syncscope.model.ops import Op
from syncscope.project.beside_training import PREDICTIONS, TARGETS
from syncscope.project.names import ancestry
from syncscope.project.of_file import kept
from syncscope.project.syntax import each_of, name_of, walk
from syncscope.tensors.facts import BOOL, DEVICE, HOST, INT, MODULE, TENSOR, Tag, tensor
from syncscope.tensors.frame import Frame, evaluate
from syncscope.tensors.instances import instance

_SENDS = re.compile(rb"\.to\(\s*(?:device=)?self\.\w*device\b")


def of_a_tensor(frame: Frame, parts: Iterable[ast.expr], part: ast.expr, fact: Fact, base: Fact) -> int:
    """How surely a part of an index, a tensor of the host, meets a `base` that lives elsewhere: 3, 2 or 1.

    Two tensors of one program most often live in one place: this one makes the other doubtful.
    """
    several = fact.ndim or _is_sliced(part)
    if base.device is DEVICE and several:
        return 3
    if fact.ref is Tag.MATCHED:
        return 2
    if not (several and fact.confidence == 3):
        return 1
    met = (
        _made_where_named(base)
        or _compares(frame)
        or in_a_module(frame)
        or _knows_device(frame)
        or _meets_another(frame, parts, part)
        or _asks_where(frame)
        or _reorders(fact)
        or (fact.dtype is INT and base.confidence > 1 and not frame.on_host)
    )
    return 2 if met else 1


def of_a_tensor_perhaps(frame: Frame, fact: Fact, base: Fact) -> int:
    """The same of a tensor that may live on the host: 2, 1, or 0 where it selects nothing, or by a mask."""
    if fact.ndim == 0 or fact.dtype is BOOL:
        return 0
    return 2 if base.device is DEVICE or in_a_module(frame) else 1


def of_what_may_be_one(frame: Frame, node: ast.expr, part: ast.expr, fact: Fact, base: Fact = UNKNOWN) -> None:
    """An index that is on the host, of what most likely is a tensor of the device, is told: not where rows of a sparse matrix
    of SciPy's are made arrays, `counts[rows].toarray()`."""
    if fact.device is HOST and fact.ndim and base.device is not HOST and not _has_sparse_rows(frame):
        frame.emit(Op.INDEX_HOST, node, part, tensor(confidence=min(fact.confidence, 2), why=fact.provenance))


def picked_from_host(frame: Frame, node: object, beside: bool) -> None:
    """`model(rows[np.random.choice(n, k)])`: what a network is given, or meets a tensor, was one when it was picked."""
    if beside and isinstance(node, ast.Subscript):
        frame.emit(Op.INDEX_HOST, node, node.slice, tensor(confidence=2, why=node))


def in_a_module(frame: Frame) -> bool:
    """Whether this is a method of an `nn.Module`: what such a method is given lives where the module was moved to."""
    return frame.cls is not None and not frame.on_host and instance(frame.cls).kind is MODULE


def _knows_device(frame: Frame) -> bool:
    """Whether an object sends to a device of its own what it is given, in any method: others are given what lies there."""
    return frame.cls is not None and not frame.on_host and any(_SENDS.search(each.text) for each in ancestry(frame.cls))


def _asks_where(frame: Frame) -> bool:
    """Whether a function asks tensors where they live, `zeros(n, device=x.device)`: what it is given may be anywhere."""
    function = frame.function
    return function is not None and not frame.on_host and _speaks_of_a_device(function.node)


def _reorders(fact: Fact) -> bool:
    """Whether it is a permutation of as many as a batch has, `torch.randperm(x.size(0))`: what is mixed with itself by one."""
    made = fact.provenance
    return (
        isinstance(made, ast.Call)
        and name_of(made.func) == "randperm"
        and any(name_of(each) in ("size", "shape") for each in walk(made))
    )


def _has_sparse_rows(frame: Frame) -> bool:
    return frame.function is not None and _makes_arrays(frame.function.node)


@kept(8)  # asked for each index
def _makes_arrays(function: ast.AST) -> bool:
    return any(isinstance(each, ast.Attribute) and each.attr in ("toarray", "todense") for each in walk(function))


@kept(8)  # asked for each index
def _speaks_of_a_device(function: ast.AST) -> bool:
    return any(
        isinstance(each, ast.Attribute) and each.attr == "device" and name_of(each.value) not in ("", "self")
        for each in walk(function)
    )


def _compares(frame: Frame) -> bool:
    """Whether a function is given what a network has computed, and what is to come of it: both live on the device."""
    if frame.function is None or frame.on_host:
        return False
    given = frame.function.names
    return not (TARGETS.isdisjoint(given) or PREDICTIONS.isdisjoint(given))


_FAR = 4


def _made_where_named(base: Fact) -> bool:
    """Whether a tensor, or one that it is computed from, was made where a device is named: `torch.rand(n, device=device)`."""
    fact: Fact | None = base
    for _ in range(_FAR):
        if fact is None:
            return False
        made = fact.provenance
        if isinstance(made, ast.Call) and any(each.arg == "device" for each in made.keywords):
            return True
        fact = fact.source
    return False


def _meets_another(frame: Frame, parts: Iterable[ast.expr], part: ast.expr) -> bool:
    """Whether a tensor that was not made on the host stands beside this part of an index: `x[torch.arange(n), best]`."""
    others = (evaluate(frame, each) for each in parts if each is not part and isinstance(each, (ast.Name, ast.Call)))
    return any(fact.kind is TENSOR and fact.device is not HOST and fact.confidence >= 2 for fact in others)


def _is_sliced(part: ast.expr) -> bool:
    """Whether a slice is taken, which leaves one dimension at least: `at[:, 0]`."""
    return isinstance(part, ast.Subscript) and any(isinstance(each, ast.Slice) for each in each_of(part.slice))
