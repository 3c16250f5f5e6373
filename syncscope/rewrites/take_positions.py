"""`x[i, :, a : a + n]` by positions that the device counts, `a + torch.arange(n)`: Python knows how many there are."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.conditions import key
from syncscope.model.example import Example
from syncscope.model.fact import Site, Value
from syncscope.model.finding import Fix, Safety
from syncscope.project.syntax import each_of

COMPILES = True
EXAMPLES = (
    Example(
        """
        import torch

        def pieces(x: torch.Tensor, starts: torch.LongTensor, size: int = 4):
            out = torch.zeros_like(x[:, :, :size])
            for i in range(x.size(0)):
                start = starts[i]
                end = start + size
                out[i] = x[i, :, start:end]  # !
            return out
        """,
        """
        import torch

        def pieces(x: torch.Tensor, starts: torch.LongTensor, size: int = 4):
            out = torch.zeros_like(x[:, :, :size])
            for i in range(x.size(0)):
                start = starts[i]
                end = start + size
                out[i] = x[i, :, start + torch.arange(size, device=start.device)]
            return out
        """,
        Safety.UNSAFE,
        "x: finite[n, m, 20]; starts: index[n] < 16",
    ),
    Example(
        """
        import torch

        def window(x: torch.Tensor, at: torch.LongTensor):
            first = at.min()
            return x[first : first + 8]  # !
        """,
        """
        import torch

        def window(x: torch.Tensor, at: torch.LongTensor):
            first = at.min()
            return x[first + torch.arange(8, device=first.device)]
        """,
        Safety.UNSAFE,
        "x: finite[20]; at: index[n + 1] < 12",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    taken = next((n for n in (site.node, *function.around(site.node)) if isinstance(n, ast.Subscript)), None)
    if taken is None or not isinstance(taken.ctx, ast.Load) or not function.fact(taken.value).is_tensor:
        return None
    parts = each_of(taken.slice)
    asked = [part for part in parts if isinstance(part, ast.Slice) and waits_for(function, part)]
    others = [part for part in parts if part not in asked]
    if len(asked) != 1 or not all(isinstance(part, ast.Slice) or is_number(function, part) for part in others):
        return None
    (piece,) = asked
    size = size_of(function, piece)
    if size is None or not isinstance(piece.lower, ast.Name):
        return None
    draft = Draft(function)
    made = draft.part("{a} + torch.arange({n}, device={a}.device)", a=piece.lower, n=size)
    written = {key(part): part for part in others if not isinstance(part, ast.Slice)}
    index = ", ".join(
        "{made}" if part is piece else f"{{{key(part)}}}" if key(part) in written else ast.unparse(part)
        for part in parts
    )
    draft.replace(taken, f"{{x}}[{index}]", x=taken.value, made=made, **written)
    start, name = function.file.text(piece.lower), function.file.quote(taken.value)
    changes = (
        f"{start} must not be negative, and all must lie within {name}: a slice is cut short at its end, a position there is "
        f"an error; and it is a copy, which shares no memory with {name}"
    )
    return draft.fix("take positions that the device counts", Safety.UNSAFE, changes)


def waits_for(function: Function, piece: ast.Slice) -> bool:
    """Whether a bound of a slice is a tensor."""
    return any(bound is not None and function.fact(bound).is_tensor for bound in (piece.lower, piece.upper, piece.step))


def size_of(function: Function, piece: ast.Slice) -> ast.expr | None:
    """How many a slice takes, where that is a number of Python: n in `x[a : a + n]`, and of `b = a + n` in `x[a:b]`."""
    if piece.upper is None or piece.lower is None or piece.step is not None:
        return None
    match function.value(piece.upper):
        case ast.BinOp(left=start, op=ast.Add(), right=size) if alike(function, start, piece.lower):
            pass
        case ast.BinOp(left=size, op=ast.Add(), right=start) if alike(function, start, piece.lower):
            pass
        case _:
            return None
    here = function.value(piece.upper) is piece.upper
    lasting = (
        here or function.constant(size) is not None or (isinstance(size, ast.Name) and not function.binds(size.id))
    )
    return size if lasting and is_number(function, size) else None


def alike(function: Function, a: ast.expr, b: ast.expr) -> bool:
    """Whether two names surely hold one value."""
    if not function.same_name(a, b) or not isinstance(a, ast.Name) or not isinstance(b, ast.Name):
        return False
    defined = function.reaching_definition(a)
    if defined is not None:
        return defined is function.reaching_definition(b)
    return function.untouched(a) and function.untouched(b)


def is_number(function: Function, node: ast.expr) -> bool:
    """Whether this is a number of Python, as far as is known."""
    return function.constant(node) is not None or function.fact(node).kind is Value.SCALAR
