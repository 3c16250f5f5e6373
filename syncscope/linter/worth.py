"""Findings of hot code that nobody gains by reading: they are told among what is cold."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import replace

from syncscope.codemod.drained import drained_by
from syncscope.linter.config import LEAST
from syncscope.linter.source import DEEPEST
from syncscope.model.fact import Site
from syncscope.model.finding import Finding, Safety
from syncscope.model.ops import VALUES, Family, Op
from syncscope.model.source import Span
from syncscope.rules import View
from syncscope.tensors.hotness_by_name import MAYBE
from syncscope.tensors.syntax import statements

IDLE = "and nothing is known to write instead"  # how the reason ends of what is cold for that
NUMBERS = {"int", "float", "bool", "ndarray"}  # in what a function says that it gives, where nothing else is but these:
HELD = {*NUMBERS, *"str None list tuple dict List Tuple Dict Optional Sequence np numpy".split()}
SAMPLES = re.compile(r"(^|_)(sample|sampling|decode|decoding|search|select_actions?|get_actions?|simulate)(_|$)")


def is_idle(finding: Finding, site: Site) -> bool:
    """Whether its function is not known to run in every step, the value is needed where it is, or asked for, and there is
    nothing to write instead. Any other number that is read can be read later, or by somebody else.
    """
    if finding.fix is not None or not finding.hotness.endswith(MAYBE):
        return False
    needed = site.op in (Op.CONDITION, Op.LINALG_CHECK) or site.op.family in (Family.SHAPE, Family.COPY)
    return needed or (site.op in VALUES and asked_for(site))


def asked_for(site: Site) -> bool:
    """Whether a number is what a function is to give, or is drawn or decoded by it, for somebody who runs on the host."""
    function = site.function
    if function is None:
        return False
    gives = set(re.findall(r"\w+", ast.unparse(function.returns))) if function.returns is not None else set()
    if SAMPLES.search(function.name) or (gives & NUMBERS and gives <= HELD):
        return True
    given = (s.value for s in statements(function) if isinstance(s, ast.Return) and s.value is not None)
    around = (value for value in given if any(node is site.node for node in ast.walk(value)))
    return any(not site.fact_of(value).is_tensor for value in around)


def second(finding: Finding, site: Site | None, states: Mapping[int, Finding], view: View) -> Finding:
    """The finding, cold where another wait has just ended that stays, or that goes away with this one.

    `states` has what is said of each site, with its fix where it is shown.
    """
    if site is None or not finding.hot or view.function(site).depth > DEEPEST:
        return finding
    for before in drained_by(view, site):
        first = states.get(id(before))
        if first is None or first.confidence < LEAST["medium"]:
            continue
        if first.fix is None or not first.hot:
            over = finding.fix is None or before.op not in VALUES  # a number that is noted can be noted otherwise
        else:
            over = first.fix != finding.fix and any(holds(edit.span, finding.span) for edit in first.fix.edits)
        if over and not (is_safe(finding) and apart(view, before, site)):
            return cooled(finding, f"line {before.place.line} has just waited: nothing is in flight")
    return finding


def is_safe(finding: Finding) -> bool:
    """Whether its fix changes nothing: that is worth its line, whatever waits beside it."""
    return finding.fix is not None and finding.fix.safety is Safety.SAFE


def apart(view: View, one: Site, other: Site) -> bool:
    """Whether two waits are of different statements."""
    return view.function(one).statement(one.node) is not view.function(other).statement(other.node)


def holds(outer: Span, inner: Span) -> bool:
    """Whether a span lies in another, and is not the whole of it."""
    return outer.start <= inner.start and inner.end <= outer.end and outer != inner


def cooled(finding: Finding, hotness: str) -> Finding:
    """The finding as one of cold code."""
    return replace(finding, hot=False, hotness=hotness, severity="note")
