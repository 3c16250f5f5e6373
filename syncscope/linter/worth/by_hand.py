"""Fixes that steps gain little by: who asks for all findings sees them, and may make them by hand; nobody has them made.

What runs once, or in no step, takes no time that anybody misses. What waits beside a wait that stays gains what the read
itself takes, and no more: on an H200 up to 3 % of steps of 4 ms, nothing of such of 1 ms. Such a change is a line to be read
and reviewed, for little. Many of them in a step are another matter: a mask that selects in each of ten passes, after an
`if mask.any()` that stays, was 29 and 40 % of these steps. Who knows better says so, by `hot` in the configuration.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from syncscope.linter.worth import other_waits
from syncscope.linter.worth.among_waits import NOTHING_IN_FLIGHT, FixAmongWaits
from syncscope.linter.worth.as_often import as_often
from syncscope.linter.worth.few_numbers import joins_few
from syncscope.linter.worth.ways import on_one_way
from syncscope.model.fact import Site
from syncscope.model.finding import Drawback, Finding, Fix, Safety, Way
from syncscope.model.heat import FOLLOWS, Reason
from syncscope.model.ops import Op
from syncscope.rules import View

LONGER = (5, 8)
"""Lines that code becomes longer from which on a reader asks what for: where a wait goes, and where many do."""

FEW_LOOKS = (4, 2)
"""Selections by one mask of which the first waits, and those that follow take little: where a step comes by once, and often."""


def by_hand(
    findings: Sequence[Finding], sites: Sequence[Site | None], states: Mapping[int, Finding], view: View, every: bool
) -> list[Finding]:
    """The findings; a fix of which a judge knows why a step gains little by it is left to people, with the reason first.

    It is no fix but advice, unless `every` one is asked for. `states` has what is said of each site, by its `id`. Whether one
    of a user's own rule is worth a line is for whoever wrote that to say.
    """
    idle: dict[Fix, str] = {}
    mended: dict[Fix, list[tuple[Finding, Site | None]]] = defaultdict(list)
    for finding, site in zip(findings, sites, strict=True):
        if finding.fix is not None:
            mended[finding.fix].append((finding, site))
    cases = [
        FixAmongWaits(fix, [f for f, _ in each], [s for _, s in each if s is not None], states, idle, view)
        for fix, each in mended.items()
        if all(f.heat.reason is not Reason.OWN for f, _ in each)
    ]
    for judges in (OF_A_FIX, OF_WAITS):
        for words, judge in judges:
            judged = [case for case in cases if case.fix not in idle and (case.sites or judges is OF_A_FIX)]
            idle |= {case.fix: words.format(about) for case in judged if (about := judge(case))}
    idle |= as_often([case for case in cases if case.fix not in idle], states, view)
    safe = [case for case in cases if case.fix not in idle and case.fix.tier is Safety.SAFE]
    alone = as_often(safe, states, view) if len(safe) < len(cases) - len(idle) else {}
    found = [f if f.fix is None or f.fix not in idle else _left(f, f.fix, idle[f.fix], every) for f in findings]
    return [f if f.fix is None or f.fix not in alone else _beside_unsafe(f, f.fix, alone[f.fix]) for f in found]


def _left(finding: Finding, fix: Fix, why: str, shown: bool) -> Finding:
    """The finding with a fix that is not made: shown, or told in words."""
    gains = "a step gains little by it" if finding.hot else "no step gains by it"
    fix = replace(fix, why_by_hand=f"{gains}: {why}", gains="")
    return replace(finding, fix=fix) if shown else replace(finding, fix=None, advice=fix)


def _beside_unsafe(finding: Finding, fix: Fix, why: str) -> Finding:
    """The finding with a safe fix by which a step is shorter only where those that are not safe are made, too."""
    said = f"without the unsafe ones a step gains little by it: {why}"
    return replace(finding, fix=replace(fix, gains="; ".join(filter(None, (fix.gains, said)))))


def _reads_worse(case: FixAmongWaits) -> bool:
    """Whether a reader has to look twice, or elements that were assigned, `x[0] = low`, are filled in several statements."""
    return Drawback.READS_WORSE in case.fix.drawbacks or case.fix.fills > 1


def _lines_longer(case: FixAmongWaits) -> int:
    """How many lines a fix adds to the code, if these are many."""
    code, edits = case.view.code, case.fix.edits
    more = sum(edit.text.count("\n") - code.count(b"\n", edit.span.start, edit.span.end) for edit in edits)
    return more if more >= LONGER[case.repeats] else 0


def _unread(case: FixAmongWaits) -> str:
    """The name that is given what a fix of one wait changes, where nothing reads it; "" for anything else."""
    if len(case.sites) != 1 or case.sites[0].function is None:
        return ""
    function = case.function
    match function.statement(case.sites[0].node):
        case ast.Assign(targets=[ast.Name() as target]) | ast.AugAssign(target=ast.Name() as target):
            kept = function.reads(target.id) or function.captured(target.id) or function.names_are_read
            return "" if kept else target.id
    return ""


def _looks_as_often(case: FixAmongWaits) -> bool:
    """Whether for each mask that selects several times few waits go, and not on many passes: the first waits all the same."""
    if case.fix.way is not Way.INDEXES:
        return False
    told = [s for f, s in zip(case.findings, case.sites, strict=True) if f.heat.whole or f.repeats]
    return case.fix.left > 1 or on_one_way(case.function, [site.node for site in told]) <= (
        FEW_LOOKS[case.repeats] * case.fix.left
    )


def _of_few_entries(case: FixAmongWaits) -> bool:
    """Whether a mask selects of each entry of a dict alone, of which there are few: the first look waits all the same."""
    if case.fix.way is not Way.LOOKS_BEFORE or any(f.heat.reason in other_waits.PASSES for f in case.findings):
        return False
    match case.function.loop(case.sites[0].node):
        case ast.For(iter=ast.Call(func=ast.Attribute(attr="items" | "keys" | "values"))):
            return True
    return False


def _one_by_one(case: FixAmongWaits) -> bool:
    return case.repeats and case.mends_only(Op.NUMBER_WRITE)


def _makes_tensor(case: FixAmongWaits) -> bool:
    return Drawback.NO_NUMBER in case.fix.drawbacks and case.mends_only(Op.NUMBER_WRITE)


_Judge = Callable[[FixAmongWaits], object]
OF_A_FIX: tuple[tuple[str, _Judge], ...] = (
    ("it adds a wait, by which the time is true", lambda it: it.gains_nothing and it.mends_only(Op.TIMING)),
    (
        "line {0[0]} waits beside it, and stays",
        lambda it: it.gains_nothing and it.heat.reason in FOLLOWS and it.heat.about,
    ),
    ("its statement waits beside it", lambda it: it.gains_nothing and it.heat.reason in FOLLOWS),
    ("nothing is in flight there", lambda it: it.gains_nothing and it.heat.reason in NOTHING_IN_FLIGHT),
    ("it runs in few of them, or in none", lambda it: it.gains_nothing),
    ("nothing pins that memory, so the host copies it all the same", lambda it: Drawback.UNPINNED in it.fix.drawbacks),
    ("it reads worse than what it replaces", _reads_worse),
    ("the code becomes {} lines longer", _lines_longer),
)
"""Why steps gain little by a fix, in the order in which it is asked. What a judge gives is what the reason is about."""
OF_WAITS: tuple[tuple[str, _Judge], ...] = (
    ("nothing reads `{}`: to take it out is plainer", _unread),
    ("the first wait for each mask stays, and others follow it", _looks_as_often),
    ("the first look for them stays, and entries of a dict are few", _of_few_entries),
    ("so few numbers are read as fast one by one, once the first has waited", joins_few),
    ("line {} waits right after, and stays", other_waits.right_after),
    ("line {} has just waited, and is mended by hand alone", other_waits.after_check),
    ("line {} waits on each pass as well, and stays", other_waits.in_comprehension_before),
    ("the same statement reads another number, too", other_waits.beside_what_is_noted),
    ("line {} is read on each pass of the loop all the same", other_waits.in_passes_of_loop),
    # these ask what is said of others: of all fixes at once, when those before have been asked
    ("its statement waits beside it", other_waits.beside_written_number),
    ("line {} waits on each pass as well, and stays", other_waits.in_each_pass),
    ("elements are written one by one, in a loop that costs more than the copies", _one_by_one),
    ("a number reads better than a tensor of no dimensions", _makes_tensor),
)
"""The same by the waits of Python that it mends, and those around them."""
