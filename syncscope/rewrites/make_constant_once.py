"""`torch.tensor([1.0, 2.0], device=d)` in every call as a function that is cached: made once for each device."""

from __future__ import annotations

import ast
from dataclasses import replace

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.names_and_calls import number
from syncscope.codemod.patterns.numbers import named
from syncscope.codemod.sharing import DESCRIBE, VIEWS
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Edit, Fix, Safety
from syncscope.model.source import Span

NAMED = ("device", "dtype")
EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            weights = torch.tensor([0.25, 0.5, 0.25], device=x.device)  # !
            return x * weights
        """,
        """
        import functools

        import torch

        @functools.cache
        def weights_on(device):
            return torch.tensor([0.25, 0.5, 0.25], device=device)


        def forward(x: torch.Tensor):
            weights = weights_on(x.device)
            return x * weights
        """,
        Safety.UNSAFE,
        "x: finite[n, 3]",
    ),
    Example(
        """
        import torch

        class Blur:
            def forward(self, x: torch.Tensor):
                return x @ torch.tensor([[1, 2], [3, -4]], dtype=x.dtype, device=x.device)  # !
        """,
        """
        import functools

        import torch

        @functools.cache
        def constant_on(dtype, device):
            return torch.tensor([[1, 2], [3, -4]], dtype=dtype, device=device)


        class Blur:
            def forward(self, x: torch.Tensor):
                return x @ constant_on(x.dtype, x.device)
        """,
        Safety.UNSAFE,
        "x: finite[n, 2]",
    ),
    Example(
        """
        import torch

        def normalized(batch: torch.Tensor):
            mean = batch.new_tensor([0.485, 0.456, 0.406]).view(-1, 1, 1)  # !
            return (batch - mean) @ batch.new_tensor([[1 / 3, 0], [0, -1]])  # !
        """,
        """
        import functools

        import torch

        @functools.cache
        def mean_on(dtype, device):
            return torch.tensor([0.485, 0.456, 0.406], dtype=dtype, device=device)


        @functools.cache
        def constant_on(dtype, device):
            return torch.tensor([[1 / 3, 0], [0, -1]], dtype=dtype, device=device)


        def normalized(batch: torch.Tensor):
            mean = mean_on(batch.dtype, batch.device).view(-1, 1, 1)
            return (batch - mean) @ constant_on(batch.dtype, batch.device)
        """,
        Safety.UNSAFE,
        "batch: finite[3, 2, 2]",
    ),
    Example(
        """
        import torch

        def corners(x: torch.Tensor):
            steps = x.new_tensor([1.0, 2.0])  # !
            shifts = x.new_tensor([1.0, 2.0])[None]  # !
            shifts.mul_(2)
            return steps, x + shifts
        """,
        """
        import torch

        def corners(x: torch.Tensor):
            steps = torch.tensor([1.0, 2.0], dtype=x.dtype).to(x.device, non_blocking=True)
            shifts = torch.tensor([1.0, 2.0], dtype=x.dtype).to(x.device, non_blocking=True)[None]
            shifts.mul_(2)
            return steps, x + shifts
        """,
        Safety.SUGGEST,  # by another rewrite: these are written, or given away
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    call = site.node
    if not isinstance(call, ast.Call) or len(call.args) != 1 or not written(call.args[0]):
        return None
    of = made_of(function, call)
    if of is None or not only_computed_with(function, call):
        return None
    line = call.lineno
    outer = function.file.on_top(line)
    if not isinstance(outer, (ast.FunctionDef, ast.ClassDef)):
        return None
    draft = Draft(function)
    name = function.fresh(f"{called(function, call)}_on", everywhere=True)
    cache = f"{draft.called('functools')}.cache"
    if isinstance(of, ast.expr):
        given, code = ["dtype", "device"], draft.code("torch.tensor({v}, dtype=dtype, device=device)", v=call.args[0])
        draft.replace(call, f"{name}({{x}}.dtype, {{x}}.device)", x=of)
    else:
        given, code = list(of), draft.code("{call}", call=draft.call(call, {v: n for n, v in of.items()}))
        draft.replace(call, f"{name}({', '.join(f'{{{n}}}' for n in of)})", **of)
    at = function.file.starts[min([outer.lineno, *(d.lineno for d in outer.decorator_list)]) - 1]
    text = f"@{cache}\ndef {name}({', '.join(given)}):\n    return {moved(function, call, code)}\n\n\n"
    draft.edits.append(Edit(Span(at, at), text))
    fix = draft.fix(
        "make it once for each device",
        Safety.UNSAFE,
        "every call is given the same tensor: it must not be written, and not be made first under inference_mode",
    )
    return replace(fix, hint=True)  # a function and a cache for one constant are to somebody's taste


def made_of(function: Function, call: ast.Call) -> dict[str, ast.expr] | ast.expr | None:
    """What dtype and device are given as, where they are not constants: by name, or as the tensor that has both."""
    keywords = {k.arg: k.value for k in call.keywords}
    if function.dotted(call.func) == "torch.tensor":
        if "device" not in keywords or any(name not in NAMED for name in keywords):
            return None
        return {
            n: v
            for n, v in keywords.items()
            if n is not None and (function.dotted(v) or "torch").count(".") == 0  # `torch.long` is none
        }
    if (
        isinstance(call.func, ast.Attribute)
        and call.func.attr == "new_tensor"
        and not keywords
        and named(call.func.value)
    ):
        fact = function.fact(call.func.value)
        plain = "torch" in function.file.at_hand and not function.file.own_tensors
        return call.func.value if fact.is_tensor and fact.confidence >= 2 and plain else None
    return None


def moved(function: Function, call: ast.Call, made: str) -> str:
    """Code as it is indented in a function of its own."""
    statement = function.statement(call)
    less = len(function.indent(statement)) - len("    ") if statement is not None else 0
    first, *rest = made.splitlines()
    if less <= 0 or any(line[:less].strip() for line in rest):
        return made
    return "\n".join([first, *(line[less:] for line in rest)])


def written(node: ast.expr) -> bool:
    """Whether this is a list of numbers that are written out, or of such lists, with at least one."""
    if not isinstance(node, (ast.List, ast.Tuple)) or not node.elts:
        return False
    return all(plain(e) or (isinstance(e, (ast.List, ast.Tuple)) and written(e)) for e in node.elts)


def plain(node: ast.expr) -> bool:
    """Whether this is a number that is written out, or a fraction of two: `-1 / 3`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return plain(node.left) and bool(number(node.right))
    return number(node) is not None


def called(function: Function, call: ast.Call) -> str:
    """What the user calls it, or a view of it."""
    at = function.parent(call)
    while isinstance(at, (ast.Attribute, ast.Call, ast.Subscript, ast.BinOp)):
        at = function.parent(at)
    match at:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name
    return "constant"


def only_computed_with(function: Function, node: ast.expr, asked: frozenset[str] = frozenset()) -> bool:
    """Whether a tensor is nowhere written, kept or given away: then each use may be given the same one.

    It may be an operand, an argument of an operation of torch's, an index, and asked for its shape; and so may a view of it.
    Names whose uses are `asked` for are not again: `k = k.expand(3, 4)` is a use of the name that it gives a value.
    """
    match function.parent(node):
        case ast.BinOp() | ast.Compare() | ast.UnaryOp() | ast.AugAssign():
            return True
        case ast.Assign(targets=[ast.Name(id=name)]):
            if name in asked:
                return True
            uses, asked = function.reads(name), asked | {name}
            alone = not function.shared(name) and not any(
                another(function, bind, node) for bind in function.binds(name)
            )
            return alone and bool(uses) and all(only_computed_with(function, use, asked) for use in uses)
        case ast.Subscript(value=value, slice=index, ctx=ctx) as part:
            return index is node or (
                value is node and isinstance(ctx, ast.Load) and only_computed_with(function, part, asked)
            )
        case ast.Attribute(attr=attr) as part:
            call = function.parent(part)
            if isinstance(call, ast.Call) and call.func is part:
                return attr in ("size", "dim", "numel") or _operation(function, call, attr in VIEWS, asked=asked)
            return attr in DESCRIBE or (attr in VIEWS and only_computed_with(function, part, asked))
        case ast.keyword() as given:
            call = function.parent(given)
            return given.arg != "out" and isinstance(call, ast.Call) and _operation(function, call)
        case ast.Call(func=ast.Name(id="isinstance")):
            return True
        case ast.Call() as call:
            op = function.op(call)
            return op is not None and _operation(function, call, op.name in VIEWS, op.base is node, asked)
    return False


def another(function: Function, bind: ast.Name, node: ast.expr) -> bool:
    """Whether a name is given another constant here: each would get a function of its own, and a number to its name."""
    match function.parent(bind):
        case ast.Assign(value=ast.Call(args=[given, *_]) as value):
            return value is not node and written(given)
    return False


def _operation(
    function: Function, call: ast.Call, view: bool = False, base: bool = True, asked: frozenset[str] = frozenset()
) -> bool:
    """Whether a call is an operation of torch that gives new memory, or a view with which is only computed."""
    op = function.op(call)
    if op is None or (base and op.name.endswith("_")) or "out" in op.keywords:
        return False
    return only_computed_with(function, call, asked) if view else base is False or function.pure_call(call)
