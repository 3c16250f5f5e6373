"""How two facts become one, where either may be the case: of two branches, and of the elements of a container."""

from __future__ import annotations

from collections.abc import Iterable

from syncscope.model.fact import UNKNOWN, Device, Dtype, Fact, Value
from syncscope.tensors.facts import (
    ANY_DTYPE,
    ANY_SHAPE,
    ARRAY,
    BATCH,
    BOOL,
    DEVICE,
    DISTRIBUTIONS,
    DYNAMIC,
    FIXED,
    FLOAT,
    FLOATING,
    HOST,
    INT,
    INTEGER,
    MODULE,
    NO_TENSOR,
    NOTHING,
    NP_ARRAY,
    NUMBER,
    OF_ENVIRONMENT,
    OF_PARAMETERS,
    OTHER,
    PERHAPS_OF_HOST,
    SCALAR,
    SEQUENCE,
    SOMEWHERE,
    TENSOR,
    THING,
    TRUTH,
    TYPES_ON_DEVICE,
    Items,
    Listed,
    Tag,
    is_distribution,
    items,
    like,
    listed,
    parameter,
    sequence,
    tensor,
)
from syncscope.tensors.torch.signatures import table

_OF = {ANY_DTYPE: NUMBER, BOOL: TRUTH, INT: INTEGER, FLOAT: FLOATING, Dtype.COMPLEX: NUMBER}  # a number of each dtype


def join(a: Fact, b: Fact, unlike: Device = SOMEWHERE) -> Fact:
    """What is known when either may be the case; `unlike` is what a device is called that is the host's in one case only."""
    if a is b:
        return a
    kind = a.kind
    if kind is not b.kind:
        return _join_kinds(a, b)
    if kind is TENSOR:
        return _join_tensors(a, b)
    if kind is SEQUENCE:
        return _join_sequences(a, b, unlike)
    if kind is SCALAR:
        if a.dtype is not b.dtype:
            return NUMBER
        return a if a.ref is None or a.ref is b.ref else b if b.ref is None else _OF[a.dtype]
    if kind is OTHER:
        return _join_things(a, b, unlike)
    if kind is MODULE:
        return _join_modules(a, b)
    if kind is BATCH and DEVICE in (a.device, b.device):
        return a if a.device is DEVICE else b  # its parts are sent in a loop over it
    return a if a.ref == b.ref else Fact(kind, device=a.device, confidence=min(a.confidence, b.confidence))


def _join_kinds(a: Fact, b: Fact) -> Fact:
    """Of two values of different kinds the one that tells more, as far as it still does."""
    for one, other in ((a, b), (b, a)):
        if one.kind is OTHER and one.ref is NOTHING:
            return other
        if one.kind is TENSOR:
            return _tensor_or(one, other)
        if one.kind in (MODULE, SEQUENCE) and other.kind is Value.UNKNOWN:
            return one
        if one.kind is SEQUENCE and other.kind is BATCH and isinstance(one.ref, Items) and one.ref.keys:
            return one  # a dict of which an entry is sent
    return UNKNOWN


def _tensor_or(one: Fact, other: Fact) -> Fact:
    """A tensor, where something else may be in its place."""
    if other.kind is SCALAR:
        return one if one.confidence < 3 else _weaker(one, 2)
    if other.kind is SEQUENCE:  # whoever unpacks it gets the elements of that
        return _weaker(one, 1).but(ndim=None)
    if other.kind is OTHER and other.ref is NOTHING:
        return _or_none(one)
    if other.kind is not Value.UNKNOWN:
        return _weaker(one, 1)
    return _weaker(one, min(one.confidence, 2)) if one.device is not HOST else _perhaps_elsewhere(one)


def _or_none(fact: Fact) -> Fact:
    either = _weaker(fact, 1)
    either.ref = Tag.OR_NONE
    return either


def if_given(fact: Fact) -> Fact:
    """What is there, if anything is, of a value that may be None."""
    there = fact
    while there.ref is Tag.OR_NONE and there.source is not None:
        there = there.source
    return there


def _join_tensors(a: Fact, b: Fact) -> Fact:
    if Tag.OR_NONE in (a.ref, b.ref):
        return _or_none(join(if_given(a), if_given(b)))
    device = _either_place(a, b)
    return Fact(
        TENSOR,
        a.dtype if a.dtype is b.dtype else ANY_DTYPE,
        device,
        a.shape if a.shape is b.shape else (DYNAMIC if DYNAMIC in (a.shape, b.shape) else ANY_SHAPE),
        a.ndim if a.ndim == b.ndim else None,
        _confidence(a, b),
        (),
        ref=PERHAPS_OF_HOST if device is SOMEWHERE and _made_on_host(a, b) else None,
        source=a if a.confidence <= b.confidence else b,
    )


def _join_things(a: Fact, b: Fact, unlike: Device) -> Fact:
    """Of two values that are none of the other kinds what both are: a device, a text, a type of tensors, a distribution."""
    if a.ref is NOTHING:
        return b
    if b.ref is NOTHING:
        return a
    places = (a.ref is Tag.DEVICE) + (b.ref is Tag.DEVICE)
    if places == 2:
        if DEVICE in (a.device, b.device):
            return a if a.device is DEVICE else b
        return a if a.device is b.device else Fact(OTHER, device=unlike, confidence=3, ref=Tag.DEVICE)
    if a.ref == b.ref and a.ref is not None:
        return a
    if places and Tag.TEXT in (a.ref, b.ref):  # `x.device if is_tensor(x) else "cpu"`
        place = a if a.ref is Tag.DEVICE else b
        return place if place.device is DEVICE else place.but(device=unlike)  # `"cuda" if there else "cpu"`
    known = _type_of_tensors(a, b) or _either_distribution(a, b) or _either_kind_of_distribution(a, b)
    return known or (THING if a.ref is Tag.TEXT else UNKNOWN)


def _confidence(a: Fact, b: Fact) -> int:
    """How sure it is that either is a tensor; what one arm has done with it says so of what the other leaves as it is."""
    less, more = (a, b) if a.confidence <= b.confidence else (b, a)
    return more.confidence if more.source is less else less.confidence


def _made_on_host(a: Fact, b: Fact) -> bool:
    """Whether one of two tensors was surely made on the host, or a path before these may have made one there."""
    sure = (a.device is HOST and a.confidence >= 2) or (b.device is HOST and b.confidence >= 2)
    return sure or a.ref is PERHAPS_OF_HOST or b.ref is PERHAPS_OF_HOST


def _either_place(a: Fact, b: Fact) -> Device:
    """Where a value is that lives here or there: code that has a way for a device is meant for one."""
    if a.device is b.device:
        return a.device
    return DEVICE if DEVICE in (a.device, b.device) else SOMEWHERE


def _join_modules(a: Fact, b: Fact) -> Fact:
    device = _either_place(a, b)
    if a.ref == b.ref:
        return a if a.device is device else b if b.device is device else a.but(device=device)
    return Fact(MODULE, device=device, confidence=min(a.confidence, b.confidence))


def _type_of_tensors(a: Fact, b: Fact) -> Fact | None:
    """`torch.cuda.FloatTensor if cuda else torch.FloatTensor`: as with a device, what is written is meant for a GPU."""
    for one, other in ((a, b), (b, a)):
        if isinstance(one.ref, str) and isinstance(other.ref, str) and one.ref.startswith(TYPES_ON_DEVICE):
            of_host = (f"torch.{one.ref.removeprefix(TYPES_ON_DEVICE)}", "torch.Tensor")
            return one if one.ref.endswith("Tensor") and other.ref in of_host else None
    return None


def _either_distribution(a: Fact, b: Fact) -> Fact | None:
    """Of two distributions what both are: not checked, say."""
    if not (is_distribution(a) and is_distribution(b)):
        return None
    dtype = a.dtype if a.dtype is b.dtype else ANY_DTYPE
    return Fact(
        OTHER,
        dtype,
        _either_place(a, b),
        confidence=min(a.confidence, b.confidence),
        ref=f"{DISTRIBUTIONS}Distribution()",
    )


def _either_kind_of_distribution(a: Fact, b: Fact) -> Fact | None:
    """`Normal if gaussian else Laplace`: whichever it is, calling it makes a distribution."""
    for fact in (a, b):
        word = fact.ref.removeprefix(DISTRIBUTIONS) if isinstance(fact.ref, str) else ""
        if word == fact.ref or word not in table().distributions:
            return None
    return Fact(OTHER, confidence=3, ref=f"{DISTRIBUTIONS}Distribution")


def _weaker(fact: Fact, confidence: int) -> Fact:
    return Fact(
        TENSOR, fact.dtype, fact.device, fact.shape, fact.ndim, min(confidence, fact.confidence), (), source=fact
    )


def _perhaps_elsewhere(fact: Fact) -> Fact:
    """A tensor of the host, or what nobody knows: `criterion(x) if self.criterion else torch.tensor(0.0)`."""
    return Fact(
        TENSOR, fact.dtype, SOMEWHERE, fact.shape, fact.ndim, min(2, fact.confidence), ref=PERHAPS_OF_HOST, source=fact
    )


def _join_sequences(a: Fact, b: Fact, unlike: Device) -> Fact:
    if a.elements and len(a.elements) == len(b.elements):
        both = sequence(*(join(x, y, unlike) for x, y in zip(a.elements, b.elements, strict=True)))
        keys = getattr(a.ref, "keys", None)
        if keys is not None and keys.keys() == (getattr(b.ref, "keys", None) or {}).keys():
            both.ref = Items(UNKNOWN, dict(zip(keys, both.elements, strict=True)))
        return both
    if a.ref == b.ref and not a.elements and not b.elements:
        return a
    if isinstance(a.ref, Items) and isinstance(b.ref, Items) and a.ref.keys is not None and b.ref.keys is not None:
        keys = dict(a.ref.keys)
        for key, fact in b.ref.keys.items():
            keys[key] = join(keys[key], fact) if key in keys else fact
        return items(join(a.ref.each, b.ref.each), keys)
    if not a.elements and a.ref is None:
        return b
    if not b.elements and b.ref is None:
        return a
    each = join(element(a), element(b))
    return listed(each) if isinstance(a.ref, Listed) and isinstance(b.ref, Listed) else items(each)


def iterated_over(fact: Fact) -> Fact:
    """What a loop over a value gives: of a dict its keys."""
    if isinstance(fact.ref, Items) and fact.ref.keys is not None and not fact.elements:
        return UNKNOWN
    return _one_of_all(element(fact), fact.elements)


def each_value(fact: Fact) -> Fact:
    """What a loop over the values of a dict gives."""
    keys = getattr(fact.ref, "keys", None)
    return _one_of_all(any_value(fact), keys.values() if keys else ())


def _one_of_all(joined: Fact, every: Iterable[Fact]) -> Fact:
    """What each pass of a loop is given, of which one is surely the surest: what reads all of them reads that."""
    if joined.kind is not TENSOR or joined.confidence > 1:
        return joined
    surest = max((each for each in every if each.kind is TENSOR), key=lambda each: each.confidence, default=joined)
    if surest.confidence < 2 or surest.device is HOST:
        return joined
    found = joined.but(confidence=2)
    found.source = surest
    return found


def any_value(fact: Fact) -> Fact:
    """What is found in a container under a key that is not known."""
    ref = fact.ref
    if fact.kind is SEQUENCE and isinstance(ref, Items) and ref.keys:
        found: Fact | None = None if ref.each is UNKNOWN else ref.each
        for each in ref.keys.values():
            found = each if found is None else join(found, each)
        return found or UNKNOWN
    return element(fact)


def element(fact: Fact, position: int | None = None) -> Fact:
    """One element of a container, or of a tensor that is iterated over."""
    kind = fact.kind
    if kind is SEQUENCE:
        if fact.elements:
            if position is not None:
                return fact.elements[position] if -len(fact.elements) <= position < len(fact.elements) else UNKNOWN
            each = fact.elements[0]
            for other in fact.elements[1:]:
                each = join(each, other)
            return each
        ref = fact.ref
        if isinstance(ref, Items):
            if position is not None and ref.keys is not None and position in ref.keys:
                return ref.keys[position]
            return UNKNOWN if ref.each.ref is NOTHING else ref.each  # `[None] * n`: places that are filled later
        if ref is Tag.SIZE:
            return INTEGER
        if ref is Tag.NUMBERS:
            return _OF[fact.dtype]
        return UNKNOWN
    if kind is TENSOR:
        each = like(fact, shape=FIXED if fact.shape is DYNAMIC else None, ndim=fact.ndim - 1 if fact.ndim else None)
        if position is None and each.ndim is None:
            each.ref = Tag.ROW
        return each
    if kind is BATCH:
        return tensor(device=fact.device, confidence=fact.confidence, source=fact)
    if kind is ARRAY and position is not None:  # of several arrays; of one it may be a number
        return NP_ARRAY.but(confidence=2)
    if kind is ARRAY:
        return NO_TENSOR
    if kind is MODULE and fact.ref == OF_PARAMETERS[0]:
        return parameter(fact)
    return fact if fact is OF_ENVIRONMENT else UNKNOWN  # states, rewards, ends
