"""`torch.zeros(n).to(device)` as `torch.zeros(n, device=device)`."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.made_on_host import CLOSE, DRAWN, SAME, TYPES, target
from syncscope.codemod.patterns.numbers import counts, filled_with, filling, of_equals
from syncscope.codemod.patterns.sent import ALIKE, as_dtype, may_be_moved, sent_as, sent_to, unshaped
from syncscope.codemod.templates import Part
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety
from syncscope.project.syntax import each_of

NEW = {"torch.zeros": "zeros", "torch.ones": "ones", "torch.empty": "empty"}
TITLE = "make it on the device"
COMPILES = True
TOGETHER = "made"
ROUNDS = True
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
            return scaled, eye, torch.ones(3, dtype=x.dtype, device=x.device)
        """,
        Safety.SAFE,
        "x: float[n, m]",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            mask = torch.zeros_like(x)
            mask[..., ::2] = torch.tensor(1).type_as(x)  # !
            return x * mask
        """,
        """
        import torch

        def forward(x: torch.Tensor):
            mask = torch.zeros_like(x)
            mask[..., ::2] = 1
            return x * mask
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
    move = sent_as(function, site.node)
    if move is None or move.where is None or not may_be_moved(function, move.made):
        return None
    made, dtype = move.made, move.dtype
    name, taken = function.dotted(made.func), {k.arg for k in made.keywords}
    if name == "torch.tensor" or name in TYPES:
        plain = not taken - {"dtype"} and dtype is None
        return filled_there(function, move.call, made, move.where) if plain else None
    whole: ast.expr = move.call
    if dtype is None and name in ALIKE and "dtype" not in taken:
        after = function.parent(function.parent(whole) or whole)  # torch.ones(n).to(device).bool()
        held = isinstance(after, ast.Call) and isinstance(after.func, ast.Attribute) and after.func.value is whole
        if isinstance(after, ast.Call) and held and (dtype := as_dtype(function, after)) is not None:
            whole = after
    draft = Draft(function)
    kind = draft.part(dtype) if isinstance(dtype, str) else dtype
    more: dict[str, Part] = {"device": move.where} if kind is None else {"dtype": kind, "device": move.where}
    draft.replace(whole, "{call}", call=draft.call(made, {}, **more))
    exact = counts(function, made) and dtype in (None, "torch.long", "torch.int", "torch.double")
    return fixed(
        draft, move.call, name, exact, function.file.text(dtype) if isinstance(dtype, ast.expr) else dtype or ""
    )


def filled_there(function: Function, move: ast.expr, made: ast.Call, where: Part) -> Fix | None:
    """The fix for `torch.tensor(0.0).to(device)`, and for `torch.LongTensor([number] * n).to(device)`."""
    name, said = function.dotted(made.func) or "", any(k.arg == "dtype" for k in made.keywords)
    one = filled_with(function, made, said)
    filled = one or (of_equals(function, made.args[0]) if len(made.args) == 1 else None)
    if filled is None:
        return function.declines(move, f"{function.file.quote(made)} is not known to hold one number")
    draft, (number, size) = Draft(function), filled
    held: dict[str, Part] = {"dtype": draft.part(TYPES[name]), "device": where} if name in TYPES else {"device": where}
    draft.replace(move, "{call}", call=filling(draft, made, number, size, **held))
    if one is not None:
        return draft.fix(TITLE, Safety.SAFE)
    known = function.constant(number)
    musts = [] if known is not None else [f"{function.file.text(number)} must be a number"]
    if not (said or name in TYPES or isinstance(known, float)):
        musts.append("where there are none, the dtype is its own")
    return draft.fix(TITLE, Safety.UNSAFE, *(musts or ["a count below 0 is an error"]))


def reshaped_then_moved(site: Site, function: Function) -> Fix | None:
    """The fix for `torch.arange(n).unsqueeze(0).to(device)`, and for `.to(other)` and `.type_as(other)`, which convert, too."""
    move = site.node
    if not isinstance(move, ast.Call) or not isinstance(move.func, ast.Attribute):
        return None
    made, converted = unshaped(move.func.value)
    name = function.dotted(made.func) if isinstance(made, ast.Call) else None
    if not isinstance(made, ast.Call) or name == "torch.tensor" or not may_be_moved(function, made):
        return None
    said = converted or any(k.arg == "dtype" for k in made.keywords)
    if (where := target(function, move)) is not None:
        draft = Draft(function)
        new = draft.call(made, {}, device=where)
    elif (other := sent_to(function, move)) is not None:
        draft = Draft(function)
        dense = not function.file.other_layouts
        if name == "torch.full" and not said and dense:
            filled = draft.call(made, {made.func: draft.part("{x}.new_full", x=other)})
            draft.replace(move, "{there}", there=draft.swapped(move.func.value, {made: filled}))
            return draft.fix(TITLE, Safety.UNSAFE, f"it is rounded to {function.file.text(other)}'s dtype at once")
        place = draft.part("{x}.device", x=other)
        if converted or name not in ALIKE:  # it is made as it was, and converted then
            new = draft.call(made, {}, device=place)
            draft.replace(move, "{there}.to({x}.dtype)", there=draft.swapped(move.func.value, {made: new}), x=other)
            return fixed(draft, move, name, counts(function, made))
        if name in NEW and dense and not said:
            new = draft.call(made, {made.func: draft.part(f"{{x}}.new_{NEW[name]}", x=other)})
        else:
            new = draft.call(made, {}, dtype=draft.part("{x}.dtype", x=other), device=place)
    else:
        return function.declines(move, "where it is sent may be no device")
    if not draft.take_off(move, made, new):
        draft.replace(move, "{there}", there=draft.swapped(move.func.value, {made: new}))
    return fixed(draft, move, name, counts(function, made))


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
                case ast.Assign(targets=[ast.Subscript(value=kept, slice=place)]) if all(
                    map(_is_plain, each_of(place))
                ):
                    if function.fact(kept).is_tensor and function.fact(kept).confidence >= 2:
                        draft.replace(site.node, "{n}", n=number)
                        return draft.fix("write the number", Safety.SAFE)
            alike = {"dtype": draft.part("{x}.dtype", x=other), "device": draft.part("{x}.device", x=other)}
            draft.replace(site.node, "{call}", call=filling(draft, made, number, "()", **alike))
            return draft.fix(TITLE, Safety.SAFE)
    return None


def _is_plain(part: ast.expr) -> bool:
    """Whether a part of an index is a slice, or written out: what stands there is filled without a copy of the number."""
    return isinstance(part, ast.Slice) or (isinstance(part, ast.Constant) and not isinstance(part.value, bool | str))


def fixed(draft: Draft, move: ast.expr, name: str | None, exact: bool, dtype: str = "") -> Fix | None:
    """The fix, as safe as what is made is alike on both; `exact`: it surely is. `dtype`: what it is made as."""
    if exact or name in SAME:
        return draft.fix(TITLE, Safety.SAFE)
    if name in CLOSE:
        return draft.fix(TITLE, Safety.UNSAFE, "values that are not whole may differ in their last bits")
    if name in DRAWN:
        drawn = "the device's generator draws other numbers for the same seed"
        floating = f"{dtype} must be floating point" if dtype else ""
        return draft.fix(TITLE, Safety.UNSAFE, drawn, floating, redraws=True)
    return draft.function.declines(move, f"`{name}` is not known to give the same on the device")
