"""All that is done with what a mask selects, `x[m].sum()`, over all of x: one use or several, and how sure that is."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.bounds import bounded
from syncscope.codemod.patterns.lengths import COUNTED, length, number_of_elements
from syncscope.codemod.patterns.reads import handed_on, needs_number
from syncscope.codemod.patterns.reductions import Reduction, finite, no_number, reduction, whole
from syncscope.codemod.proofs import is_mask, same_rank, same_shape, taken_for_mask
from syncscope.codemod.templates import Part
from syncscope.codemod.writes import named_uses, quiet, sole_use
from syncscope.model.fact import Dtype, Site
from syncscope.model.finding import Fix, Safety

FINITE = "what is left out must be finite or its gradient is NaN"
OTHER_WORDS = "a mask that does not fit, or a division by zero that is left out, is reported in other words"
SPREAD = "{m}.reshape({m}.shape + (1,) * ({x}.dim() - {m}.dim())).expand_as({x})"
EXACT = (
    ast.Compare, ast.Subscript, ast.Name, ast.Constant, ast.UnaryOp, ast.BinOp, ast.BitAnd, ast.BitOr, ast.BitXor, ast.Invert,
    ast.USub, ast.cmpop, ast.expr_context,
)  # fmt: skip  # what raises nothing, whatever the values are


class Selected(NamedTuple):
    """What a mask selects, `base[mask]`, and all that is done with it."""

    site: Site
    function: Function
    base: ast.expr
    mask: ast.expr
    whole: ast.expr  # the selection, or what is made element by element of selections by this mask
    definition: ast.Assign | None  # the statement that names it
    uses: Sequence[ast.expr]
    reductions: list[Reduction]
    lengths: list[ast.expr]  # where it is only asked how many there are
    fits: bool  # that both have one shape is said elsewhere

    @property
    def is_plain(self) -> bool:
        """Whether the selection itself is reduced."""
        return self.whole is self.site.node

    @property
    def selections(self) -> list[ast.Subscript]:
        """Each selection by the mask in what is reduced."""
        return _selections(self.function, self.whole, self.mask)

    @property
    def guarded(self) -> set[ast.expr]:
        """The selections, and names of one, of which something is computed that has no gradient for some numbers."""
        function, mask = self.function, self.mask
        found = bounded(function, self.whole, self.selections)
        for r in self.reductions:
            found |= bounded(function, r.whole, [r.use, *_selections(function, r.whole, mask)])
        return found | {*self.selections} if any(r.use in found for r in self.reductions) else found

    @property
    def bases(self) -> list[ast.expr]:
        """What is selected from."""
        return [self.base] if self.is_plain else [each.value for each in self.selections]

    @property
    def names_mask_twice(self) -> bool:
        """Whether a mask that is computed where it stands would be so twice in one reduction."""
        plain = isinstance(self.mask, (ast.Name, ast.Attribute))
        return not plain and any(r.template.count("{m}") + r.template.count("{out}") > 1 for r in self.reductions)

    @property
    def names_mask_often(self) -> bool:
        """Whether a mask that is computed where it stands would be so several times."""
        asked_again = bool(self.guarded) or (
            no_number(self.function, self.mask) and any(r.whole is not r.use for r in self.reductions)
        )
        return self.names_mask_twice or len(self.uses) > 1 or asked_again


def reduced(
    site: Site, function: Function, base: ast.expr, mask: ast.expr, fits: bool = False, spread: bool = False
) -> Fix | None:
    """A reduction of what a mask selects, `base[mask].sum()`, as a reduction over all of base. The site is the selection.

    Where the selection has a name, all that is done with it. `fits`: that both have one shape is said elsewhere. `spread`: or
    the mask is given that of base first, for it may select rows.
    """
    taken, fact = site.node, site.fact_of(mask)
    if not isinstance(taken, ast.expr):
        return None
    if not (is_mask(fact) or taken_for_mask(mask, fact)):
        return function.declines(taken, f"that {function.file.quote(mask)} is a mask, and no positions, is not known")
    inner = whole(site, function, taken, mask, fits=fits)
    if inner is taken and not fits and not same_rank(site, function, mask, base):
        ranks = f"{function.file.quote(mask)} has as many dimensions as {function.file.quote(base)}"
        return function.declines(taken, f"that {ranks} is not known")
    uses, definition = named_uses(function, inner)
    found = [r for use in uses if (r := reduction(site, function, use, mask, definition, taken, fits)) is not None]
    asked = {id(n) for r in found if r.guard is not None for n in ast.walk(r.guard.node.test)}
    others = [use for use in uses if use not in [r.use for r in found] and id(use) not in asked]
    lengths = [n for use in others if (n := length(function, use) or number_of_elements(function, use)) is not None]
    if not found or len(lengths) < len(others):
        return counted(function, taken, mask)
    if not function.pure(mask) or not function.pure(base):
        return function.declines(taken, "what selects or is selected from cannot be computed again")
    if any(handed_on(function, each) for each in lengths):
        return function.declines(taken, "how many are selected is handed on as a number")
    if any(needs_number(function, each) for each in lengths):
        return function.declines(taken, "Python asks how many are selected, and would wait for that instead")
    these = Selected(site, function, base, mask, inner, definition, uses, found, lengths, fits)
    draft = Draft(function)
    keeps = mask_before(draft, these, spread)
    if keeps is None:
        return None
    reduce_all(draft, these, keeps)
    return as_safe_as(draft, these)


def mask_before(draft: Draft, these: Selected, spread: bool) -> Part | None:
    """What stands for the mask in new code: itself, or a name that it is given before; None where it cannot have one."""
    function, mask, definition = these.function, these.mask, these.definition
    first, taken = these.reductions[0], these.site.node
    statement = function.statement(taken)
    if statement is None or not isinstance(taken, ast.expr):
        return None
    if spread:
        alone = definition is None and len(these.reductions) == 1
        if not alone or not may_be_spread(function, first, taken, these.base, mask):
            return None
        name = function.fresh(f"{ast.unparse(mask).rpartition('.')[2]}_of_all")
        draft.insert_before(statement, f"{name} = {SPREAD}", m=mask, x=these.base)
        return name
    if definition is not None and these.names_mask_often and not isinstance(mask, ast.Name):
        name = function.fresh(f"{ast.unparse(definition.targets[0])}_mask")
        draft.replace(definition, f"{name} = {{m}}", m=mask)
        return name
    if definition is not None:
        draft.remove(definition)
    elif these.names_mask_twice and len(these.reductions) == 1 and may_be_named(function, first, taken):
        name = function.fresh("kept")
        draft.insert_before(statement, f"{name} = {{m}}", m=mask)
        return name
    return mask


def reduce_all(draft: Draft, these: Selected, keeps: Part) -> None:
    """Reduce all that was selected from; `keeps` stands for the mask, and is 0 for what it leaves out."""
    function, mask = these.function, these.mask
    opposite = (
        mask.operand if keeps is mask and isinstance(mask, ast.UnaryOp) and isinstance(mask.op, ast.Invert) else None
    )
    for r in these.reductions:
        dense: Part = these.base
        if not these.is_plain:
            dense = draft.swapped(these.whole, _with_zeros(draft, these, these.whole, keeps))
        if r.whole is not r.use:
            if these.is_plain:
                dense = finite(function, draft, mask, these.base, keeps, r.use in these.guarded)
            dense = draft.swapped(r.whole, {**_with_zeros(draft, these, r.whole, keeps), r.use: dense})
        other = r.guard.other if r.guard is not None and r.guard.other is not None else "0.0"
        template = r.template if opposite is not None else r.template.replace("{out}", "~{m}")
        draft.replace(r.node, template, m=keeps, out=opposite or "", x=dense, other=other)
    for count in these.lengths:
        draft.replace(count, "{m}.sum()", m=keeps)


def _selections(function: Function, within: ast.expr, mask: ast.expr) -> list[ast.Subscript]:
    return [n for n in ast.walk(within) if isinstance(n, ast.Subscript) and function.same(n.slice, mask)]


def _with_zeros(draft: Draft, these: Selected, within: ast.expr, keeps: Part) -> dict[ast.expr, Part]:
    """What takes the place of each selection: what it selects from, with zeros where the mask leaves out what is no number."""
    function, mask = these.function, these.mask
    guarded = these.guarded
    return {n: finite(function, draft, mask, n.value, keeps, n in guarded) for n in _selections(function, within, mask)}


def as_safe_as(draft: Draft, these: Selected) -> Fix:
    """The fix, and how safe it is."""
    function, site, mask, found = these.function, these.site, these.mask, these.reductions
    if stays_exact(these):
        return draft.fix("reduce all, with the mask inside", Safety.SAFE)
    told = [
        *(r.supposed for r in found),
        *(said for r in found for said in r.changes),
        COUNTED if these.lengths else "",
    ]
    changes = [*dict.fromkeys(filter(None, told))] or [OTHER_WORDS]
    floats = any(site.fact_of(r.whole).dtype in (Dtype.FLOAT, Dtype.UNKNOWN) for r in found)
    if floats and (not these.is_plain or any(r.whole is not r.use for r in found)):
        changes.append(FINITE)
    if not these.fits and not all(same_rank(site, function, mask, base) for base in these.bases):
        changes.append("all must have the mask's shape")
    if not is_mask(site.fact_of(mask)):
        changes.insert(0, f"{function.file.text(mask)} must be a mask, no positions")
    tier = Safety.SUGGEST if any(r.supposed for r in found) else Safety.UNSAFE
    return draft.fix("reduce all, with what is left out neutral", tier, *changes)


def stays_exact(these: Selected) -> bool:
    """Whether the one reduction surely gives the same, and raises what was raised before, where it was."""
    first, definition = these.reductions[0], these.definition
    if definition is not None:
        last = these.function.statement(first.call)
        if len(these.uses) > 1 or first.whole is not first.use:
            return False
        if last is None or not quiet(these.function, definition, last):
            return False
    return exact(these.function, first, these.bases, these.mask, these.is_plain)


def may_be_named(function: Function, r: Reduction, taken: ast.expr) -> bool:
    """Whether a statement before that of a reduction may give a name to the mask."""
    statement = function.statement(taken)
    if not isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Expr)):
        return False
    return r.guard is None and function.runs_first(statement, taken) and not function.indent(statement).strip()


def may_be_spread(function: Function, r: Reduction, taken: ast.expr, base: ast.expr, mask: ast.expr) -> bool:
    """Whether a statement before that of a reduction may give the mask the shape of what it selects from."""
    statement = function.statement(taken)
    if not isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Expr)):
        return False
    named = all(isinstance(each, (ast.Name, ast.Attribute)) for each in (base, mask))
    return named and r.whole is taken and (r.guard is not None or function.runs_first(statement, taken))


def exact(function: Function, r: Reduction, bases: list[ast.expr], mask: ast.expr, plain: bool) -> bool:
    """Whether the reduction over all surely gives the same, and raises what was raised before."""
    shaped = all(same_shape(function, mask, b) for b in bases)
    return not r.changes and shaped and (plain or all(isinstance(n, EXACT) for n in ast.walk(r.whole)))


def counted(function: Function, taken: ast.expr, mask: ast.expr) -> Fix | None:
    """`len(x[m])` is the number of true elements of m."""
    used, definition = sole_use(function, taken)
    count = length(function, used) or number_of_elements(function, used)
    if count is None or handed_on(function, count) or needs_number(function, count):  # one wait is as good as another
        return None
    draft = Draft(function)
    if definition is not None:
        draft.remove(definition)
    draft.replace(count, "{m}.sum()", m=mask)
    return draft.fix("count the mask", Safety.UNSAFE, COUNTED)
