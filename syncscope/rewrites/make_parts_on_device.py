"""`torch.cat([torch.ones(1), torch.zeros(n)]).to(device)`: each part is made on the device, and nothing is sent."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.made_on_host import DRAWN, SAME, TYPES, WHOLE, Made, made_on_host, target
from syncscope.codemod.patterns.numbers import counts
from syncscope.codemod.proofs import DTYPES
from syncscope.codemod.templates import Part
from syncscope.codemod.writes import written_after
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

TITLE = "make it on the device"
COMPILES = True
TOGETHER = "made"
ROUNDS = True
EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor, device):
            first = torch.cat([torch.ones(1), torch.zeros(x.shape[0])[:-1]]).to(device)  # !
            rows = torch.cat((torch.zeros(2, dtype=torch.long), torch.arange(1, 4)))
            rows = rows.repeat(2, 1).unsqueeze(2).to(device)  # !
            return x.sum() + first, rows
        """,
        """
        import torch

        def forward(x: torch.Tensor, device):
            first = torch.cat([torch.ones(1, device=device), torch.zeros(x.shape[0], device=device)[:-1]])
            rows = torch.cat((torch.zeros(2, dtype=torch.long, device=device), torch.arange(1, 4, device=device)))
            rows = rows.repeat(2, 1).unsqueeze(2)
            return x.sum() + first, rows
        """,
        Safety.SAFE,
        "x: float[n, m + 1]; device: cpu",
        rule="blocking-upload",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor, device):
            padded = torch.BoolTensor(x.shape).fill_(False).to(device)  # !
            zeros = torch.FloatTensor(3, 2).zero_().cuda()  # !
            return padded, zeros, torch.ones(3).fill_(0.5).to(device)  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor, device):
            padded = torch.empty(x.shape, dtype=torch.bool, device=device).fill_(False)
            zeros = torch.empty(3, 2, dtype=torch.float, device="cuda").zero_()
            return padded, zeros, torch.ones(3, device=device).fill_(0.5)
        """,
        Safety.SAFE,
        rule="blocking-upload",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor, device):
            half = (0.5 * torch.ones([x.shape[0], 1])).to(device)  # !
            steps = torch.linspace(-0.5, 3.5, 5)
            steps = torch.round(steps).to(device)  # !
            return half, steps
        """,
        """
        import torch

        def forward(x: torch.Tensor, device):
            half = 0.5 * torch.ones([x.shape[0], 1], device=device)
            steps = torch.linspace(-0.5, 3.5, 5, device=device)
            steps = torch.round(steps)
            return half, steps
        """,
        Safety.UNSAFE,
        "x: float[n, m]; device: cpu",
        rule="blocking-upload",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            others = (1 - torch.eye(x.shape[1])[None]).to(x)  # !
            return x * others
        """,
        """
        import torch

        def forward(x: torch.Tensor):
            others = (1 - torch.eye(x.shape[1], device=x.device)[None]).to(x.dtype)
            return x * others
        """,
        Safety.SAFE,
        "x: float[n, m]",
        rule="blocking-upload",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor, dim: int):
            table = torch.zeros(x.shape[0], 2 * dim)
            angle = torch.arange(x.shape[0]).unsqueeze(1) * (torch.arange(dim) / -dim).exp()
            table[:, 0::2] = torch.sin(angle)
            table[:, 1::2] = torch.cos(angle)
            return x.sum() + table.to(device=x.device, dtype=x.dtype)  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor, dim: int):
            table = torch.zeros(x.shape[0], 2 * dim, device=x.device)
            angle = torch.arange(x.shape[0], device=x.device).unsqueeze(1) * (torch.arange(dim, device=x.device) / -dim).exp()
            table[:, 0::2] = torch.sin(angle)
            table[:, 1::2] = torch.cos(angle)
            return x.sum() + table.to(x.dtype)
        """,
        Safety.UNSAFE,
        "x: finite[n]; dim: count",
        rule="blocking-upload",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            noise = torch.randn(x.shape) * 0.1
            noise = noise.cuda()  # !
            places = torch.arange(x.shape[0]).expand(3, x.shape[0]).to(x.device)  # !
            return x + noise, places
        """,
        """
        import torch

        def forward(x: torch.Tensor):
            noise = torch.randn(x.shape, device="cuda") * 0.1
            places = torch.arange(x.shape[0], device=x.device).expand(3, x.shape[0])
            return x + noise, places
        """,
        Safety.UNSAFE,
        rule="blocking-upload",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    move = site.node
    if not isinstance(move, ast.Call) or not isinstance(move.func, ast.Attribute):
        return None
    draft = Draft(function)
    found = _destination(draft, move)
    made = made_on_host(function, move.func.value) if found is not None else None
    if found is None:
        return function.declines(move, "where it is sent may be no device")
    if made is None:
        return function.declines(move, f"of what {function.file.quote(move.func.value)} is made is not in sight")
    where, named, dtype = found
    if any(_is_another(function, named, call, move) for call in made.calls):
        return function.declines(move, "where it is sent is not known yet where it is made")
    kept = function.statement(move)
    if made.shared and isinstance(kept, ast.Assign) and any(written_after(function, t, kept) for t in kept.targets):
        return function.declines(move, "its elements share their memory, and are written after it is sent")
    there = {call: _made_there(draft, function, call, where) for call in made.calls}
    musts = ""
    if dtype is not None and len(made.calls) == 1:
        (only,) = made.calls
        if _holds_alike(function, move, only, dtype):
            there, dtype = {only: draft.call(only, {}, dtype=dtype, device=where)}, None
        elif isinstance(named, ast.expr) and _drawn_like(function, move.func.value, only, named):
            like = f"{function.dotted(only.func)}_like({{x}})"
            there, dtype = {only: draft.part(like, x=named)}, None
            musts = f"{function.file.text(named)} must be floating point, and it is drawn in that dtype"
    inside: dict[ast.expr, Part] = {c: new for c, new in there.items() if any(n is move for n in function.around(c))}
    statement = function.statement(move)
    match statement, move.func.value:
        case ast.Assign(targets=[ast.Name(id=name)]), ast.Name(id=same) if (
            name == same and statement.value is move and function.alone(statement) and dtype is None
        ):
            draft.remove(statement)  # `x = x`
        case _:
            whole, sent = draft.swapped(move.func.value, inside), _sent_again(function, move, named)
            if dtype is None:
                draft.replace(sent, "{made}", made=whole.with_changes(lpar=[], rpar=[]))
            else:
                draft.replace(sent, "{made}.to({dtype})", made=whole, dtype=dtype)
    for call, new in there.items():
        if call not in inside:
            draft.replace(call, "{new}", new=new)
    return _rated(draft, function, made, musts)


def _sent_again(function: Function, move: ast.Call, named: ast.expr | str) -> ast.Call:
    """The whole of `t.type_as(x).to(x.device)`, which sends it to where it is already; else the move itself."""
    match function.parent(function.parent(move) or move):
        case (
            ast.Call(
                func=ast.Attribute(value=inner, attr="to"),
                args=[ast.Attribute(value=other, attr="device")],
                keywords=[],
            ) as again
        ) if inner is move and isinstance(named, ast.expr) and function.same(other, named):
            return again
    return move


def _holds_alike(function: Function, move: ast.Call, call: ast.Call, dtype: Part) -> bool:
    """Whether a tensor of zeros and ones is sent as it was made, and in a dtype of torch: it can be made in that one."""
    sent = function.value(move.func.value) if isinstance(move.func, ast.Attribute) else None
    known = isinstance(dtype, ast.expr) and (function.dotted(dtype) or "").removeprefix("torch.") in DTYPES
    if (
        sent is not call
        or not known
        or function.dotted(call.func) not in WHOLE
        or any(k.arg == "dtype" for k in call.keywords)
    ):
        return False
    # where it may be written to, or looked at
    span = range(function.file.span(call).end, function.file.span(move).start)
    held = move.func.value if isinstance(move.func, ast.Attribute) else None
    return not isinstance(held, ast.Name) or not any(
        function.file.span(use).start in span for use in function.reads(held.id) if use is not held
    )


def _drawn_like(function: Function, sent: ast.expr, call: ast.Call, other: ast.expr) -> bool:
    """Whether a tensor drawn in the shape of another, and computed with numbers, is sent to that one's device and dtype."""
    match call:
        case ast.Call(args=[ast.Attribute(value=of, attr="shape")], keywords=[]):
            pass
        case ast.Call(args=[ast.Call(func=ast.Attribute(value=of, attr="size"), args=[], keywords=[])], keywords=[]):
            pass
        case _:
            return False
    inside = {id(n) for n in ast.walk(call)}
    around = [n for n in ast.walk(sent) if id(n) not in inside and isinstance(n, ast.expr)]
    plain = (ast.BinOp, ast.UnaryOp, ast.Constant)
    drawn = function.dotted(call.func) in ("torch.rand", "torch.randn")
    return drawn and function.same(of, other) and all(isinstance(n, plain) for n in around)


def _destination(draft: Draft, move: ast.Call) -> tuple[Part, ast.expr | str, Part | None] | None:
    """Where a tensor is sent, what names that, and the dtype that it gets on the way: as `.to(other)` says both."""
    function, where = draft.function, target(draft.function, move)
    if where is not None:
        return (draft.part(where) if isinstance(where, str) else where), where, None
    match move:
        case ast.Call(func=ast.Attribute(attr="to"), args=[], keywords=[_, _] as given):
            both = {k.arg: k.value for k in given}
            named = both.get("device")
            if both.keys() == {"device", "dtype"} and isinstance(named, (ast.Name, ast.Attribute, ast.Constant)):
                return named, named, both["dtype"]
        case ast.Call(
            func=ast.Attribute(attr="to" | "type_as"), args=[ast.Name() | ast.Attribute() as other], keywords=[]
        ):
            fact = function.fact(other)
            if fact.is_tensor and fact.confidence >= 2 and not function.file.own_tensors:  # whose class it would get
                return draft.part("{x}.device", x=other), other, draft.part("{x}.dtype", x=other)
    return None


def _made_there(draft: Draft, function: Function, call: ast.Call, device: Part) -> Part:
    """A call that makes a tensor, on the device; `torch.FloatTensor(2, 3)` is written as `torch.empty` today."""
    dtype = TYPES.get(function.dotted(call.func) or "")
    if dtype is None:
        return draft.call(call, {}, device=device)
    return draft.call(call, {call.func: draft.part("torch.empty")}, dtype=draft.part(dtype), device=device)


def _is_another(function: Function, where: ast.expr | str, call: ast.Call, move: ast.Call) -> bool:
    """Whether what names the device may be bound between where a part is made and where it is sent, or only afterwards."""
    if isinstance(where, str):
        return False
    span = range(function.file.span(call).start, function.file.span(move).start)
    names = {n.id for n in ast.walk(where) if isinstance(n, ast.Name)}
    words = {n.attr for n in ast.walk(where) if isinstance(n, ast.Attribute)}
    stored = (n for n in function.every(ast.Attribute) if n.attr in words and not isinstance(n.ctx, ast.Load))
    return any(
        function.file.span(n).start in span for n in (*stored, *(b for name in names for b in function.binds(name)))
    )


def _rated(draft: Draft, function: Function, made: Made, musts: str) -> Fix:
    """The fix, as safe as what is made is alike on both."""
    names = {call: function.dotted(call.func) for call in made.calls}
    changes = [musts] if musts else []
    drawn = any(name in DRAWN for name in names.values())
    if drawn:
        changes.append("the device's generator draws other numbers for the same seed")
    elif made.computed or any(
        name not in SAME | TYPES.keys() and not counts(function, call) for call, name in names.items()
    ):
        more = ", and what is computed of them by more" if made.computed else ""
        changes.append(f"values that are not whole may differ in their last bits{more}")
    if made.shared:
        changes.append(
            "it is laid out as it is made, where it was copied whole: `view` and writes in place may ask for `.contiguous()`"
        )
    return draft.fix(TITLE, Safety.UNSAFE if changes else Safety.SAFE, *changes, redraws=drawn)
