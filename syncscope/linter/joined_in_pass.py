"""Fixes of one function that a reader would make at once, as one: what is as safe and gains most together.

Of a training loop, those of all waits of its passes: what is copied without waiting gains nothing where the pass is waited for
all the same by a number that is read. Elsewhere those that change nothing, and of the others those of one rewrite.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from syncscope.codemod.together import apart
from syncscope.linter.joined import as_one, with_one
from syncscope.linter.repeats import Loop
from syncscope.linter.worth.edits import holds
from syncscope.linter.worth.gains import gained
from syncscope.linter.worth.ways import on_one_way
from syncscope.model.fact import Site
from syncscope.model.finding import Finding, Fix, Safety, Stays
from syncscope.model.heat import IN_TRAINING, Reason
from syncscope.rules import Function, View

MOST = 16  # fixes that are made one: nobody looks through more at once, and each of their findings has all of it
_Places = list[tuple[Finding, Site]]


def joined_in_pass(findings: Sequence[Finding], sites: Sequence[Site | None], view: View) -> list[Finding]:
    """The findings, those of a function and of one of its loops with one fix, where these are made alike."""
    places: dict[Fix, _Places] = defaultdict(list)
    for finding, site in zip(findings, sites, strict=True):
        if finding.fix is not None and site is not None:
            places[finding.fix].append((finding, site))
    groups: dict[tuple[object, ...], list[Fix]] = defaultdict(list)
    for fix, each in places.items():
        kind = _kind(fix, each, view)
        if kind is not None:
            groups[kind].append(fix)
    one: dict[Fix, Fix] = {}
    for kind, fixes in groups.items():
        beside = _beside(kind, groups)
        while len(fixes) > 1 or beside:
            taken, left = fixes[:1], []
            for at, fix in enumerate(fixes[1:], 1):
                if len(taken) == MOST:
                    left += fixes[at:]
                    break
                (taken if apart([*taken, fix]) else left).append(fix)
            whole = [*taken, *beside] if apart([*taken, *beside]) else taken
            if len(whole) > 1:
                one |= dict.fromkeys(taken, _made_one(whole, places, view))
            fixes, beside = left, []
    joined = with_one(findings, one)
    return [j if j is f else replace(j, alone=f.fix) for f, j in zip(findings, joined, strict=True)]


def left_out(findings: Iterable[Finding], new: Iterable[Finding]) -> list[Finding]:
    """Those of the findings that are not among the new ones."""
    kept = {id(finding) for finding in new}
    return [finding for finding in findings if id(finding) not in kept]


def apart_from(held: Iterable[Finding], findings: Sequence[Finding]) -> list[Finding]:
    """The findings, each with a fix for itself where one for several would mend what is held back, too."""
    others = {finding.fix for finding in held if finding.alone is not None}
    return [replace(f, fix=f.alone) if f.alone is not None and f.fix in others else f for f in findings]


def _kind(fix: Fix, places: _Places, view: View) -> tuple[object, ...] | None:
    """What a fix has in common with those that it is made with; None where it is made alone."""
    if fix.tier is Safety.SUGGEST or fix.also is not None or fix.takes:
        return None
    if not all(finding.heat.whole for finding, _ in places):
        return None
    where = {(id(function.scope), id(loop)) for function, loop in (_around(site, view) for _, site in places)}
    if len(where) > 1:
        return None
    function, loop = _around(places[0][1], view)
    trained = loop is not None and all(f.heat.reason in (*IN_TRAINING, Reason.LOADER) for f, _ in places)
    if fix.stays is not Stays.NONE and not (trained and _reads_behind(fix, function, loop)):
        return None
    alike = "" if trained or fix.safety is Safety.SAFE else fix.rewrite
    return (*where.pop(), fix.safety, alike)


def _beside(kind: tuple[object, ...], groups: Mapping[tuple[object, ...], list[Fix]]) -> list[Fix]:
    """What changes nothing in the passes of a training loop in which others change something: it is made with them, too, as
    each pass waits for it all the same; and by itself for who asks for such alone."""
    *where, safety, alike = kind
    return groups.get((*where, Safety.SAFE, ""), []) if safety is Safety.UNSAFE and not alike else []


def _around(site: Site, view: View) -> tuple[Function, Loop | None]:
    function = view.function(site)
    statement = function.statement(site.node)
    return function, function.loop(statement) if statement is not None else None


def _reads_behind(fix: Fix, function: Function, loop: Loop | None) -> bool:
    """Whether what a fix still reads it reads outside of a loop, once."""
    around = function.file.span(loop) if loop is not None else None
    return around is not None and any(not holds(around, edit.span) for edit in fix.edits)


def _made_one(fixes: Sequence[Fix], places: dict[Fix, _Places], view: View) -> Fix:
    """Several fixes as one, with what is gained by it."""
    made = as_one(fixes)
    mended = [each for fix in fixes for each in places[fix]]
    reads = next((fix.stays for fix in fixes if fix.stays is not Stays.NONE), Stays.NONE)
    if reads is Stays.NONE:
        return replace(made, gains=gained(made, mended, view))
    waits = on_one_way(view.function(mended[0][1]), [site.node for _, site in mended])
    moved = all(fix.stays is not Stays.NONE for fix in fixes)
    saved = "a wait" if waits == 1 else f"{waits} waits"
    gains = fixes[0].gains if moved else f"saves {saved} on each pass of the loop, and reads once after it"
    return replace(made, stays=reads, gains=gains)
