"""One rewrite, one file: examples, and `rewrite(site, function)`, which builds the fix for a site or says that there is none.

A rule lists the rewrites that may mend it (`REWRITES`), and they are tried in that order. Only then are they imported, and
libcst with them. A rewrite that several rules list says in each example which rule flags it. One after which the device does
more says what as `ADDS`: the price of its lines is then what the wait costs, less that. One that brings several reads together
says which of them still waits, and is not in the price: `STAYS = Stays.LAST`. One that computes no longer what was asked for
says `CLEARS = True`: what the line launched before the read goes with it. One after which rows are still taken, by positions
that are known, says `TAKES = True`: what took them stays. What one gains hangs on the waits around it where it says how it
mends, `WAY`. One whose fixes are one where they stand beside each other says `TOGETHER = True`: in a statement, or in
statements that follow one another and wait for nothing else; several rewrites are one where they say the same word there. What
one suggests (`Safety.SUGGEST`) is a hint, told in words, unless it says `LOCAL = True`; so is what one makes that says `LONG =
True`, where it is not known to run in every step. Of an index or a mask that may live on the host none has a fix but those
that say `SELECTS_APART = True`: what they write takes it from there, or sends it.
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from time import perf_counter
from types import ModuleType
from typing import Protocol, cast

from syncscope import discover
from syncscope.codemod.function import Function
from syncscope.codemod.index_elsewhere import handed_over, selected_from_host
from syncscope.codemod.since import too_new
from syncscope.codemod.text import CannotRewrite
from syncscope.codemod.together import apart, together
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety, Stays
from syncscope.model.heat import Reason
from syncscope.model.ops import Op

PLAIN = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)
SELECTING = {Op.MASK_READ, Op.MASK_WRITE, Op.NUMBER_WRITE, Op.NONZERO, Op.ARGWHERE, Op.WHERE}
LEAST = 2  # the confidence of a site that is mended with another


class Rewrite(Protocol):
    """What a module in this folder holds."""

    EXAMPLES: tuple[Example, ...]
    COMPILES: bool  # True: a compiler that takes a function whole takes it after the fix, too; it may be left out
    TOGETHER: bool | str  # True: what stands beside each other and is mended by it is one fix; it may be left out
    LOCAL: bool  # True: whoever reads what it suggests sees there whether it holds; it may be left out
    # True: what it writes is worth its lines only where it is known to run in every step; it may be left out
    LONG: bool
    ROUNDS: bool  # True: where it is not safe the last bits of what is computed may be others; it may be left out
    SELECTS_APART: bool  # True: what it writes takes indices and masks that live on the host; it may be left out
    BESIDE: bool  # True: it is offered beside another's fix, too, and made by hand alone; it may be left out

    def rewrite(self, site: Site, function: Function) -> Fix | None:
        """The fix for this site; sites that one fix mends together return equal fixes.

        Raises:
            CannotRewrite: the code around it cannot be rewritten.
        """


@cache
def named(name: str) -> Rewrite:
    """The rewrite in the file of this name.

    Raises:
        UserError: there is none.
    """
    try:
        return cast(Rewrite, importlib.import_module(f"{__name__}.{name}"))
    except ModuleNotFoundError:  # the folder is only listed to say what is nearest
        return cast(Rewrite, discover.load(sys.modules[__name__], discover.slug(name)))


def tried(rewrite: Rewrite, site: Site, function: Function) -> Fix | None:
    """The fix of one rewrite for a site, built once: others ask for it, to leave to it what it does better.

    Raises:
        CannotRewrite: the code around it cannot be rewritten.
    """
    name = cast(ModuleType, rewrite).__name__
    return function.once(f"{name}, {site.op}", site.node, lambda: rewrite.rewrite(site, function))


def first(names: Iterable[str], site: Site, function: Function, compiles: bool = False) -> Fix | None:
    """The fix of the first of these rewrites that has one, with what stands beside it and is mended alike; with `compiles`, of
    those alone that TorchScript takes too.
    """
    names = tuple(names)
    fix = _alone(names, site, function, compiles)
    statement = function.statement(site.node)
    if fix is None or statement is None or not getattr(named(fix.rewrite), "TOGETHER", False):
        return fix
    kind = f"{fix.rewrite}, {fix.safety}, {names}, {compiles}"

    def beside() -> Sequence[ast.stmt]:
        found = _beside(names, fix, statement, function, compiles)
        for each in found:  # all of them stand beside the same
            if each is not statement:
                function.once(kind, each, lambda: found)
        return found

    run = function.once(kind, statement, beside)

    def joined() -> Fix | None:
        sites = (s for each in run for s in function.sites_in(each) if s is site or s.confidence >= LEAST)
        fixes = [each for s in sites if (each := _like(fix, names, s, function, compiles))]
        if len(set(fixes)) < 2:
            return None
        from syncscope.codemod.draft import laid_out_together  # with libcst, which a fix has imported

        whole = together(fixes) if apart(fixes) else laid_out_together(function, fixes)
        return replace(whole, safety=fix.safety) if whole is not None else None

    return (joined() if site.confidence < LEAST else function.once(f"{kind}, together", run[0], joined)) or fix


def _beside(
    names: Sequence[str], fix: Fix, statement: ast.stmt, function: Function, compiles: bool
) -> Sequence[ast.stmt]:
    """A statement, and those around it that each wait for something alike, and for nothing else."""

    def is_alike(at: ast.stmt) -> bool:
        sites = [s for s in function.sites_in(at) if s.confidence >= LEAST]
        return isinstance(at, PLAIN) and bool(sites) and all(_like(fix, names, s, function, compiles) for s in sites)

    block = function.block(statement)
    if statement not in block or not is_alike(statement):
        return [statement]
    start = end = block.index(statement)
    while start > 0 and is_alike(block[start - 1]):
        start -= 1
    while end + 1 < len(block) and is_alike(block[end + 1]):
        end += 1
    return block[start : end + 1]


def _like(fix: Fix, names: Sequence[str], site: Site, function: Function, compiles: bool) -> Fix | None:
    """The fix of another site, where it is of the same kind and as safe; one that is not safe takes along those that are."""
    try:
        other = _alone(names, site, function, compiles)
    except CannotRewrite:
        return None
    if other is None or _kind(other.rewrite) != _kind(fix.rewrite):
        return None
    taken_along = (other.safety, fix.safety) == (Safety.SAFE, Safety.UNSAFE)
    return other if other.safety is fix.safety or taken_along else None


def _kind(name: str) -> str:
    """What the fixes of a rewrite are called that stand for one another: its name, or what it says."""
    said = getattr(named(name), "TOGETHER", False)
    return said if isinstance(said, str) else name


def _alone(names: Sequence[str], site: Site, function: Function, compiles: bool) -> Fix | None:
    """The fix of the first of these rewrites that has one."""
    found: Fix | None = None
    for name in names:
        module = named(name)
        if found is not None and not getattr(module, "BESIDE", False):
            continue
        if compiles and not getattr(module, "COMPILES", False):
            continue
        begin = perf_counter()
        try:
            fix = tried(module, site, function)
        finally:
            count, seconds = ASKED.get(name, (0, 0.0))
            ASKED[name] = count + 1, seconds + perf_counter() - begin
        oldest = function.file.project.needs().torch
        if fix is not None and (newer := too_new(fix, function.file.code, oldest)) is not None:
            written, since = newer
            has, asked = (".".join(map(str, version)) for version in (since, oldest))
            why = f"it writes `{written}`, which torch has since {has}, and the project takes torch {asked}, too"
            fix = function.declines(site.node, why)
        if fix is not None and site.op in SELECTING and not getattr(module, "SELECTS_APART", False):
            fix = _on_one_device(fix, site, function)
        if fix is not None:
            adds, stays = getattr(module, "ADDS", fix.adds), getattr(module, "STAYS", fix.stays)
            clears = getattr(module, "CLEARS", fix.clears) and _only(site, function)
            takes = getattr(module, "TAKES", fix.takes)
            rounds = fix.rounds or (fix.safety is not Safety.SAFE and getattr(module, "ROUNDS", False))
            seldom = site.heat.reason is Reason.MAYBE and getattr(module, "LONG", False)
            hint = fix.hint or seldom or (fix.safety is Safety.SUGGEST and not getattr(module, "LOCAL", False))
            left = fix.left or int(stays is not Stays.NONE)
            fix = replace(fix, adds=adds, stays=stays, left=left, clears=clears, takes=takes, rounds=rounds)
            fix = replace(fix, rewrite=name, hint=hint, way=getattr(module, "WAY", fix.way))
            found = fix if found is None else replace(found, also=fix)
    return found


def _on_one_device(fix: Fix, site: Site, function: Function) -> Fix | None:
    """A fix that needs an index or a mask where that which it selects from lives: none where it may be of the host."""
    file = function.file
    if (part := selected_from_host(site, function)) is not None:
        return function.declines(
            site.node, f"{file.quote(part)} may live on the host, and only brackets take it from there"
        )
    if (part := handed_over(site, function)) is None:
        return fix
    beside = f"where {file.text(site.node.value)} does" if isinstance(site.node, ast.Subscript) else "on the device"
    safety = Safety.UNSAFE if fix.safety is Safety.SAFE else fix.safety
    return replace(fix, safety=safety, terms=(f"{file.text(part)} must live {beside}", *fix.terms))


def _only(site: Site, function: Function) -> bool:
    """Whether a statement computes nothing before a site but what that needs."""
    statement = function.statement(site.node)
    if statement is None:
        return False
    asked = statement.test if isinstance(statement, (ast.If, ast.While)) else statement
    inside = set(ast.walk(site.node)) | set(function.around(site.node))
    return all(node in inside for node in ast.walk(asked) if isinstance(node, (ast.Call, ast.BinOp, ast.Subscript)))


ASKED: dict[str, tuple[int, float]] = {}
"""How often each rewrite was asked for a fix in this process since this was emptied, and how many seconds that took."""
