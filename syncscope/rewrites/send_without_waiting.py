"""`torch.tensor(values, device=d)` as a copy that nobody waits for: the tensor is made on the host, and sent."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.listed import (
    CHAIN,
    NO_LINE_SAYS,
    TAKEN_OVER,
    called_few,
    is_list,
    made_of_list,
    says_so,
    shaped,
    waits_around,
)
from syncscope.codemod.templates import Part
from syncscope.codemod.together import together
from syncscope.model.example import Example
from syncscope.model.fact import Site, Value
from syncscope.model.finding import Drawback, Fix, Safety

OWN_MEMORY = {"torch.tensor", "torch.Tensor", "torch.FloatTensor", "torch.LongTensor"}  # nobody else can write to it
SHARED = "torch.from_numpy"
MADE = {"torch.tensor", "torch.as_tensor"}
CHANGES = "the backend must take the values over before it returns, as CUDA does"
TITLE = "send it without waiting"
HOST = "torch's default device must be the host"
EXAMPLES = (
    Example(
        """
        import torch

        def mean(x: torch.Tensor, sentences):
            lengths = torch.tensor([len(s) for s in sentences], device=x.device)  # !
            return x / lengths[:, None]
        """,
        """
        import torch

        def mean(x: torch.Tensor, sentences):
            lengths = torch.tensor([len(s) for s in sentences]).to(x.device, non_blocking=True)
            return x / lengths[:, None]
        """,
        Safety.SUGGEST,
        rule="tensor-literal-on-device",
    ),
    Example(
        """
        import torch

        def cardinality(x: torch.Tensor, targets: torch.Tensor):
            n = torch.as_tensor([len(v["labels"]) for v in targets], device=x.device)  # !
            return x.sum(1) - n
        """,
        """
        import torch

        def cardinality(x: torch.Tensor, targets: torch.Tensor):
            n = torch.as_tensor([len(v["labels"]) for v in targets]).to(x.device, non_blocking=True)
            return x.sum(1) - n
        """,
        Safety.SUGGEST,
        rule="tensor-literal-on-device",
    ),
    Example(
        """
        import torch

        def begins(x: torch.Tensor, sentences):
            x = x.to("cuda", non_blocking=True)
            places = [s.begin for s in sentences]
            return x[torch.LongTensor(places).to(x.device)]  # !
        """,
        """
        import torch

        def begins(x: torch.Tensor, sentences):
            x = x.to("cuda", non_blocking=True)
            places = [s.begin for s in sentences]
            return x[torch.LongTensor(places).to(x.device, non_blocking=True)]
        """,
        Safety.UNSAFE,
        rule="created-on-host",
    ),
    Example(
        """
        import torch

        def weighted(x: torch.Tensor, weights: list[float]):
            return x * torch.tensor(weights, dtype=x.dtype, device=x.device)  # !
        """,
        """
        import torch

        def weighted(x: torch.Tensor, weights: list[float]):
            return x * torch.tensor(weights, dtype=x.dtype).to(x.device, non_blocking=True)
        """,
        Safety.SUGGEST,
        rule="tensor-literal-on-device",
    ),
    Example(
        """
        import torch

        def act(model, obs, device):
            return model(torch.Tensor(obs).to(device))  # !
        """,
        """
        import torch

        def act(model, obs, device):
            return model(torch.Tensor(obs).to(device, non_blocking=True))
        """,
        Safety.SUGGEST,
        rule="created-on-host",
    ),
    Example(
        """
        import torch

        def weighted(x: torch.Tensor, weights: list[float]):
            return x * x.new_tensor(weights)  # !
        """,
        """
        import torch

        def weighted(x: torch.Tensor, weights: list[float]):
            return x * torch.tensor(weights, dtype=x.dtype).to(x.device, non_blocking=True)
        """,
        Safety.SUGGEST,
        rule="tensor-literal-on-device",
    ),
    Example(
        """
        import numpy as np
        import torch

        def placed(x: torch.Tensor, image: np.ndarray):
            return x[:, :4] - torch.from_numpy(image).to(x.device)  # !
        """,
        """
        import numpy as np
        import torch

        def placed(x: torch.Tensor, image: np.ndarray):
            return x[:, :4] - torch.from_numpy(image).to(x.device, non_blocking=True)
        """,
        Safety.SUGGEST,
        rule="created-on-host",
    ),
    Example(
        """
        import numpy as np
        import torch

        def kept(x: torch.Tensor, keep_mask: np.ndarray, labels: np.ndarray):
            x = x.to("cuda", non_blocking=True)
            shown = torch.from_numpy(keep_mask).float().to(x.device)  # !
            return x * shown, torch.from_numpy(labels[:8]).long().cuda()  # !
        """,
        """
        import numpy as np
        import torch

        def kept(x: torch.Tensor, keep_mask: np.ndarray, labels: np.ndarray):
            x = x.to("cuda", non_blocking=True)
            shown = torch.from_numpy(keep_mask).float().to(x.device, non_blocking=True)
            return x * shown, torch.from_numpy(labels[:8]).long().cuda(non_blocking=True)
        """,
        Safety.UNSAFE,
        rule="created-on-host",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    fix, statement = of_call(site, function), function.statement(site.node)
    if fix is None or statement is None:
        return fix
    run = beside(function, statement)
    found = [
        other
        for each in run
        for s in function.sites_in(each)
        if s.op is site.op and isinstance(s.node, ast.Call) and (other := of_call(s, function)) is not None
    ]
    fixes = [each for each in found if each.safety is fix.safety]
    key = f"sent, {site.op}, {fix.safety.value}"
    return function.once(key, run[0], lambda: together(fixes)) if len(fixes) > 1 else fix


def beside(function: Function, statement: ast.stmt) -> list[ast.stmt]:
    """The statements around one, one after the other, that each send something."""
    block = function.block(statement)
    if statement not in block:
        return [statement]
    start = end = block.index(statement)
    while start > 0 and sends(function, block[start - 1]):
        start -= 1
    while end + 1 < len(block) and sends(function, block[end + 1]):
        end += 1
    return block[start : end + 1]


def sends(function: Function, statement: ast.stmt) -> bool:
    """Whether a statement names what it makes on the host and sends."""
    named = isinstance(statement, (ast.Assign, ast.AnnAssign))
    return named and any(of_call(s, function) is not None for s in function.sites_in(statement))


def of_call(site: Site, function: Function) -> Fix | None:
    """The fix for one call: its neighbours ask for it, too."""
    return function.once(f"sent alone, {site.op}", site.node, lambda: _of_call(site, function))


def _of_call(site: Site, function: Function) -> Fix | None:
    draft = Draft(function)
    sent = sent_of(draft, function, site.node)
    if sent is None or not isinstance(site.node, ast.Call):
        return None
    if sent.moved:
        draft.add_argument(site.node, "non_blocking", "True")
    else:
        draft.replace(site.node, sent.template, **sent.parts)
    draft.drawbacks |= {Drawback.UNPINNED} if sent.few else set()
    return draft.fix(TITLE, sent.safety, *sent.changes)


@dataclass(frozen=True, slots=True)
class Sent:
    """What a call is written as that nobody waits for: a template with its parts, and on which terms. What is `moved` already
    needs only one argument more; what is of `few` values CUDA takes over at once."""

    template: str
    parts: dict[str, Part]
    safety: Safety
    changes: tuple[str, ...]
    moved: bool
    few: bool


def sent_of(draft: Draft, function: Function, call: ast.AST) -> Sent | None:
    """What a call that makes a tensor of the host's values, and sends it, is written as."""
    if not isinstance(call, ast.Call) or any(k.arg is None for k in call.keywords) or is_cached(function):
        return None
    keywords = {k.arg: k.value for k in call.keywords if k.arg is not None}
    return (
        made_and_moved(draft, function, call, keywords)
        or made_there(draft, function, call, keywords)
        or made_as_another(draft, function, call, keywords)
    )


Given = dict[str, ast.expr]  # what a call is given by name


def made_and_moved(draft: Draft, function: Function, call: ast.Call, keywords: Given) -> Sent | None:
    """`torch.tensor(values).to(device)`, which needs one argument more."""
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Call() as moved, attr="to" | "cuda")):
            made = shaped(function, moved)
        case _:
            return None
    name = function.dotted(made.func) if isinstance(made, ast.Call) else None
    if name not in (*OWN_MEMORY, SHARED) or len(call.args) > 1 or not keywords.keys() <= {"device", "dtype"}:
        return None
    if not isinstance(made, ast.Call) or any(k.arg == "requires_grad" for k in made.keywords):
        return None
    few = made_of_list(function, moved) or called_few(function, moved)
    told = HOST if name != SHARED else "nobody may write the array meanwhile"
    parts: dict[str, Part] = {"call": draft.call(call, {}, non_blocking="True")}
    if few and not waits_around(function, call):
        return on_terms("{call}", parts, [NO_LINE_SAYS] * (not says_so(function)), moved=True)
    return Sent("{call}", parts, Safety.SUGGEST, (CHANGES, told), moved=True, few=False)


def made_there(draft: Draft, function: Function, call: ast.Call, keywords: Given) -> Sent | None:
    """`torch.tensor(values, device=device)`."""
    where, values = keywords.get("device"), call.args[0] if len(call.args) == 1 else None
    if function.dotted(call.func) not in MADE or not keywords.keys() <= {"dtype", "device"}:
        return None
    if values is None or where is None or not names_device(function, where) or not of_the_host(function, values):
        return None
    listed = is_list(function, values)
    if not listed and function.dotted(call.func) != "torch.tensor":
        return None  # what is a tensor already, or an array, is not copied on the host
    parts: dict[str, Part] = {"made": draft.without(call, "device"), "where": where}
    few = listed or called_few(function, call)
    return sent_as_chain(function, call, "{made}.to({where}, non_blocking=True)", parts, few)


def made_as_another(draft: Draft, function: Function, call: ast.Call, keywords: Given) -> Sent | None:
    """`x.new_tensor(values)`."""
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Name() | ast.Attribute() as of, attr="new_tensor"), args=[values]):
            fact = function.fact(of)
        case _:
            return None
    if keywords.keys() - {"dtype"} or not fact.is_tensor or fact.confidence < 2 or not of_the_host(function, values):
        return None
    template = "torch.tensor({values}, dtype={dtype}).to({x}.device, non_blocking=True)"
    parts: dict[str, Part] = {
        "values": values, "x": of, "dtype": keywords.get("dtype", draft.part("{x}.dtype", x=of)),
    }  # fmt: skip
    few = is_list(function, values) or called_few(function, call)
    return sent_as_chain(function, call, template, parts, few)


def sent_as_chain(function: Function, call: ast.Call, template: str, parts: dict[str, Part], few: bool) -> Sent:
    """What is made where it is used, made on the host and sent: of few values CUDA takes them over at once."""
    if few and not waits_around(function, call):
        return on_terms(template, parts, [CHAIN], moved=False)
    return Sent(template, parts, Safety.SUGGEST, (CHANGES, HOST), moved=False, few=False)


def on_terms(template: str, parts: dict[str, Part], doubts: Sequence[str], moved: bool) -> Sent:
    """What is of few values: made by command unless there are doubts."""
    safety = Safety.SUGGEST if doubts else Safety.UNSAFE
    return Sent(template, parts, safety, (*doubts, TAKEN_OVER), moved, few=True)


def is_cached(function: Function) -> bool:
    """Whether a function is run once for each of its arguments: what it makes is not worth a word."""
    decorators = getattr(function.scope, "decorator_list", [])
    named = (function.dotted(d.func if isinstance(d, ast.Call) else d) for d in decorators)
    return any(name in ("functools.cache", "functools.lru_cache") for name in named)


def of_the_host(function: Function, values: ast.expr) -> bool:
    """Whether values are no tensor, which may be on the device already."""
    listed = isinstance(values, (ast.List, ast.Tuple, ast.ListComp))
    if is_list(function, values):
        return True
    if any(function.fact(n).is_tensor for n in ast.walk(values) if isinstance(n, ast.expr)):
        return False
    return listed or function.fact(values).kind in (Value.SCALAR, Value.ARRAY, Value.SEQUENCE, Value.OTHER)


def names_device(function: Function, where: ast.expr) -> bool:
    """Whether a device is surely given, and not None, which stands for the default one."""
    if not function.pure(where):
        return False
    match where:
        case ast.Attribute(attr=word):
            return word.endswith("device")
        case ast.Constant(value=value):
            return isinstance(value, str) and value != "cpu"
        case ast.Name(id=name):
            scope = function.scope
            given = (*scope.args.defaults, *scope.args.kw_defaults) if isinstance(scope, ast.FunctionDef) else ()
            return "device" in name and not (given and name in function.parameters)
    return False
