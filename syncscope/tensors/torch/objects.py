"""Objects of torch: optimizers, loaders, streams and switches; how they are made, what they can do."""

from __future__ import annotations

import ast
from collections.abc import Callable

from syncscope.model.fact import UNKNOWN, Fact
from syncscope.model.ops import Op
from syncscope.tensors.annotations import annotated
from syncscope.tensors.call import Call
from syncscope.tensors.facts import (
    DEVICE,
    DYNAMIC,
    FIXED,
    FLOAT,
    HOST,
    INT,
    INTEGER,
    LOADER,
    MODULE,
    NONE,
    NOTHING_KNOWN,
    OTHER,
    SEQUENCE,
    SOMEWHERE,
    TENSOR,
    TENSORS_HELD,
    THING,
    device_of,
    holds_tensor,
    items,
    listed,
    sequence,
    tensor,
)
from syncscope.tensors.frame import of_host
from syncscope.tensors.joins import element
from syncscope.tensors.torch import distributions, modules
from syncscope.tensors.torch.results import operand_of, subject

_ACCELERATORS = frozenset(f"torch.{name}" for name in ["cuda", "xpu", "mps", "accelerator", "ocl", "npu", "hpu"])
# What optimizers and averages read or copy in each step: losses of a line search, rates, the number of averaged models.
_READS_IN = {"LBFGS": "step", "ASGD": "step", "Adafactor": "step", "AveragedModel": "update_parameters"}
SCALE_READ_BY = ("get_scale", "state_dict")  # torch/amp/grad_scaler.py: the latter has the scale in it
_SCALERS = (".GradScaler", ".DisabledScaler")  # wherever torch has it: in three modules
_SORTS = b"enforce_sorted"


def _object(name: str) -> Fact:
    """An object that calling a name has made."""
    return Fact(OTHER, confidence=3, ref=f"{name}()")


def made(call: Call) -> Fact:
    """What a call under `torch.` gives that is no function over tensors."""
    exact = _EXACT.get(call.name)
    if exact is not None:
        return exact(call)
    for prefix, under in _UNDER.items():
        if call.name.startswith(prefix):
            return under(call)
    accelerator = call.name.rpartition(".")[0] in _ACCELERATORS
    if accelerator and call.word == "synchronize":
        call.frame.work = False
        return _waited(call, Op.SYNCHRONIZE)
    if accelerator and call.word in ("current_stream", "default_stream", "Stream", "Event", "ExternalStream"):
        return _object("torch.cuda.Stream")
    if call.word == "empty_cache":
        return _waited(call, Op.EMPTY_CACHE)
    if call.word == "GradScaler":
        return _scaler(next((k.value for k in call.node.keywords if k.arg == "enabled"), None))
    return UNKNOWN


def _scaler(switch: ast.expr | None) -> Fact:
    """A scaler of losses. One that is switched off only hands on what it is given, as does, most often, one that has a flag."""
    if isinstance(switch, ast.Constant) and switch.value is False:
        return _object("torch.amp.DisabledScaler")
    made = _object("torch.amp.GradScaler")
    return made if switch is None or isinstance(switch, ast.Constant) else made.but(confidence=1)


def _waited(call: Call, op: Op, result: Fact = NONE) -> Fact:
    call.emit(op, None, tensor(confidence=3, why=call.node))
    return result


def _of_no_module(call: Call) -> bool:
    """Whether a class makes it that is derived from nothing: it moves what it holds by itself."""
    function = call.frame.function
    return function is not None and function.cls is not None and not function.cls.node.bases


def _parameter(call: Call) -> Fact:
    first = call.first
    if first.kind is TENSOR:  # it moves to the device with its module
        device = HOST if first.device is HOST and _of_no_module(call) else SOMEWHERE
        return Fact(TENSOR, first.dtype, device, FIXED, first.ndim, 3, call.node)
    return tensor(confidence=3, why=call.node, shape=FIXED)


def _nn_utils(call: Call) -> Fact:
    word, node = call.word, call.node
    if word == "clip_grad_norm_":
        call.frame.work = True
        fourth = call.nodes[3] if len(call.nodes) > 3 else None
        if call.flag("error_if_nonfinite") or (isinstance(fourth, ast.Constant) and fourth.value is True):
            call.emit(Op.CLIP_GRAD_NORM, call.first_node, tensor(confidence=3, why=node))
        if (most := call.given(1, "max_norm")).kind is TENSOR:
            call.emit(Op.SCALAR_SLOT, call.node_of(1, "max_norm"), most)
        return tensor(FLOAT, confidence=3, why=node, ndim=0, shape=FIXED)
    if word == "pack_padded_sequence":
        lengths = call.given(1, "lengths")
        if lengths.kind is TENSOR and lengths.device is DEVICE:  # an error, which `cpu()` mends
            call.emit(Op.PACK_PADDED_SEQUENCE, call.nodes[1] if len(call.nodes) > 1 else None, lengths)
        elif lengths.kind is SEQUENCE and (held := holds_tensor(lengths)) is not None:  # each is asked
            call.emit(Op.PACK_PADDED_SEQUENCE, call.node_of(1, "lengths"), held)
        elif (at := call.node_of(1, "lengths")) is not None:
            of_host(call.frame, at, lengths)
        sorts = next((k.value for k in node.keywords if k.arg == "enforce_sorted"), None)
        if isinstance(sorts, ast.Constant) and sorts.value is False:  # the order is copied to the device
            call.emit(Op.LIBRARY_READ, call.first_node, tensor(confidence=2, why=node))
        return THING
    if word == "pad_packed_sequence":
        if _SORTS in call.frame.module.source:  # which asks the host for the order before
            call.emit(Op.LIBRARY_READ, call.first_node, tensor(confidence=2, why=node))
        return sequence(tensor(FLOAT, confidence=3, why=node), tensor(INT, HOST, 3, node))
    if word in ("parameters_to_vector", "pad_sequence"):
        return tensor(confidence=3, why=node)
    return call.first if word in ("weight_norm", "spectral_norm", "remove_weight_norm") else UNKNOWN


def _anomaly(call: Call) -> Fact:
    """The detection of anomalies: off, mostly, where a flag says whether it is on."""
    first = call.first_node
    if not (isinstance(first, ast.Constant) and first.value is False):
        flagged = call.word == "set_detect_anomaly" and not isinstance(first, ast.Constant)
        call.emit(Op.ANOMALY, None, tensor(confidence=1 if flagged else 3, why=call.node))
    return THING


def _gradients(call: Call) -> Fact:
    call.frame.work = True
    return items(tensor(FLOAT, confidence=3, why=call.node))


def _checkpointed(call: Call) -> Fact:
    """`checkpoint(function, *args)`: what the function gives."""
    if not call.args:
        return UNKNOWN
    inner = Call(call.frame, call.node, "", call.args[1:], call.keywords)
    inner.nodes = call.nodes[1:]
    return call.frame.interpreter.call(inner, call.args[0])


def _operator(call: Call) -> Fact:
    """`torch.ops.torchvision.nms` and the like."""
    if call.word != "nms":
        return UNKNOWN
    held = subject(call, 2)
    call.emit(Op.NMS, operand_of(call), held)
    return tensor(INT, held.device, 3, call.node, shape=DYNAMIC, ndim=1)


def _other_layout(call: Call) -> Fact:
    held = next((found for found in map(holds_tensor, call.args) if found is not None), None)
    layout = call.keywords.get("layout", UNKNOWN).ref
    if call.word in ("nested_tensor", "as_nested_tensor") and layout == "torch.jagged" and held is not None:
        call.emit(Op.LIBRARY_READ, call.first_node, held)  # a list of lengths is copied to the device
    return tensor(confidence=2, why=call.node, source=held)


Maker = Callable[[Call], Fact]


def _annotated(call: Call) -> Fact:
    """`torch.jit.annotate(List[Tensor], x)` is x."""
    if len(call.args) <= 1:
        return UNKNOWN
    given = call.args[1]
    return given if given.kind is not NOTHING_KNOWN else annotated(call.frame.module, call.nodes[0])


def _loader(call: Call) -> Fact:
    """Its batches are made on the host, but for those of tensors that lie on the device: rows of them are stacked there."""
    held = call.given(0, "dataset")
    return Fact(OTHER, device=held.device if held.ref == TENSORS_HELD else SOMEWHERE, confidence=3, ref=LOADER)


def _tensors_held(call: Call) -> Fact:
    return Fact(OTHER, device=device_of(*call.args), confidence=3, ref=TENSORS_HELD)


def _grouped(call: Call) -> Fact:
    """Lists of an optimizer by device and dtype: in each group as many lists as it was given, of the same tensors."""
    return items(sequence(call.first, UNKNOWN), {})


_EXACT: dict[str, Maker] = {
    **dict.fromkeys(("torch.nn.Parameter", "torch.nn.parameter.Parameter"), _parameter),
    **dict.fromkeys(("torch.nn.Buffer", "torch.nn.parameter.Buffer"), _parameter),
    **dict.fromkeys(
        ("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader"),
        _loader,
    ),
    **dict.fromkeys(("torch.utils.data.TensorDataset", "torch.utils.data.dataset.TensorDataset"), _tensors_held),
    **dict.fromkeys(("torch.utils.data.Subset", "torch.utils.data.dataset.Subset"), lambda call: call.first),
    **dict.fromkeys(
        ("torch.utils.data.random_split", "torch.utils.data.dataset.random_split"), lambda call: items(call.first)
    ),
    **dict.fromkeys(
        ("torch.utils.data.BatchSampler", "torch.utils.data.sampler.BatchSampler"), lambda _: items(listed(INTEGER))
    ),
    "torch.distributed.barrier": lambda call: _waited(call, Op.BARRIER),
    **dict.fromkeys(
        (
            "torch.autograd.set_detect_anomaly",
            "torch.autograd.detect_anomaly",
            "torch.autograd.anomaly_mode.detect_anomaly",
        ),
        _anomaly,
    ),
    **dict.fromkeys(("torch.autograd.Variable", "torch.autograd.variable.Variable"), lambda call: call.first),
    "torch.autograd.grad": _gradients,
    "torch.utils.checkpoint.checkpoint": _checkpointed,
    "torch.jit.script": lambda call: call.first,
    "torch.jit.annotate": _annotated,
    **dict.fromkeys(
        (
            "torch.optim.Optimizer._group_tensors_by_device_and_dtype",
            "torch.optim.optimizer.Optimizer._group_tensors_by_device_and_dtype",
            "torch.utils._foreach_utils._group_tensors_by_device_and_dtype",
        ),
        _grouped,
    ),
    "torch.jit.load": lambda _: Fact(MODULE, confidence=2),
}
_UNDER: dict[str, Maker] = {  # the first that fits
    "torch.nn.utils.": _nn_utils,
    "torch.nn.init.": lambda call: call.first if call.word.endswith("_") else UNKNOWN,
    "torch.nn.": modules.made,
    "torch.distributions.": distributions.made,
    "torch.optim.": lambda call: _object(call.name),
    "torch.ops.": _operator,
    "torch.hub.load": lambda _: Fact(MODULE, confidence=2),
    "torch.autograd.functional.": lambda call: tensor(confidence=2, why=call.node),
    "torch.sparse.": _other_layout,
    "torch.nested.": _other_layout,
}


# -- what they can do


def object_method(call: Call, made_by: str) -> Fact:
    """Methods of an object that calling a name has made: of distributions, optimizers, scalers, streams."""
    word, node = call.word, call.node
    if made_by.startswith("torch.distributions."):
        return distributions.method(call, made_by)
    if made_by.startswith("torch.optim."):
        call.frame.work = True
        if _READS_IN.get(made_by.rpartition(".")[2]) == word:
            call.emit(Op.LIBRARY_READ, node.func, tensor(confidence=3, why=node))
        if word == "step" and made_by.endswith(".ReduceLROnPlateau") and call.first.kind is TENSOR:
            call.emit(Op.FLOAT, call.first_node, call.first)  # compared with the best, on the host
        return UNKNOWN
    if made_by == "torch.cuda.Stream":
        if word == "synchronize":
            call.frame.work = False
            return _waited(call, Op.SYNCHRONIZE)
        return NONE if word in ("wait_stream", "wait_event", "wait") else UNKNOWN
    if made_by.endswith(_SCALERS):
        scales = made_by.endswith(_SCALERS[0])
        read = tensor(confidence=call.receiver.confidence, why=node)
        if word == "step" and scales:
            call.emit(Op.GRAD_SCALER, node.func, read)
        if word in SCALE_READ_BY and scales:
            call.emit(Op.LOSS_SCALE, node.func, read)
        return call.first if word == "scale" else UNKNOWN
    return element(call.receiver) if made_by == "builtins.dict" else UNKNOWN
