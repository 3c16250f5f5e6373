"""Calls: who is called, with what; everything that is not torch, a tensor, a builtin or numpy is decided here."""

from __future__ import annotations

import ast

from syncscope.model.fact import UNKNOWN, Fact
from syncscope.tensors import hotness
from syncscope.tensors.attributes import attribute, set_attribute
from syncscope.tensors.facts import (
    ARRAY,
    BATCH,
    DEVICE,
    DYNAMIC,
    FIXED,
    HOST,
    INT,
    MODULE,
    NONE,
    NP_ARRAY,
    NUMBER,
    NUMBERS,
    OTHER,
    SCALAR,
    SEQUENCE,
    SOMEWHERE,
    SPREAD,
    STRING,
    TENSOR,
    TRUTH,
    Record,
    element,
    items,
    record,
    sequence,
    tensor,
)
from syncscope.tensors.frame import Frame, dotted, last_word
from syncscope.tensors.functions import call as call_function
from syncscope.tensors.functions import forward, on_host
from syncscope.tensors.libraries.builtins import BUILTINS, numpy_call
from syncscope.tensors.project import Class, Function, Module
from syncscope.tensors.scope import Bound, Instance, find_method, instance, member
from syncscope.tensors.torch.calls import torch_call
from syncscope.tensors.torch.methods import tensor_method
from syncscope.tensors.torch.objects import (
    LOGGERS,
    container_method,
    logged,
    loose,
    module_method,
    object_method,
    string_method,
)
from syncscope.tensors.torch.results import flag, where_made
from syncscope.tensors.torch.signatures import (
    ARRAY_LIKE,
    SHARED,
    TORCH_ONLY,
)

NOTHING_KNOWN = UNKNOWN.kind
Keywords = dict[str | None, Fact]


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
        if keyword.arg == "return_tensors" and not (
            isinstance(keyword.value, ast.Constant) and keyword.value.value != "pt"
        ):
            arguments(frame, node)
            return Fact(BATCH, device=HOST, confidence=2, why=node)  # a tokenizer or processor: it works on the host
    if func.__class__ is ast.Attribute:
        owner = table_[func.value.__class__](frame, func.value)
        args, keywords = arguments(frame, node)
        return call_member(frame, node, func, owner, args, keywords)
    target = table_[func.__class__](frame, func)
    args, keywords = arguments(frame, node)
    return apply(frame, node, target, args, keywords)


def arguments(frame: Frame, node: ast.Call) -> tuple[list[Fact], Keywords]:
    """The facts of positional and keyword arguments."""
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
            and frame.hotness is not hotness.TRAINING  # in training the mask is not looked into
        ):
            frame.emit("transformer_mask", node, node.func, tensor(confidence=2, why=node))
        return forward(target, frame, args, keywords, node)
    if ref.__class__ is str:
        if target.kind is OTHER:
            return external(frame, node, ref, args, keywords)
        return UNKNOWN
    if isinstance(ref, Function):
        result = call_function(ref, frame, args, keywords)
        if "device" in keywords and where_made(frame, node, keywords, SOMEWHERE) is HOST:
            result = on_host(result)
        if "synchronize" in ref.name:  # whatever it holds: people name so what waits for the device
            frame.work = False
        return result
    if isinstance(ref, Bound):
        return call_function(ref.function, frame, args, keywords, ref.owner)
    if isinstance(ref, Class):
        return construct(frame, ref, args, keywords)
    if isinstance(ref, Instance):
        own = find_method(ref.cls, "__call__")
        return call_function(own, frame, args, keywords, target) if own is not None else UNKNOWN
    if isinstance(ref, Record):
        spread = None in keywords or any(each is SPREAD for each in args)
        return UNKNOWN if spread else record(ref.fields, args, keywords)
    if isinstance(ref, ast.Lambda):
        return UNKNOWN
    if target.kind is NOTHING_KNOWN:
        return unknown_call(frame, node, node.func, args)
    return UNKNOWN


Frame.call = staticmethod(apply)


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
        return tensor(confidence=1, why=node)
    return UNKNOWN


def construct(frame: Frame, cls: Class, args: list[Fact], keywords: Keywords) -> Fact:
    """An object of a class of the project; what a dataclass is given becomes its attributes."""
    made = instance(cls)
    init = find_method(cls, "__init__")
    if init is not None and init.module is frame.module and made.kind is MODULE and init.cls is cls:
        return made
    if init is None and cls.fields:
        for name, fact in [*zip(cls.fields, args, strict=False), *keywords.items()]:
            if name is not None and fact.kind is TENSOR:
                set_attribute(made, name, fact)
    return made


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
        return TRUTH if rest.startswith("is") and rest != "isqrt" else NUMBER
    if dotted in _CLOCKS:
        clock(frame, node)
        return NUMBER
    if root == "einops":
        if rest in ("rearrange", "repeat", "reduce", "einsum", "pack") and args:
            held = next((a for a in args if a.kind is TENSOR), None)
            first = held or tensor(confidence=2, why=node)
            result = Fact(
                TENSOR,
                first.dtype,
                first.device,
                first.shape,
                _einops_ndim(node),
                max(first.confidence, 2),
                node,
                source=held,
            )
            return sequence((result, UNKNOWN)) if rest == "pack" else result
        if rest == "unpack":
            return items(args[0] if args else UNKNOWN)
        return UNKNOWN
    word = rest.rpartition(".")[2] or root
    if root == "torchvision" and word in ("nms", "batched_nms", "box_nms"):
        held = next((a for a in args if a.kind is TENSOR), tensor(confidence=2, why=node))
        frame.emit("nms", node, node.args[0] if node.args else None, held)
        return tensor(INT, held.device, 3, node, shape=DYNAMIC, ndim=1)
    if root == "torchvision" and word in ("remove_small_boxes",) and args:
        frame.emit("nms", node, node.args[0], args[0] if args[0].kind is TENSOR else tensor(confidence=2, why=node))
        return tensor(INT, args[0].device, 3, node, shape=DYNAMIC, ndim=1)
    if dotted == "torchvision.transforms.functional.normalize" and args and args[0].kind is TENSOR:
        frame.emit("library_read", node, node.args[0], args[0])
        return args[0]
    if dotted in ("pickle.dumps", "pickle.dump") and args and args[0].kind is TENSOR:
        frame.emit("cpu", node, node.args[0], args[0])
        return UNKNOWN
    if word in ("rearrange", "repeat", "reduce") and "einops" in dotted and args:
        return args[0]
    if word in LOGGERS or (word == "log" and root in ("wandb", "mlflow", "swanlab", "comet_ml")):
        logged(frame, node, args, keywords)
    if word in ("tqdm", "trange") and args:
        return args[0]
    if dotted in ("collections.namedtuple", "typing.NamedTuple") and len(node.args) > 1:
        fields = _fields(node.args[1])
        return Fact(OTHER, confidence=3, ref=Record(fields)) if fields else UNKNOWN
    if dotted in ("copy.copy", "copy.deepcopy") and args:
        return args[0]
    return UNKNOWN


def _fields(node: ast.expr) -> tuple[str, ...]:
    """The names of a namedtuple: in one text, in a list, or in a list of pairs with their types."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return tuple(node.value.replace(",", " ").split())
    if not isinstance(node, (ast.List, ast.Tuple)):
        return ()
    first = [each.elts[0] if isinstance(each, ast.Tuple) and each.elts else each for each in node.elts]
    return tuple(each.value for each in first if isinstance(each, ast.Constant) and isinstance(each.value, str))


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
        frame.emit("timing", node, None, tensor(confidence=2, why=node))
    frame.clock, frame.work = node, False


def call_member(
    frame: Frame, node: ast.Call, func: ast.Attribute, owner: Fact, args: list[Fact], keywords: Keywords
) -> Fact:
    """`owner.name(...)`."""
    word = func.attr
    kind = owner.kind
    if kind is TENSOR:
        if owner.confidence == 1 and word in TORCH_ONLY and not isinstance(func.value, ast.Name):
            owner = owner.but(confidence=2)  # a name that is used so was found by its text
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
            text: str = ref
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
                known = fact if fact.kind is TENSOR else tensor(confidence=3, why=node)
                # A buffer moves to the device with its module.
                set_attribute(
                    owner, str(node.args[0].value), Fact(TENSOR, known.dtype, SOMEWHERE, FIXED, known.ndim, 3, node)
                )
                return NONE
            taken = _own(frame, func, owner, word)
            if taken.kind is not NOTHING_KNOWN:
                return apply(frame, node, taken, args, keywords)
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
                    "to_device",
                    node,
                    func.value,
                    Fact(BATCH, device=SOMEWHERE, confidence=owner.confidence, why=owner.provenance),
                    2,
                )
            return Fact(BATCH, device=DEVICE, confidence=owner.confidence, why=node, source=owner)
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
    path = dotted(func)
    held = frame.env.get(path) if path else None
    if held is not None and held.kind is not NOTHING_KNOWN:
        return apply(frame, node, held, args, keywords)
    loose(frame, node, word, owner, args, keywords)
    return assumed_method(frame, node, func, owner, args, keywords)


def _own(frame: Frame, func: ast.Attribute, owner: Fact, word: str) -> Fact:
    path = dotted(func)
    if path:
        fact = frame.env.get(path)
        if fact is not None and fact.kind is not NOTHING_KNOWN and fact is not NONE:
            return fact
    return attribute(owner, word, frame) or member(owner, word)


_ARITHMETIC = frozenset(
    (
        "mul",
        "div",
        "sub",
        "pow",
        "matmul",
        "true_divide",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "maximum",
        "minimum",
        "fmod",
    )
)
_GATHERING = {"gather", "gather_for_metrics", "all_gather", "reduce", "pad_across_processes"}


def assumed_method(
    frame: Frame, node: ast.Call, func: ast.Attribute, owner: Fact, args: list[Fact], keywords: Keywords
) -> Fact:
    """A method of something unknown: one that only a tensor has says what it is."""
    word = func.attr
    if word in _GATHERING and args and last_word(func.value).endswith(("accelerator", "fabric", "strategy")):
        return args[0] if args[0].kind in (TENSOR, SEQUENCE) else tensor(confidence=2, why=node)
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
            return tensor_method(frame, node, func, word, tensor(confidence=2, why=node), args, keywords, node.args)
        if word in SHARED:
            confidence = 2 if word in ("item", "nonzero", "any", "all") and frame.alone else 1
            if word == "cpu" and isinstance(func.value, (ast.BinOp, ast.UnaryOp, ast.Compare)):
                confidence = 2  # no module or container can be calculated with
            if word == "item" and "loss" in last_word(func.value).lower():
                confidence = 2
            guess = tensor(confidence=confidence, why=f"`.{word}()` of something unknown")
            if word == "cpu" or not isinstance(func.value, ast.Name) or func.value.id not in ("self", "cls", "np"):
                return tensor_method(frame, node, func, word, guess, args, keywords, node.args)
        if word == "to" and (args or keywords):
            return UNKNOWN
        if word in _ARITHMETIC and args and args[0].kind is TENSOR and args[0].confidence >= 2:
            guess = tensor(device=args[0].device, confidence=2, why=f"`.{word}()` of a tensor")
            return tensor_method(frame, node, func, word, guess, args, keywords, node.args)
        if word == "type_as" or word == "clone":
            return tensor(confidence=1, why=node)
    return UNKNOWN
