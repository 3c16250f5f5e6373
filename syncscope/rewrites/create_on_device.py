"""`torch.zeros(n).to(device)` as `torch.zeros(n, device=device)`."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.made_on_host import CLOSE, DRAWN, SAID, SAME, TYPES, takes_all, target
from syncscope.codemod.patterns.numbers import counts, filled_with, filling, of_equals
from syncscope.codemod.proofs import DTYPES
from syncscope.codemod.templates import Part
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

ALIKE = {"torch.zeros", "torch.ones", "torch.eye", "torch.empty"}  # of every dtype they hold the same, or nothing known
NEW = {"torch.zeros": "zeros", "torch.ones": "ones", "torch.empty": "empty"}
COUNTED = {"torch.long", "torch.int", "torch.double", "torch.float"}  # dtypes in which torch.arange counts
CONVERTIBLE = ALIKE | {"torch.eye", "torch.arange", "torch.linspace"}
SPREAD = {"torch.rand", "torch.randn"}  # drawn in any floating dtype
CONVERT = set("long float double int half bool".split())
KEEPS = CONVERT | set(
    "unsqueeze view reshape repeat flatten t transpose permute detach".split()
)  # `expand` lays out nothing whole
TITLE = "make it on the device"
COMPILES = True
TOGETHER = "made"
EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor, device):
            return x + torch.zeros(x.shape[1]).to(device)  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor, device):
            return x + torch.zeros(x.shape[1], device=device)
        """,
        Safety.SAFE,
        "x: float[n, m]; device: cpu",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor, device):
            last = torch.ones(x.shape[1]).to(device=device, dtype=x.dtype)  # !
            return torch.zeros(x.shape[0]).to(x.dtype).to(device), torch.ones(3).long().to(device), last  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor, device):
            last = torch.ones(x.shape[1], dtype=x.dtype, device=device)
            return torch.zeros(x.shape[0], dtype=x.dtype, device=device), torch.ones(3, dtype=torch.long, device=device), last
        """,
        Safety.SAFE,
        "x: float[n, m]; device: cpu",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            total = torch.tensor(0.0).to(x.device)  # !
            return x + total, torch.tensor(1, dtype=torch.long).to(x.device)  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor):
            total = torch.zeros((), device=x.device)
            return x + total, torch.ones((), dtype=torch.long, device=x.device)
        """,
        Safety.SAFE,
        "x: float[n, m]",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            places = torch.arange(x.shape[0]).long().to(x.device)  # !
            return x * torch.eye(3).bool().to(x.device), places  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor):
            places = torch.arange(x.shape[0], dtype=torch.long, device=x.device)
            return x * torch.eye(3, dtype=torch.bool, device=x.device), places
        """,
        Safety.SAFE,
        "x: float[n, 3]",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor, device):
            rows = torch.arange(x.shape[0]).unsqueeze(1).repeat(1, 2).to(device)  # !
            return rows, torch.ones(x.shape[0], dtype=torch.long)[:, None].to(device=device)  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor, device):
            rows = torch.arange(x.shape[0], device=device).unsqueeze(1).repeat(1, 2)
            return rows, torch.ones(x.shape[0], dtype=torch.long, device=device)[:, None]
        """,
        Safety.SAFE,
        "x: float[n, m]; device: cpu",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            scaled = x * torch.arange(x.shape[1]).to(x)  # !
            eye = torch.eye(x.shape[1]).type_as(x)  # !
            return scaled, eye, torch.ones(3, dtype=torch.long).to(x)  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor):
            scaled = x * torch.arange(x.shape[1], device=x.device).to(x.dtype)
            eye = torch.eye(x.shape[1], dtype=x.dtype, device=x.device)
            return scaled, eye, torch.ones(3, dtype=torch.long, device=x.device).to(x.dtype)
        """,
        Safety.SAFE,
        "x: float[n, m]",
    ),
    Example(
        """
        import torch

        def loss(x: torch.Tensor):
            error = x.abs().mean()
            extra = torch.tensor(0.0).type_as(error)  # !
            weight = torch.tensor(1).to(error)  # !
            return error + extra, weight
        """,
        """
        import torch

        def loss(x: torch.Tensor):
            error = x.abs().mean()
            extra = torch.zeros((), dtype=error.dtype, device=error.device)
            weight = torch.ones((), dtype=error.dtype, device=error.device)
            return error + extra, weight
        """,
        Safety.SAFE,
        "x: float[n, m]",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            noise = torch.rand(x.shape[0], 1).to(device=x.device, dtype=x.dtype)  # !
            return x + torch.randn(*x.shape).cuda() * noise  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor):
            noise = torch.rand(x.shape[0], 1, dtype=x.dtype, device=x.device)
            return x + torch.randn(*x.shape, device="cuda") * noise
        """,
        Safety.UNSAFE,
    ),
    Example(
        """
        import math
        import torch

        def loss(x: torch.Tensor):
            x = x / torch.FloatTensor([0.5]).to(x.device) + torch.tensor([3]).to(x.device)  # !
            rows = torch.tensor([x.shape[0]], dtype=torch.long).to(x.device)  # !
            rows = rows + torch.LongTensor([0]).to(x.device)  # !
            return x.square().sum() + torch.tensor([2 * math.pi]).to(x.device) + rows  # !
        """,
        """
        import math
        import torch

        def loss(x: torch.Tensor):
            x = x / torch.full((1,), 0.5, dtype=torch.float, device=x.device) + torch.full((1,), 3, device=x.device)
            rows = torch.full((1,), x.shape[0], dtype=torch.long, device=x.device)
            rows = rows + torch.zeros(1, dtype=torch.long, device=x.device)
            return x.square().sum() + torch.full((1,), 2 * math.pi, device=x.device) + rows
        """,
        Safety.SAFE,
        "x: float[n]",
    ),
    Example(
        """
        import torch

        def weighted(x: torch.Tensor, first: int):
            weight = torch.tensor([1.0] * len(x)).to(x.device)  # !
            place = torch.LongTensor([first] * x.shape[0]).to(x.device)  # !
            return x * weight + place
        """,
        """
        import torch

        def weighted(x: torch.Tensor, first: int):
            weight = torch.ones(len(x), device=x.device)
            place = torch.full((x.shape[0],), first, dtype=torch.long, device=x.device)
            return x * weight + place
        """,
        Safety.UNSAFE,
        "x: float[n]; first: count",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    return (
        converted_then_moved(site, function) or number_as_another(site, function) or reshaped_then_moved(site, function)
    )


def converted_then_moved(site: Site, function: Function) -> Fix | None:
    """The fix for `torch.zeros(n).to(device)`, `torch.zeros(n).long().to(device)` and `torch.tensor(0.0).to(device)`."""
    move, where = site.node, target(function, site.node)
    dtype: ast.expr | str | None = None
    match move:
        case ast.Call(
            func=ast.Attribute(value=ast.Call(func=ast.Attribute(value=ast.Call() as made)) as converted)
        ) if function.dotted(made.func) in ALIKE | {"torch.arange"}:
            dtype = as_dtype(function, converted)
            if dtype is None or any(k.arg == "dtype" for k in made.keywords):
                return None
            if isinstance(dtype, str) and function.dotted(made.func) == "torch.arange" and dtype not in COUNTED:
                return None  # of bool there is none, of others it is another range
        case ast.Call(
            func=ast.Attribute(value=ast.Call() as made, attr="to"),
            args=[],
            keywords=[ast.keyword(arg="device" | "dtype"), ast.keyword(arg="device" | "dtype")],
        ) if function.dotted(made.func) in CONVERTIBLE | SPREAD and not any(k.arg == "dtype" for k in made.keywords):
            given = {k.arg: k.value for k in move.keywords}
            if len(given) == 2 and all(isinstance(each, (ast.Name, ast.Attribute)) for each in given.values()):
                where, dtype = given["device"], given["dtype"]
        case ast.Call(func=ast.Attribute(value=ast.Call() as made)):
            pass
        case _:
            return None
    if where is None or not may_be_moved(function, made):
        return None
    name, taken = function.dotted(made.func), {k.arg for k in made.keywords}
    draft = Draft(function)
    if name == "torch.tensor" or name in TYPES:
        return filled_there(function, move, made, where) if not taken - {"dtype"} and dtype is None else None
    whole: ast.expr = move
    if dtype is None and name in ALIKE and "dtype" not in taken:
        after = function.parent(function.parent(move) or move)  # torch.ones(n).to(device).bool()
        held = isinstance(after, ast.Call) and isinstance(after.func, ast.Attribute) and after.func.value is move
        if isinstance(after, ast.Call) and held and (dtype := as_dtype(function, after)) is not None:
            whole = after
    kind = draft.part(dtype) if isinstance(dtype, str) else dtype
    more: dict[str, Part] = {"device": where} if kind is None else {"dtype": kind, "device": where}
    draft.replace(whole, "{call}", call=draft.call(made, {}, **more))
    exact = counts(function, made) and dtype in (None, "torch.long", "torch.int", "torch.double")
    return fixed(draft, name, exact, function.file.text(dtype) if isinstance(dtype, ast.expr) else dtype or "")


def filled_there(function: Function, move: ast.expr, made: ast.Call, where: Part) -> Fix | None:
    """The fix for `torch.tensor(0.0).to(device)`, and for `torch.LongTensor([number] * n).to(device)`."""
    name, said = function.dotted(made.func) or "", any(k.arg == "dtype" for k in made.keywords)
    one = filled_with(function, made, said)
    filled = one or (of_equals(function, made.args[0]) if len(made.args) == 1 else None)
    if filled is None:
        return None
    draft, (number, size) = Draft(function), filled
    held: dict[str, Part] = {"dtype": draft.part(TYPES[name]), "device": where} if name in TYPES else {"device": where}
    draft.replace(move, "{call}", call=filling(draft, made, number, size, **held))
    if one is not None:
        return draft.fix(TITLE, Safety.SAFE)
    known = function.constant(number)
    musts = [] if known is not None else [f"{function.file.text(number)} must be a number"]
    if not (said or name in TYPES or isinstance(known, float)):
        musts.append("where there are none, the dtype is its own")
    return draft.fix(TITLE, Safety.UNSAFE, "; ".join(musts) or "a count below 0 is an error")


def reshaped_then_moved(site: Site, function: Function) -> Fix | None:
    """The fix for `torch.arange(n).unsqueeze(0).to(device)`, and for `.to(other)` and `.type_as(other)`, which convert, too."""
    move = site.node
    if not isinstance(move, ast.Call) or not isinstance(move.func, ast.Attribute):
        return None
    made, converted = move.func.value, False
    while True:
        match made:
            case ast.Call(func=ast.Attribute(value=ast.Call() | ast.Subscript() as inner, attr=word)) if word in KEEPS:
                made, converted = inner, converted or word in CONVERT
            case ast.Subscript(value=ast.Call() as inner, slice=ast.Tuple(elts=parts)) if all(map(takes_all, parts)):
                made = inner
            case _:
                break
    name = function.dotted(made.func) if isinstance(made, ast.Call) else None
    if not isinstance(made, ast.Call) or name == "torch.tensor" or not may_be_moved(function, made):
        return None
    draft = Draft(function)
    where, other = target(function, move), None
    match move:
        case ast.Call(
            func=ast.Attribute(attr="to" | "type_as"), args=[ast.Name() | ast.Attribute() as given], keywords=[]
        ):
            fact = function.fact(given)
            plain = (
                fact.is_tensor and fact.confidence >= 2 and not function.file.own_tensors
            )  # whose class it would get
            other = given if where is None and plain else None
    if where is None and other is None:
        return None
    place: Part = draft.part("{x}.device", x=other) if other is not None else where  # type: ignore[assignment]
    said = converted or any(k.arg == "dtype" for k in made.keywords)
    kind: dict[str, Part] = {"dtype": draft.part("{x}.dtype", x=other)} if other is not None else {}
    at_once = name in ALIKE and not said
    if other is not None and name == "torch.full" and not said and not function.file.other_layouts:
        filled = draft.call(made, {made.func: draft.part("{x}.new_full", x=other)})
        draft.replace(move, "{there}", there=draft.swapped(move.func.value, {made: filled}))
        return draft.fix(TITLE, Safety.UNSAFE, f"it is rounded to {function.file.text(other)}'s dtype at once")
    if other is not None and at_once and name in NEW and not function.file.other_layouts:
        new = draft.call(made, {made.func: draft.part(f"{{x}}.new_{NEW[name]}", x=other)})
    else:
        new = draft.call(made, {}, **(kind if at_once else {}), device=place)
    if other is not None and not at_once:
        draft.replace(move, "{there}.to({x}.dtype)", there=draft.swapped(move.func.value, {made: new}), x=other)
    elif not draft.take_off(move, made, new):
        draft.replace(move, "{there}", there=draft.swapped(move.func.value, {made: new}))
    return fixed(draft, name, counts(function, made))


def number_as_another(site: Site, function: Function) -> Fix | None:
    """The fix for `torch.tensor(0.0).type_as(other)`: a number that all dtypes hold as it is."""
    match site.node:
        case ast.Call(
            func=ast.Attribute(value=ast.Call(args=[number], keywords=[]) as made, attr="to" | "type_as"),
            args=[ast.Name() | ast.Attribute() as other],
            keywords=[],
        ) if function.dotted(made.func) == "torch.tensor":
            value, fact = function.constant(number), function.fact(other)
            everywhere = isinstance(value, (int, float)) and value in range(128)  # the same in every dtype
            if not everywhere or not fact.is_tensor or fact.confidence < 2 or function.file.own_tensors:
                return None
            draft = Draft(function)
            match function.parent(site.node):
                case ast.Call(func=func, args=[_, *choices]) if function.dotted(func) == "torch.where":
                    if site.node in choices and len(choices) > 1:
                        draft.replace(site.node, "{n}", n=number)
                        return draft.fix("choose the number", Safety.UNSAFE, "it takes the dtype of the other choice")
            alike = {"dtype": draft.part("{x}.dtype", x=other), "device": draft.part("{x}.device", x=other)}
            draft.replace(site.node, "{call}", call=filling(draft, made, number, "()", **alike))
            return draft.fix(TITLE, Safety.SAFE)
    return None


def may_be_moved(function: Function, made: ast.Call) -> bool:
    """Whether a call that makes a tensor says nothing of where."""
    return function.dotted(made.func) is not None and SAID.isdisjoint(k.arg for k in made.keywords)


def fixed(draft: Draft, name: str | None, exact: bool, dtype: str = "") -> Fix | None:
    """The fix, as safe as what is made is alike on both; `exact`: it surely is. `dtype`: what it is made as."""
    if exact or name in SAME:
        return draft.fix(TITLE, Safety.SAFE)
    if name in CLOSE:
        return draft.fix(TITLE, Safety.UNSAFE, "values that are not whole may differ in their last bits")
    if name in DRAWN:
        drawn = "the device's generator draws other numbers for the same seed"
        return draft.fix(TITLE, Safety.UNSAFE, drawn + (f"; {dtype} must be floating point" if dtype else ""))
    return None


def as_dtype(function: Function, converted: ast.Call) -> ast.expr | str | None:
    """The dtype that `.to(x.dtype)`, `.to(torch.int64)` or `.long()` gives."""
    match converted:
        case ast.Call(
            func=ast.Attribute(attr="to" | "type" as how), args=[ast.Attribute(attr=word) as given], keywords=[]
        ):
            known = (function.dotted(given) or "").removeprefix("torch.") in DTYPES
            return (
                given if known or (how == "to" and word == "dtype") else None
            )  # `type` takes classes and strings, too
        case ast.Call(
            func=ast.Attribute(attr="long" | "float" | "double" | "half" | "bool" | "int" as word), args=[], keywords=[]
        ):
            return f"torch.{word}"
    return None
