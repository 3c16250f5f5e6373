"""Objects of torch: distributions, optimizers, loaders, streams and switches; how they are made, what they can do."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from functools import lru_cache

from syncscope.model.fact import UNKNOWN, Fact
from syncscope.model.heat import Role
from syncscope.model.ops import Op
from syncscope.project import conventions
from syncscope.project.modules import Class
from syncscope.project.names import ancestry, outside
from syncscope.project.parsed import Parsed
from syncscope.project.syntax import name_of
from syncscope.tensors.annotations import annotated
from syncscope.tensors.call import Call
from syncscope.tensors.facts import (
    ANY_DTYPE,
    ARRAY,
    BOOL,
    DEVICE,
    DISTRIBUTIONS,
    DYNAMIC,
    FIXED,
    FLOAT,
    HOST,
    INT,
    LOADER,
    MODULE,
    NONE,
    OTHER,
    SEQUENCE,
    SOMEWHERE,
    TENSOR,
    TENSORS_HELD,
    THING,
    device_of,
    holds_tensor,
    is_distribution,
    items,
    sequence,
    tensor,
)
from syncscope.tensors.frame import of_host
from syncscope.tensors.joins import element
from syncscope.tensors.torch import modules
from syncscope.tensors.torch.factories import is_setting
from syncscope.tensors.torch.host_values import numbers_broadcast
from syncscope.tensors.torch.results import operand_of, subject
from syncscope.tensors.torch.signatures import table

NOTHING_KNOWN = UNKNOWN.kind
_ACCELERATORS = frozenset(f"torch.{name}" for name in ["cuda", "xpu", "mps", "accelerator", "ocl", "npu", "hpu"])
# What optimizers and averages read or copy in each step: losses of a line search, rates, the number of averaged models.
_READS_IN = {"LBFGS": "step", "ASGD": "step", "Adafactor": "step", "AveragedModel": "update_parameters"}
_SCALERS = ("torch.amp.GradScaler", "torch.amp.DisabledScaler")
_READ_TO_SAMPLE = frozenset(("MixtureSameFamily", "RelaxedBernoulli", "RelaxedOneHotCategorical", "VonMises"))
# They check no parameters: those are of the distribution that they are made of, which is the argument of this place and name.
_MADE_OF_OTHERS = {
    "Independent": (0, "base_distribution"),
    "MixtureSameFamily": (1, "component_distribution"),
    "TransformedDistribution": (0, "base_distribution"),
}
_SORTS = b"enforce_sorted"
_FACTORED = frozenset(("LowRankMultivariateNormal", "MultivariateNormal", "Wishart"))  # by Cholesky when they are made


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
        switch = next((k.value for k in call.node.keywords if k.arg == "enabled"), None)
        off = isinstance(switch, ast.Constant) and switch.value is False  # then it only hands on what it is given
        return _object("torch.amp.DisabledScaler" if off else "torch.amp.GradScaler")
    return UNKNOWN


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


def _distribution(call: Call) -> Fact:
    word, node = call.word, call.node
    if word == "kl_divergence":
        return tensor(FLOAT, confidence=3, why=node)
    if word not in table().distributions:
        return UNKNOWN
    given = (*call.args, *call.keywords.values())
    nodes = (*call.nodes, *(each.value for each in node.keywords))
    inside = (holds_tensor(call.keywords.get(None, UNKNOWN)),)  # of `**parameters`
    held = next((f for f in (*given, *inside) if f is not None and f.kind is TENSOR), None)
    unknown = any(f.kind is NOTHING_KNOWN and not is_setting(at) for f, at in zip(given, nodes, strict=False))
    open_ = unknown and not any(f.kind is ARRAY for f in given)
    unchecked = _unchecked(call)
    if word in _MADE_OF_OTHERS:
        unchecked = _made_of_unchecked(call, unchecked)
    else:
        if held is None and open_ and word[:1].isupper():
            held = tensor(confidence=2, why=node)  # numbers make none that anybody trains
        if held is not None and not unchecked and not word.endswith("Transform"):
            held = held.but(confidence=max(held.confidence, 2))  # what a distribution is made of is tensors
            call.emit(Op.DISTRIBUTION_VALIDATE, call.nodes[0] if call.nodes else node.keywords[0].value, held)
    numbers_broadcast(call)
    if held is not None and word in _FACTORED and "scale_tril" not in call.keywords:
        call.emit(Op.LINALG_CHECK, call.nodes[0] if call.nodes else node.keywords[0].value, held, 2)
    lives = held or next(filter(is_distribution, given), None)
    if lives is not None:
        device = lives.device
    else:
        device = SOMEWHERE if unknown else HOST
    return Fact(
        OTHER,
        BOOL if unchecked else ANY_DTYPE,
        device,
        confidence=3 if held is not None else 2,
        ref=f"torch.distributions.{word}()",
    )


def _made_of_unchecked(call: Call, itself: bool) -> bool:
    """Whether a distribution over another asks nothing of a value: that has no checks, and it has none itself.

    Of one that is made right here of a class that is not known it is said that it checks its parameters.
    """
    place = _MADE_OF_OTHERS[call.word]
    of, at = call.given(*place), call.node_of(*place)
    if of.kind is NOTHING_KNOWN and isinstance(at, ast.Call) and not checks_are_off(call):
        says = (keyword.arg for keyword in at.keywords)
        if "validate_args" not in says and conventions.makes_distribution(name_of(at.func)):
            call.frame.emit(Op.DISTRIBUTION_VALIDATE, at, at.func, tensor(confidence=2, why=at), 2)
    return of.dtype is BOOL and (itself or call.word == "Independent")


def _anomaly(call: Call) -> Fact:
    first = call.first_node
    if isinstance(first, ast.Constant) and first.value is False:
        return THING
    return _waited(call, Op.ANOMALY, THING)


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
    "torch.distributions.": _distribution,
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
        return _of_distribution(call, made_by)
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
    if made_by in _SCALERS:
        if word == "step" and made_by == _SCALERS[0]:
            call.emit(Op.GRAD_SCALER, node.func, tensor(confidence=3, why=node))
        return call.first if word == "scale" else UNKNOWN
    return element(call.receiver) if made_by == "builtins.dict" else UNKNOWN


def _of_distribution(call: Call, made_by: str) -> Fact:
    word, node, owner = call.word, call.node, call.receiver
    if word in ("__init__", "_validate_sample"):
        return _checked_by_base(call, made_by)
    if word in ("log_prob", "cdf"):
        held = call.first_tensor()
        where = owner.device if owner.device is not HOST or not call.args else device_of(*call.args)
        unchecked = owner.dtype is BOOL
        if not unchecked and where is not HOST and not checks_are_off(call):
            waits = held.but(confidence=max(held.confidence, 2)) if held is not None else None  # it takes nothing else
            waits = waits or tensor(device=where, confidence=2, why=node)
            inherited = isinstance(call.at, ast.Call) and name_of(call.at.func) == "super"
            call.emit(Op.DISTRIBUTION_VALIDATE, call.first_node, waits, 1 if inherited else 2)
        return tensor(FLOAT, where if held is None else device_of(held), 3, node)
    if word in ("sample", "rsample", "entropy", "icdf", "sample_n", "enumerate_support", "perplexity"):
        if word.endswith("sample") and made_by.rpartition(".")[2] in _READ_TO_SAMPLE:
            call.emit(Op.LIBRARY_READ, node.func, tensor(device=owner.device, confidence=2, why=node))
        numbered = "Categorical" in made_by and "OneHot" not in made_by and word == "sample"
        return tensor(INT if numbered else FLOAT, owner.device, 3, node)
    return owner if word == "expand" else UNKNOWN


def inherited_of_distribution(call: Call, cls: Class) -> Fact:
    """A method that a class of the project has from `torch.distributions`."""
    base = next((name for name in outside(cls) if name.startswith(DISTRIBUTIONS)), "")
    return UNKNOWN if not base or base.endswith("Transform") else _of_distribution(call, base)


def _checked_by_base(call: Call, made_by: str) -> Fact:
    """`super().__init__()` and `self._validate_sample(x)` in a distribution of the project: they check as torch's own do."""
    cls, made = call.frame.cls, call.word == "__init__"
    if cls is not None and not _unchecked(call) and not (made and not _constrains(cls, made_by.rpartition(".")[2])):
        at = call.node.func if made else call.first_node
        sure = 1 if made else 2  # whoever makes it may switch that off
        call.emit(Op.DISTRIBUTION_VALIDATE, at, tensor(confidence=2, why=call.node), sure)
    return NONE


def _constrains(cls: Class, base: str) -> bool:
    """Whether a distribution has parameters that are checked: those of its nearest class that names any."""
    for each in ancestry(cls):
        for statement in each.node.body:
            match statement:
                case ast.Assign(targets=[ast.Name(id="arg_constraints")], value=value):
                    return not (isinstance(value, ast.Dict) and not value.keys)
                case ast.FunctionDef(name="arg_constraints"):
                    return True
    return base not in _MADE_OF_OTHERS and base not in ("Distribution", "ExponentialFamily")


def _unchecked(call: Call) -> bool:
    """Whether a distribution is not checked: it is told so, or the project or torch.compile has switched all checks off."""
    for keyword in call.node.keywords:
        if keyword.arg == "validate_args":
            return isinstance(keyword.value, ast.Constant) and keyword.value.value is False
    return checks_are_off(call)


def checks_are_off(call: Call) -> bool:
    """Whether the project, or torch.compile in it, has switched off what distributions check where nothing else is said."""
    module = call.frame.module
    return module.project.role(module.path, "validate_args") is Role.UNREACHED or _compiles(module.parsed)


# What is compiled as the file is read; torch._dynamo then switches the checks off, for all that runs in this process.
_COMPILED = re.compile(rb"^(?:@torch\.compile\b|\w+ = torch\.compile\()(?![^\n]*disable)", re.MULTILINE)


@lru_cache(maxsize=8)
def _compiles(parsed: Parsed) -> bool:
    return b"torch.compile" in parsed.source and _COMPILED.search(parsed.source) is not None
