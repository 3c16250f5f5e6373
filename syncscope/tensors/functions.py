"""Running a function over facts: its parameters as far as they are known, its body once, what it gives back."""

from __future__ import annotations

import ast
import re

from syncscope.model.fact import UNKNOWN, Fact
from syncscope.tensors import hotness
from syncscope.tensors.annotations import annotated
from syncscope.tensors.facts import (
    ANY_DTYPE,
    ARRAY,
    BOOL,
    DEFAULT,
    HOST,
    INTEGER,
    MODULE,
    NONE,
    OTHER,
    SCALAR,
    SEQUENCE,
    SOMEWHERE,
    SPREAD,
    STRING,
    TENSOR,
    items,
    join,
    tensor,
)
from syncscope.tensors.frame import STATEMENTS, Frame
from syncscope.tensors.project import Class, Function
from syncscope.tensors.scope import Instance, find_method, instance, is_module, outside

NOTHING_KNOWN = UNKNOWN.kind
_DEEPEST = 16  # calls into calls: what lies deeper is unknown
_INLINED = 2  # of them for particular arguments
_FORWARD = {
    "forward",
    "training_step",
    "validation_step",
    "test_step",
    "predict_step",
    "shared_step",
    "_shared_step",
    "compute_loss",
}
_NAMED_LIKE_TENSORS = frozenset(
    [
        "x",
        "input",
        "inputs",
        "logits",
        "target",
        "targets",
        "label",
        "labels",
        "mask",
        "attention_mask",
        "input_ids",
        "hidden_states",
        "pred",
        "preds",
        "prediction",
        "predictions",
        "loss",
        "scores",
        "boxes",
        "embeddings",
        "features",
        "feats",
        "images",
        "tensor",
        "query",
        "key",
        "value",
        "keys",
        "values",
        "queries",
        "z",
        "h",
    ]
)
_OF_DICTS = {"key", "keys", "value", "values"}  # tensors only beside a query
# Arguments of `forward` that are called like a number, a flag or a name of something are no tensors.
_COUNTS = re.compile(
    r"(^|_)(num|n|number|count|size|sizes|shape|dim|dims|dimensions|height|width|length|level|layers?|heads?|scale|factor|step|"
    r"epoch|seed|type|mode|name|names|idx|temperature|reduction|stride|eps|axis|kwargs|config)$|"
    r"^(num|n|max|min|use|is|has|with|return|output|do|should)_|^[hwijk]$|_list$"
)
# A default says what is usual, not what comes.
_USUAL = Fact(SCALAR, device=HOST, confidence=1)
_DEFAULTS = {int: _USUAL, float: _USUAL, bool: _USUAL, str: STRING}


def parameters(function: Function, frame: Frame) -> None:
    """Bind the parameters: by annotation, by what callers pass, by how they are used, by what people call them."""
    node = function.node
    arguments = node.args
    env = frame.env
    module = function.module
    positional = [*arguments.posonlyargs, *arguments.args]
    cls = function.cls
    host = frame.on_host = hotness.on_host(function)
    building = cls is not None and function.name == "__init__" and instance(cls).kind is MODULE
    first = 0
    forward = False
    if cls is not None and positional and "staticmethod" not in function.decorators():
        owner = instance(cls)
        env[positional[0].arg] = Fact(OTHER, confidence=3, ref=cls) if "classmethod" in function.decorators() else owner
        first = 1
        forward = function.name in _FORWARD and owner.kind is MODULE
    frame.on_host = host or building  # a module is built on the host, then moved
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    pairs = [
        *zip(positional[first:], defaults[first:], strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    names = {each.arg for each, _ in pairs}
    for argument, default in pairs:
        name = argument.arg
        known = (
            annotated(module, argument.annotation, f"`{name}` is annotated as a tensor")
            if argument.annotation
            else UNKNOWN
        )
        passed = function.passed.get(name)
        if cls is not None and (known is INTEGER or (known.kind is TENSOR and known.confidence == 1)):
            known = one_of_many(cls, name, frame) or known
        if passed is not None and name_is_private(function) and _contradicts(passed, known):
            known = passed  # whatever the annotation says
        elif known.kind is TENSOR and known.confidence >= 3:
            if passed is not None and passed.kind is TENSOR and passed.confidence >= 2:
                known = Fact(
                    TENSOR,
                    passed.dtype if passed.dtype is not ANY_DTYPE else known.dtype,
                    passed.device if function.closure is not None else known.device,
                    passed.shape,
                    passed.ndim,
                    3,
                    known.provenance,
                    ref=known.ref,
                    source=passed,
                )
        elif known is UNKNOWN or known.kind is TENSOR:
            weight = frame.used.get(name, 0)
            if isinstance(default, ast.Constant) and default.value is not None:
                known = (
                    _DEFAULTS.get(type(default.value), UNKNOWN) if not weight or argument.annotation is None else known
                )
            elif weight == 2:
                known = tensor(known.dtype, confidence=2, why=f"`{name}` is used as only a tensor can be")
            elif argument.annotation is None:
                if weight and env and next(iter(env.values())).kind is MODULE:
                    known = tensor(confidence=2, why=f"`{name}` is used like an array in an nn.Module")
                elif forward and not _COUNTS.search(name):
                    known = tensor(confidence=1, why=f"`{name}` is an argument of `{function.name}`")
                elif name in _NAMED_LIKE_TENSORS and not host and (name not in _OF_DICTS or "query" in names):
                    known = tensor(confidence=1, why=f"`{name}` is what people call a tensor")
            if passed is not None and (known.kind is not TENSOR or passed.kind is TENSOR):
                known = (
                    passed
                    if passed.kind is not TENSOR or passed.confidence >= known.confidence
                    else passed.but(confidence=known.confidence)
                )
        if known.kind is TENSOR and frame.on_host:
            known = Fact(TENSOR, known.dtype, HOST, known.shape, known.ndim, known.confidence, known.provenance)
        if known is not UNKNOWN:
            env[name] = known
    if arguments.vararg is not None and arguments.vararg.annotation is not None:
        env[arguments.vararg.arg] = items(annotated(module, arguments.vararg.annotation))
    if arguments.kwarg is not None and arguments.kwarg.annotation is not None:
        env[arguments.kwarg.arg] = items(annotated(module, arguments.kwarg.annotation))


def _contradicts(passed: Fact, known: Fact) -> bool:
    """Whether what is passed is an array where a tensor is announced, or a tensor in place of a number."""
    if known.kind is TENSOR:
        return passed.kind is ARRAY
    return (
        known.kind is SCALAR
        and known.confidence == 3
        and passed.kind is TENSOR
        and passed.confidence >= 2
        and passed.ndim == 0
    )


def one_of_many(cls: Class, name: str, frame: Frame) -> Fact | None:
    """An argument `step` of an object that holds a tensor `steps`: one of its elements, though it be annotated as an int."""
    from syncscope.tensors.attributes import attribute  # a cycle: attributes are what set-up methods set

    many = attribute(instance(cls), f"{name}s", frame)
    if many is None or many.kind is not TENSOR or many.confidence < 2:
        return None
    return tensor(many.dtype, confidence=2, why=f"`{name}` is one of `self.{name}s`", ndim=0)


def name_is_private(function: Function) -> bool:
    """Whether its callers are all in its own file, most likely."""
    return function.name.startswith("_") and not function.name.endswith("__")


def execute(frame: Frame, body: list[ast.stmt]) -> None:
    """Run statements until the block ends or cannot go on."""
    for statement in body:
        STATEMENTS[statement.__class__](frame, statement)
        if frame.dead:
            return


def run(function: Function, depth: int = 0) -> Fact:
    """What a function gives back for what is known of its parameters; its waits are kept in `function.sites`."""
    if function.result is not None:
        return function.result
    module = function.module
    if function.running or depth > _DEEPEST:
        module.project.cut.add(function if function.running else module)
        return promised(function)
    with Settling(function, function):
        frame = Frame(module, function, _outer(function), {} if module.linted else None, depth)
        frame.used = used(function)
        parameters(function, frame)
        execute(frame, function.node.body)
        if module.linted:
            finish(frame)
        function.result = conclude(function, frame)
        function.sites = frame.waits
        function.inner = frame.nested
    return function.result


class Settling:
    """Mark a function as running, and what comes of it as unsettled when it met itself or another that is running.

    An unsettled answer depends on where the analysis came from. It serves for the file at hand and is then forgotten, so that
    what is said of a file never depends on the files seen before it.
    """

    __slots__ = ("before", "function", "what")

    def __init__(self, function: Function | None, what: Function | Class) -> None:
        self.function = function
        self.what = what

    def __enter__(self) -> None:
        project = self.what.module.project
        self.before = project.cut
        project.cut = set()
        if self.function is not None:
            self.function.running = True

    def __exit__(self, *error: object) -> None:
        project = self.what.module.project
        mine = project.cut
        if self.function is not None:
            self.function.running = False
            mine.discard(self.function)
        if mine and not self.what.module.linted:
            project.unsettled.append(self.what)
        project.cut = self.before | mine


def _outer(function: Function) -> Frame | None:
    return function.closure if isinstance(function.closure, Frame) else None


def used(function: Function) -> dict[str, int]:
    """How the names of a function are used."""
    node = function.node
    return function.module.usage.between(node.lineno, node.end_lineno or node.lineno)


def finish(frame: Frame) -> None:
    """Run the functions that were defined inside, now that the names around them are known."""
    for inner in frame.nested:
        run(inner, frame.depth)


def promised(function: Function) -> Fact:
    """What the annotation of a function says it returns."""
    return annotated(function.module, function.node.returns, f"`{function.name}` is annotated to return a tensor")


def conclude(function: Function, frame: Frame) -> Fact:
    """The join of what was returned, and what the annotation adds."""
    found: Fact | None = None
    for each in frame.returns:
        found = each if found is None else join(found, each, DEFAULT)
    if found is not None and found.kind is TENSOR:
        numbers = [each for each in frame.returns if each.kind is SCALAR]
        if numbers:
            asked = found.dtype is BOOL and all(each.dtype is BOOL for each in numbers)  # for tensors and numbers alike
            confidence = min(found.confidence, 2 if asked else 1)
            found = Fact(TENSOR, found.dtype, found.device, found.shape, found.ndim, confidence, (), source=found)
    if isinstance(function.node, ast.AsyncFunctionDef):
        return UNKNOWN
    found = found or NONE
    if function.node.returns is not None and found.kind is not ARRAY:  # arrays, whatever the annotation says
        said = promised(function)
        if said.kind is TENSOR and found.kind is TENSOR:
            if said.confidence > found.confidence:
                return Fact(
                    TENSOR,
                    found.dtype,
                    found.device,
                    found.shape,
                    found.ndim,
                    said.confidence,
                    said.provenance,
                    source=found,
                )
        elif said.kind is not NOTHING_KNOWN and (
            found.kind is NOTHING_KNOWN or found is NONE or said.kind is not SEQUENCE
        ):
            return said
    return found


def call(
    function: Function, frame: Frame, args: list[Fact], keywords: dict[str | None, Fact], owner: Fact | None = None
) -> Fact:
    """The result of calling a function of the project, and note what was passed for its parameters."""
    node = function.node
    here = function.module is frame.module
    arguments = node.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    if function.cls is not None and names and (owner is not None) and "staticmethod" not in function.decorators():
        names = names[1:]
    given: dict[str, Fact] = dict(zip(names, args, strict=False))
    given.update((name, fact) for name, fact in keywords.items() if name is not None)
    missing = [] if None in keywords or any(each is SPREAD for each in args) else left_out(function, given)
    if here and not function.module.linted:
        result = run(function, frame.depth + 1)
    elif here and function.result is None and not function.running:
        note(function, given)
        result = run(function, frame.depth + 1)
    elif here:
        if note(function, given) and not function.running:
            frame.module.functions.append(function)
        result = function.result if function.result is not None else promised(function)
    elif function.node.returns is not None:
        result = promised(function)
        if result.kind is not SEQUENCE and result.kind is not TENSOR and result.kind is not NOTHING_KNOWN:
            return result
        better = run(function, frame.depth + 1)
        result = better if better.kind is not NOTHING_KNOWN else result
    else:
        result = run(function, frame.depth + 1)
    if result.kind is NOTHING_KNOWN or (result.kind is TENSOR and result.confidence < 2) or result.kind is SEQUENCE:
        better = particular(function, frame, given, missing)
        if better.kind is not NOTHING_KNOWN:
            result = better
    elif result.kind is TENSOR and result.device is SOMEWHERE and "device" in missing:
        better = particular(function, frame, given, missing)
        if better.kind is TENSOR and better.device is HOST:
            result = result.but(device=HOST)
    if result.kind is TENSOR and result.device is SOMEWHERE and any(f.device is DEFAULT for f in given.values()):
        return result.but(device=DEFAULT)
    return on_host(result) if result.kind in (TENSOR, SEQUENCE) and all_on_host(given) else result


def all_on_host(given: dict[str, Fact]) -> bool:
    """Whether tensors are passed, all from the host: operations do not mix devices, so what comes of them lives there too."""
    found = False
    for fact in given.values():
        if fact.kind is TENSOR:
            if fact.device is not HOST:
                return False
            found = True
        elif fact.kind in (SEQUENCE, MODULE) or fact.kind is NOTHING_KNOWN:
            return False
    return found


def on_host(fact: Fact) -> Fact:
    """The same, living on the host where nothing else was known."""
    if fact.kind is TENSOR and fact.device is SOMEWHERE:
        return fact.but(device=HOST)
    if fact.kind is SEQUENCE and fact.elements:
        return Fact(SEQUENCE, confidence=fact.confidence, elements=tuple(map(on_host, fact.elements)))
    return fact


def particular(function: Function, frame: Frame, given: dict[str, Fact], missing: list[str]) -> Fact:
    """The result for these very arguments, when the function is small and some argument is known; the missing are None."""
    node = function.node
    if (
        function.running
        or frame.inlined >= _INLINED
        or frame.depth > _DEEPEST
        or (node.end_lineno or 0) - node.lineno > 60
    ):
        return UNKNOWN
    telling = {name: fact for name, fact in given.items() if fact.kind in (TENSOR, ARRAY, SEQUENCE, MODULE, SCALAR)}
    if not telling and "device" not in missing:
        return UNKNOWN
    key = (*sorted((name, hash(fact)) for name, fact in telling.items()), *missing)
    known = function.calls.get(key)
    if known is not None:
        return known
    if len(function.calls) > 8:
        return UNKNOWN
    with Settling(function, function):
        inner = Frame(function.module, function, _outer(function), None, frame.depth + 1)
        inner.inlined = frame.inlined + 1
        inner.used = used(function)
        parameters(function, inner)
        inner.env.update(dict.fromkeys(missing, NONE))
        for name, fact in given.items():
            known = inner.env.get(name)
            if (
                known is not None
                and known.kind is TENSOR
                and fact.kind is TENSOR
                and known.confidence > fact.confidence
            ):
                inner.env[name] = fact.but(confidence=known.confidence)  # what its uses say still holds
            elif fact.kind is not NOTHING_KNOWN:
                inner.env[name] = fact
        execute(inner, node.body)
        result = conclude(function, inner)
    function.calls[key] = result
    return result


def left_out(function: Function, given: dict[str, Fact]) -> list[str]:
    """Parameters that are None because a call does not name them."""
    arguments = function.node.args
    named = [*arguments.posonlyargs, *arguments.args][-len(arguments.defaults) :] if arguments.defaults else []
    pairs = (
        *zip(named, arguments.defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    )
    return [
        each.arg
        for each, default in pairs
        if isinstance(default, ast.Constant) and default.value is None and each.arg not in given
    ]


def note(function: Function, given: dict[str, Fact]) -> bool:
    """Remember what callers pass; whether that says more than was known before."""
    news = False
    for name, fact in given.items():
        if fact.kind is NOTHING_KNOWN or fact is NONE:
            continue
        before = function.passed.get(name)
        if before is None:
            function.passed[name] = fact
            news = news or fact.kind in (TENSOR, SEQUENCE, MODULE)
        elif before is not fact and before != fact:
            both = join(before, fact)
            if (
                both.kind is TENSOR
                and before.kind is fact.kind
                and both.confidence < max(before.confidence, fact.confidence)
            ):
                both = both.but(
                    confidence=max(before.confidence, fact.confidence)
                )  # a tensor for one caller is one for all
            if both != before:
                function.passed[name] = both
                news = news or both.kind is TENSOR
    return news


def forward(module: Fact, frame: Frame, args: list[Fact], keywords: dict[str | None, Fact], node: ast.AST) -> Fact:
    """What calling an nn.Module gives: its own `forward` when it is of this project, else a tensor at 2."""
    ref = module.ref
    if isinstance(ref, Instance):
        method = find_method(ref.cls, "forward") or find_method(ref.cls, "__call__")
        if method is not None:
            result = call(method, frame, args, keywords, module)
            if result.kind is not NOTHING_KNOWN:
                return result
        return tensor(confidence=1, why=node)
    confidence = min(2, module.confidence)
    if isinstance(ref, str) and ref.startswith("torch.nn."):
        word = ref.rpartition(".")[2]
        if word in ("LSTM", "GRU", "RNN"):
            output = tensor(confidence=confidence, why=node)
            state = output if word != "LSTM" else Fact(SEQUENCE, confidence=confidence, elements=(output, output))
            return Fact(SEQUENCE, confidence=confidence, elements=(output, state))
        if word in ("LSTMCell",):
            output = tensor(confidence=confidence, why=node)
            return Fact(SEQUENCE, confidence=confidence, elements=(output, output))
        if word == "MultiheadAttention":
            output = tensor(confidence=confidence, why=node)
            return Fact(SEQUENCE, confidence=confidence, elements=(output, output))
        return tensor(
            confidence=3 if module.confidence == 3 else 2, why=node, ndim=0 if word.endswith("Loss") else None
        )
    return tensor(confidence=confidence, why=node)


def is_forward_like(cls: Class) -> bool:
    """Whether its objects are nn.Modules."""
    return is_module(cls) or any(name.endswith("Module") for name in outside(cls))
