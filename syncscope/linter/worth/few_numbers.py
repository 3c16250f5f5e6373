"""Numbers that are read as one, and are so few that one by one they are read as fast, once the first has waited."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from syncscope.codemod.drained import BUSY, drained_by
from syncscope.linter.worth.among_waits import FixAmongWaits
from syncscope.linter.worth.ways import REPEATED
from syncscope.model.fact import Site
from syncscope.model.finding import Way
from syncscope.rules import Function


def joins_few(case: FixAmongWaits) -> bool:
    """Whether a fix joins tensors of which each is one number, and no more than take as long to be joined as to be read: so
    many are written out, or a dict has them by name, as losses are; or one that is read again at once."""
    if case.fix.way is Way.READS_ONCE:
        _, *again = sorted(case.sites, key=lambda site: site.span.start)
        return all(any(before in case.sites for before in drained_by(case.view, site)) for site in again)
    if case.fix.way not in (Way.JOINS, Way.LISTS):
        return False
    from syncscope.codemod.patterns.joined import GAINS, entries  # with libcst, which a fix has imported
    from syncscope.codemod.patterns.reads import number_read

    function = case.function
    tensors = [tensor for site in case.sites if (tensor := number_read(function, site.node)) is not None]
    if case.fix.way is Way.JOINS:
        few = len({*map(ast.unparse, tensors)}) < GAINS and entries(function, tensors) is None
        return few and _side_by_side(function, case.sites)
    around = next((n for n in function.around(case.sites[0].node) if isinstance(n, (*REPEATED, ast.For))), None)
    if around is not None and _by_name(around) and all(_is_light(function, each) for each in tensors):
        return True
    if not all(isinstance(tensor, ast.Name) for tensor in tensors):  # which each pass computes, and waits for
        return False
    if isinstance(around, ast.For):
        return True
    listed = around.generators[0].iter if isinstance(around, (ast.ListComp, ast.GeneratorExp)) else None
    return isinstance(listed, (ast.Tuple, ast.List)) and len(listed.elts) < GAINS


def _by_name(around: ast.AST) -> bool:
    """Whether a few losses or metrics are gone through, by what they are called, or as the values of a dict."""
    over = around.generators[0].iter if isinstance(around, ast.GeneratorExp | ast.ListComp) else None
    values = (
        isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute) and over.func.attr in ("values", "items")
    )
    return values or isinstance(around, ast.DictComp)


def _is_light(function: Function, tensor: ast.expr) -> bool:
    """Whether a tensor is there, or soon is: what a function of torch, or a method that is asked for a number, makes of one."""
    for call in ast.walk(tensor):
        if not isinstance(call, ast.Call):
            continue
        plain = isinstance(call.func, ast.Attribute) and all(isinstance(each, ast.Constant) for each in call.args)
        name = function.dotted(call.func) or ""
        if not plain and not (name.startswith("torch.") and name.rpartition(".")[2] not in BUSY):
            return False
    return True


def _side_by_side(function: Function, sites: Sequence[Site]) -> bool:
    """Whether sites stand in one statement, or in statements that follow one another: nothing is queued between their waits."""
    found = [statement for site in sites if (statement := function.statement(site.node)) is not None]
    block = function.block(found[0]) if found else []
    places = {block.index(statement) if statement in block else -2 for statement in found}
    return bool(places) and max(places) - min(places) < len(places)
