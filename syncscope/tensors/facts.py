"""Facts that occur everywhere, made once."""

from __future__ import annotations

import ast
from enum import StrEnum

from syncscope.model.fact import UNKNOWN, Device, Dtype, Fact, Shape, Value
from syncscope.project.names import NAMED
from syncscope.tensors.torch.signatures import DTYPE_NAMED

TENSOR, MODULE, BATCH, ARRAY = Value.TENSOR, Value.MODULE, Value.BATCH, Value.ARRAY
SCALAR, SEQUENCE, OTHER, NOTHING_KNOWN = Value.SCALAR, Value.SEQUENCE, Value.OTHER, Value.UNKNOWN
HOST, DEVICE, DEFAULT, SOMEWHERE = Device.HOST, Device.DEVICE, Device.DEFAULT, Device.UNKNOWN
FIXED, DYNAMIC, ANY_SHAPE = Shape.FIXED, Shape.DYNAMIC, Shape.UNKNOWN
BOOL, INT, FLOAT, ANY_DTYPE = Dtype.BOOL, Dtype.INT, Dtype.FLOAT, Dtype.UNKNOWN


class Tag(StrEnum):
    """What a value is that stands for nothing with a name: the `ref` of its fact, which else is an object or a dotted name.

    A name that ends in `()` is an object that calling the name has made: `torch.optim.Adam()`.
    """

    TEXT = "str"
    NONE = "None"
    SIZE = "size"  # torch.Size: a tuple of Python integers
    NUMBERS = "numbers"  # a list of Python numbers, however deep
    COMPARED = "compared"  # a comparison of unknown values: what is indexed with it must be an array
    PICKED = "picked"  # what an array of numpy has picked out of an unknown value
    DEVICE = "torch.device"  # `Fact.device` says which
    DTYPE = "torch.dtype"  # `Fact.dtype` says which
    NO_TENSOR = "other"
    OF_ENVIRONMENT = "of an environment"  # what one gives: arrays, where torch is asked to make tensors of them
    EMPTY = "empty"  # a tensor that is made with no elements: there is nothing to copy
    PERHAPS_OF_HOST = "perhaps of the host"  # a tensor that one path made on the host, and of which another says less
    OR_NONE = "or None"  # what it comes from, or None: a test tells
    PROVED = "proved"  # a test has just said that it is a tensor, or one number: here it can be nothing else
    COALESCED = "coalesced"  # a sparse tensor of which no position is there twice
    ROW = "row"  # one of what a loop over a tensor of unknown dimensions gives: a row, or one number
    MATCHED = "matched"  # positions that a matching on the host has given, of predictions or of targets on the device


# Those that are asked for most, as names: an attribute of an enum takes twenty times as long before Python 3.12.
TEXT, NOTHING, PERHAPS_OF_HOST = Tag.TEXT, Tag.NONE, Tag.PERHAPS_OF_HOST

TYPES_ON_DEVICE = "torch.cuda."  # before FloatTensor and its kin

LOADER = "torch.utils.data.DataLoader()"
TENSORS_HELD = "torch.utils.data.TensorDataset()"
DISTRIBUTIONS = "torch.distributions."

NUMBER = Fact(SCALAR, ANY_DTYPE, HOST, confidence=3)
TRUTH = Fact(SCALAR, BOOL, HOST, confidence=3)
INTEGER = Fact(SCALAR, INT, HOST, confidence=3)
FLOATING = Fact(SCALAR, FLOAT, HOST, confidence=3)
STRING = Fact(OTHER, confidence=3, ref=Tag.TEXT)
NONE = Fact(OTHER, confidence=3, ref=Tag.NONE)
THING = Fact(OTHER, confidence=3)
SIZE = Fact(SEQUENCE, INT, HOST, confidence=3, ref=Tag.SIZE)
NUMBERS = Fact(SEQUENCE, ANY_DTYPE, HOST, confidence=3, ref=Tag.NUMBERS)
COMPARED = Fact(dtype=BOOL, ref=Tag.COMPARED)
PICKED = Tag.PICKED  # of a fact that knows where it was picked
NO_TENSOR = Fact(ref=Tag.NO_TENSOR)
OF_ENVIRONMENT = Fact(ref=Tag.OF_ENVIRONMENT)
SPREAD = Fact()  # `*values` among arguments: any number of them
NP_ARRAY = Fact(ARRAY, ANY_DTYPE, HOST, confidence=3)

NAMED.update(
    (f"torch.{word}", Fact(OTHER, dtype, confidence=3, ref=Tag.DTYPE))
    for word, dtype in DTYPE_NAMED.items()
    if word.islower()
)
NAMED.update((f"torch.finfo().{word}", FLOATING) for word in ("max", "min", "eps", "tiny", "smallest_normal"))
NAMED.update(
    (f"{module}.{word}", FLOATING) for module in ("torch", "math", "numpy") for word in ("inf", "nan", "pi", "e")
)
NAMED.update((f"torch.iinfo().{word}", INTEGER) for word in ("max", "min"))


class Items:
    """What a list, a dict or an iterator holds: its keys where they are written out, else one fact for all."""

    __slots__ = ("each", "keys")

    def __init__(self, each: Fact = UNKNOWN, keys: dict[object, Fact] | None = None) -> None:
        self.each = each
        self.keys = keys


class Hashed(Items):
    """What a set holds: what is looked up in it is found by its hash, which reads no tensor."""

    __slots__ = ()


class Listed(Items):
    """What a list holds, and no tuple: as an index its numbers are positions, those of a tuple one of each dimension."""

    __slots__ = ()


class Either:
    """What a value may be that is annotated with several types, a tensor among them: a test tells which."""

    __slots__ = ("facts",)

    def __init__(self, facts: tuple[Fact, ...]) -> None:
        self.facts = facts


class TupleType:
    """What `namedtuple` makes: a type of tuples whose elements have names."""

    __slots__ = ("fields",)

    def __init__(self, fields: tuple[str, ...]) -> None:
        self.fields = fields

    def of(self, args: list[Fact], keywords: dict[str | None, Fact]) -> Fact:
        """One of them: its elements by place and by name."""
        keys: dict[object, Fact] = dict(zip(self.fields, args, strict=False))
        keys.update((name, fact) for name, fact in keywords.items() if name in self.fields)
        elements = tuple(keys.get(name, UNKNOWN) for name in self.fields)
        return Fact(
            SEQUENCE, confidence=3, elements=elements, ref=Items(UNKNOWN, dict(zip(self.fields, elements, strict=True)))
        )


def items(each: Fact, keys: dict[object, Fact] | None = None) -> Fact:
    """A container of which every element is like this one."""
    return Fact(SEQUENCE, confidence=each.confidence, ref=Items(each, keys))


OF_PARAMETERS = ("torch.nn.ParameterList", "torch.nn.ParameterDict")


def parameter(module: Fact, why: ast.AST | str = "a module holds it") -> Fact:
    """A parameter of a module."""
    return tensor(FLOAT, module.device, 3, why, shape=FIXED)


def listed(each: Fact) -> Fact:
    """A list of which every element is like this one."""
    return Fact(SEQUENCE, confidence=each.confidence, ref=Listed(each))


def tensor(
    dtype: Dtype = ANY_DTYPE,
    device: Device = SOMEWHERE,
    confidence: int = 3,
    why: ast.AST | str | tuple[str, ...] = (),
    source: Fact | None = None,
    shape: Shape = ANY_SHAPE,
    ndim: int | None = None,
) -> Fact:
    """A tensor."""
    return Fact(TENSOR, dtype, device, shape, ndim, confidence, why, (), None, source)


def like(
    fact: Fact,
    why: ast.AST | str | tuple[str, ...] = (),
    *,
    dtype: Dtype | None = None,
    device: Device | None = None,
    shape: Shape | None = None,
    ndim: int | None = -1,
    confidence: int | None = None,
) -> Fact:
    """A tensor that is computed from this value: what is not named stays as it is; `ndim` -1 keeps it."""
    return Fact(
        TENSOR,
        fact.dtype if dtype is None else dtype,
        fact.device if device is None else device,
        fact.shape if shape is None else shape,
        fact.ndim if ndim == -1 else ndim,
        fact.confidence if confidence is None else confidence,
        why,
        (),
        None,
        fact,
    )


def sequence(*elements: Fact) -> Fact:
    """A tuple or list whose elements are known one by one."""
    return Fact(SEQUENCE, confidence=3, elements=elements)


def array(source: Fact | None = None) -> Fact:
    """A numpy array."""
    return (
        NP_ARRAY
        if source is None
        else Fact(ARRAY, source.dtype, HOST, source.shape, source.ndim, source.confidence, source=source)
    )


def device_of(*facts: Fact) -> Device:
    """Where the result of an operation on these lives: a tensor on a device wins over one on the host.

    Devices are not mixed, but for single numbers: what is not known, beside a tensor on the host, is on the host or a number;
    so it is beside a whole number, which is a position or a length.
    """
    found, settled, open_ = HOST, False, False
    for fact in facts:
        if fact.kind is TENSOR:
            if fact.device is DEVICE:
                return DEVICE
            if fact.device is DEFAULT:
                found = DEFAULT
                settled = settled or fact.ndim != 0 or fact.dtype is INT
            elif fact.device is SOMEWHERE:
                found = SOMEWHERE if found is HOST else found
            elif fact.ndim != 0 or fact.dtype is INT:
                settled = True
        elif fact.kind is Value.UNKNOWN:
            open_ = True
    return SOMEWHERE if open_ and not settled else found


def is_distribution(fact: Fact) -> bool:
    """Whether it is an object of `torch.distributions`."""
    return isinstance(fact.ref, str) and fact.ref.startswith(DISTRIBUTIONS) and fact.ref.endswith("()")


def holds_tensor(fact: Fact) -> Fact | None:
    """The tensor in a value, or in the elements of a tuple or list."""
    if fact.kind is TENSOR:
        return fact
    if fact.kind is SEQUENCE:
        for each in fact.elements:
            if each.kind is TENSOR:
                return each
        each = fact.ref.each if isinstance(fact.ref, Items) else UNKNOWN
        return each if each.kind is TENSOR else None
    return None


def on_host(fact: Fact) -> Fact:
    """The same, living on the host where nothing else was known."""
    if fact.kind is TENSOR and fact.device is SOMEWHERE:
        return fact.but(device=HOST)
    if fact.kind is SEQUENCE and fact.elements:
        return Fact(SEQUENCE, confidence=fact.confidence, elements=tuple(map(on_host, fact.elements)))
    return fact


_SPREADING = ("torch.nn.DataParallel", "torch.nn.DistributedDataParallel")


def spread(module: Fact) -> Fact | None:
    """The module that another only spreads over devices; None where it is none of those."""
    inner = module.elements[0] if module.ref in _SPREADING and module.elements else None
    return inner.but(device=module.device) if inner is not None and inner.kind is MODULE else None


def on_device(fact: Fact) -> Fact:
    """The same where a module is given it that is spread over devices, which sends what is not there."""
    if fact.kind is TENSOR or fact.kind is BATCH:
        return fact.but(device=DEVICE)
    if fact.kind is SEQUENCE:
        return Fact(SEQUENCE, confidence=fact.confidence, elements=tuple(map(on_device, fact.elements)))
    return fact
