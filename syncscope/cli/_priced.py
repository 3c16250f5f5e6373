"""`syncscope lint --trace`: findings in the order of what a recording says they cost."""

from __future__ import annotations

import textwrap
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from syncscope.cli._console import console
from syncscope.errors import UserError
from syncscope.model.durations import in_ms
from syncscope.model.finding import CONFIDENCE
from syncscope.model.heat import measured
from syncscope.model.words import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from syncscope.linter.session import Linted
    from syncscope.model.finding import Finding, Hazard
    from syncscope.model.report import Report
    from syncscope.model.trace import Trace

SURE = len(CONFIDENCE) - 1
FEW = 3  # files that are named
NOTHING = 0.005  # the part of a step below which a finding is worth nothing
Key = tuple[str, int, int, str]


def by_price(linted: Linted, trace: str) -> str:
    """Put the dearest findings first, say what each costs, and leave out those that cost nothing; what was left out. Of a
    folder with recordings the newest counts.

    A price is the share of what fixing all reads would save (see `syncscope report`). Of several findings on one line each
    has the part of its own reads, as far as the recording knows their columns.
    Where a recording gives no prices, how long the device had nothing to do after the line stands in their place.

    Raises:
        UserError: the trace cannot be read, or says nothing of what waits.
    """
    from syncscope import kineto
    from syncscope.analysis.edited_since import as_it_is_now
    from syncscope.analysis.summary import summarize
    from syncscope.cli._traces import newest
    from syncscope.linter import rulesets
    from syncscope.linter.passes_apart import loops_apart
    from syncscope.model.trace import Kind
    from syncscope.rules import hazard

    rules = rulesets.ruleset(linted.files.config(".").rules)
    findings = [finding for _, finding in linted.presented]
    hazards = [hazard(name, rule) for name, rule in rules.items()]
    trace = newest(trace)
    recorded = kineto.read(trace)
    known = _linted_files(linted, recorded)
    if not known and recorded.places:
        raise UserError(f"{trace} knows no line of {_named(linted)}", f"lint what it recorded: {_ran(recorded)}")
    now, edited = as_it_is_now(recorded, known)
    waiting = {now.places[code] for code in set(now.place[now.rows(Kind.READ)].tolist()) if code >= 0}
    sources = {str(file): file.read_bytes() for file in known.values() if file.is_file()}
    report = summarize(now, findings, hazards, loops=loops_apart(sources, waiting))  # as `report` prices it
    if report.uses is None or not report.lines:
        raise UserError(f"{trace} gives no savings: {report.verdict}", "look at it with `syncscope report`")
    cost = costs(report, hazards)
    ranked = sorted(range(len(findings)), key=lambda i: (-cost.get(key(findings[i]), -1.0), i))
    kept = [i for i in ranked if cost.get(key(findings[i]), 0.0) >= NOTHING * _whole(report)]
    ran = sum(key(finding) in cost for finding in findings)
    linted.found = [linted.found[i] for i in kept]
    linted.presented = [
        (source, _as_recorded(finding, worth(cost[key(finding)], report)))
        for source, finding in (linted.presented[i] for i in kept)
    ]
    left_out = [(ran - len(kept), "worth nothing"), (len(findings) - ran, "that did not wait")]
    said = ", ".join(f"{number} {why}" for number, why in left_out if number)
    told = textwrap.fill(report.verdict, console(stderr=True).width, break_long_words=False, break_on_hyphens=False)
    return "\n".join([*edited, told, *([f"not shown: {said} in this recording"] if said else [])])


def _as_recorded(finding: Finding, costs: str) -> Finding:
    """What is said of a finding that was seen waiting: neither where it runs nor that it waits is a guess."""
    return replace(finding, message=f"{finding.message}; {costs}", heat=measured(finding.heat), confidence=SURE)


def _named(linted: Linted) -> str:
    """What was linted, in words."""
    files = [visible(one.checked.path) for one in linted.done]
    return files[0] if len(files) == 1 else f"the {len(files)} files that were linted"


def _ran(recorded: Trace) -> str:
    """The files of which a recording knows most lines."""
    files = Counter(place.path for place in recorded.places if place.path.endswith(".py"))
    return ", ".join(visible(path) for path, _ in files.most_common(FEW)) or "no file of Python is in it"


def _linted_files(linted: Linted, recorded: Trace) -> dict[str, Path]:
    """Which of the files that were linted is the one that a recording names, by its paths."""
    from syncscope.analysis.join import is_same_file, same_end

    files = [one.checked.path for one in linted.done if not one.checked.problem]
    best = {p.path: max(files, key=lambda file: same_end(file, p.path), default="") for p in recorded.places}
    return {path: Path(file) for path, file in best.items() if is_same_file(file, path)}


def costs(report: Report, hazards: Sequence[Hazard]) -> dict[Key, float]:
    """What the reads of a finding cost a step, ns; without prices, the device's idle time after them. What a line costs is
    shared out among its reads by how long they held the host, and left the device idle."""
    from syncscope.analysis.join import Join
    from syncscope.analysis.summary import by_line, key_of_line

    cost: dict[Key, float] = defaultdict(float)
    join, members = Join(report.findings, hazards), by_line(report.reads)
    for line in report.lines:
        if line.finding is None or (line.price is None and report.saving is not None):
            continue
        whole = line.price.share if line.price is not None else line.idle_after
        reads = [report.reads[number] for number in members[key_of_line(line)]]
        taken = [1.0 + read.held + read.idle_after for read in reads]
        for read, time in zip(reads, taken, strict=True):
            found = join.finding(read.op, read.place, read.function, read.column) or line.finding
            cost[key(found)] += whole * time / sum(taken)
    return dict(cost)


def key(finding: Finding) -> Key:
    """Where it stands, and what it says."""
    return finding.place.path, finding.place.line, finding.column, finding.rule


def _whole(report: Report) -> float:
    """What costs are parts of, ns: savings of a step as it is replayed, idle times of one as it was recorded."""
    recorded = report.step or (report.uses.step if report.uses else 0.0)
    return (report.saving_step if report.saving is not None else None) or recorded


def worth(cost: float, report: Report) -> str:
    """What it costs, in words."""
    per = "step" if report.steps else "recording"
    share = f"{in_ms(cost)}, {100 * cost / (_whole(report) or cost or 1.0):.1f} % of a {per}"
    return (
        f"its wait costs {share}" if report.saving is not None else f"the device had nothing to do after it for {share}"
    )
