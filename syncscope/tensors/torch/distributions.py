"""Distributions of torch: what they check of their parameters and of values, and what they give."""

from __future__ import annotations

import ast
import re

from syncscope.model.fact import UNKNOWN, Fact
from syncscope.model.heat import Role
from syncscope.model.ops import Op
from syncscope.project import conventions
from syncscope.project.modules import Class
from syncscope.project.names import ancestry, outside
from syncscope.project.of_file import kept
from syncscope.project.parsed import Parsed
from syncscope.project.syntax import name_of, walk
from syncscope.tensors.call import Call
from syncscope.tensors.facts import (
    ANY_DTYPE,
    ARRAY,
    BOOL,
    DISTRIBUTIONS,
    FLOAT,
    HOST,
    INT,
    NONE,
    OTHER,
    SOMEWHERE,
    TENSOR,
    device_of,
    holds_tensor,
    is_distribution,
    tensor,
)
from syncscope.tensors.torch.factories import is_setting
from syncscope.tensors.torch.host_values import numbers_broadcast
from syncscope.tensors.torch.signatures import table

# What reads a value, checks or not; measured with torch 2.11 and 2.13. `torch.normal`, by which `sample` draws what is normal,
# asks whether a deviation is negative.
_READING = {
    **dict.fromkeys(("MixtureSameFamily", "RelaxedBernoulli", "RelaxedOneHotCategorical"), ("sample", "rsample")),
    **dict.fromkeys(("Normal", "LogNormal", "HalfNormal", "LogisticNormal", "VonMises"), ("sample",)),
    **dict.fromkeys(("Binomial", "Multinomial"), ("entropy",)),
    "Wishart": ("sample", "rsample", "entropy"),
}
# They check no parameters: those are of the distribution that they are made of, which is the argument of this place and name.
_MADE_OF_OTHERS = {
    "Independent": (0, "base_distribution"),
    "MixtureSameFamily": (1, "component_distribution"),
    "TransformedDistribution": (0, "base_distribution"),
}
# What they are made of checks its own parameters, whatever they are told; of the first so does `log_prob`, a value.
_CHECKED_INSIDE = frozenset(("OneHotCategorical", "OneHotCategoricalStraightThrough"))
_MADE_OF_CHECKED = _CHECKED_INSIDE | {"Multinomial", "RelaxedOneHotCategorical", "StudentT", "FisherSnedecor"}
_FACTORED = frozenset(("LowRankMultivariateNormal", "MultivariateNormal", "Wishart"))  # by Cholesky when they are made


def made(call: Call) -> Fact:
    """What a call under `torch.distributions` gives."""
    word, node = call.word, call.node
    if word == "kl_divergence":
        return tensor(FLOAT, confidence=3, why=node)
    if word not in table().distributions:
        return UNKNOWN
    given = (*call.args, *call.keywords.values())
    nodes = (*call.nodes, *(each.value for each in node.keywords))
    inside = (holds_tensor(call.keywords.get(None, UNKNOWN)),)  # of `**parameters`
    held = next((f for f in (*given, *inside) if f is not None and f.kind is TENSOR), None)
    unknown = any(f.kind is UNKNOWN.kind and not is_setting(at) for f, at in zip(given, nodes, strict=False))
    unchecked = checks_are_off(call) if word in _CHECKED_INSIDE else _unchecked(call)
    over = UNKNOWN
    if word in _MADE_OF_OTHERS:
        unchecked = _made_of_unchecked(call, unchecked)
        over = call.given(*_MADE_OF_OTHERS[word])
    else:
        if held is None and unknown and word[:1].isupper() and not any(f.kind is ARRAY for f in given):
            held = tensor(confidence=2, why=node)  # numbers make none that anybody trains
        asks = not (checks_are_off(call) if word in _MADE_OF_CHECKED else unchecked)
        if held is not None and asks and not word.endswith("Transform"):
            held = held.but(confidence=max(held.confidence, 2))  # what a distribution is made of is tensors
            call.emit(Op.DISTRIBUTION_VALIDATE, nodes[0], held)
    numbers_broadcast(call)
    if held is not None and word in _FACTORED and "scale_tril" not in call.keywords:
        call.emit(Op.LINALG_CHECK, nodes[0], held, 2)
    lives = held or next(filter(is_distribution, given), None)
    return Fact(
        OTHER,
        BOOL if unchecked else ANY_DTYPE,
        lives.device if lives is not None else SOMEWHERE if unknown else HOST,
        confidence=3 if held is not None else 2,
        ref=f"torch.distributions.{word}()",
        source=over if is_distribution(over) else None,
    )


def drawn_by(owner: Fact, made_by: str) -> str:
    """The distribution that draws: of one that is made of another, that other."""
    while (of := owner.source) is not None and is_distribution(of) and not made_by.endswith("MixtureSameFamily"):
        owner, made_by = of, str(of.ref).removesuffix("()")
    return made_by.rpartition(".")[2]


def _made_of_unchecked(call: Call, itself: bool) -> bool:
    """Whether a distribution over another asks nothing of a value: that has no checks, and it has none itself.

    Of one that is made right here of a class that is not known it is said that it checks its parameters.
    """
    place = _MADE_OF_OTHERS[call.word]
    of, at = call.given(*place), call.node_of(*place)
    if of.kind is UNKNOWN.kind and isinstance(at, ast.Call) and not checks_are_off(call):
        says = (keyword.arg for keyword in at.keywords)
        if "validate_args" not in says and conventions.makes_distribution(name_of(at.func)):
            call.frame.emit(Op.DISTRIBUTION_VALIDATE, at, at.func, tensor(confidence=2, why=at), 2)
    return of.dtype is BOOL and (itself or call.word == "Independent")


def method(call: Call, made_by: str) -> Fact:
    """A method of a distribution that `made_by` has made."""
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
        if word in _READING.get(drawn_by(owner, made_by), ()) and owner.device is not HOST:
            call.emit(Op.LIBRARY_READ, node.func, tensor(device=owner.device, confidence=2, why=node))
        numbered = "Categorical" in made_by and "OneHot" not in made_by and word == "sample"
        return tensor(INT if numbered else FLOAT, owner.device, 3, node)
    return owner if word == "expand" else UNKNOWN


def made_by_base(call: Call, cls: Class) -> None:
    """An object of a class that leaves to `torch.distributions` how it is made: its parameters are checked."""
    base = next((name for name in outside(cls) if name.startswith(DISTRIBUTIONS)), "")
    if base:
        made(call.named(base))


def inherited(call: Call, cls: Class) -> Fact:
    """A method that a class of the project has from `torch.distributions`."""
    base = next((name for name in outside(cls) if name.startswith(DISTRIBUTIONS)), "")
    if base and any(map(_is_made_unchecked, ancestry(cls))):
        call.receiver = call.receiver.but(dtype=BOOL)
    return UNKNOWN if not base or base.endswith("Transform") else method(call, base)


def _is_made_unchecked(cls: Class) -> bool:
    """Whether a constructor tells its base to check nothing: `super().__init__(loc, scale, validate_args=False)`."""
    made = cls.methods.get("__init__")
    if made is None or b"validate_args" not in cls.text:
        return False
    for each in walk(made.node):
        match each:
            case ast.Call(func=ast.Attribute(attr="__init__"), keywords=keywords):
                return any(_says_no(keyword) for keyword in keywords)
    return False


def _says_no(keyword: ast.keyword) -> bool:
    return keyword.arg == "validate_args" and isinstance(keyword.value, ast.Constant) and keyword.value.value is False


def _checked_by_base(call: Call, made_by: str) -> Fact:
    """`super().__init__()` and `self._validate_sample(x)` in a distribution of the project: they check as torch's own do."""
    cls, made = call.frame.cls, call.word == "__init__"
    if cls is not None and not _unchecked(call) and not (made and not _constrains(cls, made_by.rpartition(".")[2])):
        at = call.node.func if made else call.first_node
        sure = 1 if made and _may_be_told(call) else 2  # whoever makes it may switch that off
        call.emit(Op.DISTRIBUTION_VALIDATE, at, tensor(confidence=2, why=call.node), sure)
    return NONE


def _may_be_told(call: Call) -> bool:
    """Whether a constructor is given, or hands on, what may switch the checks off; who leaves that out is checked."""
    function = call.frame.function
    if function is None or any(keyword.arg is None for keyword in call.node.keywords):
        return True
    if function.left_out.get("validate_args", "") is None:
        return False
    return (
        function.node.args.kwarg is not None or "validate_args" in function.names or len(call.nodes) > _MOST_PARAMETERS
    )


_MOST_PARAMETERS = 2  # of most distributions: behind them stands whether they check


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
            return _says_no(keyword)
    return checks_are_off(call)


def checks_are_off(call: Call) -> bool:
    """Whether the project, or torch.compile in it, has switched off what distributions check where nothing else is said."""
    module = call.frame.module
    return module.project.role(module.path, "validate_args") is Role.UNREACHED or _compiles(module.parsed)


# What is compiled as the file is read; torch._dynamo then switches the checks off, for all that runs in this process.
_COMPILED = re.compile(rb"^(?:@torch\.compile\b|\w+ = torch\.compile\()(?![^\n]*disable)", re.MULTILINE)


@kept(8)
def _compiles(parsed: Parsed) -> bool:
    return b"torch.compile" in parsed.source and _COMPILED.search(parsed.source) is not None
