"""`max(t, 1.0)` as `t.clamp(min=1.0)`, `max(t, u)` as `torch.maximum(t, u)`, `max(t)` as `t.max()`, `any(t)` as `t.any()`."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.mixed import mixed
from syncscope.codemod.patterns.reads import needs_number
from syncscope.model.example import Example
from syncscope.model.fact import Dtype, Site
from syncscope.model.finding import Fix, Safety

ROUNDS = True
EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor, lengths: torch.LongTensor):
            lengths = lengths.flatten()
            return x[:, : max(lengths)], min(lengths)  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor, lengths: torch.LongTensor):
            lengths = lengths.flatten()
            return x[:, : lengths.max()], lengths.min()
        """,
        Safety.UNSAFE,
        "x: finite[n, m]; lengths: index[n + 1] < 5",
    ),
    Example(
        """
        import torch

        def loss(x: torch.Tensor):
            found = (x > 0).sum().float()
            return x.sum() / max(found, 1.0)  # !
        """,
        """
        import torch

        def loss(x: torch.Tensor):
            found = (x > 0).sum().float()
            return x.sum() / found.clamp(min=1.0)
        """,
        Safety.UNSAFE,
        "x: finite[n, m]",
    ),
    Example(
        """
        import torch

        def loss(x: torch.Tensor, y: torch.Tensor):
            return max(x.mean(), y.mean())  # !
        """,
        """
        import torch

        def loss(x: torch.Tensor, y: torch.Tensor):
            return torch.maximum(x.mean(), y.mean())
        """,
        Safety.UNSAFE,
        "x: normal[n + 1]; y: normal[n + 1]",
    ),
    Example(
        """
        import torch

        def check(x: torch.Tensor):
            return any(torch.isnan(x).flatten())  # !
        """,
        """
        import torch

        def check(x: torch.Tensor):
            return torch.isnan(x).flatten().any()
        """,
        Safety.UNSAFE,
        "x: float[n, m]",
    ),
    Example(
        """
        import torch

        def start(x: torch.Tensor, size: int):
            longest = (x > 0).sum(1).max()
            first = torch.randint(0, max(1, size - longest), (3,))  # !
            return first, list(range(max(1, longest)))  # !
        """
    ),
    Example(
        """
        import torch

        def norms(grads: list[torch.Tensor], a: torch.Tensor):
            a = a.abs()
            worst = max(g.abs().sum() for g in grads)  # !
            return worst + max(a.sum(), a.square().sum(), a.sqrt().sum())  # !
        """,
        """
        import torch

        def norms(grads: list[torch.Tensor], a: torch.Tensor):
            a = a.abs()
            worst = torch.stack([g.abs().sum() for g in grads]).max()
            return worst + torch.stack((a.sum(), a.square().sum(), a.sqrt().sum())).max()
        """,
        Safety.UNSAFE,
    ),
)


def is_read_in_a_list(function: Function, call: ast.Call) -> bool:
    """Whether what a call gives is in a list that a tensor is made of, which reads each: `tensor([max(n, 0) for n in x])`."""
    listed = function.parent(call)
    above = function.parent(listed) if isinstance(listed, (ast.ListComp, ast.List)) else None
    if not isinstance(above, ast.Call) or listed not in above.args:
        return False
    return (function.dotted(above.func) or "").endswith(("tensor", "Tensor"))


def rewrite(site: Site, function: Function) -> Fix | None:
    call = site.node
    if not isinstance(call, ast.Call) or call.keywords:
        return None
    name = function.dotted(call.func)
    if name in ("max", "min") and carries(function, call):
        return function.declines(call, "what wins takes its own place, and would be another tensor in each pass")
    if (
        name in ("max", "min", "any", "all")
        and call.args
        and (found := stacked(site, function, call, name)) is not None
    ):
        return found
    if name in ("max", "min") and len(call.args) == 2:
        return None if is_read_in_a_list(function, call) else extreme(site, function, call, name)
    if name in ("max", "min") and len(call.args) == 1:
        return of_all(site, function, call, name)
    if name in ("any", "all") and len(call.args) == 1 and site.fact_of(call.args[0]).ndim == 1:
        draft = Draft(function)
        draft.replace(call, f"{{t}}.{name}()", t=call.args[0])
        return draft.fix(
            "ask on the device", Safety.UNSAFE, "it is a bool tensor that stays on the device, no Python bool"
        )
    return None


def stacked(site: Site, function: Function, call: ast.Call, name: str) -> Fix | None:
    """The fix for `max(f(t) for t in ts)` and `max(a, b, c)`, which wait for each: all of them are stacked first."""
    draft, given = Draft(function), call.args[0]
    match call.args:
        case [ast.GeneratorExp() | ast.ListComp() as each]:
            elements, listed = [each.elt], True
        case [_, _, _, *_]:
            elements, listed = list(call.args), False
        case _:
            return None
    facts = [site.fact_of(e) for e in elements]
    if not all(f.is_tensor and f.ndim == 0 and f.confidence >= 2 for f in facts) or any(
        mixed(function, each) for each in elements
    ):
        return None
    if name in ("any", "all") and any(f.dtype is not Dtype.BOOL for f in facts):
        return None
    asked = isinstance(function.parent(call), (ast.If, ast.While, ast.Assert, ast.UnaryOp, ast.BoolOp))
    read = ".item()" if name in ("any", "all") and not asked else ""  # who is given a bool gets one
    if not listed:
        parts = {f"t{n}": e for n, e in enumerate(elements)}
        inner = f"({', '.join(f'{{{key}}}' for key in parts)})"
        draft.replace(call, f"torch.stack({inner}).{name}(){read}", **parts)
    else:
        span = function.file.span(given)
        bare = function.file.code[span.start : span.end].decode()
        text = bare if isinstance(given, ast.ListComp) else f"[{bare.removeprefix('(').removesuffix(')')}]"
        draft.replace(call, f"torch.stack({{listed}}).{name}(){read}", listed=text)
    told = "all must be tensors of one dtype and live on one device, and there must be one"
    kept = (
        "it is a bool tensor that stays on the device, and all are computed" if name in ("any", "all") else "NaN wins"
    )
    return draft.fix("compare all at once", Safety.UNSAFE, told, kept)


def of_all(site: Site, function: Function, call: ast.Call, name: str) -> Fix | None:
    """The fix for `max(t)`, which compares each element of one tensor with the largest before it."""
    tensor = call.args[0]
    fact = site.fact_of(tensor)
    if not fact.is_tensor or fact.confidence < 2 or fact.ndim not in (1, None) or mixed(function, tensor):
        return function.declines(call, f"that {function.file.quote(tensor)} is a tensor of one dimension is not known")
    draft = Draft(function)
    draft.replace(call, f"{{t}}.{name}()", t=tensor)
    changes = ["it is no view of the element, and an empty tensor is a RuntimeError"]
    if fact.ndim is None:
        changes.append(f"{function.file.text(tensor)} must be a tensor of one dimension")
    if fact.dtype is not Dtype.INT:
        changes.append("NaN wins wherever it stands")
    extent = "largest" if name == "max" else "smallest"
    return draft.fix(f"look for the {extent} on the device", Safety.UNSAFE, *changes)


def extreme(site: Site, function: Function, call: ast.Call, name: str) -> Fix | None:
    """`max` or `min` of two values of which one is a tensor, or both are."""
    facts = [site.fact_of(a) for a in call.args]
    if any(f.is_tensor and f.ndim not in (0, None) for f in facts) or any(mixed(function, each) for each in call.args):
        return function.declines(call, "that each is one number is not known")
    if needs_number(function, call):
        return function.declines(call, "it is read as a number there all the same")
    draft = Draft(function)
    always = (
        "it is always a tensor, where Python gives back the number that wins, and NaN comes through from either side"
    )
    if all(f.is_tensor for f in facts):
        if facts[0].dtype is not facts[1].dtype:
            return function.declines(call, "both are not known to be of one dtype")
        draft.replace(call, f"torch.{name}imum({{a}}, {{b}})", a=call.args[0], b=call.args[1])
        return draft.fix(f"take the {name}imum on the device", Safety.UNSAFE, always)
    number = call.args[1] if facts[0].is_tensor else call.args[0]
    tensor = call.args[0] if facts[0].is_tensor else call.args[1]
    value, dtype = function.constant(number), site.fact_of(tensor).dtype
    if value is None:
        return function.declines(call, f"nothing says that {function.file.quote(number)} is one number")
    if dtype is Dtype.BOOL:
        return function.declines(call, f"{function.file.quote(tensor)} is True or False")
    sure = ""
    if site.fact_of(tensor).confidence < 3:
        sure = f"{function.file.text(tensor)} must be a tensor, no array or number of numpy"
    bound = "min" if name == "max" else "max"
    draft.replace(call, f"{{t}}.clamp({bound}={{c}})", t=tensor, c=number)
    return draft.fix("clamp on the device", Safety.UNSAFE, sure, always)


def carries(function: Function, call: ast.Call) -> bool:
    """Whether what comes out takes the place of what went in, and is given to the next pass or to a later call.

    `max` gives back one of the two: a leaf that an optimizer holds stays that leaf, where what a kernel makes is another tensor
    and has the graph of all before.
    """
    statement = function.statement(call)
    match statement:
        case ast.Assign(value=value, targets=targets) if value is call:
            pass
        case ast.AnnAssign(value=value, target=target) if value is call:
            targets = [target]
        case _:
            return False
    return any(kept(function, target, given, statement) for target in targets for given in call.args)


def kept(function: Function, target: ast.expr, given: ast.expr, statement: ast.stmt) -> bool:
    """Whether a target is what an argument stands for, and holds that when its statement is run the next time."""
    if not isinstance(target, (ast.Name, ast.Attribute, ast.Subscript)):
        return False
    if ast.unparse(target) not in (ast.unparse(given), ast.unparse(function.value(given))):
        return False
    if not isinstance(target, ast.Name) or function.shared(target.id):
        return True
    around = (n for n in function.around(statement) if isinstance(n, (ast.For, ast.AsyncFor, ast.While)))
    within = next(around, None)
    before = [n for n in function.binds(target.id) if n.lineno < statement.lineno]
    return within is not None and not any(within in function.around(n) for n in before)
