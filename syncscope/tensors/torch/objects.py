"""Methods of what is no tensor: modules, distributions, optimizers, containers, strings, loggers."""

from __future__ import annotations

import ast

from syncscope.model.fact import UNKNOWN, Fact
from syncscope.tensors.attributes import set_attribute
from syncscope.tensors.facts import (
    BOOL,
    FIXED,
    FLOAT,
    HOST,
    INT,
    INTEGER,
    MODULE,
    NONE,
    STRING,
    TENSOR,
    Items,
    any_value,
    device_of,
    element,
    items,
    join,
    sequence,
    tensor,
)
from syncscope.tensors.frame import Frame, dotted, evaluate, holds_tensor
from syncscope.tensors.functions import forward
from syncscope.tensors.scope import Instance, find_method
from syncscope.tensors.torch.signatures import (
    TORCH_ONLY,
)

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


LOGGERS = {
    "log_metrics",
    "add_scalar",
    "add_scalars",
    "add_histogram",
    "set_postfix",
    "set_postfix_str",
    "set_description",
    "log_metric",
}


def loose(frame: Frame, node: ast.Call, word: str, owner: Fact, args: list[Fact], keywords: Keywords) -> None:
    """Calls that tell by their name alone: loggers, scalers, progress bars."""
    if word in _LOGGING and args and (args[0].ref == "str" or args[0] is STRING):
        for position, fact in enumerate(args[1:], 1):
            if fact.kind is TENSOR:
                frame.emit("format", node, node.args[position], fact)
    elif word in LOGGERS:
        logged(frame, node, args, keywords)
    elif word == "backward":
        frame.work = True
    elif word == "step" and isinstance(node.func, ast.Attribute):
        frame.work = True
        name = dotted(node.func.value).rpartition(".")[2]
        if name in ("scaler", "grad_scaler", "_scaler", "amp_scaler") and len(args) == 1:
            frame.emit("grad_scaler", node, node.func.value, tensor(confidence=2, why=node))


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
        return items(tensor(FLOAT, confidence=3, why=node, shape=FIXED))
    if word in ("named_parameters", "named_buffers"):
        return items(sequence((STRING, tensor(FLOAT, confidence=3, why=node, shape=FIXED))))
    if word in ("state_dict",):
        return items(tensor(confidence=2, why=node), {})
    if word in ("modules", "children"):
        return items(Fact(MODULE, confidence=2))
    if word in ("named_modules", "named_children"):
        return items(sequence((STRING, Fact(MODULE, confidence=2))))
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
            where = owner.device if owner.device is not HOST or not args else device_of(*args)
            if not off and where is not HOST:
                frame.emit(
                    "distribution_validate",
                    node,
                    node.args[0] if node.args else None,
                    held or tensor(device=where, confidence=2, why=node),
                    2,
                )
            return tensor(FLOAT, where if held is None else device_of(held), 3, node)
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
        if word == "step" and text == "torch.optim.LBFGS()":  # its line search compares losses on the host
            frame.emit("library_read", node, node.func, tensor(confidence=3, why=node))
        return UNKNOWN
    if text == "torch.cuda.Stream()":
        if word == "synchronize":
            frame.work = False
            frame.emit("synchronize", node, None, tensor(confidence=3, why=node))
        return NONE if word in ("synchronize", "wait_stream", "wait_event", "wait") else UNKNOWN
    if text == "torch.amp.GradScaler()":
        if word == "step":
            frame.emit("grad_scaler", node, node.func, tensor(confidence=3, why=node))
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
            path = dotted(receiver)
            if path:
                frame.env[path] = both
            if isinstance(receiver, ast.Attribute):
                holder = evaluate(frame, receiver.value)
                if isinstance(holder.ref, Instance):
                    set_attribute(holder, receiver.attr, both)
        return NONE
    if word in ("items",):
        return items(sequence((UNKNOWN, any_value(owner))))
    if word in ("values",):
        return items(any_value(owner))
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
