"""Fixes that steps gain little by: who asks for all findings sees them, and may make them by hand; nobody has them made.

What runs once, or in no step, takes no time that anybody misses. What waits beside a wait that stays gains what the read
itself takes, and no more: on an H200 up to 3 % of steps of 4 ms, nothing of such of 1 ms. Such a change is a line to be read
and reviewed, for little. Many of them in a step are another matter: a mask that selects in each of ten passes, after an
`if mask.any()` that stays, was 29 and 40 % of these steps. Who knows better says so, by `hot` in the configuration.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from syncscope.codemod.drained import BUSY, drained_by, followed_by
from syncscope.linter.config import LEAST
from syncscope.linter.gains import on_one_way
from syncscope.linter.staying import beside_what_stays
from syncscope.linter.worth import REPEATED, waits_beside
from syncscope.model.fact import Site, Value
from syncscope.model.finding import Finding, Fix, Safety
from syncscope.model.heat import FOLLOWS, IN_TRAINING, Heat, Reason
from syncscope.model.ops import Family, Op
from syncscope.rules import Function, View

NOTHING_IN_FLIGHT = frozenset(
    (
        Reason.ENVIRONMENT,
        Reason.GENERATION,
        Reason.BUFFER,
        Reason.SOLVER,
        Reason.ACTION,
        Reason.SCORE,
        Reason.ONE_NUMBER,
    )
)
"""What waits in a step, and where the host waits as long when it is mended."""
CHECKS = frozenset("check_on_device check_number_on_device check_comparison_on_device ask_python_first".split())
"""Rewrites of what raises: whether the error may come later, or what is asked first, is for people to say."""
LISTS = frozenset("read_list_at_once read_dict_at_once read_comprehension_at_once".split())
"""Rewrites of a list of numbers as one read."""
LONGER = (5, 8)
"""Lines that code becomes longer from which on a reader asks what for: where a wait goes, and where many do."""
TRUE_TIME = "it adds a wait, by which the time is true"
_PASSES = frozenset((*IN_TRAINING, Reason.LOADER))
"""Of what stands in the loop over steps itself."""
_FOR_A_PASS = frozenset((Family.READ, Family.EXPLICIT))
"""What waits for all that a pass has asked for so far."""
OFFERED = frozenset((Reason.UNASKED, Reason.OFFERED, Reason.FOR_OTHERS))
"""Of what no step of the project calls; who calls it may do so in every step."""


def without_gain(
    findings: Sequence[Finding], sites: Sequence[Site | None], states: Mapping[int, Finding], view: View, every: bool
) -> list[Finding]:
    """The findings; a fix of which none says that a step gains more than little by it is left to people, with the reason first.

    It is no fix but advice, unless `every` one is asked for. `states` has what is said of each site, by its `id`.
    """
    places: dict[Fix, list[tuple[Finding, Site | None]]] = {}
    for finding, site in zip(findings, sites, strict=True):
        if finding.fix is not None:
            places.setdefault(finding.fix, []).append((finding, site))
    idle = {fix: why for fix, each in places.items() if (why := _idle(fix, each, states, view))}
    idle |= {
        fix: why for fix, each in places.items() if fix not in idle and (why := _beside_idle(each, states, idle, view))
    }
    idle |= {
        fix: why
        for fix, each in places.items()
        if fix not in idle and (why := _read_anyway(fix, each, states, idle, view))
    }
    idle |= {fix: why for fix, each in places.items() if fix not in idle and (why := _as_a_number(fix, each))}
    idle |= beside_what_stays(findings, sites, states, idle, view)
    return [f if f.fix is None or f.fix not in idle else _by_hand(f, f.fix, idle[f.fix], every) for f in findings]


def _idle(fix: Fix, places: Sequence[tuple[Finding, Site | None]], states: Mapping[int, Finding], view: View) -> str:
    """Why steps gain little by a fix of these findings; "" where one may gain more."""
    if not any(_gains(finding, fix) for finding, _ in places):
        return TRUE_TIME if _of_clocks(places) else _beside(places[0][0].heat) or "it runs in few of them, or in none"
    if any(finding.heat.reason is Reason.OWN for finding, _ in places):
        return ""
    if fix.unpinned:
        return "nothing pins that memory, so the host copies it all the same"
    if any(_reads_worse(edit.text) for edit in fix.edits) or _fills_one_by_one(fix):
        return "it reads worse than what it replaces"
    if (more := _longer(fix, view.code)) >= LONGER[any(finding.repeats for finding, _ in places)]:
        return f"the code becomes {more} lines longer"
    sites = [site for _, site in places if site is not None]
    if name := _unread(fix, sites, view):
        return f"nothing reads `{name}`: to take it out is plainer"
    if fix.rewrite == "index_once":
        told = [site for finding, site in places if site is not None and (finding.heat.whole or finding.repeats)]
        waits = on_one_way(view.function(sites[0]), [site.node for site in told]) if sites else 0
        if waits <= 2 * fix.left or fix.left > 1:
            return "the first wait for each mask stays, and others follow it"
    if _joins_few(fix, sites, view):
        return "so few numbers are read as fast one by one, once the first has waited"
    copies = fix.safety is Safety.UNSAFE and len(sites) == 1 and sites[0].op.family is Family.COPY
    if (copies or fix.rewrite.startswith("merge_")) and (line := _waits_after(fix, sites, states, view)):
        return f"line {line} waits right after, and stays"
    if sites and (line := _waits_before(fix, sites[0], states, view)):
        return f"line {line} has just waited, and is mended by hand alone"
    if fix.rewrite in LISTS and sites and (line := _as_often_before(sites[0], states, view)):
        return f"line {line} waits on each pass as well, and stays"
    if fix.rewrite == "note_the_tensor" and any(_reads_beside(site, states, view) for site in sites):
        return "the same statement reads another number, too"
    if fix.rewrite == "read_before_loop":
        line = next((line for site in sites if (line := _reads_anyway(fix, site, states, view))), 0)
        return f"line {line} is read on each pass of the loop all the same" if line else ""
    return ""


def _of_clocks(places: Sequence[tuple[Finding, Site | None]]) -> bool:
    return all(site is not None and site.op is Op.TIMING for _, site in places)


def _as_a_number(fix: Fix, places: Sequence[tuple[Finding, Site | None]]) -> str:
    """Why numbers are better written as they are: one by one, or where a tensor would stand for one; "" where they are not."""
    if any(site is None or site.op is not Op.NUMBER_WRITE for _, site in places):
        return ""
    if any(finding.repeats for finding, _ in places):
        return "elements are written one by one, in a loop that costs more than the copies"
    made = any(re.search(r"\.new_(zeros|ones|full)\(\(\)", edit.text) for edit in fix.edits)
    return "a number reads better than a tensor of no dimensions" if made else ""


def _longer(fix: Fix, code: bytes) -> int:
    """How many lines a fix adds to the code."""
    return sum(edit.text.count("\n") - code.count(b"\n", edit.span.start, edit.span.end) for edit in fix.edits)


def _reads_worse(text: str) -> bool:
    """Whether new code takes a second look where the old one said what it does: numbers joined, or added up by position."""
    return ("torch.hstack((" in text and ".flatten()" in text) or ").index_add_(" in text


def _fills_one_by_one(fix: Fix) -> bool:
    """Whether numbers that were assigned to elements, `x[0] = low`, are filled in there in several statements."""
    return fix.rewrite == "make_number_on_device" and sum(".fill_(" in edit.text for edit in fix.edits) > 1


def _unread(fix: Fix, sites: Sequence[Site], view: View) -> str:
    """The name that is given what a fix of one wait changes, where nothing reads it; "" for anything else."""
    if len(sites) != 1 or sites[0].function is None:
        return ""
    function = view.function(sites[0])
    match function.statement(sites[0].node):
        case ast.Assign(targets=[ast.Name() as target]) | ast.AugAssign(target=ast.Name() as target):
            kept = function.reads(target.id) or function.captured(target.id) or function.names_are_read
            return "" if kept else target.id
    return ""


def _joins_few(fix: Fix, sites: Sequence[Site], view: View) -> bool:
    """Whether a fix joins tensors of which each is one number, and no more than take as long to be joined as to be read: so
    many are written out, or a dict has them by name, as losses are; or one that is read again at once."""
    if fix.rewrite == "read_once" and sites:
        _, *again = sorted(sites, key=lambda site: site.span.start)
        return all(any(before in sites for before in drained_by(view, site)) for site in again)
    if not sites or not (fix.rewrite.startswith("merge_") or fix.rewrite in LISTS):
        return False
    from syncscope.codemod.patterns.joined import GAINS, entries  # with libcst, which a fix has imported
    from syncscope.codemod.patterns.reads import number_read

    function = view.function(sites[0])
    tensors = [tensor for site in sites if (tensor := number_read(function, site.node)) is not None]
    if fix.rewrite not in LISTS:
        few = len({*map(ast.unparse, tensors)}) < GAINS and entries(function, tensors) is None
        return few and _side_by_side(function, sites)
    around = next((n for n in function.around(sites[0].node) if isinstance(n, (*REPEATED, ast.For))), None)
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


def _beside_idle(
    places: Sequence[tuple[Finding, Site | None]], states: Mapping[int, Finding], idle: Mapping[Fix, str], view: View
) -> str:
    """What waits in the statement of a number that is written, and stays for what was just said; "" where nothing does."""
    for _, site in places:
        if site is None or site.op is not Op.NUMBER_WRITE:
            return ""
        others = (states.get(id(other)) for other in waits_beside(view.function(site), site))
        if not any(said is not None and said.fix in idle and _surely(said) for said in others):
            return ""
    return "its statement waits beside it" if places else ""


def _read_anyway(
    fix: Fix,
    places: Sequence[tuple[Finding, Site | None]],
    states: Mapping[int, Finding],
    idle: Mapping[Fix, str],
    view: View,
) -> str:
    """What else each pass of a training loop reads, which nothing mends without more ado, where a fix of a read or of a copy in
    it changes what is to be reviewed: the host waits for the whole pass all the same; "" where nothing does.
    """
    told = [site for finding, site in places if site is not None and _once_a_pass(finding, site)]
    if fix.safety is not Safety.UNSAFE or len(told) < len(places):
        return ""
    if any(site.op.family not in (Family.READ, Family.COPY) for site in told):
        return ""
    function = view.function(told[0])
    loop = function.loop(told[0].node)
    if loop is None:
        return ""
    for other in function.sites:
        said = states.get(id(other))
        if said is None or not _surely(said) or other.op.family not in _FOR_A_PASS or other in told:
            continue
        mended = said.fix is not None and said.fix.safety is not Safety.SUGGEST and said.fix not in idle
        if not mended and loop in function.around(other.node) and not function.sometimes(other.node, loop):
            return f"line {other.place.line} waits on each pass as well, and stays"
    return ""


def _once_a_pass(finding: Finding, site: Site) -> bool:
    """Whether something waits once in each pass of a training loop; the parts of a batch may be sent one by one."""
    return finding.heat.reason in _PASSES and (not finding.repeats or site.op.family is Family.COPY)


def _surely(said: Finding) -> bool:
    """Whether a wait can be told in place of another."""
    return said.hot and said.confidence >= LEAST["medium"]


def _as_often_before(site: Site, states: Mapping[int, Finding], view: View) -> int:
    """The line before a comprehension that waits on each of its passes likewise, which nothing mends; 0: none."""
    function = view.function(site)
    statement = function.statement(site.node)
    block = function.block(statement) if statement is not None else []
    at = block.index(statement) if statement in block else 0
    if not at or not _in_comprehension(function, site):
        return 0
    for other in function.sites_in(block[at - 1]):
        said = states.get(id(other))
        if said is None or not _surely(said) or other.op.family is not Family.READ:
            continue
        looped = isinstance(block[at - 1], (ast.For, ast.While)) or _in_comprehension(function, other)
        if looped and (said.fix is None or said.fix.safety is Safety.SUGGEST):
            return other.place.line
    return 0


def _in_comprehension(function: Function, site: Site) -> bool:
    return any(isinstance(each, REPEATED) for each in function.around(site.node))


def _beside(heat: Heat) -> str:
    """What waits where nothing is gained by mending another wait; "" where it is no other wait."""
    if heat.reason in FOLLOWS:
        return f"line {heat.about[0]} waits beside it, and stays" if heat.about else "its statement waits beside it"
    return "nothing is in flight there" if heat.hot and heat.reason in NOTHING_IN_FLIGHT else ""


def _reads_anyway(fix: Fix, site: Site, states: Mapping[int, Finding], view: View) -> int:
    """The line in which each pass of the loop around a site waits for another number, which nothing mends; 0: none."""
    function = view.function(site)
    loop = function.loop(site.node)
    for other in function.sites:
        said = states.get(id(other))
        if said is None or said.confidence < LEAST["medium"] or said.fix == fix or other.op.family is not Family.READ:
            continue
        if (
            loop is not None
            and function.loop(other.node) is loop
            and (said.fix is None or said.fix.safety is Safety.SUGGEST)
        ):
            chosen = next((n for n in function.around(other.node) if isinstance(n, ast.IfExp)), None)
            if not function.sometimes(chosen or other.node, loop):
                return other.place.line
    return 0


def _reads_beside(site: Site, states: Mapping[int, Finding], view: View) -> bool:
    """Whether the statement of a site reads what may be a tensor, too, which nothing mends: `float(aug_loss)`."""
    function = view.function(site)
    statement = function.statement(site.node)
    if statement is None:
        return False
    sites = function.sites_in(statement)
    mended = {id(s.node) for s in sites if (f := states.get(id(s))) and f.fix and f.fix.safety is not Safety.SUGGEST}
    for node in (each for each in ast.walk(statement) if each is not site.node):
        match node:
            case ast.Call(func=ast.Attribute(value=read, attr="item"), args=[], keywords=[]):
                pass
            case ast.Call(func=ast.Name(id="float" | "int"), args=[ast.Name() | ast.Attribute() as read], keywords=[]):
                pass
            case _:
                continue
        if id(node) not in mended and function.fact(read).kind in (Value.UNKNOWN, Value.TENSOR):
            return True
    return False


def _waits_before(fix: Fix, site: Site, states: Mapping[int, Finding], view: View) -> int:
    """The line of a check after which nothing is in flight at a site, and which goes by hand alone; 0: none."""
    for other in drained_by(view, site):
        said = states.get(id(other))
        if said is not None and said.hot and said.confidence >= LEAST["medium"] and said.fix != fix:
            offered = said.fix or said.advice
            return other.place.line if offered and offered.rewrite in CHECKS else 0
    return 0


def _waits_after(fix: Fix, sites: Sequence[Site], states: Mapping[int, Finding], view: View) -> int:
    """The line of a wait that follows the last of these sites, which nothing mends without more ado; 0: none."""
    for other in followed_by(view, sites[-1]) if sites else ():
        said = states.get(id(other))
        if said is not None and said.hot and said.confidence >= LEAST["medium"] and said.fix != fix:
            return other.place.line if said.fix is None or said.fix.safety is Safety.SUGGEST else 0
    return 0


def _gains(finding: Finding, fix: Fix) -> bool:
    """Whether a step may wait less, once it is made."""
    if finding.heat.reason in OFFERED:
        return fix.safety is Safety.SAFE
    beside_a_wait = finding.heat.reason in FOLLOWS and not finding.repeats
    return finding.hot and finding.heat.reason not in NOTHING_IN_FLIGHT and not beside_a_wait


def _by_hand(finding: Finding, fix: Fix, why: str, shown: bool) -> Finding:
    """The finding with a fix that is not made: shown, or told in words."""
    gains = "a step gains little by it" if finding.hot else "no step gains by it"
    fix = replace(fix, why_by_hand=f"{gains}: {why}", gains="")
    return replace(finding, fix=fix) if shown else replace(finding, fix=None, advice=fix)
