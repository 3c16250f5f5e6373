"""One reduction of what a mask selects, `f(x[m]).sum()`: what it becomes over all of x, and what changes."""

from __future__ import annotations

import ast
import re
from typing import NamedTuple

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.pattern import alike
from syncscope.codemod.patterns.bounds import one_elsewhere
from syncscope.codemod.patterns.guards import Guard, guard_of, nothing
from syncscope.codemod.proofs import elementwise
from syncscope.codemod.templates import Part
from syncscope.model.fact import Dtype, Site

LAST_BITS = "the sum may differ in its last bits, and overflows in half precision where the whole tensor's would"
SHARED = "a selection of {0} only shares its gradient with what is left out"
EMPTY = "an empty selection gives {0} and no error"
LOW, HIGH = ((EMPTY.format(inf), SHARED.format(inf)) for inf in ("-inf", "inf"))
TEMPLATES = {  # (reduction, dtypes): code with {m} for the mask and {out} for its opposite, what changes (SAFE if nothing)
    ("sum", (Dtype.BOOL, Dtype.INT)): ("torch.where({m}, {x}, 0).sum()", ()),
    ("sum", (Dtype.FLOAT, Dtype.UNKNOWN)): ("torch.where({m}, {x}, 0).sum()", (LAST_BITS,)),
    ("mean", (Dtype.FLOAT, Dtype.UNKNOWN)): ("torch.where({m}, {x}, 0.0).sum() / {m}.sum()", (LAST_BITS,)),
    ("max", (Dtype.FLOAT,)): ('{x}.masked_fill({out}, float("-inf")).max()', LOW),
    ("amax", (Dtype.FLOAT,)): ('{x}.masked_fill({out}, float("-inf")).amax()', LOW),
    ("min", (Dtype.FLOAT,)): ('{x}.masked_fill({out}, float("inf")).min()', HIGH),
    ("amin", (Dtype.FLOAT,)): ('{x}.masked_fill({out}, float("inf")).amin()', HIGH),
    ("max", (Dtype.UNKNOWN,)): ('{x}.masked_fill({out}, float("-inf")).max()', LOW),
    ("min", (Dtype.UNKNOWN,)): ('{x}.masked_fill({out}, float("inf")).min()', HIGH),
    ("count_nonzero", (Dtype.BOOL,)): ("({x} & {m}).count_nonzero()", ()),
    ("any", (Dtype.BOOL,)): ("({x} & {m}).any()", ()),
    ("all", (Dtype.BOOL,)): ("({x} | {out}).all()", ()),
}
NO_NUMBER = re.compile(r"\bis(?:nan|inf|finite|posinf|neginf)\b")  # in how a mask is made
GUARDED = ("sum", "mean", "max", "amax", "min", "amin")  # of these a choice may ask first whether anything is selected


class Reduction(NamedTuple):
    """`f(x[m]).sum()`, and the choice around it that asks whether there is anything to reduce."""

    use: ast.expr  # the selection, or the name it was given
    whole: ast.expr  # what is reduced: made element by element of selections
    call: ast.expr
    name: str
    guard: Guard | None
    template: str
    changes: tuple[str, ...]  # nothing where nothing does
    supposed: str = ""  # what must hold though it is not proved

    @property
    def node(self) -> ast.expr | ast.stmt:
        """What is replaced."""
        return self.guard.node if self.guard is not None else self.call


def reduction(
    site: Site,
    function: Function,
    use: ast.expr,
    mask: ast.expr,
    definition: ast.Assign | None,
    taken: ast.expr,
    fits: bool = False,
) -> Reduction | None:
    """The reduction that ends what is made of one use of a selection."""
    stands = use if definition is not None else None
    inner = whole(site, function, use, mask, stands, fits)
    outer = function.parent(inner)
    call = function.parent(outer) if isinstance(outer, ast.Attribute) else outer
    op = function.op(call)
    if op is None or op.base is not inner or op.args or op.keywords or not isinstance(call, ast.expr):
        return None
    dtype = site.fact_of(inner).dtype
    found = next((value for (name, dtypes), value in TEMPLATES.items() if name == op.name and dtype in dtypes), None)
    if found is None:
        return None
    guard = guard_of(function, call, mask, [use, taken]) if op.name in GUARDED else None
    template, changes = found if guard is None else unless_empty(function, op.name, guard, *found)
    unknown = dtype is Dtype.UNKNOWN and op.name in ("max", "min")  # ints have no inf
    words = f"{function.file.text(inner)} must be floating point" if unknown else ""
    return Reduction(use, inner, call, op.name, guard, template, changes, words)


def unless_empty(
    function: Function, name: str, guard: Guard, template: str, changes: tuple[str, ...]
) -> tuple[str, tuple[str, ...]]:
    """What a reduction becomes with the choice around it, and what changes: `x[m].max() if m.any() else 0`."""
    zero = nothing(function, guard.other)
    if name == "mean":
        template, changes = "torch.where({m}, {x}, 0.0).sum() / {m}.sum().clamp(min=1)", (LAST_BITS,)
    if name in ("max", "amax", "min", "amin"):
        inf = "-inf" if "max" in name else "inf"
        changes = ("what the mask selects from must have elements", SHARED.format(inf))
    if zero and name in ("sum", "mean"):
        changes = (*changes, "where nothing is selected it is a zero tensor, no Python number")
    else:
        template = f"torch.where({{m}}.any(), {template}, {{other}})"
        changes = (*changes, "where nothing is selected it is a tensor too, of the same dtype")
    return guard.head + template, changes


def no_number(function: Function, mask: ast.expr) -> bool:
    """Whether a mask leaves out what is NaN or inf."""
    asked = function.value(mask)
    return NO_NUMBER.search(ast.unparse(asked)) is not None or compared_with_itself(asked)


def finite(
    function: Function, draft: Draft, mask: ast.expr, base: ast.expr, called: Part | None = None, guarded: bool = False
) -> Part:
    """What is selected from, with zeros in the place of what the mask leaves out since it is no number.

    What is computed of NaN has a gradient of NaN, though no one asks for it: `where` multiplies it with zero. `called`: what
    stands for the mask. `guarded`: what is computed has no gradient for some numbers, see `bounds`.
    """
    if guarded:
        return one_elsewhere(draft, called or mask, base)
    asked = function.value(mask)
    if not no_number(function, mask):
        return base
    names = {ast.unparse(n) for n in ast.walk(asked) if isinstance(n, (ast.Name, ast.Attribute))}
    if not any(ast.unparse(n) in names for n in ast.walk(base) if isinstance(n, (ast.Name, ast.Attribute))):
        return base
    return draft.part("torch.where({m}, {x}, 0.0)", m=called or mask, x=base)


def compared_with_itself(asked: ast.expr) -> bool:
    """Whether this is `x == x`, which holds of numbers only."""
    return any(isinstance(n, ast.Compare) and alike(n.left, n.comparators[0]) for n in ast.walk(asked))


def whole(
    site: Site, function: Function, taken: ast.expr, mask: ast.expr, stands: ast.expr | None = None, fits: bool = False
) -> ast.expr:
    """The largest expression around a selection that is made element by element of selections by the same mask.

    `fits`: what is selected from is known to have the mask's shape.
    """
    fits = fits or stands is not None
    at = taken
    while True:
        outer = function.parent(at)
        if isinstance(outer, ast.Attribute):
            outer = function.parent(outer)
        if not isinstance(outer, ast.expr) or not elementwise(site, function, outer, mask, stands, fits):
            return at
        at = outer
