"""Modules of torch: made on the host, moved as a whole, called."""

from __future__ import annotations

import ast
import re

from syncscope.model.fact import UNKNOWN, Device, Fact
from syncscope.model.heat import Reason
from syncscope.model.ops import Op
from syncscope.project.names import ancestry, find_method, outside
from syncscope.project.syntax import dotted, walk
from syncscope.tensors.attributes import prepare
from syncscope.tensors.call import Call
from syncscope.tensors.facts import (
    DEVICE,
    FIXED,
    HOST,
    INTEGER,
    MODULE,
    OF_PARAMETERS,
    SEQUENCE,
    SOMEWHERE,
    STRING,
    TENSOR,
    device_of,
    items,
    parameter,
    sequence,
    tensor,
)
from syncscope.tensors.frame import evaluate
from syncscope.tensors.instances import Instance
from syncscope.tensors.torch.moves import asked_for
from syncscope.tensors.torch.ranks import of_layer

_CONTAINERS = frozenset("Sequential ModuleList ModuleDict DataParallel DistributedDataParallel".split())
_WITH_PARAMETERS = re.compile(
    r"(Lazy)?(Linear|Bilinear|Conv|BatchNorm|SyncBatchNorm|GroupNorm|LayerNorm|RMSNorm|Embedding|RNN|LSTM|GRU|MultiheadAttention|"
    r"Transformer|PReLU|AdaptiveLogSoftmax|ParameterList|ParameterDict)"
)
_SIZED = re.compile(r"Linear|Bilinear|Conv|Embedding$|RNN$|LSTM$|GRU$|BatchNorm")
"""Layers whose first two arguments are numbers."""
_ITSELF = frozenset(
    """to cuda cpu eval train half float double requires_grad_ bfloat16 apply compile share_memory""".split()
)


def made(call: Call) -> Fact:
    """`torch.nn.Linear(3, 4)`: on the host where no device is named; one that is made of others lives where they do."""
    word = call.word
    if not word[:1].isupper():
        return UNKNOWN
    if _SIZED.match(word):
        _sizes_are_numbers(call)
    parts = tuple(call.args) if word in _CONTAINERS and not call.spread else ()
    if word.endswith("Loss"):
        given = (*call.args, *call.keywords.values())  # weights of classes, which are its buffers
        parts = tuple(fact for fact in given if fact.kind is TENSOR and fact.device is HOST)
    if word in _CONTAINERS:
        device = parts[0].device if parts and all(p.device is parts[0].device for p in parts) else SOMEWHERE
    else:
        device = call.where_made(call.by_default)
    return Fact(MODULE, device=device, confidence=3, ref=f"torch.nn.{word}", elements=parts)


def _sizes_are_numbers(call: Call) -> None:
    """What a layer is told its sizes with is a number, even where a function that it came through uses it as a tensor."""
    for node, fact in call.tensors():
        if node not in call.nodes[:2] or fact.confidence > 2 or not isinstance(node, ast.Attribute):
            continue
        owner = evaluate(call.frame, node.value).ref
        if isinstance(owner, Instance) and node.attr in owner.cls.attributes:
            owner.cls.attributes[node.attr] = call.frame.env[dotted(node)] = INTEGER


def method(call: Call) -> Fact | None:
    """Methods that every nn.Module has, but for calling it; None: it is none of them."""
    word, node, owner = call.word, call.node, call.receiver
    if word in _ITSELF:
        if isinstance(owner.ref, Instance) and find_method(owner.ref.cls, word) is not None:
            return None
        return _moved(call) if word in ("to", "cuda", "cpu") else owner
    if word in ("parameters", "buffers"):
        return items(parameter(owner, node))
    if word in ("named_parameters", "named_buffers"):
        return items(sequence(STRING, parameter(owner, node)))
    if word in ("values", "items") and owner.ref in OF_PARAMETERS:
        return items(parameter(owner, node) if word == "values" else sequence(STRING, parameter(owner, node)))
    if word == "predict" and isinstance(owner.ref, str) and owner.ref.endswith(".AdaptiveLogSoftmaxWithLoss"):
        call.emit(Op.LIBRARY_READ, call.first_node, tensor(device=owner.device, confidence=2, why=node))
    if word == "state_dict":
        return items(tensor(device=owner.device, confidence=2, why=node), {})
    if word in ("modules", "children"):
        return items(Fact(MODULE, confidence=2))
    if word in ("named_modules", "named_children"):
        return items(sequence(STRING, Fact(MODULE, confidence=2)))
    return None


def _is_made_here(call: Call) -> bool:
    """Whether a module has a name of this function, which makes it anew each time that it runs, or is a loss without one."""
    frame = call.frame
    if isinstance(call.at, ast.Call) and _weights_classes(call.receiver):
        return True
    return frame.function is not None and isinstance(call.at, ast.Name) and call.at.id not in frame.function.names


def _moved(call: Call) -> Fact:
    """`model.to(device)`: its parameters are copied one by one, and it is the same object afterwards."""
    owner = call.receiver
    target: Device | None = {"cuda": DEVICE, "cpu": HOST}.get(call.word) or asked_for(call)[0]
    if target is None or target is owner.device:
        return owner
    if owner.device is HOST and target is not HOST and holds_parameters(owner) and not call.flag("non_blocking"):
        before = call.frame.around
        if not _is_made_here(call):
            call.frame.around = Reason.MOVED()
        call.emit(Op.TO_DEVICE, call.at, Fact(MODULE, device=target, confidence=3, why=call.node), 2)
        call.frame.around = before
    moved = owner.but(device=target)
    path = dotted(call.at) if call.at is not None and owner.device is HOST else ""
    if path in call.frame.env:
        call.frame.env[path] = moved
    return moved


def _weights_classes(module: Fact) -> bool:
    """Whether this is a loss that was given a tensor of the host: `nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0]))`."""
    return isinstance(module.ref, str) and module.ref.endswith("Loss") and bool(module.elements)


def holds_parameters(module: Fact, depth: int = 0) -> bool:
    """Whether a module surely holds something that can be moved: most losses and activations do not."""
    ref = module.ref
    if isinstance(ref, str):
        word = ref.rpartition(".")[2]
        if _weights_classes(module):
            return True
        if word in _CONTAINERS:
            return not module.elements or any(holds_parameters(part, depth) for part in module.elements)
        return bool(_WITH_PARAMETERS.match(word)) or ref.startswith("torchvision.models.")
    if not isinstance(ref, Instance) or depth > 4:
        return False
    if any(
        base.startswith("torch.nn.") and _WITH_PARAMETERS.match(base.rpartition(".")[2]) for base in outside(ref.cls)
    ):
        return True
    for each in ancestry(ref.cls):
        prepare(each)
        for fact in each.attributes.values():
            if fact.kind is TENSOR and fact.shape is FIXED:  # a parameter or a buffer
                return True
            if fact.kind is MODULE and holds_parameters(fact, depth + 1):
                return True
        init = each.methods.get("__init__")
        if init is not None and not _asks_its_base(init.node):
            return False
    return False


def _asks_its_base(init: ast.AST) -> bool:
    """Whether `__init__` has its base set up, too, and not only `nn.Module`."""
    names = (node for node in walk(init) if isinstance(node, ast.Attribute) and node.attr == "__init__")
    return any(not dotted(name.value).endswith("Module") for name in names)


def result(module: Fact, node: ast.AST, args: list[Fact]) -> Fact:
    """What calling an nn.Module gives whose code is not seen."""
    confidence = min(2, module.confidence)
    device = _where(module, args)
    output = tensor(device=device, confidence=confidence, why=node)
    ref = module.ref
    if not (isinstance(ref, str) and ref.startswith("torch.nn.")):
        return output

    def pair(one: Fact, other: Fact) -> Fact:
        return Fact(SEQUENCE, confidence=confidence, elements=(one, other))

    word = ref.rpartition(".")[2]
    if word == "LSTM":
        return pair(output, pair(output, output))
    if word in ("GRU", "RNN", "LSTMCell", "MultiheadAttention"):
        return pair(output, output)
    known = 3 if module.confidence == 3 and word != "Module" else 2  # of any module it may be a dict
    return tensor(device=device, confidence=known, why=node, ndim=of_layer(word, args))


def _where(module: Fact, args: list[Fact]) -> Device:
    """Where the output of a module lives: devices are not mixed, so beside a module of the host what it is given tells."""
    if module.device is not HOST:
        return module.device
    given = [fact for fact in args if fact.kind is TENSOR]
    return device_of(*given) if given and len(given) == len(args) else SOMEWHERE
