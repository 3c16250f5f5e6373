"""Calls: of torch, of tensors' methods, of builtins and numpy, of the project's own functions and modules."""

from __future__ import annotations

import ast
from collections.abc import Callable

from syncscope.model.fact import UNKNOWN, Device, Dtype, Fact, Shape
from syncscope.tensors import heat
from syncscope.tensors.facts import (
    ANY_DTYPE,
    ANY_SHAPE,
    ARRAY,
    BATCH,
    BOOL,
    DEVICE,
    DYNAMIC,
    FIXED,
    FLOAT,
    FLOATING,
    HOST,
    INT,
    INTEGER,
    MODULE,
    NONE,
    NP_ARRAY,
    NUMBER,
    NUMBERS,
    OTHER,
    SCALAR,
    SEQUENCE,
    SIZE,
    SOMEWHERE,
    STRING,
    TENSOR,
    THING,
    TRUTH,
    Items,
    array,
    device_of,
    element,
    items,
    iterated_over,
    join,
    sequence,
    tensor,
)
from syncscope.tensors.frame import Frame, evaluate, holds_tensor
from syncscope.tensors.functions import attribute, forward, set_attribute
from syncscope.tensors.functions import call as call_function
from syncscope.tensors.project import Class, Function, Module
from syncscope.tensors.scope import Bound, Instance, find_method, instance, member
from syncscope.tensors.signatures import (
    ARRAY_LIKE,
    DTYPE_NAMED,
    DTYPE_OF,
    FACTORIES,
    LIKE,
    LINALG_CHECKED,
    LOSSES,
    PAIRED,
    REDUCTIONS,
    SHARED,
    SPREAD,
    TORCH_ONLY,
    method,
    table,
)
from syncscope.tensors.signatures import function as signature_of

NOTHING_KNOWN = UNKNOWN.kind
Keywords = dict[str | None, Fact]
_LOGGING = {
    "debug",
    "info",
    "warning",
    "error",
    "critical",
    "exception",
    "log",
    "warn",
    "warn_once",
    "warning_once",
    "info_once",
}
_LOGGERS = {
    "log_metrics",
    "add_scalar",
    "add_scalars",
    "add_histogram",
    "set_postfix",
    "set_postfix_str",
    "set_description",
    "log_metric",
}
_CLOCKS = {
    "time.time",
    "time.perf_counter",
    "time.monotonic",
    "time.perf_counter_ns",
    "time.time_ns",
    "timeit.default_timer",
}


def call(frame: Frame, node: ast.Call) -> Fact:
    """What a call gives, and the waits that it makes."""
    func = node.func
    table_ = frame.table
    for keyword in node.keywords:
        if keyword.arg == "return_tensors" and not (isinstance(keyword.value, ast.Constant) and keyword.value.value != "pt"):
            arguments(frame, node)
            return Fact(BATCH, device=HOST, sure=2, why=node)  # a tokenizer or processor: it works on the host
    if func.__class__ is ast.Attribute:
        owner = table_[func.value.__class__](frame, func.value)  # type: ignore[attr-defined]  # checked by class
        args, keywords = arguments(frame, node)
        return call_member(frame, node, func, owner, args, keywords)  # type: ignore[arg-type]  # checked by class
    target = table_[func.__class__](frame, func)
    args, keywords = arguments(frame, node)
    return apply(frame, node, target, args, keywords)


def arguments(frame: Frame, node: ast.Call) -> tuple[list[Fact], Keywords]:
    table_ = frame.table
    args = [table_[a.__class__](frame, a) for a in node.args]
    if node.keywords:
        return args, {k.arg: table_[k.value.__class__](frame, k.value) for k in node.keywords}
    return args, {}


def apply(frame: Frame, node: ast.Call, target: Fact, args: list[Fact], keywords: Keywords) -> Fact:
    """Call what a fact stands for."""
    ref = target.ref
    if target.kind is MODULE:
        frame.work = True
        if (
            isinstance(ref, str)
            and ref.rpartition(".")[2] == "TransformerEncoder"
            and "src_key_padding_mask" in keywords
        ):
            frame.emit("transformer_mask", node, node.func, tensor(sure=2, why=node))
        return forward(target, frame, args, keywords, node)
    if ref.__class__ is str:
        if target.kind is OTHER:
            return external(frame, node, ref, args, keywords)  # type: ignore[arg-type]  # checked by class
        return UNKNOWN
    if isinstance(ref, Function):
        return call_function(ref, frame, args, keywords)
    if isinstance(ref, Bound):
        return call_function(ref.function, frame, args, keywords, ref.owner)
    if isinstance(ref, Class):
        return construct(frame, ref, args, keywords)
    if isinstance(ref, Instance):
        own = find_method(ref.cls, "__call__")
        return call_function(own, frame, args, keywords, target) if own is not None else UNKNOWN
    if isinstance(ref, ast.Lambda):
        return UNKNOWN
    if target.kind is NOTHING_KNOWN:
        return unknown_call(frame, node, node.func, args)
    return UNKNOWN


def unknown_call(frame: Frame, node: ast.Call, func: ast.expr, args: list[Fact]) -> Fact:
    """A call of something unknown: people call some things so that it tells."""
    word = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
    if word in (
        "model",
        "net",
        "network",
        "criterion",
        "loss_fn",
        "loss_func",
        "loss_fct",
        "backbone",
        "encoder",
        "decoder",
        "netD",
        "netG",
        "discriminator",
        "generator",
    ):
        frame.work = True
        return tensor(sure=1, why=node)
    return UNKNOWN


def construct(frame: Frame, cls: Class, args: list[Fact], keywords: Keywords) -> Fact:
    """An object of a class of the project; what a dataclass is given becomes its attributes."""
    made = instance(cls)
    init = find_method(cls, "__init__")
    if init is not None and init.module is frame.module and made.kind is MODULE and init.cls is cls:
        return made
    if init is None and cls.fields:
        for name, fact in [*zip(cls.fields, args), *keywords.items()]:
            if name is not None and fact.kind is TENSOR:
                set_attribute(made, name, fact)
    return made


# torch and other names from outside -------------------------------------------------------------------------------------


def external(frame: Frame, node: ast.Call, dotted: str, args: list[Fact], keywords: Keywords) -> Fact:
    """A call of a dotted name from outside the project."""
    root, _, rest = dotted.partition(".")
    if root == "torch":
        return torch_call(frame, node, dotted, args, keywords)
    if root == "builtins":
        handler = BUILTINS.get(rest)
        return handler(frame, node, args, keywords) if handler is not None else UNKNOWN
    if root == "numpy":
        return numpy_call(frame, node, rest, args, keywords)
    if root == "math":
        held = next((a for a in args if a.kind is TENSOR), None)
        if held is not None:
            frame.emit("math", node, node.args[args.index(held)], held)
        return NUMBER
    if dotted in _CLOCKS:
        clock(frame, node)
        return NUMBER
    if root == "einops":
        if rest in ("rearrange", "repeat", "reduce", "einsum", "pack") and args:
            held = next((a for a in args if a.kind is TENSOR), None)
            first = held or tensor(sure=2, why=node)
            result = Fact(
                TENSOR,
                first.dtype,
                first.device,
                first.shape,
                _einops_ndim(node),
                max(first.sure, 2),
                node,
                source=held,
            )
            return sequence((result, UNKNOWN)) if rest == "pack" else result
        if rest == "unpack":
            return items(args[0] if args else UNKNOWN)
        return UNKNOWN
    word = rest.rpartition(".")[2] or root
    if root == "torchvision" and word in ("nms", "batched_nms", "box_nms"):
        held = next((a for a in args if a.kind is TENSOR), tensor(sure=2, why=node))
        frame.emit("nms", node, node.args[0] if node.args else None, held)
        return tensor(INT, held.device, 3, node, shape=DYNAMIC, ndim=1)
    if word in ("rearrange", "repeat", "reduce") and "einops" in dotted and args:
        return args[0]
    if word in _LOGGERS or (word == "log" and root in ("wandb", "mlflow", "swanlab", "comet_ml")):
        logged(frame, node, args, keywords)
    if word in ("tqdm", "trange") and args:
        return args[0]
    if dotted in ("copy.copy", "copy.deepcopy") and args:
        return args[0]
    return UNKNOWN


def _einops_ndim(node: ast.Call) -> int | None:
    pattern = node.args[1] if len(node.args) > 1 else None
    if (
        isinstance(pattern, ast.Constant)
        and isinstance(pattern.value, str)
        and "->" in pattern.value
        and "..." not in pattern.value
    ):
        right = pattern.value.split("->")[1]
        depth = count = 0
        for word in right.replace("(", " ( ").replace(")", " ) ").split():
            if word == "(":
                count += depth == 0
                depth += 1
            elif word == ")":
                depth -= 1
            elif depth == 0:
                count += 1
        return count
    return None


def clock(frame: Frame, node: ast.Call) -> None:
    """A clock reading: with device work since the last one and nothing that waited, it measures the launch."""
    if frame.clock is not None and frame.work:
        frame.emit("timing", node, None, tensor(sure=2, why=node))
    frame.clock, frame.work = node, False


def flag(node: ast.Call, name: str) -> bool:
    """Whether a keyword is given as True."""
    return any(k.arg == name and isinstance(k.value, ast.Constant) and k.value.value is True for k in node.keywords)


def where_made(frame: Frame, node: ast.Call, keywords: Keywords, default: Device) -> Device:
    """The device that a `device=` argument names."""
    fact = keywords.get("device")
    if fact is None:
        return default
    for keyword in node.keywords:
        if keyword.arg == "device":
            return device_named(keyword.value, fact, default)
    return default


def device_named(node: ast.expr, fact: Fact, default: Device = SOMEWHERE) -> Device:
    """What an expression given as a device means."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            return HOST if node.value.startswith("cpu") else SOMEWHERE if node.value == "meta" else DEVICE
        return default if node.value is None else DEVICE
    if fact.ref == "torch.device":
        return fact.device
    return SOMEWHERE


def dtype_given(keywords: Keywords) -> Dtype:
    fact = keywords.get("dtype")
    if fact is None:
        return ANY_DTYPE
    if isinstance(fact.ref, str) and fact.ref.startswith("builtins."):
        return DTYPE_NAMED.get(fact.ref[9:], ANY_DTYPE)
    return fact.dtype


def torch_call(frame: Frame, node: ast.Call, dotted: str, args: list[Fact], keywords: Keywords) -> Fact:
    """A call under `torch.`: functions, factories, modules, distributions, switches."""
    head, _, word = dotted.rpartition(".")
    if head == "torch.nn.functional" or head in (
        "torch",
        "torch.linalg",
        "torch.special",
        "torch.fft",
        "torch.functional",
    ):
        special = TORCH.get(word)
        if special is not None:
            found = special(frame, node, args, keywords)
            if found is not None:
                return found
        if head == "torch.functional":
            dotted = f"torch.{word}"
        if word in FACTORIES and head == "torch":
            return factory(frame, node, word, args, keywords)
        signature = signature_of(dotted)
        if signature is not None:
            return operation(frame, node, word, dotted, signature.back, args, keywords, args, node.args)
        if word[:1].isupper() and word.endswith("Tensor"):
            return factory(frame, node, word, args, keywords)
        return UNKNOWN
    return torch_thing(frame, node, dotted, head, word, args, keywords)


def operation(
    frame: Frame,
    node: ast.Call,
    word: str,
    dotted: str,
    back: tuple[str, ...],
    args: list[Fact],
    keywords: Keywords,
    operands: list[Fact],
    nodes: list[ast.expr],
) -> Fact:
    """A torch function over tensors: the result by its schema, dtype and dimensions by its name."""
    first = operands[0] if operands else keywords.get("input", UNKNOWN)
    held = holds_tensor(first)
    device = HOST
    known = False
    for fact in (*operands, *keywords.values()):
        inner = holds_tensor(fact)
        if inner is not None:
            known = True
            if inner.device is DEVICE:
                device = DEVICE
                break
            if inner.device is SOMEWHERE:
                device = SOMEWHERE
        elif fact.kind is NOTHING_KNOWN and first.kind is not SCALAR:
            device = SOMEWHERE if device is HOST else device
            known = True
    if not known and first.kind is not SCALAR:
        device = SOMEWHERE  # of Python numbers alone a tensor on the host is made
    if word in LIKE:
        device = where_made(frame, node, keywords, first.device if first.kind is TENSOR else SOMEWHERE)
    if dotted in LINALG_CHECKED:
        frame.emit(
            "linalg_check", node, nodes[0] if nodes else None, held or tensor(device=device, sure=2, why=node), 2
        )
    scalar_slots(frame, node, dotted, args, keywords, 0)
    dtype = dtype_given(keywords)
    if dtype is ANY_DTYPE:
        dtype = DTYPE_OF.get(word) or (held.dtype if held is not None else ANY_DTYPE)
        if word in ("where",) and len(operands) == 3:
            dtype = operands[1].dtype if operands[1].kind is TENSOR else operands[2].dtype
        elif word in ("sum", "cumsum", "prod") and dtype is BOOL:
            dtype = INT
        elif word in ("stack", "cat", "concat"):
            each = element(first)
            dtype = each.dtype if each.kind is TENSOR else ANY_DTYPE
        elif word in ("matmul", "einsum", "bmm", "mm", "addmm", "gather") and held is not None:
            dtype = held.dtype
    sure = 3
    shape: Shape = held.shape if held is not None else ANY_SHAPE
    if any(f.kind is TENSOR and f.shape is DYNAMIC for f in operands):
        shape = DYNAMIC
    if ("T" in back and "TT" not in back) or (word in PAIRED and not _has_dim(word, node, args, keywords, 1)):
        return Fact(
            TENSOR, dtype, device, shape, dimensions(word, held, node, args, keywords, 1), sure, node, source=held
        )
    if word in PAIRED or back[0].startswith("TT"):
        width = max(len(b) for b in back)
        values = Fact(
            TENSOR,
            dtype,
            device,
            shape,
            held.ndim if held is not None and word in ("sort", "topk", "cummax") else None,
            sure,
            node,
            source=held,
        )
        rest = Fact(TENSOR, INT if word in PAIRED else dtype, device, shape, values.ndim, sure, node, source=held)
        return Fact(SEQUENCE, sure=3, elements=(values, *[rest] * (max(width, 2) - 1)))
    if "L" in back:
        if word == "where" and len(operands) > 1:
            return Fact(TENSOR, dtype, device, shape, None, sure, node, source=held)
        each = Fact(
            TENSOR,
            dtype,
            device,
            shape,
            _less(held) if word == "unbind" else held.ndim if held is not None else None,
            sure,
            node,
            source=held,
        )
        return items(each)
    if "T" in back:
        return Fact(TENSOR, dtype, device, shape, None, sure, node, source=held)
    return TRUTH if "B" in back else NUMBER if "N" in back else UNKNOWN


def _less(fact: Fact | None) -> int | None:
    return fact.ndim - 1 if fact is not None and fact.ndim else None


def _has_dim(word: str, node: ast.Call, args: list[Fact], keywords: Keywords, at: int) -> bool:
    """Whether a reduction names a dimension; `max(a, b)` of two tensors is not one."""
    if "dim" in keywords or "axis" in keywords:
        return keywords.get("dim") is not NONE
    if word in ("sort", "topk", "kthvalue", "cummax", "cummin"):
        return True
    return len(args) > at and args[at].kind is not TENSOR and args[at] is not NONE


def dimensions(
    word: str, held: Fact | None, node: ast.Call, args: list[Fact], keywords: Keywords, at: int
) -> int | None:
    """The number of dimensions of a result; `at` is the position after the tensor itself."""
    ndim = held.ndim if held is not None else None
    if word in LOSSES:
        return None if "reduction" in keywords else 0
    if word in REDUCTIONS:
        if len(args) > at and args[at].kind is TENSOR:
            return ndim if word in ("max", "min") else 0 if word in ("dot", "dist") else None
        if (
            "dim" not in keywords
            and "axis" not in keywords
            and (len(args) <= at or (word in ("norm", "std", "var") and args[at] is not INTEGER))
        ):
            return 0
        if (len(args) > at and args[at].kind is SEQUENCE) or keywords.get("dim", UNKNOWN).kind is SEQUENCE:
            return None
        return ndim if flag(node, "keepdim") else None if ndim is None else ndim - 1
    if word in ("unsqueeze", "stack"):
        if word == "stack":
            each = element(args[0]).ndim if args else None
            return None if each is None else each + 1
        return None if ndim is None else ndim + 1
    if word in ("view", "reshape"):
        shapes = args[at:]
        if any(isinstance(a, ast.Starred) for a in node.args):
            return None
        if len(shapes) == 1:
            if shapes[0].kind is SEQUENCE:
                return len(shapes[0].elements) or None
            return 1 if shapes[0].kind is SCALAR else None
        return len(shapes) if shapes and all(s.kind is not SEQUENCE for s in shapes) else None
    if word in ("flatten", "ravel"):
        return 1 if len(args) <= at and not keywords else None
    if word in ("nonzero", "argwhere"):
        return 2
    if word in (
        "squeeze",
        "expand",
        "repeat",
        "index_select",
        "tile",
        "matmul",
        "einsum",
        "mm",
        "bmm",
        "where",
        "movedim",
        "broadcast_to",
        "unflatten",
    ):
        return {"mm": 2, "bmm": 3}.get(word)
    if word in ("bincount", "masked_select", "diff_"):
        return 1
    if word in ("cat", "concat"):
        return element(args[0]).ndim if args else None
    if word in ("one_hot", "gather") and word == "one_hot":
        return None if ndim is None else ndim + 1
    if word in ("diagonal", "select"):
        return None if ndim is None else ndim - 1
    if word in (
        "diag",
        "cdist",
        "outer",
        "interpolate",
        "pad",
        "unfold",
        "linear",
        "embedding",
        "multi_dot",
        "tensordot",
        "kron",
    ):
        return 2 if word == "outer" else None
    return ndim


def factory(frame: Frame, node: ast.Call, word: str, args: list[Fact], keywords: Keywords) -> Fact:
    """A tensor that is made: on the host unless a device is given."""
    first = args[0] if args else UNKNOWN
    given = "device" in keywords
    device = where_made(frame, node, keywords, HOST)
    if word in ("tensor", "as_tensor", "asarray"):
        held = holds_tensor(first)
        if (not given and word != "tensor" and first.kind is TENSOR) or (not given and first.kind is TENSOR):
            device = first.device
        elif not given and word != "tensor" and first.kind is NOTHING_KNOWN:
            device = SOMEWHERE
        dtype = dtype_given(keywords)
        if dtype is ANY_DTYPE:
            dtype = first.dtype if first.kind in (TENSOR, SCALAR, ARRAY) else element(first).dtype
        if first.kind is SEQUENCE and held is not None and first.kind is not TENSOR:
            frame.emit("item", node, node.args[0], held, 2)
        elif given and device is not HOST and word != "asarray":
            if first.kind in (SCALAR, SEQUENCE, ARRAY, NOTHING_KNOWN) or first.kind is OTHER:
                sure = 3 if first.kind in (SCALAR, SEQUENCE) and word == "tensor" else 1
                sure = min(sure, 3 if device is DEVICE else 2 if keywords["device"].ref == "torch.device" else 1)
                frame.emit(
                    "tensor_literal",
                    node,
                    node.args[0] if node.args else None,
                    tensor(device=device, sure=sure, why=node),
                    sure,
                )
        ndim = 0 if first.kind is SCALAR else first.ndim if first.kind is TENSOR else None
        if (
            first.kind is SEQUENCE and first.elements and all(e.kind is SCALAR for e in first.elements)
        ) or first is NUMBERS:
            ndim = 1
        return tensor(dtype, device, 3, node, held, FIXED if first.kind in (SCALAR, SEQUENCE) else ANY_SHAPE, ndim)
    dtype = dtype_given(keywords)
    if dtype is ANY_DTYPE:
        dtype = DTYPE_OF.get(
            word, DTYPE_NAMED.get(word, FLOAT if word in ("zeros", "ones", "empty", "eye") else ANY_DTYPE)
        )
    if word == "full":
        dtype = dtype if dtype is not ANY_DTYPE else (args[1].dtype if len(args) > 1 else ANY_DTYPE)
    if word == "arange" and dtype is ANY_DTYPE:
        dtype = FLOAT if any(a.kind is SCALAR and a.dtype is FLOAT for a in args) else INT
    if word in ("from_numpy", "frombuffer"):
        return tensor(
            first.dtype if first.kind is ARRAY else ANY_DTYPE,
            HOST,
            3,
            node,
            ndim=first.ndim if first.kind is ARRAY else None,
        )
    if word.endswith("Tensor") and first.kind is TENSOR:
        device = first.device
    elif word.endswith("Tensor") and args and not given:
        device = HOST
    sized = scalar_slots(frame, node, f"torch.{word}", args, keywords, 0)
    ndim: int | None = None
    if word in ("arange", "linspace", "randperm", "logspace", "range"):
        ndim = 1
    elif word == "eye":
        ndim = 2
    elif args and first.kind is SEQUENCE:
        ndim = len(first.elements) or None
    elif (
        args
        and word in ("zeros", "ones", "empty", "rand", "randn")
        and not any(isinstance(a, ast.Starred) for a in node.args)
    ):
        ndim = len(args) if first.kind in (SCALAR, NOTHING_KNOWN) and (len(args) > 1 or first.kind is SCALAR) else None
    return tensor(dtype, device, 3, node, None, DYNAMIC if sized else ANY_SHAPE, ndim)


def scalar_slots(frame: Frame, node: ast.Call, dotted: str, args: list[Fact], keywords: Keywords, shift: int) -> bool:
    """Tensors where a Python number is taken; whether one of them makes a size."""
    signature = signature_of(dotted) if shift == 0 else method(dotted)
    if signature is None or not signature.slots:
        return False
    sized = False
    for position, fact in enumerate(args):
        kind = fact.kind
        if kind is SCALAR or kind is NOTHING_KNOWN or kind is OTHER:
            continue
        place = position + shift
        name = signature.places.get(place)
        if name is None and place >= signature.spread and dotted.rpartition(".")[2] in SPREAD:
            name = signature.places.get(signature.spread)
        if name is None:
            continue
        sized |= _slot(frame, node, node.args[position], fact, signature.slots[name])
    for keyword in node.keywords:
        if keyword.arg in signature.slots:
            sized |= _slot(frame, node, keyword.value, keywords[keyword.arg], signature.slots[keyword.arg])
    return sized


def _slot(frame: Frame, node: ast.Call, at: ast.expr, fact: Fact, size: bool) -> bool:
    if fact.kind is TENSOR:
        if fact.ndim is None or fact.ndim == 0 or not size:
            frame.emit(
                "size" if size else "scalar_slot", node, at, fact, fact.sure if fact.ndim == 0 else min(fact.sure, 2)
            )
        return size
    if fact.kind is SEQUENCE and size:
        for each in fact.elements:
            if each.kind is TENSOR:
                frame.emit("size", node, at, each)
                return True
    return False


def torch_thing(
    frame: Frame, node: ast.Call, dotted: str, head: str, word: str, args: list[Fact], keywords: Keywords
) -> Fact:
    """Modules, distributions, optimizers, loaders and switches."""
    if dotted in ("torch.nn.Parameter", "torch.nn.parameter.Parameter", "torch.nn.Buffer", "torch.nn.parameter.Buffer"):
        first = args[0] if args else UNKNOWN
        if first.kind is TENSOR:
            # It moves to the device with its module.
            return Fact(TENSOR, first.dtype, SOMEWHERE, FIXED, first.ndim, 3, node)
        return tensor(sure=3, why=node, shape=FIXED)
    if dotted.startswith("torch.nn.utils."):
        if word == "clip_grad_norm_":
            frame.work = True
            if flag(node, "error_if_nonfinite"):
                frame.emit("clip_grad_norm", node, node.args[0] if node.args else None, tensor(sure=3, why=node))
            return tensor(FLOAT, sure=3, why=node, ndim=0, shape=FIXED)
        if word == "pack_padded_sequence":
            lengths = args[1] if len(args) > 1 else keywords.get("lengths", UNKNOWN)
            if lengths.kind is TENSOR:
                frame.emit("pack_padded_sequence", node, node.args[1] if len(node.args) > 1 else None, lengths)
            return THING
        if word == "pad_packed_sequence":
            return sequence((tensor(FLOAT, sure=3, why=node), tensor(INT, HOST, 3, node)))
        if word in ("parameters_to_vector", "pad_sequence"):
            return tensor(sure=3, why=node)
        if word in ("weight_norm", "spectral_norm", "remove_weight_norm") and args:
            return args[0]
        return UNKNOWN
    if dotted.startswith("torch.nn.init."):
        return args[0] if args and word.endswith("_") else UNKNOWN
    if dotted.startswith("torch.nn."):
        if word[:1].isupper():
            return Fact(MODULE, sure=3, ref=f"torch.nn.{word}", elements=tuple(args) if word in ("Sequential",) else ())
        return UNKNOWN
    if dotted.startswith("torch.distributions."):
        if word == "kl_divergence":
            return tensor(FLOAT, sure=3, why=node)
        if word in table().distributions:
            held = next((f for f in (*args, *keywords.values()) if f.kind is TENSOR), None)
            off = any(
                k.arg == "validate_args" and isinstance(k.value, ast.Constant) and k.value.value is False
                for k in node.keywords
            )
            if held is not None and not off and not word.endswith("Transform"):
                frame.emit("distribution_validate", node, node.args[0] if node.args else node.keywords[0].value, held)
            device = (
                held.device
                if held is not None
                else SOMEWHERE
                if any(f.kind is NOTHING_KNOWN for f in (*args, *keywords.values()))
                else HOST
            )
            return Fact(
                OTHER,
                device=device,
                sure=3 if held is not None else 2,
                ref=f"torch.distributions.{word}()",
                dtype=BOOL if off else ANY_DTYPE,
            )
        return UNKNOWN
    if dotted.startswith("torch.optim."):
        return Fact(OTHER, sure=3, ref=f"{dotted}()")
    if dotted in ("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader"):
        return Fact(OTHER, sure=3, ref="torch.utils.data.DataLoader()")
    if word == "device" and dotted == "torch.device":
        return THING
    if word == "synchronize" and head in (
        "torch.cuda",
        "torch.xpu",
        "torch.mps",
        "torch.accelerator",
        "torch.ocl",
        "torch.npu",
        "torch.hpu",
    ):
        frame.work = False
        frame.emit("synchronize", node, None, tensor(sure=3, why=node))
        return NONE
    if word == "empty_cache":
        frame.emit("empty_cache", node, None, tensor(sure=3, why=node))
        return NONE
    if dotted == "torch.distributed.barrier":
        frame.emit("barrier", node, None, tensor(sure=3, why=node))
        return NONE
    if dotted in (
        "torch.autograd.set_detect_anomaly",
        "torch.autograd.detect_anomaly",
        "torch.autograd.anomaly_mode.detect_anomaly",
    ):
        if not (node.args and isinstance(node.args[0], ast.Constant) and node.args[0].value is False):
            frame.emit("anomaly", node, None, tensor(sure=3, why=node))
        return THING
    if word == "GradScaler":
        return Fact(OTHER, sure=3, ref="torch.amp.GradScaler()")
    if dotted in ("torch.autograd.grad",):
        frame.work = True
        return items(tensor(FLOAT, sure=3, why=node))
    if dotted == "torch.utils.checkpoint.checkpoint":
        return apply(frame, node, args[0], args[1:], keywords) if args else UNKNOWN
    if dotted == "torch.jit.script" and args:
        return args[0]
    if dotted.startswith("torch.hub.load") or dotted in ("torch.jit.load",):
        return Fact(MODULE, sure=2, ref=None)
    if head == "torch.Tensor":
        if args and args[0].kind is TENSOR:
            return tensor_method(frame, node, node.func, word, args[0], args[1:], keywords, node.args[:1])
        return UNKNOWN
    if dotted.startswith("torch.autograd.functional."):
        return tensor(sure=2, why=node)
    if dotted.startswith("torch.sparse.") or dotted.startswith("torch.nested."):
        held = next((f for f in args if f.kind is TENSOR), None)
        return tensor(sure=2, why=node, source=held)
    return UNKNOWN


def _operand(node: ast.Call) -> ast.expr | None:
    return (
        node.args[0]
        if node.args
        else next((k.value for k in node.keywords if k.arg in ("input", "self", "condition")), None)
    )


def _given(args: list[Fact], keywords: Keywords, sure: int, node: ast.AST) -> Fact:
    first = args[0] if args else keywords.get("input", keywords.get("condition", UNKNOWN))
    held = holds_tensor(first)
    if held is not None:
        return held
    if first.kind is ARRAY or first.kind is SCALAR:
        return Fact(first.kind, device=HOST, sure=3)
    return tensor(sure=sure, why=node)


Special = Callable[[Frame, ast.Call, list[Fact], Keywords], Fact | None]


def _dynamic(op: str, dtype: Dtype | None = None, ndim: int | None = None) -> Special:
    """A function whose result's shape depends on data."""

    def run(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact | None:
        held = _given(args, keywords, 3, node)
        frame.emit(op, node, _operand(node), held, 3)
        return tensor(dtype if dtype is not None else held.dtype, held.device, 3, node, held, DYNAMIC, ndim)

    return run


def _nonzero(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact:
    held = _given(args, keywords, 3, node)
    frame.emit("nonzero", node, _operand(node), held, 3)
    return nonzero_result(node, held)


def nonzero_result(node: ast.Call, held: Fact) -> Fact:
    """Positions: one tensor, or one per dimension with `as_tuple=True`."""
    if flag(node, "as_tuple"):
        each = tensor(INT, held.device, max(held.sure, 2), node, held, DYNAMIC, 1)
        return Fact(SEQUENCE, sure=3, elements=(each,) * held.ndim) if held.ndim else items(each)
    return tensor(INT, held.device, max(held.sure, 2), node, held, DYNAMIC, 2)


def _where(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact | None:
    if len(node.args) + len(node.keywords) != 1 or any(isinstance(a, ast.Starred) for a in node.args):
        return None
    held = _given(args, keywords, 3, node)
    frame.emit("where", node, _operand(node), held, 3)
    each = tensor(INT, held.device, 3, node, held, DYNAMIC, 1)
    return Fact(SEQUENCE, sure=3, elements=(each,) * held.ndim) if held.ndim else items(each)


def _unique(op: str) -> Special:
    def run(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact | None:
        held = _given(args, keywords, 3, node)
        frame.emit(op, node, _operand(node), held, 3)
        return unique_result(node, held, 3)

    return run


def unique_result(node: ast.Call, held: Fact, sure: int) -> Fact:
    """Values, with the inverse and the counts where they are asked for."""
    values = tensor(
        held.dtype, held.device, sure, node, held, DYNAMIC, None if any(k.arg == "dim" for k in node.keywords) else 1
    )
    extra = sum(flag(node, name) for name in ("return_inverse", "return_counts"))
    if not extra:
        return values
    rest = tensor(INT, held.device, sure, node, held, DYNAMIC if not flag(node, "return_inverse") else ANY_SHAPE)
    return Fact(SEQUENCE, sure=3, elements=(values, *[rest] * extra))


def _repeat_interleave(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact | None:
    repeats = args[1] if len(args) > 1 else keywords.get("repeats", args[0] if len(args) == 1 else UNKNOWN)
    return repeated(frame, node, _given(args, keywords, 3, node), repeats, keywords)


def repeated(frame: Frame, node: ast.Call, held: Fact, repeats: Fact, keywords: Keywords) -> Fact:
    """repeat_interleave: a tensor of repeats makes the length depend on data, unless output_size is given."""
    if repeats.kind is TENSOR and keywords.get("output_size", NONE) is NONE:
        frame.emit("repeat_interleave", node, _operand(node), repeats)
        return tensor(held.dtype, held.device, max(held.sure, 2), node, held, DYNAMIC, held.ndim)
    return tensor(
        held.dtype, held.device, max(held.sure, 2), node, held, held.shape, held.ndim if "dim" in keywords else None
    )


def _one_hot(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact | None:
    held = _given(args, keywords, 3, node)
    if len(args) < 2 and "num_classes" not in keywords:
        frame.emit("one_hot", node, _operand(node), held, 3)
    return tensor(INT, held.device, 3, node, held, held.shape, held.ndim + 1 if held.ndim is not None else None)


def _reading(op: str, result: Fact = TRUTH) -> Special:
    def run(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact | None:
        held = _given(args, keywords, 3, node)
        if op in ("equal", "allclose") and len(args) > 1 and device_of(*args) is HOST:
            return result
        frame.emit(op, node, _operand(node), held, 3)
        frame.work = False
        return result

    return run


def _yes(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact | None:
    return TRUTH


def _device(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact | None:
    where = device_named(node.args[0], args[0]) if node.args else SOMEWHERE
    if node.args and isinstance(node.args[0], ast.IfExp):
        where = DEVICE
    return Fact(OTHER, ANY_DTYPE, where, sure=3, ref="torch.device")


def _thing(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact | None:
    return THING


def _multinomial(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact | None:
    held = _given(args, keywords, 2, node)
    frame.emit("multinomial", node, _operand(node), held, 1)
    return None


def _ctc(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact | None:
    lengths = [
        f
        for f in (*args[2:4], keywords.get("input_lengths", UNKNOWN), keywords.get("target_lengths", UNKNOWN))
        if f.kind is TENSOR
    ]
    if lengths:
        frame.emit("ctc_loss", node, node.args[2] if len(node.args) > 2 else None, lengths[0], 2)
    return None


def _size_object(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact | None:
    held = holds_tensor(args[0]) if args else None
    if held is not None:
        frame.emit("size", node, node.args[0], held)
    return SIZE


def _checked(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact | None:
    held = next((a for a in args if a.kind is TENSOR), None)
    if held is not None:
        frame.emit("tensor_check", node, node.args[args.index(held)], held, 2)
    return NONE


def _compiled(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact | None:
    return args[0] if args else THING


def _broadcast(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact | None:
    return sequence(tuple(args)) if args and all(a.kind is TENSOR for a in args) else items(tensor(sure=3, why=node))


def _combinations(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact | None:
    held = _given(args, keywords, 3, node)
    frame.emit("combinations", node, _operand(node), held)
    return tensor(held.dtype, held.device, 3, node, held, FIXED, 2)


def _tensor_split(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact | None:
    held = _given(args, keywords, 3, node)
    if len(args) > 1 and args[1].kind is TENSOR:
        frame.emit("size", node, node.args[1], args[1])
    return items(Fact(TENSOR, held.dtype, held.device, held.shape, held.ndim, 3, node, source=held))


TORCH: dict[str, Special] = {
    "nonzero": _nonzero,
    "argwhere": _dynamic("argwhere", INT, 2),
    "where": _where,
    "unique": _unique("unique"),
    "unique_consecutive": _unique("unique_consecutive"),
    "masked_select": _dynamic("masked_select", None, 1),
    "bincount": _dynamic("bincount", INT, 1),
    "combinations": _combinations,
    "repeat_interleave": _repeat_interleave,
    "one_hot": _one_hot,
    "equal": _reading("equal"),
    "allclose": _reading("allclose"),
    "is_nonzero": _reading("is_nonzero"),
    "is_tensor": _yes,
    "is_floating_point": _yes,
    "is_complex": _yes,
    "is_grad_enabled": _yes,
    "device": _device,
    "dtype": _thing,
    "finfo": _thing,
    "iinfo": _thing,
    "load": lambda *_: UNKNOWN,
    "multinomial": _multinomial,
    "ctc_loss": _ctc,
    "Size": _size_object,
    "_check_tensor_all": _checked,
    "_check_tensor_all_with": _checked,
    "compile": _compiled,
    "broadcast_tensors": _broadcast,
    "numel": lambda *_: INTEGER,
    "tensor_split": _tensor_split,
    "einsum": lambda frame, node, args, keywords: Fact(
        TENSOR,
        next((a.dtype for a in args if a.kind is TENSOR), ANY_DTYPE),
        device_of(*args[1:]),
        ANY_SHAPE,
        None,
        3,
        node,
        source=next((a for a in args if a.kind is TENSOR), None),
    ),
}


# methods ----------------------------------------------------------------------------------------------------------------


def call_member(
    frame: Frame, node: ast.Call, func: ast.Attribute, owner: Fact, args: list[Fact], keywords: Keywords
) -> Fact:
    """`owner.name(...)`."""
    word = func.attr
    kind = owner.kind
    if kind is TENSOR:
        if isinstance(owner.ref, Instance):  # of a class that derives from Tensor
            own = find_method(owner.ref.cls, word)
            if own is not None:
                return call_function(own, frame, args, keywords, owner)
        return tensor_method(frame, node, func, word, owner, args, keywords, node.args)
    if kind is OTHER or kind is MODULE:
        ref = owner.ref
        if kind is MODULE:
            found = module_method(frame, node, word, owner, args, keywords)
            if found is not None:
                return found
        if ref.__class__ is str:
            text: str = ref  # type: ignore[assignment]  # checked by class
            if kind is OTHER:
                if text.endswith("()"):
                    return object_method(frame, node, text, word, owner, args, keywords)
                if text == "str":
                    return string_method(frame, node, word, args, keywords)
                return external(frame, node, f"{text}.{word}", args, keywords)
        elif isinstance(ref, Module):
            return apply(frame, node, member(owner, word), args, keywords)
        elif ref is not None:
            if word == "register_buffer" and len(args) > 1 and node.args and isinstance(node.args[0], ast.Constant):
                fact = args[1]
                known = fact if fact.kind is TENSOR else tensor(sure=3, why=node)
                # A buffer moves to the device with its module.
                set_attribute(
                    owner, str(node.args[0].value), Fact(TENSOR, known.dtype, SOMEWHERE, FIXED, known.ndim, 3, node)
                )
                return NONE
            fact = _own(frame, func, owner, word)
            if fact is not None and fact.kind is not NOTHING_KNOWN:
                return apply(frame, node, fact, args, keywords)
        loose(frame, node, word, owner, args, keywords)
        return assumed_method(frame, node, func, owner, args, keywords) if kind is OTHER and ref is None else UNKNOWN
    if kind is SEQUENCE:
        return container_method(frame, node, func, word, owner, args, keywords)
    if kind is ARRAY:
        if word in ("item", "tolist"):
            return NUMBER if word == "item" else NUMBERS
        return NP_ARRAY if word not in ("any_",) else TRUTH
    if kind is BATCH:
        if word in ("to", "cuda"):
            if owner.device is HOST and not flag(node, "non_blocking"):
                frame.emit(
                    "to_device", node, func.value, Fact(BATCH, device=SOMEWHERE, sure=owner.sure, why=owner.said), 2
                )
            return Fact(BATCH, device=DEVICE, sure=owner.sure, why=node, source=owner)
        if word in ("items",):
            return items(sequence((STRING, element(owner))))
        if word in ("values", "get", "pop"):
            return element(owner)
        fact = element(owner)
        if word in TORCH_ONLY or word in ARRAY_LIKE or word in SHARED:
            return tensor_method(frame, node, func, word, fact, args, keywords, node.args)
        return UNKNOWN
    if kind is SCALAR:
        return NUMBER
    path = _path(func)
    fact = frame.env.get(path) if path else None
    if fact is not None and fact.kind is not NOTHING_KNOWN:
        return apply(frame, node, fact, args, keywords)
    loose(frame, node, word, owner, args, keywords)
    return assumed_method(frame, node, func, owner, args, keywords)


def _path(node: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _own(frame: Frame, func: ast.Attribute, owner: Fact, word: str) -> Fact | None:
    path = _path(func)
    if path:
        fact = frame.env.get(path)
        if fact is not None and fact.kind is not NOTHING_KNOWN and fact is not NONE:
            return fact
    return attribute(owner, word, frame) or member(owner, word)


def loose(frame: Frame, node: ast.Call, word: str, owner: Fact, args: list[Fact], keywords: Keywords) -> None:
    """Calls that tell by their name alone: loggers, scalers, progress bars."""
    if word in _LOGGING and args and (args[0].ref == "str" or args[0] is STRING):
        for position, fact in enumerate(args[1:], 1):
            if fact.kind is TENSOR:
                frame.emit("format", node, node.args[position], fact)
    elif word in _LOGGERS:
        logged(frame, node, args, keywords)
    elif word == "backward":
        frame.work = True
    elif word == "step" and isinstance(node.func, ast.Attribute):
        frame.work = True
        name = _path(node.func.value).rpartition(".")[2]
        if name in ("scaler", "grad_scaler", "_scaler", "amp_scaler") and len(args) == 1:
            frame.emit("grad_scaler", node, node.func.value, tensor(sure=2, why=node))


def logged(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> None:
    """An experiment logger or a progress bar that is given tensors reads them."""
    for position, fact in enumerate(args):
        held = holds_tensor(fact)
        if held is None and isinstance(fact.ref, Items) and fact.ref.keys:
            held = next((f for f in fact.ref.keys.values() if f.kind is TENSOR), None)
        if held is not None:
            frame.emit("format", node, node.args[position], held, 2)
            return
    for keyword in node.keywords:
        fact = keywords[keyword.arg]
        if fact.kind is TENSOR:
            frame.emit("format", node, keyword.value, fact, 2)
            return


def module_method(
    frame: Frame, node: ast.Call, word: str, owner: Fact, args: list[Fact], keywords: Keywords
) -> Fact | None:
    """Methods that every nn.Module has."""
    if word in (
        "to",
        "cuda",
        "cpu",
        "eval",
        "train",
        "half",
        "float",
        "double",
        "requires_grad_",
        "bfloat16",
        "apply",
        "compile",
        "share_memory",
    ):
        own = isinstance(owner.ref, Instance) and find_method(owner.ref.cls, word) is not None
        return None if own else owner
    if word in ("parameters", "buffers"):
        return items(tensor(FLOAT, sure=3, why=node, shape=FIXED))
    if word in ("named_parameters", "named_buffers"):
        return items(sequence((STRING, tensor(FLOAT, sure=3, why=node, shape=FIXED))))
    if word in ("state_dict",):
        return items(tensor(sure=2, why=node), {})
    if word in ("modules", "children"):
        return items(Fact(MODULE, sure=2))
    if word in ("named_modules", "named_children"):
        return items(sequence((STRING, Fact(MODULE, sure=2))))
    if word == "__call__":
        return forward(owner, frame, args, keywords, node)
    return None


def object_method(
    frame: Frame, node: ast.Call, text: str, word: str, owner: Fact, args: list[Fact], keywords: Keywords
) -> Fact:
    """Methods of distributions, optimizers, scalers."""
    if text.startswith("torch.distributions."):
        if word in ("log_prob", "cdf"):
            held = next((a for a in args if a.kind is TENSOR), None)
            off = owner.dtype is BOOL
            if not off and owner.device is not HOST:
                frame.emit(
                    "distribution_validate",
                    node,
                    node.args[0] if node.args else None,
                    held or tensor(device=owner.device, sure=2, why=node),
                    2,
                )
            return tensor(FLOAT, owner.device if held is None else device_of(held), 3, node)
        if word in ("sample", "rsample", "entropy", "icdf", "sample_n", "enumerate_support", "perplexity"):
            return tensor(
                INT if "Categorical" in text and "OneHot" not in text and word == "sample" else FLOAT,
                owner.device,
                3,
                node,
            )
        if word == "expand":
            return owner
        return UNKNOWN
    if text.startswith("torch.optim."):
        frame.work = True
        return UNKNOWN
    if text == "torch.amp.GradScaler()":
        if word == "step":
            frame.emit("grad_scaler", node, node.func, tensor(sure=3, why=node))
        if word == "scale":
            return args[0] if args else UNKNOWN
        return UNKNOWN
    if text == "builtins.dict()":
        return element(owner)
    return UNKNOWN


def string_method(frame: Frame, node: ast.Call, word: str, args: list[Fact], keywords: Keywords) -> Fact:
    """`"...".format(tensor)`."""
    if word == "format":
        for position, fact in enumerate(args):
            if fact.kind is TENSOR:
                frame.emit("format", node, node.args[position], fact)
                break
        else:
            for keyword in node.keywords:
                if keywords[keyword.arg].kind is TENSOR:
                    frame.emit("format", node, keyword.value, keywords[keyword.arg])
                    break
    return STRING if word in ("format", "join", "strip", "lower", "upper", "replace") else UNKNOWN


def container_method(
    frame: Frame, node: ast.Call, func: ast.Attribute, word: str, owner: Fact, args: list[Fact], keywords: Keywords
) -> Fact:
    """Methods of lists and dicts whose contents are known."""
    receiver = func.value
    if word in ("append", "add", "appendleft", "extend", "insert") and args:
        new = element(args[-1]) if word == "extend" else args[-1]
        if new.kind is not NOTHING_KNOWN:
            each = element(owner)
            both = items(new if each is UNKNOWN else join(each, new))
            path = _path(receiver)
            if path:
                frame.env[path] = both
            if isinstance(receiver, ast.Attribute):
                holder = evaluate(frame, receiver.value)
                if isinstance(holder.ref, Instance):
                    set_attribute(holder, receiver.attr, both)
        return NONE
    if word in ("items",):
        return items(sequence((UNKNOWN, _any(owner))))
    if word in ("values",):
        return items(_any(owner))
    if word in ("get", "pop", "setdefault", "popleft"):
        ref = owner.ref
        if node.args and isinstance(node.args[0], ast.Constant) and isinstance(ref, Items) and ref.keys is not None:
            found = ref.keys.get(node.args[0].value)
            if found is not None:
                return found
        return element(owner)
    if word == "copy":
        return owner
    if word == "numel" and owner.ref == "size":
        return INTEGER
    if owner.ref is None and not owner.elements and word in TORCH_ONLY:
        return UNKNOWN
    return INTEGER if word in ("index", "count") else UNKNOWN


def _any(owner: Fact) -> Fact:
    ref = owner.ref
    if isinstance(ref, Items) and ref.keys:
        found: Fact | None = None
        for fact in ref.keys.values():
            found = fact if found is None else join(found, fact)
        return found or UNKNOWN
    return element(owner)


_CASTS = {
    "float": FLOAT,
    "double": FLOAT,
    "half": FLOAT,
    "bfloat16": FLOAT,
    "long": INT,
    "int": INT,
    "short": INT,
    "bool": BOOL,
    "byte": INT,
    "char": INT,
}
_READS = {"item": NUMBER, "__bool__": TRUTH, "__float__": FLOATING, "__int__": INTEGER, "__index__": INTEGER}


def tensor_method(
    frame: Frame,
    node: ast.Call,
    func: ast.expr,
    word: str,
    owner: Fact,
    args: list[Fact],
    keywords: Keywords,
    nodes: list[ast.expr],
) -> Fact:
    """A method of a tensor."""
    receiver = func.value if isinstance(func, ast.Attribute) else None
    handler = METHODS.get(word)
    if handler is not None:
        return handler(frame, node, receiver, word, owner, args, keywords)
    if word == "size" or word == "stride":
        return INTEGER if args or keywords else SIZE
    signature = method(word)
    if signature is None:
        if word == "type_as" or word == "type":
            return Fact(TENSOR, ANY_DTYPE, owner.device, owner.shape, owner.ndim, owner.sure, node, source=owner)
        return UNKNOWN
    back = signature.back
    scalar_slots(frame, node, word, args, keywords, 1)
    device = owner.device
    if device is HOST:
        device = device_of(owner, *args) if args else HOST
    dtype = DTYPE_OF.get(word) or owner.dtype
    if word in ("sum", "cumsum", "prod") and dtype is BOOL:
        dtype = INT
    elif word in ("new_zeros", "new_ones", "new_full", "new_empty", "sum", "cumsum") or word == "to":
        given = dtype_given(keywords)
        dtype = given if given is not ANY_DTYPE else dtype
        device = where_made(frame, node, keywords, device)
    if dtype is BOOL and word in ("mul", "add"):
        dtype = INT
    shape = owner.shape
    if any(a.kind is TENSOR and a.shape is DYNAMIC for a in args):
        shape = DYNAMIC
    if word.endswith("_") and not word.endswith("__"):
        return Fact(TENSOR, owner.dtype, device, owner.shape, owner.ndim, owner.sure, node, source=owner)
    if "T" in back and ("TT" not in back or not _has_dim(word, node, args, keywords, 0)):
        if word.startswith("new_"):
            ndim = (
                len(args[0].elements) or None
                if args and args[0].kind is SEQUENCE
                else len(args)
                if args and args[0].kind is SCALAR and word != "new_full"
                else None
            )
            return Fact(TENSOR, dtype, device, ANY_SHAPE, ndim, owner.sure, node, source=owner)
        return Fact(
            TENSOR,
            dtype,
            device,
            shape,
            dimensions(word, owner, node, args, keywords, 0),
            owner.sure,
            node,
            source=owner,
        )
    if word in PAIRED or back[0].startswith("TT"):
        ndim = (
            owner.ndim
            if word in ("sort", "topk", "cummax", "cummin") or flag(node, "keepdim")
            else _less(owner)
            if word in ("max", "min", "median", "mode")
            else None
        )
        values = Fact(TENSOR, dtype, device, shape, ndim, owner.sure, node, source=owner)
        rest = Fact(TENSOR, INT if word in PAIRED else dtype, device, shape, ndim, owner.sure, node, source=owner)
        return Fact(SEQUENCE, sure=3, elements=(values, *[rest] * (max(len(b) for b in back) - 1)))
    if "L" in back:
        return items(
            Fact(
                TENSOR,
                dtype,
                device,
                shape,
                _less(owner) if word == "unbind" else owner.ndim,
                owner.sure,
                node,
                source=owner,
            )
        )
    return TRUTH if "B" in back else INTEGER if "N" in back else UNKNOWN


Method = Callable[[Frame, ast.Call, ast.expr | None, str, Fact, list[Fact], Keywords], Fact]


def _m_item(
    frame: Frame,
    node: ast.Call,
    receiver: ast.expr | None,
    word: str,
    owner: Fact,
    args: list[Fact],
    keywords: Keywords,
) -> Fact:
    frame.emit(
        "item" if word == "item" else {"__bool__": "bool", "__float__": "float", "__int__": "int"}.get(word, "index"),
        node,
        receiver,
        owner,
    )
    frame.work = False
    return Fact(SCALAR, owner.dtype, HOST, sure=3) if owner.dtype is not ANY_DTYPE else NUMBER


def _m_tolist(
    frame: Frame,
    node: ast.Call,
    receiver: ast.expr | None,
    word: str,
    owner: Fact,
    args: list[Fact],
    keywords: Keywords,
) -> Fact:
    frame.emit("tolist", node, receiver, owner)
    frame.work = False
    return NUMBERS


def _m_numpy(
    frame: Frame,
    node: ast.Call,
    receiver: ast.expr | None,
    word: str,
    owner: Fact,
    args: list[Fact],
    keywords: Keywords,
) -> Fact:
    frame.emit("numpy", node, receiver, owner)
    frame.work = False
    return array(owner)


def _m_cpu(
    frame: Frame,
    node: ast.Call,
    receiver: ast.expr | None,
    word: str,
    owner: Fact,
    args: list[Fact],
    keywords: Keywords,
) -> Fact:
    if not flag(node, "non_blocking"):
        frame.emit("cpu", node, receiver, owner)
        frame.work = False
    return Fact(TENSOR, owner.dtype, HOST, owner.shape, owner.ndim, owner.sure, node, source=owner)


def _m_to(
    frame: Frame,
    node: ast.Call,
    receiver: ast.expr | None,
    word: str,
    owner: Fact,
    args: list[Fact],
    keywords: Keywords,
) -> Fact:
    if word == "cuda":
        target: Device | None = DEVICE
        dtype = owner.dtype
    else:
        target = None
        dtype = dtype_given(keywords)
        named_: ast.expr | None = next((k.value for k in node.keywords if k.arg == "device"), None)
        if named_ is not None:
            target = device_named(named_, keywords["device"], owner.device)
        for at, fact in zip(node.args, args):
            if fact.kind is TENSOR:
                target, dtype = fact.device, fact.dtype
            elif fact.ref == "torch.dtype" or (
                (isinstance(fact.ref, str) and fact.ref.startswith(("builtins.", "torch.")))
                and fact.ref != "torch.device"
            ):
                dtype = dtype_given({"dtype": fact})
            elif (
                fact.ref == "torch.device"
                or isinstance(at, ast.Constant)
                or (target is None and fact.kind in (NOTHING_KNOWN, SCALAR, OTHER))
            ):
                if isinstance(at, ast.Constant) and isinstance(at.value, bool):
                    continue
                said = at.func if isinstance(at, ast.Call) else at
                word_ = said.attr if isinstance(said, ast.Attribute) else getattr(said, "id", "")
                if "dtype" not in word_:
                    target = device_named(at, fact, owner.device)
        if dtype is ANY_DTYPE and "dtype" not in keywords and not any(f.ref == "torch.dtype" for f in args):
            dtype = owner.dtype
    where = owner.device if target is None else target
    sided = any(f.kind is TENSOR for f in args) or any(
        isinstance(at, ast.Attribute) and at.attr == "device" for at in (*node.args, *(k.value for k in node.keywords))
    )
    blocking = not flag(node, "non_blocking") and not (
        len(node.args) > 1 and isinstance(node.args[1], ast.Constant) and node.args[1].value is True
    )
    if target is HOST and owner.device is not HOST:
        if blocking:
            frame.emit("cpu", node, receiver, owner)
    elif target is not None and owner.device is HOST and target is not HOST and blocking:
        moved = Fact(TENSOR, owner.dtype, target, owner.shape, owner.ndim, owner.sure, owner.said, source=owner.source)
        made = (
            isinstance(receiver, ast.Call)
            and isinstance(receiver.func, ast.Attribute)
            and receiver.func.attr in FACTORIES
        )
        sure = 3 if target is DEVICE else 2 if sided else 1
        frame.emit("created_on_host" if made else "to_device", node, receiver, moved, sure)
    elif target is SOMEWHERE and owner.device is SOMEWHERE and not sided and blocking and word == "to":
        frame.emit("to_device", node, receiver, owner, 1)  # nothing is known of either side
    return Fact(TENSOR, dtype, where, owner.shape, owner.ndim, owner.sure, node, source=owner)


def _m_dynamic(
    frame: Frame,
    node: ast.Call,
    receiver: ast.expr | None,
    word: str,
    owner: Fact,
    args: list[Fact],
    keywords: Keywords,
) -> Fact:
    frame.emit(word, node, receiver, owner)
    if word == "nonzero":
        return nonzero_result(node, owner)
    if word in ("unique", "unique_consecutive"):
        return unique_result(node, owner, owner.sure)
    dtype = INT if word in ("argwhere", "bincount") else owner.dtype
    return tensor(dtype, owner.device, owner.sure, node, owner, DYNAMIC, 2 if word == "argwhere" else 1)


def _m_repeat(
    frame: Frame,
    node: ast.Call,
    receiver: ast.expr | None,
    word: str,
    owner: Fact,
    args: list[Fact],
    keywords: Keywords,
) -> Fact:
    repeats = args[0] if args else keywords.get("repeats", UNKNOWN)
    return repeated(frame, node, owner, repeats, keywords)


def _m_equal(
    frame: Frame,
    node: ast.Call,
    receiver: ast.expr | None,
    word: str,
    owner: Fact,
    args: list[Fact],
    keywords: Keywords,
) -> Fact:
    frame.emit(word, node, receiver, owner)
    return TRUTH


def _m_sparse(
    frame: Frame,
    node: ast.Call,
    receiver: ast.expr | None,
    word: str,
    owner: Fact,
    args: list[Fact],
    keywords: Keywords,
) -> Fact:
    frame.emit("sparse", node, receiver, owner, 2)
    return Fact(
        TENSOR,
        owner.dtype,
        owner.device,
        DYNAMIC if word != "to_dense" else owner.shape,
        owner.ndim,
        owner.sure,
        node,
        source=owner,
    )


def _m_cast(
    frame: Frame,
    node: ast.Call,
    receiver: ast.expr | None,
    word: str,
    owner: Fact,
    args: list[Fact],
    keywords: Keywords,
) -> Fact:
    return Fact(TENSOR, _CASTS[word], owner.device, owner.shape, owner.ndim, owner.sure, node, source=owner)


def _m_nothing(
    frame: Frame,
    node: ast.Call,
    receiver: ast.expr | None,
    word: str,
    owner: Fact,
    args: list[Fact],
    keywords: Keywords,
) -> Fact:
    if word == "backward":
        frame.work = True
        return NONE
    return INTEGER


def _m_multinomial(
    frame: Frame,
    node: ast.Call,
    receiver: ast.expr | None,
    word: str,
    owner: Fact,
    args: list[Fact],
    keywords: Keywords,
) -> Fact:
    frame.emit("multinomial", node, receiver, owner, 1)
    return tensor(INT, owner.device, owner.sure, node, owner, owner.shape, owner.ndim)


def _m_split(
    frame: Frame,
    node: ast.Call,
    receiver: ast.expr | None,
    word: str,
    owner: Fact,
    args: list[Fact],
    keywords: Keywords,
) -> Fact:
    sizes = args[0] if args else UNKNOWN
    held = holds_tensor(sizes)
    if held is not None:
        frame.emit("size", node, node.args[0], held)
    return items(Fact(TENSOR, owner.dtype, owner.device, owner.shape, owner.ndim, owner.sure, node, source=owner))


METHODS: dict[str, Method] = {
    **dict.fromkeys(_READS, _m_item),
    "tolist": _m_tolist,
    "numpy": _m_numpy,
    "__array__": _m_numpy,
    "cpu": _m_cpu,
    "to": _m_to,
    "cuda": _m_to,
    **dict.fromkeys(("nonzero", "argwhere", "unique", "unique_consecutive", "masked_select", "bincount"), _m_dynamic),
    "repeat_interleave": _m_repeat,
    **dict.fromkeys(("equal", "allclose", "is_nonzero"), _m_equal),
    **dict.fromkeys(
        ("to_sparse", "to_sparse_coo", "to_sparse_csr", "to_sparse_csc", "to_sparse_bsr", "coalesce"), _m_sparse
    ),
    **dict.fromkeys(_CASTS, _m_cast),
    **dict.fromkeys(
        ("backward", "numel", "dim", "nelement", "ndimension", "stride", "get_device", "data_ptr", "element_size"),
        _m_nothing,
    ),
    "multinomial": _m_multinomial,
    "split": _m_split,
    "tensor_split": _m_split,
}


_GATHERING = {"gather", "gather_for_metrics", "all_gather", "reduce", "pad_across_processes"}


def assumed_method(
    frame: Frame, node: ast.Call, func: ast.Attribute, owner: Fact, args: list[Fact], keywords: Keywords
) -> Fact:
    """A method of something unknown: one that only a tensor has says what it is."""
    word = func.attr
    if word in _GATHERING and args and _last_word(func.value).endswith(("accelerator", "fabric", "strategy")):
        return args[0] if args[0].kind in (TENSOR, SEQUENCE) else tensor(sure=2, why=node)
    if owner.kind is NOTHING_KNOWN:
        if word in TORCH_ONLY and word not in (
            "cuda",
            "half",
            "bfloat16",
            "requires_grad_",
            "backward",
            "register_hook",
            "exp",
            "log",
            "add_",
            "copy_",
        ):
            return tensor_method(frame, node, func, word, tensor(sure=2, why=node), args, keywords, node.args)
        if word in SHARED:
            sure = 2 if frame.module.evidence.alone and word in ("item", "nonzero", "any", "all") else 1
            if word == "item" and "loss" in _last_word(func.value).lower():
                sure = 2
            guess = tensor(sure=sure, why=f"`.{word}()` of something unknown")
            if word == "cpu" or not isinstance(func.value, ast.Name) or func.value.id not in ("self", "cls", "np"):
                return tensor_method(frame, node, func, word, guess, args, keywords, node.args)
        if word == "to" and (args or keywords):
            return UNKNOWN
        if word == "type_as" or word == "clone":
            return tensor(sure=1, why=node)
    return UNKNOWN


def _last_word(node: ast.expr) -> str:
    """What people call a value: the name, the attribute or the key by which it is reached."""
    if isinstance(node, ast.Subscript):
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        return key if isinstance(key, str) else _last_word(node.value)
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


# builtins and numpy -----------------------------------------------------------------------------------------------------

Builtin = Callable[[Frame, ast.Call, list[Fact], Keywords], Fact]


def _b_read(op: str, result: Fact) -> Builtin:
    def run(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact:
        if args and args[0].kind is TENSOR:
            frame.emit(op, node, node.args[0], args[0])
            frame.work = False
        return result

    return run


def _b_format(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact:
    for position, fact in enumerate(args):
        held = fact if fact.kind is TENSOR else holds_tensor(fact)
        if held is not None and not isinstance(node.args[position], ast.Starred):
            frame.emit("format", node, node.args[position], held, 3 if fact.kind is TENSOR else 2)
            break
    return STRING


def _b_extreme(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact:
    """min and max compare two values at a time: over tensors each comparison is read."""
    word = node.func.id if isinstance(node.func, ast.Name) else "max"
    if len(args) == 1:
        fact = args[0]
        if fact.kind is TENSOR:
            frame.emit("builtin", node, node.args[0], fact)
            return element(fact)
        held = _over(fact)
        if held is not None and "key" not in keywords:
            frame.emit("builtin", node, node.args[0], held, 2)
        return element(fact)
    held = next((a for a in args if a.kind is TENSOR), None)
    if held is not None and "key" not in keywords:
        frame.emit("builtin", node, node.args[args.index(held)], held)
        return Fact(TENSOR, held.dtype, held.device, held.shape, 0, min(held.sure, 2), node, source=held)
    del word
    return NUMBER if all(a.kind is SCALAR for a in args) else UNKNOWN


def _b_truth(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact:
    """any and all ask each element for its truth."""
    if args:
        fact = args[0]
        held = fact if fact.kind is TENSOR else _over(fact)
        if held is not None:
            frame.emit("builtin", node, node.args[0], held)
    return TRUTH


def _b_sum(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact:
    """sum adds on the device: nothing is read, but a loop over a tensor is one kernel an element."""
    if args:
        each = iterated_over(args[0])
        if each.kind is TENSOR:
            return Fact(
                TENSOR,
                each.dtype if each.dtype is not BOOL else INT,
                each.device,
                each.shape,
                each.ndim,
                each.sure,
                node,
                source=each,
            )
        if each.kind is SCALAR:
            return NUMBER
    return UNKNOWN


def _over(fact: Fact) -> Fact | None:
    """The tensor that iterating over a value meets."""
    each = iterated_over(fact)
    return each if each.kind is TENSOR else None


def _b_sorted(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact:
    if args:
        held = _over(args[0])
        if held is not None and "key" not in keywords:
            frame.emit("builtin", node, node.args[0], held)
        return args[0] if args[0].kind is SEQUENCE else items(element(args[0]))
    return UNKNOWN


def _b_round(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact:
    return args[0] if args and args[0].kind is TENSOR else NUMBER


def _b_range(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact:
    for position, fact in enumerate(args):
        if fact.kind is TENSOR:
            frame.emit("index", node, node.args[position], fact)
    return items(INTEGER)


def _b_length(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact:
    return INTEGER


def _b_same(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact:
    if not args:
        return Fact(SEQUENCE, sure=3)
    fact = args[0]
    if fact.kind is SEQUENCE:
        return fact
    return (
        items(element(fact))
        if fact.kind in (TENSOR, BATCH)
        else fact
        if fact.ref == "torch.utils.data.DataLoader()"
        else UNKNOWN
    )


def _b_enumerate(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact:
    if not args:
        return UNKNOWN
    each = _each(node.args[0], args[0])
    return items(sequence((INTEGER, each))) if each.kind is not NOTHING_KNOWN else _loaderlike(node.args[0])


def _each(node: ast.expr, fact: Fact) -> Fact:
    if fact.ref == "torch.utils.data.DataLoader()":
        return Fact(BATCH, device=HOST, sure=2, why="a batch of a DataLoader")
    return element(fact)


def _loaderlike(node: ast.expr) -> Fact:
    word = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    if heat.is_loader(word):
        return items(sequence((INTEGER, Fact(BATCH, sure=1, why=f"a batch of `{word}`"))))
    return items(sequence((INTEGER, UNKNOWN)))


def _b_zip(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact:
    if any(isinstance(a, ast.Starred) for a in node.args):
        return UNKNOWN
    return items(sequence(tuple(_each(at, fact) for at, fact in zip(node.args, args))))


def _b_abs(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact:
    return args[0] if args and args[0].kind in (TENSOR, ARRAY, SCALAR) else UNKNOWN


def _b_isinstance(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact:
    return TRUTH


def _b_getattr(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact:
    if len(node.args) >= 2 and isinstance(node.args[1], ast.Constant) and isinstance(args[0].ref, Instance):
        return attribute(args[0], str(node.args[1].value), frame) or UNKNOWN
    return UNKNOWN


def _b_map(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact:
    if len(args) == 2 and isinstance(args[0].ref, str):
        each = element(args[1])
        word = args[0].ref.removeprefix("builtins.")
        if word in ("int", "float", "bool", "str") and each.kind is TENSOR:
            frame.emit(word if word != "str" else "format", node, node.args[1], each)
        if word in ("int", "float", "bool"):
            return items(NUMBER)
    if args and isinstance(args[0].ref, Function) and len(args) > 1:
        return items(call_function(args[0].ref, frame, [element(a) for a in args[1:]], {}))
    return UNKNOWN


def _b_super(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact:
    cls = frame.cls
    if cls is not None:
        from syncscope.tensors.scope import bases

        for base in bases(cls):
            if isinstance(base.ref, Class):
                return instance(base.ref)
    return UNKNOWN


def _b_divmod(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact:
    return sequence((args[0], args[0])) if args and args[0].kind in (TENSOR, SCALAR) else UNKNOWN


def _b_slice(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact:
    return THING


BUILTINS: dict[str, Builtin] = {
    "float": _b_read("float", FLOATING),
    "int": _b_read("int", INTEGER),
    "bool": _b_read("bool", TRUTH),
    "complex": _b_read("complex", NUMBER),
    "print": _b_format,
    "str": _b_format,
    "repr": _b_format,
    "format": _b_format,
    "min": _b_extreme,
    "max": _b_extreme,
    "any": _b_truth,
    "all": _b_truth,
    "sum": _b_sum,
    "sorted": _b_sorted,
    "round": _b_round,
    "range": _b_range,
    "len": _b_length,
    "list": _b_same,
    "tuple": _b_same,
    "iter": _b_same,
    "reversed": _b_same,
    "set": lambda *_: THING,
    "enumerate": _b_enumerate,
    "zip": _b_zip,
    "abs": _b_abs,
    "isinstance": _b_isinstance,
    "hasattr": _b_isinstance,
    "callable": _b_isinstance,
    "issubclass": _b_isinstance,
    "getattr": _b_getattr,
    "map": _b_map,
    "super": _b_super,
    "divmod": _b_divmod,
    "slice": _b_slice,
    "dict": lambda frame, node, args, keywords: (
        Fact(SEQUENCE, sure=3, ref=Items(UNKNOWN, {k: v for k, v in keywords.items() if k is not None}))
        if not args
        else args[0]
        if args[0].kind is SEQUENCE
        else UNKNOWN
    ),
    "next": lambda frame, node, args, keywords: _each(node.args[0], args[0]) if args else UNKNOWN,
    "id": _b_length,
    "hash": _b_length,
    "type": lambda *_: THING,
    "open": lambda *_: THING,
}
_NOT_ARRAYS = {"isscalar", "ndim", "shape", "random.seed", "random.default_rng", "errstate", "dtype", "finfo", "iinfo", "set_printoptions"}


def numpy_call(frame: Frame, node: ast.Call, rest: str, args: list[Fact], keywords: Keywords) -> Fact:
    """numpy of a tensor copies it to the host."""
    held = next((a for a in args if holds_tensor(a) is not None), None)
    if held is not None and rest not in _NOT_ARRAYS:
        tensor_ = holds_tensor(held)
        assert tensor_ is not None
        frame.emit("asarray", node, node.args[args.index(held)], tensor_)
        return array(tensor_)
    if rest in _NOT_ARRAYS:
        return THING
    if rest in ("prod", "isscalar", "ndim", "log2", "ceil", "floor", "sqrt") and args and args[0].kind is SCALAR:
        return NUMBER
    return NP_ARRAY


_UNUSED = (SIZE, instance)
