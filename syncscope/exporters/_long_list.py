"""More findings than anybody reads whole: those to look at first with their code, the others in a line each.

What one fix mends, and what of one function waits for one reason and has no fix, is said once, with the lines of the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from syncscope.exporters import _source_frame, concise
from syncscope.exporters._alike import like_it
from syncscope.model.finding import Finding
from syncscope.model.worth import turn

FIRST = 10  # that are shown with their code


def text(
    findings: Sequence[Finding], sources: Mapping[str, bytes], *, color: bool = False, width: int | None = None
) -> str:
    """The first of them, by worth, as each is shown alone; then a line for each of the others, in the order that they have."""
    groups = folded(findings)
    first = sorted(groups, key=lambda group: min(map(turn, group)))[:FIRST]
    shown = {id(group) for group in first}
    said = [_source_frame.text([], sources, color=color, groups=first, width=width)]
    for group in groups:
        if id(group) not in shown:
            (line,) = concise.text(group[:1], color=color).splitlines()
            said.append(f"{line} ({like_it(group[1:])})\n" if group[1:] else f"{line}\n")
    return "".join(said)


def also(waits: Sequence[Finding], *, color: bool = False) -> str:
    """What waits in a step, too: what in one function waits for one reason, in the same way, is said once."""
    found: dict[object, list[Finding]] = {}
    for each in waits:
        about = (each.source_name, each.function, each.rule, each.heat) if each.function else id(each)
        found.setdefault(about, []).append(each)
    return concise.also_together(found.values(), color=color)


def folded(findings: Sequence[Finding]) -> list[list[Finding]]:
    """The findings, with those that have the same to say together."""
    found: dict[object, list[Finding]] = {}
    for each in findings:
        about = each.fix or (each.rule, each.function, each.heat, each.confidence, each.advice and each.advice.title)
        alone = each.severity == "error" or not (each.fix or each.function)
        found.setdefault(id(each) if alone else (each.source_name, about), []).append(each)
    return list(found.values())
