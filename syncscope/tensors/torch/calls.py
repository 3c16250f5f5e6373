"""Calls under `torch.`: functions, factories, modules, distributions, switches."""

from __future__ import annotations

import ast

from syncscope.model.fact import UNKNOWN, Fact, Shape
from syncscope.tensors.facts import (
    ANY_DTYPE,
    ANY_SHAPE,
    BOOL,
    DEFAULT,
    DEVICE,
    DYNAMIC,
    FIXED,
    FLOAT,
    HOST,
    INT,
    MODULE,
    NONE,
    NUMBER,
    OTHER,
    SCALAR,
    SEQUENCE,
    SOMEWHERE,
    TENSOR,
    THING,
    TRUTH,
    element,
    items,
    sequence,
    tensor,
)
from syncscope.tensors.frame import Frame, holds_tensor
from syncscope.tensors.torch.factories import factory
from syncscope.tensors.torch.functions import TORCH
from syncscope.tensors.torch.hidden_reads import INSIDE, read_inside
from syncscope.tensors.torch.host_values import numbers_broadcast
from syncscope.tensors.torch.methods import tensor_method
from syncscope.tensors.torch.results import (
    dimensions,
    dtype_given,
    flag,
    names_dim,
    one_less,
    operand_of,
    scalar_slots,
    subject,
    where_made,
)
from syncscope.tensors.torch.signatures import (
    DTYPE_OF,
    FACTORIES,
    LIKE,
    LINALG_CHECKED,
    OCL_FALLBACK,
    PAIRED,
    table,
)
from syncscope.tensors.torch.signatures import function as signature_of

NOTHING_KNOWN = UNKNOWN.kind
ACCELERATORS = frozenset(f"torch.{name}" for name in ("cuda", "xpu", "mps", "accelerator", "ocl", "npu", "hpu"))
FACTORED = frozenset(["LowRankMultivariateNormal", "MultivariateNormal", "Wishart"])  # by Cholesky when they are made
Keywords = dict[str | None, Fact]


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
            if inner.device is DEFAULT or (inner.device is SOMEWHERE and device is HOST):
                device = inner.device
        elif fact.kind is NOTHING_KNOWN and first.kind is not SCALAR:
            device = SOMEWHERE if device is HOST else device
            known = True
    if not known and first.kind is not SCALAR:
        device = SOMEWHERE  # of Python numbers alone a tensor on the host is made
    if word in LIKE:
        device = where_made(frame, node, keywords, first.device if first.kind is TENSOR else SOMEWHERE)
    if dotted in OCL_FALLBACK and device is not HOST:
        frame.emit(
            "ocl_fallback", node, nodes[0] if nodes else None, held or tensor(device=device, confidence=2, why=node)
        )
    if dotted in LINALG_CHECKED:
        frame.emit(
            "linalg_check", node, nodes[0] if nodes else None, held or tensor(device=device, confidence=2, why=node), 2
        )
    scalar_slots(frame, node, dotted, args, keywords, 0)
    if word in INSIDE:
        read_inside(frame, node, dotted, held or tensor(device=device, confidence=2, why=node), args, keywords, 0)
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
    confidence = 3
    shape: Shape = held.shape if held is not None else ANY_SHAPE
    if any(f.kind is TENSOR and f.shape is DYNAMIC for f in operands):
        shape = DYNAMIC
    if ("T" in back and "TT" not in back) or (word in PAIRED and not names_dim(word, node, args, keywords, 1)):
        return Fact(
            TENSOR, dtype, device, shape, dimensions(word, held, node, args, keywords, 1), confidence, node, source=held
        )
    if word in PAIRED or back[0].startswith("TT"):
        width = max(len(b) for b in back)
        values = Fact(
            TENSOR,
            dtype,
            device,
            shape,
            held.ndim if held is not None and word in ("sort", "topk", "cummax") else None,
            confidence,
            node,
            source=held,
        )
        rest = Fact(TENSOR, INT if word in PAIRED else dtype, device, shape, values.ndim, confidence, node, source=held)
        return Fact(SEQUENCE, confidence=3, elements=(values, *[rest] * (max(width, 2) - 1)))
    if "L" in back:
        if word == "where" and len(operands) > 1:
            return Fact(TENSOR, dtype, device, shape, None, confidence, node, source=held)
        each = Fact(
            TENSOR,
            dtype,
            device,
            shape,
            one_less(held) if word == "unbind" else held.ndim if held is not None else None,
            confidence,
            node,
            source=held,
        )
        return items(each)
    if "T" in back:
        return Fact(TENSOR, dtype, device, shape, None, confidence, node, source=held)
    return TRUTH if "B" in back else NUMBER if "N" in back else UNKNOWN


def torch_thing(
    frame: Frame, node: ast.Call, dotted: str, head: str, word: str, args: list[Fact], keywords: Keywords
) -> Fact:
    """Modules, distributions, optimizers, loaders and switches."""
    if dotted in ("torch.nn.Parameter", "torch.nn.parameter.Parameter", "torch.nn.Buffer", "torch.nn.parameter.Buffer"):
        first = args[0] if args else UNKNOWN
        if first.kind is TENSOR:
            # It moves to the device with its module.
            return Fact(TENSOR, first.dtype, SOMEWHERE, FIXED, first.ndim, 3, node)
        return tensor(confidence=3, why=node, shape=FIXED)
    if dotted.startswith("torch.nn.utils."):
        if word == "clip_grad_norm_":
            frame.work = True
            fourth = node.args[3] if len(node.args) > 3 else None
            if flag(node, "error_if_nonfinite") or (isinstance(fourth, ast.Constant) and fourth.value is True):
                frame.emit("clip_grad_norm", node, node.args[0] if node.args else None, tensor(confidence=3, why=node))
            return tensor(FLOAT, confidence=3, why=node, ndim=0, shape=FIXED)
        if word == "pack_padded_sequence":
            lengths = args[1] if len(args) > 1 else keywords.get("lengths", UNKNOWN)
            if lengths.kind is TENSOR:
                frame.emit("pack_padded_sequence", node, node.args[1] if len(node.args) > 1 else None, lengths)
            return THING
        if word == "pad_packed_sequence":
            return sequence((tensor(FLOAT, confidence=3, why=node), tensor(INT, HOST, 3, node)))
        if word in ("parameters_to_vector", "pad_sequence"):
            return tensor(confidence=3, why=node)
        if word in ("weight_norm", "spectral_norm", "remove_weight_norm") and args:
            return args[0]
        return UNKNOWN
    if dotted.startswith("torch.nn.init."):
        return args[0] if args and word.endswith("_") else UNKNOWN
    if dotted.startswith("torch.nn."):
        if word[:1].isupper():
            return Fact(
                MODULE, confidence=3, ref=f"torch.nn.{word}", elements=tuple(args) if word in ("Sequential",) else ()
            )
        return UNKNOWN
    if dotted.startswith("torch.distributions."):
        if word == "kl_divergence":
            return tensor(FLOAT, confidence=3, why=node)
        if word in table().distributions:
            held = next((f for f in (*args, *keywords.values()) if f.kind is TENSOR), None)
            off = any(
                k.arg == "validate_args" and isinstance(k.value, ast.Constant) and k.value.value is False
                for k in node.keywords
            )
            if held is not None and not off and not word.endswith("Transform"):
                frame.emit("distribution_validate", node, node.args[0] if node.args else node.keywords[0].value, held)
            numbers_broadcast(frame, node, word, args, keywords)
            if held is not None and word in FACTORED and "scale_tril" not in keywords:
                frame.emit("linalg_check", node, node.args[0] if node.args else node.keywords[0].value, held, 2)
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
                confidence=3 if held is not None else 2,
                ref=f"torch.distributions.{word}()",
                dtype=BOOL if off else ANY_DTYPE,
            )
        return UNKNOWN
    if dotted.startswith("torch.optim."):
        return Fact(OTHER, confidence=3, ref=f"{dotted}()")
    if dotted in ("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader"):
        return Fact(OTHER, confidence=3, ref="torch.utils.data.DataLoader()")
    if word == "device" and dotted == "torch.device":
        return THING
    if word == "synchronize" and head in ACCELERATORS:
        frame.work = False
        frame.emit("synchronize", node, None, tensor(confidence=3, why=node))
        return NONE
    if word in ("current_stream", "default_stream", "Stream", "Event", "ExternalStream") and head in ACCELERATORS:
        return Fact(OTHER, confidence=3, ref="torch.cuda.Stream()")
    if word == "empty_cache":
        frame.emit("empty_cache", node, None, tensor(confidence=3, why=node))
        return NONE
    if dotted == "torch.distributed.barrier":
        frame.emit("barrier", node, None, tensor(confidence=3, why=node))
        return NONE
    if dotted in (
        "torch.autograd.set_detect_anomaly",
        "torch.autograd.detect_anomaly",
        "torch.autograd.anomaly_mode.detect_anomaly",
    ):
        if not (node.args and isinstance(node.args[0], ast.Constant) and node.args[0].value is False):
            frame.emit("anomaly", node, None, tensor(confidence=3, why=node))
        return THING
    if word == "nms" and dotted.startswith("torch.ops."):
        held = subject(args, keywords, 2, node)
        frame.emit("nms", node, operand_of(node), held)
        return tensor(INT, held.device, 3, node, shape=DYNAMIC, ndim=1)
    if word == "GradScaler":
        return Fact(OTHER, confidence=3, ref="torch.amp.GradScaler()")
    if dotted in ("torch.autograd.grad",):
        frame.work = True
        return items(tensor(FLOAT, confidence=3, why=node))
    if dotted == "torch.utils.checkpoint.checkpoint":
        return frame.call(frame, node, args[0], args[1:], keywords) if args else UNKNOWN
    if dotted == "torch.jit.script" and args:
        return args[0]
    if dotted.startswith("torch.hub.load") or dotted in ("torch.jit.load",):
        return Fact(MODULE, confidence=2, ref=None)
    if head == "torch.Tensor":
        if args and args[0].kind is TENSOR:
            return tensor_method(frame, node, node.func, word, args[0], args[1:], keywords, node.args[:1])
        return UNKNOWN
    if dotted.startswith("torch.autograd.functional."):
        return tensor(confidence=2, why=node)
    if dotted.startswith(("torch.sparse.", "torch.nested.")):
        held = next((found for found in map(holds_tensor, args) if found is not None), None)
        layout = keywords.get("layout", UNKNOWN).ref
        if word in ("nested_tensor", "as_nested_tensor") and layout == "torch.jagged" and held is not None:
            frame.emit("library_read", node, node.args[0], held)  # a list of lengths is copied to the device
        return tensor(confidence=2, why=node, source=held)
    return UNKNOWN
