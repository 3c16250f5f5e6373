"""`torch.tensor([1.0, 2.0], device=d)` in every call as a function that is cached: made once for each device."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function, number
from syncscope.codemod.sharing import VIEWS
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
)


def rewrite(site: Site, function: Function) -> Fix | None:
    call = site.node
    if not isinstance(call, ast.Call) or function.dotted(call.func) != "torch.tensor" or len(call.args) != 1:
        return None
    keywords = {k.arg: k.value for k in call.keywords}
    if "device" not in keywords or any(name not in NAMED for name in keywords) or not written(call.args[0]):
        return None
    given = {n: v for n, v in keywords.items() if n is not None and (function.dotted(v) or "torch").count(".") == 0}
    line = call.lineno
    outer = next((s for s in function.file.tree.body if s.lineno <= line <= (s.end_lineno or 0)), None)
    if not isinstance(outer, (ast.FunctionDef, ast.ClassDef)) or _written_to(function, call):
        return None
    draft = Draft(function)
    name = function.fresh(f"{_called(function, call)}_on", everywhere=True)
    made = moved(function, call, draft.code("{call}", call=draft.call(call, {v: n for n, v in given.items()})))
    cache = f"{draft.called('functools')}.cache"
    draft.replace(call, f"{name}({', '.join(f'{{{n}}}' for n in given)})", **given)
    at = function.file.starts[min([outer.lineno, *(d.lineno for d in outer.decorator_list)]) - 1]
    text = f"@{cache}\ndef {name}({', '.join(given)}):\n    return {made}\n\n\n"
    draft.edits.append(Edit(Span(at, at), text))
    return draft.fix(
        "make it once for each device",
        Safety.UNSAFE,
        "every call is given the same tensor: it must not be written, and not be made first under inference_mode",
    )


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
    return all(number(e) is not None or (isinstance(e, (ast.List, ast.Tuple)) and written(e)) for e in node.elts)


def _called(function: Function, call: ast.Call) -> str:
    """What the user calls it."""
    match function.parent(call):
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name
    return "constant"


def _written_to(function: Function, call: ast.Call) -> bool:
    """Whether the tensor may be written, kept or given away after it was made: then each call needs its own."""
    parent = function.parent(call)
    if isinstance(parent, (ast.BinOp, ast.Compare)):
        return False
    match parent:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return len(function.binds(name)) != 1 or any(not _only_read(function, use) for use in function.reads(name))
    return True


def _only_read(function: Function, use: ast.Name) -> bool:
    """Whether a use only computes with the tensor: as an operand, or as an argument of a pure function of torch."""
    parent = function.parent(use)
    if isinstance(parent, (ast.BinOp, ast.Compare)):
        return True
    op = function.op(parent)
    if op is None or not isinstance(parent, ast.Call) or op.name.endswith("_") or "out" in op.keywords:
        return False
    return (
        function.pure_call(parent)
        and (function.dotted(parent.func) or "").startswith("torch.")
        and op.name not in VIEWS
    )
