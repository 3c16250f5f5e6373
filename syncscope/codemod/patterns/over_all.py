"""All that is done with what a mask selects, `x[m].sum()`, over all of x: one use or several, and how sure that is."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
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


def reduced(
    site: Site, function: Function, base: ast.expr, mask: ast.expr, fits: bool = False, spread: bool = False
) -> Fix | None:
    """A reduction of what a mask selects, `base[mask].sum()`, as a reduction over all of base. The site is the selection.

    Where the selection has a name, all that is done with it. `fits`: that both have one shape is said elsewhere. `spread`: or
    the mask is given that of base first, for it may select rows.
    """
    taken = site.node
    fact = site.fact_of(mask)
    if not isinstance(taken, ast.expr) or not (is_mask(fact) or taken_for_mask(mask, fact)):
        return None
    inner = whole(site, function, taken, mask, fits=fits)
    if inner is taken and not fits and not same_rank(site, function, mask, base):
        return None
    uses, definition = named_uses(function, inner)
    found = [r for use in uses if (r := reduction(site, function, use, mask, definition, taken, fits)) is not None]
    asked = {id(n) for r in found if r.guard is not None for n in ast.walk(r.guard.node.test)}
    others = [use for use in uses if use not in [r.use for r in found] and id(use) not in asked]
    lengths = [length(function, use) or number_of_elements(function, use) for use in others]
    if not found or None in lengths:
        return counted(function, taken, mask)
    if not function.pure(mask) or not function.pure(base) or any(handed_on(function, n) for n in lengths if n):
        return None
    draft = Draft(function)
    keeps: Part = mask
    plain = isinstance(mask, (ast.Name, ast.Attribute))
    twice = not plain and any(r.template.count("{m}") + r.template.count("{out}") > 1 for r in found)
    several = twice or len(uses) > 1 or (no_number(function, mask) and any(r.whole is not r.use for r in found))
    if definition is not None and several and not isinstance(mask, ast.Name):
        keeps = function.fresh(f"{ast.unparse(definition.targets[0])}_mask")
        draft.replace(definition, f"{keeps} = {{m}}", m=mask)
    elif definition is not None:
        draft.remove(definition)
    if spread:
        if definition is not None or len(found) > 1 or not may_be_spread(function, found[0], taken, base, mask):
            return None
        keeps = function.fresh(f"{ast.unparse(mask).rpartition('.')[2]}_of_all")
        statement = function.statement(taken)
        assert statement is not None
        draft.insert_before(statement, f"{keeps} = {SPREAD}", m=mask, x=base)
    elif definition is None and twice and len(found) == 1 and may_be_named(function, found[0], taken):
        keeps = function.fresh("kept")
        statement = function.statement(taken)
        assert statement is not None
        draft.insert_before(statement, f"{keeps} = {{m}}", m=mask)
    opposite = keeps is mask and isinstance(mask, ast.UnaryOp) and isinstance(mask.op, ast.Invert)
    out: Part = mask.operand if isinstance(mask, ast.UnaryOp) and opposite else ""
    selected = [n for n in ast.walk(inner) if isinstance(n, ast.Subscript) and function.same(n.slice, mask)]
    for r in found:
        bases: dict[ast.expr, Part] = {n: finite(function, draft, mask, n.value, keeps) for n in selected}
        dense: Part = base if inner is taken else draft.swapped(inner, bases)
        if r.whole is not r.use:
            more: dict[ast.expr, Part] = {
                n: finite(function, draft, mask, n.value, keeps)
                for n in ast.walk(r.whole)
                if isinstance(n, ast.Subscript) and function.same(n.slice, mask)
            }
            if inner is taken:
                dense = finite(function, draft, mask, base, keeps)
            dense = draft.swapped(r.whole, {**more, r.use: dense})
        other = r.guard.other if r.guard is not None and r.guard.other is not None else "0.0"
        template = r.template if opposite else r.template.replace("{out}", "~{m}")
        draft.replace(r.node, template, m=keeps, out=out, x=dense, other=other)
    for count in filter(None, lengths):
        draft.replace(count, "{m}.sum()", m=keeps)
    bases_of = [n.value for n in selected] if inner is not taken else [base]
    if definition is None and exact(function, found[0], bases_of, mask, inner is taken):
        return draft.fix("reduce all, with the mask inside", Safety.SAFE)
    if definition is not None and len(uses) == 1 and found[0].whole is found[0].use:
        last = function.statement(found[0].call)
        calm = last is not None and quiet(function, definition, last)
        if calm and exact(function, found[0], bases_of, mask, inner is taken):
            return draft.fix("reduce all, with the mask inside", Safety.SAFE)
    told = [*(r.supposed for r in found), *(r.changes for r in found), COUNTED if lengths else ""]
    changes = "; ".join(dict.fromkeys(filter(None, told))) or OTHER_WORDS
    floats = any(site.fact_of(r.whole).dtype in (Dtype.FLOAT, Dtype.UNKNOWN) for r in found)
    if floats and (inner is not taken or any(r.whole is not r.use for r in found)):
        changes = f"{changes}; {FINITE}"
    if not fits and not all(same_rank(site, function, mask, b) for b in bases_of):
        changes = f"{changes}; all must have the mask's shape"
    if not is_mask(fact):
        changes = f"{function.file.text(mask)} must be a mask, no positions; {changes}"
    tier = Safety.SUGGEST if any(r.supposed for r in found) else Safety.UNSAFE
    return draft.fix("reduce all, with what is left out neutral", tier, changes)


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
