"""The index of a tensor: masks, gathers, slices, and the number of dimensions that they leave."""

from __future__ import annotations

import ast
import re
from typing import NamedTuple

from syncscope.model.fact import UNKNOWN, Fact
from syncscope.model.ops import Op
from syncscope.project.syntax import dotted, each_of, last_word, name_of, text_of, walk
from syncscope.tensors.facts import (
    ANY_DTYPE,
    ARRAY,
    BOOL,
    COMPARED,
    DYNAMIC,
    FLOAT,
    HOST,
    INT,
    NONE,
    NOTHING_KNOWN,
    PICKED,
    SCALAR,
    SEQUENCE,
    TENSOR,
    Items,
    Listed,
    Tag,
    like,
    tensor,
)
from syncscope.tensors.frame import Frame, evaluate
from syncscope.tensors.joins import element
from syncscope.tensors.rows_sent import are_sent
from syncscope.tensors.sent_later import is_sent_later
from syncscope.tensors.torch import host_indices
from syncscope.tensors.torch.positions import as_one_position, is_made_of_numbers, mask_like, named_mask

_LENGTHS = re.compile(r"(^|_)len(s|gths?)?$")


class Indexed(NamedTuple):
    """What a subscript does: its mask (and where that stands), and what it gives."""

    mask: Fact | None
    at: ast.expr | None
    result: Fact


def index(frame: Frame, node: ast.Subscript, base: Fact, adds: bool = False) -> Indexed:
    """How a tensor is indexed; waits of the index itself (bounds, numbers, lists) are emitted, a mask is only returned.

    `adds`: what stands there is added to, `x[i] += 1`.
    """
    read = _Index(frame, node, base, adds)
    for part in read.parts:
        if text_of(part) is not None:
            break  # no tensor, whatever it was taken for
        read.take(part)
    else:
        return read.by_mask() if read.mask is not None else read.without_mask()
    return Indexed(None, None, base if base.kind is ARRAY else UNKNOWN)


class _Index:
    """The parts of an index, gone through in their order, and what is known so far.

    What takes a part gives how many dimensions the result has more than `base` by it, or None where that is not known.
    """

    def __init__(self, frame: Frame, node: ast.Subscript, base: Fact, adds: bool) -> None:
        self.frame, self.node, self.base, self.adds = frame, node, base, adds
        self.parts = each_of(node.slice)
        self.of_tensor = base.kind is TENSOR
        self.mask: Fact | None = None
        self.at: ast.expr | None = None  # where the mask stands
        self.ndim = base.ndim
        self.dynamic = False
        self.single = False  # one element is taken along some dimension
        self.of_host = False  # a part of the index surely lives there
        self.bounded = False  # a bound is read; the next is told where it stands itself

    def take(self, part: ast.expr) -> None:
        """Take the next part."""
        if isinstance(part, ast.Slice):
            self._slice(part)
            return
        if isinstance(part, ast.Constant):
            change = self._constant(part.value)
        else:
            change = self._value(part, evaluate(self.frame, part))
        self.ndim = None if self.ndim is None or change is None else self.ndim + change

    def _slice(self, part: ast.Slice) -> None:
        frame = self.frame
        for bound in (part.lower, part.upper, part.step):
            if bound is not None and bound.__class__ is not ast.Constant:
                fact = evaluate(frame, bound)
                if fact.kind is TENSOR:
                    if fact.confidence == 1 and len(self.parts) > 1 and frame.alone and _is_length(bound):
                        fact = fact.but(confidence=2)
                    frame.emit(Op.SIZE, bound if self.bounded else self.node, bound, fact)
                    self.bounded = True
        if self.base.ndim == 0:  # of which nothing is sliced: it was taken for one number and is none
            self.ndim = None

    def _constant(self, value: object) -> int | None:
        if value is ...:
            return 0
        if value is None:
            return 1
        if value.__class__ is int:
            self.single = True
            return -1
        return None

    def _value(self, part: ast.expr, fact: Fact) -> int | None:
        kind = fact.kind
        if kind is TENSOR:
            return self._tensor(part, fact)
        if kind is SCALAR:
            self.single = True
            return -1
        if kind is SEQUENCE or kind is ARRAY:
            self._list(part, fact)
        elif fact is NONE:
            return 1
        elif fact is COMPARED:
            self._comparison(part)
        elif kind is NOTHING_KNOWN:
            self._called_a_mask(part)
        return None

    def _tensor(self, part: ast.expr, fact: Fact) -> int | None:
        frame = self.frame
        asked_at(frame, self.node, part, fact, self.base)
        self._of_host(part, fact)
        named = self._as_mask(part, fact)
        called = named != 0 and self._selects_by_mask(part)
        if fact.confidence == 1 and frame.alone and (named == 3 or called):
            fact = fact.but(confidence=2)  # a guess that was compared, then used as an index: it was an array
        if named:
            if self.mask is None or fact.confidence > self.mask.confidence:
                self.mask = fact if named == 3 else _guessed_mask(part, fact, named)
                self.at = part
            return 1 - fact.ndim if fact.ndim is not None else None
        return self._number(part, fact) if fact.ndim == 0 else self._positions(part, fact)

    def _of_host(self, part: ast.expr, fact: Fact) -> None:
        """Tell of an index that is sent to where the tensor lives."""
        frame, node, base = self.frame, self.node, self.base
        elsewhere = self.of_tensor and base.device is not HOST
        if elsewhere and fact.device is HOST and fact.ndim != 0:
            known = host_indices.of_a_tensor(frame, self.parts, part, fact, base)
            if not self._goes_on():
                frame.emit(Op.INDEX_HOST, node, part, base, known)
            self.of_host = True
        elif elsewhere and fact.ref is Tag.PERHAPS_OF_HOST and not self.of_host:
            frame.emit(Op.INDEX_HOST, node, part, base, host_indices.of_a_tensor_perhaps(frame, fact, base))
        elif base.kind is NOTHING_KNOWN and not self._goes_on():
            host_indices.of_what_may_be_one(frame, node, part, fact)

    def _goes_on(self) -> bool:
        """Whether what is picked is sent afterwards, or what it is picked of: it is on the host, as its index."""
        return is_sent_later(self.frame, self.node.value) or are_sent(self.frame, self.node)

    def _as_mask(self, part: ast.expr, fact: Fact) -> int:
        """How surely a tensor is a mask: 3 by its dtype, 2 or 1 by what it is called, or 0."""
        if fact.dtype is BOOL:
            return 3
        named = named_mask(part, fact) if fact.dtype is ANY_DTYPE else 0
        either = self.frame.either
        return 1 if named == 2 and either and dotted(part) in either else named

    def _number(self, part: ast.expr, fact: Fact) -> int:
        frame, base = self.frame, self.base
        if (self.of_tensor or base.kind is ARRAY) and fact.dtype is not FLOAT:
            frame.emit(Op.SCALAR_INDEX, self.node, part, fact, base.confidence)
        elif base.kind is NOTHING_KNOWN and fact.dtype is INT:
            frame.emit(Op.SCALAR_INDEX, self.node, part, fact, 1)  # of a list, too
        return -1

    def _positions(self, part: ast.expr, fact: Fact) -> int | None:
        if fact.ndim is None:
            known = as_one_position(self.frame, part, fact, self.base, self.adds and len(self.parts) > 1)
            if known:
                self.frame.emit(Op.SCALAR_INDEX, self.node, part, fact, known)
        self.dynamic = self.dynamic or fact.shape is DYNAMIC
        return fact.ndim - 1 if fact.ndim is not None else None

    def _list(self, part: ast.expr, fact: Fact) -> None:
        """Tell of a list, or an array, whose numbers are copied to the device."""
        frame, node, base = self.frame, self.node, self.base
        for held in fact.elements if base.kind is not ARRAY else ():
            if held.kind is TENSOR:
                host_indices.of_what_may_be_one(frame, node, part, held, base)
        if not self.of_tensor or are_sent(frame, node):
            return
        kind = part.__class__
        each = element(fact).kind
        written = ARRAY in (fact.kind, each) or kind is ast.List or kind is ast.ListComp or _is_range(part)
        made = kind is ast.Call and isinstance(fact.ref, Listed) and each in (SCALAR, NOTHING_KNOWN)  # `list(range(n))`
        if made or (written and not _is_empty(part)) or (len(self.parts) > 1 and _numbers(fact)):
            frame.emit(Op.INDEX_LIST, node, part, base, 2)
        elif kind in (ast.Name, ast.Attribute) and isinstance(fact.ref, Items):
            if isinstance(fact.ref, Listed) and each in (SCALAR, NOTHING_KNOWN):
                frame.emit(Op.INDEX_LIST, node, part, base, 2)
            elif each is SCALAR:  # a list that was filled, or a tuple: alone it is one of each dimension
                frame.emit(Op.INDEX_LIST, node, part, base, 2 if len(self.parts) > 1 else 1)

    def _comparison(self, part: ast.expr) -> None:
        """Take for a mask what compares something of which no more is known."""
        base = self.base
        if not (self.of_tensor or base.kind is NOTHING_KNOWN) or self.mask is not None:
            return
        if self.of_tensor or not _is_table(self.node.value, part):
            confidence = 2 if self.of_tensor or self.frame.alone else 1
            why = f"indexed with a comparison, `{ast.unparse(part)}`, as only an array can be"
            self.mask = tensor(BOOL, base.device, confidence, why)
            self.at = part

    def _called_a_mask(self, part: ast.expr) -> None:
        """Take for a mask what is called one, where no more is known of it."""
        base = self.base
        why = _called(part)
        if (base.confidence < 2 or not self.of_tensor) and self._selects_by_mask(part):
            self.mask = tensor(BOOL, base.device, 2, why)
            self.at = part
        elif self.of_tensor and (known := mask_like(part)) and not is_made_of_numbers(self.frame, part):
            known = known if "mask" in ast.unparse(part).lower() else 1
            self.mask = self.mask or base.but(
                confidence=min(known, base.confidence), dtype=ANY_DTYPE, ndim=None, why=why
            )
            self.at = part

    def _selects_by_mask(self, part: ast.expr) -> bool:
        """Whether an index is surely called a mask, in a file that has no arrays but torch's: `pred[graph.train_mask]`."""
        return (
            self.base.kind in (TENSOR, NOTHING_KNOWN)
            and self.frame.alone
            and mask_like(part) == 2
            and "mask" in last_word(part).lower()
            and not is_made_of_numbers(self.frame, part)
        )

    def by_mask(self) -> Indexed:
        base, mask = self.base, self.mask
        assert mask is not None
        if not self.of_tensor and base.kind is not NOTHING_KNOWN:
            return Indexed(mask, self.at, base if base.kind is ARRAY else UNKNOWN)
        kept = base if self.of_tensor else mask.but(dtype=ANY_DTYPE, confidence=min(mask.confidence, 2))
        confidence = min(kept.confidence, mask.confidence)
        result = like(
            mask, self.node, dtype=kept.dtype, device=kept.device, shape=DYNAMIC, ndim=self.ndim, confidence=confidence
        )
        return Indexed(mask, self.at, result)

    def without_mask(self) -> Indexed:
        base, ndim = self.base, self.ndim
        if self.of_tensor:
            shape = DYNAMIC if self.dynamic else base.shape
            ndim = None if ndim is not None and ndim < 0 else ndim
            return Indexed(None, None, like(base, self.node if self.single else (), shape=shape, ndim=ndim))
        named = (part for part in self.parts if name_of(part))
        if base.kind is NOTHING_KNOWN and any(evaluate(self.frame, part).kind is ARRAY for part in named):
            return Indexed(None, None, Fact(ref=PICKED, why=self.node))
        return Indexed(None, None, base if base.kind is ARRAY else UNKNOWN)


def asked_at(frame: Frame, node: ast.expr, part: ast.expr, fact: Fact, base: Fact) -> None:
    """A list is asked for what stands at a tensor, which Python makes a number of; a dict only looks it up."""
    if base.kind is SEQUENCE and not isinstance(getattr(base.ref, "keys", None), dict):
        frame.emit(Op.INDEX, node, part, fact)


def _guessed_mask(part: ast.expr, fact: Fact, named: int) -> Fact:
    """A tensor of an unknown dtype that is taken for a mask by its name, and says so."""
    return fact.but(confidence=min(fact.confidence, named), why=_called(part))


def _called(part: ast.expr) -> str:
    return f"`{ast.unparse(part)}` is what people call a mask: that it is bool is guessed from the name"


def _is_length(bound: ast.expr) -> bool:
    """Whether it is one of what people call lengths, `lengths[i]`: where they are given beside a batch, a tensor."""
    return isinstance(bound, ast.Subscript) and _LENGTHS.search(name_of(bound.value)) is not None


def _is_table(base: ast.expr, mask: ast.expr) -> bool:
    """Whether a mask asks a column of what it selects from, by its name: `rows[rows["end"] > start]` is no tensor.

    Nor is what most likely has columns, `rows[rows[name] == value]`: a tensor would have a row pick among rows.
    """
    text = ast.unparse(base)
    return any(
        isinstance(each, ast.Subscript)
        and (isinstance(each.slice, ast.Name) or text_of(each.slice) is not None)
        and ast.unparse(each.value) == text
        for each in walk(mask)
    )


def _numbers(fact: Fact) -> bool:
    """Whether it is a tuple or a list of numbers that are written out."""
    return fact.ref is Tag.NUMBERS or (bool(fact.elements) and all(each.kind is SCALAR for each in fact.elements))


def _is_range(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range"


def _is_empty(node: ast.expr) -> bool:
    """Whether a list holds nothing, so that nothing is copied; `x[[0]]` copies next to nothing, but copies."""
    return isinstance(node, ast.List) and not node.elts
