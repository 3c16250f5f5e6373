"""Floating-point operations and bytes of one call of an operator, from what the recording tells of its tensors.

A multiply-add is two operations. Only matrix products, attention and convolutions are counted: the arithmetic of pointwise
operators and reductions is small beside their bytes. Attention is counted whole, causal or not, its backward pass as five
products for two. Bytes are the least that must move: every input read once, every output written once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from syncscope.model.detail import Detail

Shape = list[int]
SIZES = {  # bytes of an element, by the names that torch and C++ give
    **dict.fromkeys(("double", "long int", "long", "int64", "float64", "c10::complex<float>"), 8),
    **dict.fromkeys(("float", "int", "float32", "int32"), 4),
    **dict.fromkeys(("c10::Half", "c10::BFloat16", "short int", "short", "half", "bfloat16"), 2),
    **dict.fromkeys(("bool", "unsigned char", "signed char", "c10::Float8_e4m3fn", "c10::Float8_e5m2"), 1),
    "c10::complex<double>": 16,
}
NARROW = re.compile(r"(c10::)?(Half|half|BFloat16|bfloat16|Float8_\w+)")  # floating point in 16 bits or fewer

# Which bytes move, where it is not "all inputs, and an output as large as they are broadcast":
PARTS = re.compile(r"embedding|index|gather|scatter|slice|select|take|cache|nll_loss|sort|topk|unique|nonzero")
# of these, the ones that read all of it: unknown is only what they make
WHOLE = re.compile(r"sort|topk|unique|nonzero")
REDUCTIONS = re.compile(  # the output is small or no larger than the input
    r"(sum|nansum|mean|prod|max|min|amax|amin|aminmax|argmax|argmin|all|any|var|std|var_mean|std_mean|norm|linalg_vector_norm"
    r"|logsumexp|count_nonzero|equal|item|_local_scalar_dense|is_nonzero|mse_loss|l1_loss|smooth_l1_loss"
    r"|binary_cross_entropy|_?(adaptive_)?(avg|max)_pool[123]d(_with_indices)?)"
)
WRITES = re.compile(r"(fill|zero|ones|zeros|full|arange|normal|uniform|bernoulli|random|exponential)")
TRUTHS = re.compile(r"(eq|ne|lt|le|gt|ge|isnan|isinf|isfinite|logical_(not|and|or|xor))")  # one byte an element


@dataclass(frozen=True, slots=True)
class OpCall:
    """One call of an operator. Shapes and types of its arguments as Kineto writes them: `[]` and "" where none is known.

    `outputs` are shapes with types, None where the recording does not tell; `made` is the output of a convolution where it
    follows from another event (see `convolutions`). `touched` is how many tensors its kernel is given, with the one it makes,
    None where nobody knows: of a pointwise operator with `out=` that one is an argument, too.
    """

    op: str
    shapes: list[Any]
    types: list[Any]
    outputs: list[tuple[Shape, str]] | None = None
    concrete: tuple[str, ...] = ()
    made: tuple[int, ...] = ()
    touched: int | None = None

    @property
    def base(self) -> str:
        """The operator without its namespace, and in place or not alike."""
        return self.op.rpartition("::")[2].removesuffix("_").removesuffix("_overrideable")

    def shape(self, at: int) -> Shape:
        """The shape of one argument, [] where it is no tensor."""
        found = self.shapes[at] if 0 <= at < len(self.shapes) else []
        return found if isinstance(found, list) and _plain(found) else []

    @property
    def narrow(self) -> bool:
        """Whether it works in 16 bits or fewer: the first of its tensors does."""
        given = self.tensors()
        return bool(given and NARROW.fullmatch(given[0][1]))

    def tensors(self, first: int = 0) -> list[tuple[Shape, str]]:
        """Shapes and types of all input tensors from argument `first` on, those in lists too."""
        found: list[tuple[Shape, str]] = []
        for shape, type_ in list(zip(self.shapes, self.types, strict=False))[first:]:
            if not isinstance(shape, list) or not shape:
                continue
            if _plain(shape):
                found.append((shape, str(type_)))
            else:
                types = type_ if isinstance(type_, list) else [""] * len(shape)
                found += [(s, str(t)) for s, t in zip(shape, types, strict=False) if isinstance(s, list) and _plain(s)]
        return found


def op_call(op: str, detail: Detail) -> OpCall:
    """What an operator's detail tells."""
    outputs = None
    if detail.output_dims is not None:
        made = zip(detail.output_dims, detail.output_types, strict=False)
        outputs = [(shape, str(type_)) for shape, type_ in made if isinstance(shape, list)]
    concrete = tuple(str(c) for c in detail.concrete_inputs)
    return OpCall(op, list(detail.input_dims), list(detail.input_types), outputs, concrete)


def _plain(shape: list[Any]) -> bool:
    return all(isinstance(n, int) for n in shape)


def _product(a: int, b: int) -> Callable[[OpCall], tuple[float, Shape]]:
    """Matrices, or batches of them, in arguments `a` and `b`: operations, and the shape of the result."""

    def count(c: OpCall) -> tuple[float, Shape]:
        left, right = c.shape(a), c.shape(b)
        if len(left) < 2 or len(right) < 2 or left[-1] != right[-2]:
            return 0.0, []
        return 2.0 * math.prod(left) * right[-1], [*left[:-1], right[-1]]

    return count


def _vector(a: int) -> Callable[[OpCall], tuple[float, Shape]]:
    return lambda c: (2.0 * math.prod(c.shape(a)), c.shape(a)[:-1]) if c.shape(a) else (0.0, [])


def _linear(c: OpCall) -> tuple[float, Shape]:
    a, b = c.shape(0), c.shape(1)
    return (2.0 * math.prod(a) * b[0], [*a[:-1], b[0]]) if a and len(b) == 2 else (0.0, [])


def _linear_backward(c: OpCall) -> tuple[float, Shape]:
    """Of the device `ocl`: the gradients of input and weight, given as one shape of as many elements."""
    a, b = c.shape(0), c.shape(2)
    made = [math.prod(a) + math.prod(b)]
    return (2.0 * math.prod(a) * b[0] * _gradients(c), made) if a and len(b) == 2 else (0.0, [])


def _attention(first: int, length: int, products: float = 2.0) -> Callable[[OpCall], tuple[float, Shape]]:
    """Query and key in arguments `first` and `first + 1`, the value after them; the sequence is dimension `length`."""

    def count(c: OpCall) -> tuple[float, Shape]:
        q, k, v = (c.shape(first + i) for i in range(3))
        if not len(q) == len(k) == len(v) == 4:
            return 0.0, []
        return products * (math.prod(q) + math.prod(q[:-1]) * v[-1]) * k[length], [*q[:-1], v[-1]]

    return count


_HEADS_FIRST, _LENGTH_FIRST = 2, 1  # (batch, head, length, width) and (batch, length, head, width)
PRODUCTS: dict[str, Callable[[OpCall], tuple[float, Shape]]] = {
    **dict.fromkeys(("mm", "bmm", "_scaled_mm", "_int_mm"), _product(0, 1)),
    **dict.fromkeys(("addmm", "baddbmm", "_addmm_activation"), _product(1, 2)),
    "linear": _linear,
    "linear_backward": _linear_backward,
    **dict.fromkeys(("mv", "dot", "vdot"), _vector(0)),
    "addmv": _vector(1),
    **{f"_scaled_dot_product_{how}_attention": _attention(0, _HEADS_FIRST) for how in ("flash", "efficient", "cudnn")},
    "_cudnn_attention_forward": _attention(0, _HEADS_FIRST),
    **dict.fromkeys(("_flash_attention_forward", "_efficient_attention_forward"), _attention(0, _LENGTH_FIRST)),
    **dict.fromkeys(("_flash_attention_backward", "_efficient_attention_backward"), _attention(1, _LENGTH_FIRST, 5.0)),
    **{
        f"_scaled_dot_product_{how}_attention_backward": _attention(1, _HEADS_FIRST, 5.0)
        for how in ("flash", "efficient", "cudnn")
    },
}

# Input and weight are arguments 0 and 1; where stride, padding and dilation stand differs.
FORWARD: dict[str, tuple[int, int, int]] = {
    **dict.fromkeys(("conv1d", "conv2d", "conv3d", "convolution", "_convolution", "cudnn_convolution_relu"), (3, 4, 5)),
    "cudnn_convolution": (3, 2, 4),
    "cudnn_convolution_add_relu": (5, 6, 7),
    **dict.fromkeys(("miopen_convolution", "miopen_depthwise_convolution", "mkldnn_convolution"), (4, 3, 5)),
    **dict.fromkeys(("_conv_depthwise2d", "conv_depthwise3d", "_slow_conv2d_forward", "thnn_conv2d"), (4, 5, 6)),
    **dict.fromkeys(("cudnn_convolution_transpose", "miopen_convolution_transpose"), (-1, -1, -1)),
}
TRANSPOSED = {"convolution": 6, "_convolution": 6, "convolution_backward": 7}  # the argument that says so
BACKWARD = ("convolution_backward", "_slow_conv2d_backward", "_conv_depthwise2d_backward", "conv_depthwise3d_backward")
# Until 2022 cuDNN's and MIOpen's were operators with (input, gradient, weight), and two within, one for each gradient.
BACKWARD_2021 = re.compile(r"(cudnn|miopen)_(depthwise_)?convolution(_transpose)?_backward(?P<one>_input|_weight)?")


def parts_of_backward(op: str) -> bool:
    """Whether this is one of the two in which an old backward convolution is done: the shapes stand in what encloses it."""
    found = BACKWARD_2021.fullmatch(op.rpartition("::")[2])
    return bool(found and found["one"])


def _three(c: OpCall) -> tuple[Shape, Shape, Shape]:
    """Input, output (or its gradient) and weight of a convolution or of its backward pass."""
    if c.base in BACKWARD:
        return c.shape(1), c.shape(0), c.shape(2)
    if BACKWARD_2021.fullmatch(c.base):
        return c.shape(0), c.shape(1), c.shape(2)
    return c.shape(0), _made(c), c.shape(1)


def _made(c: OpCall) -> Shape:
    """The output of a forward convolution: as recorded, by its geometry, or as its backward pass tells."""
    if c.outputs:
        return c.outputs[0][0]
    image, weight = c.shape(0), c.shape(1)
    stride, padding, dilation = (_integers(c.concrete[at : at + 1]) if at >= 0 else [] for at in FORWARD[c.base])
    if stride and not _said_transposed(c) and len(image) == len(weight) > 2:
        sizes = zip(
            image[2:], weight[2:], *(_as_many(v, len(image) - 2) for v in (stride, padding, dilation)), strict=True
        )
        return [image[0], weight[0], *((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in sizes)]
    return list(c.made)


def _integers(text: Iterable[str]) -> list[int]:
    return [int(n) for t in text for n in re.findall(r"-?\d+", t)]


def _as_many(values: list[int], count: int) -> list[int]:
    return values if len(values) == count else (values or [0]) * count


def _said_transposed(c: OpCall) -> bool:
    at = TRANSPOSED.get(c.base, len(c.concrete))
    return "_transpose" in c.base or c.concrete[at : at + 1] == ("True",)


def _convolved(c: OpCall) -> float:
    """Operations of one pass over a convolution; 0 where its output is not known."""
    image, out, weight = _three(c)
    if len(image) != len(weight) or len(weight) < 3:
        return 0.0
    turned = _said_transposed(c)
    if not turned and out and not c.concrete:  # then only the shapes tell: channels, or an output larger than the input
        fits = out[1] == weight[0] and image[1] % weight[1] == 0
        turned = not fits or (image[1] == weight[0] and math.prod(out[2:]) > math.prod(image[2:]))
    taps = math.prod(weight[1:])
    return 2.0 * math.prod(image if turned else out) * taps if turned or out else 0.0


def _gradients(c: OpCall) -> int:
    """How many of the two large gradients the backward pass of a convolution or product makes: both where nothing tells."""
    found = BACKWARD_2021.fullmatch(c.base)
    if found and found["one"]:
        return 1
    if c.outputs is not None:
        return sum(bool(shape) for shape, _ in c.outputs[:2])
    mask = c.concrete[-1] if c.concrete else ""
    return mask.strip("[]").split(", ")[:2].count("True") if "True" in mask else 2


def convolutions(calls: Iterable[OpCall]) -> dict[tuple[Any, ...], tuple[int, ...]]:
    """Outputs of convolutions by input and weight, from the backward passes of the recording; () where they disagree."""
    found: dict[tuple[Any, ...], tuple[int, ...]] = {}
    for c in calls:
        if c.base in BACKWARD or BACKWARD_2021.fullmatch(c.base):
            image, out, weight = (tuple(s) for s in _three(c))
            if image and weight and found.setdefault((image, weight), out) != out:
                found[image, weight] = ()
    return found


def operations(c: OpCall) -> float:
    """Floating-point operations of one call, 0 where they do not follow from what is recorded."""
    if c.base in PRODUCTS:
        return PRODUCTS[c.base](c)[0]
    if c.base in FORWARD:
        return _convolved(c)
    if c.base in BACKWARD or BACKWARD_2021.fullmatch(c.base):
        return _convolved(c) * _gradients(c)
    return 0.0


def traffic(c: OpCall) -> float:
    """The least bytes of one call: every input tensor once and the output once; 0 where that cannot be known."""
    if not c.op.startswith("aten::"):
        return 0.0
    given, made = c.tensors(), c.outputs
    given = given if c.touched is None else given[: max(1, c.touched - 1)]
    if made:
        if WRITES.fullmatch(c.base):
            return _bytes(made)
        if c.base in ("copy", "_copy_from", "_to_copy"):
            return _bytes(made) + _bytes(given[1:2] if c.base == "copy" else given[:1])
        if PARTS.search(c.base) and not WHOLE.search(c.base):
            return _of_parts(c, made)
        return _bytes(given) + _bytes(made)
    if PARTS.search(c.base) or not all(t in SIZES for _, t in given) or not given:
        return 0.0
    if WRITES.fullmatch(c.base):
        return _bytes(given[:1])
    if c.base == "copy" or REDUCTIONS.fullmatch(c.base):  # the target of a copy is written, not read
        return _bytes(given)
    width = max(SIZES[t] for _, t in given)
    if c.base in PRODUCTS:
        return _bytes(given) + math.prod(PRODUCTS[c.base](c)[1]) * width * bool(PRODUCTS[c.base](c)[0])
    if c.base in FORWARD:
        out = _made(c)
        return _bytes(given) + (math.prod(out) * width if out else 0)
    if c.base in BACKWARD:
        image, _, weight = _three(c)
        return _bytes(given) + (math.prod(image) * (_gradients(c) == 2) + math.prod(weight)) * width
    if BACKWARD_2021.fullmatch(c.base):
        return _bytes(given)  # two are read and the third is as large as what is made
    if given and isinstance(c.types[0], list):  # in place on a list of tensors
        return _bytes(given) + (_bytes(given[: len(c.shapes[0])]) if c.op.endswith("_") else 0.0)
    return _bytes(given) + _broadcast(given) * (1 if TRUTHS.fullmatch(c.base) else width)


def _of_parts(c: OpCall, made: list[tuple[Shape, str]]) -> float:
    """Operators that read or write some places of a tensor only."""
    if "backward" in c.base:
        return _bytes(made)
    if c.op.endswith("_"):  # the places, and the values read and written; the rest stays as it is
        return _bytes(c.tensors(1)) + _bytes(c.tensors()[-1:])
    return 2 * _bytes(made) + _bytes(c.tensors(1))  # as much is read as is made, and the places


def _bytes(tensors: Iterable[tuple[Shape, str]]) -> float:
    return float(sum(math.prod(s) * SIZES.get(t, 0) for s, t in tensors))


def _broadcast(tensors: list[tuple[Shape, str]]) -> int:
    """Elements of the result of a pointwise operator: the inputs broadcast, else (a normalization) as the largest."""
    try:
        return math.prod(np.broadcast_shapes(*(tuple(s) for s, _ in tensors)))
    except ValueError:
        return max(math.prod(s) for s, _ in tensors)
