"""Whether waits are worth fixing: one of four words, for a line and for all.

| | |
| --- | --- |
| *fix* | likely at least 3 % of a step, surely 1 %, by the recording too, and the rewrite adds nothing that may undo it;   |
|       | or it computes more rows, and saves likely 20 %, surely 10 % |
| *leave* | likely under 1.5 % and at most 5 %; or no fix can give 3 %; or the rewrite costs more than it saves |
| *try* | anything between, and all that would be *fix* where others have the device, or one rank waits for others |
| *unknown* | no figure: the recording says nothing of it |
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from syncscope.analysis.errors import margins
from syncscope.analysis.event_graph import EventGraph
from syncscope.analysis.experience import BUSY, Experience, experience, kind_of
from syncscope.analysis.fidelity import Fidelity
from syncscope.analysis.graph import Graph
from syncscope.analysis.price import Prices, timed_part
from syncscope.model.answer import Answer, Decision
from syncscope.model.finding import Adds, Stays
from syncscope.model.ops import COUNTS, Op
from syncscope.model.report import GATE, Line, Report

CONDITIONS = (Op.BOOL, Op.CONDITION, Op.DISTRIBUTION_VALIDATE, Op.TRANSFORMER_MASK)
LIKELY = 0.03  # the part of a step that is worth a change
SURELY = 0.01  # and what of it must be there in nine of ten recordings
LITTLE, AT_MOST = 0.015, 0.05  # likely less than the one, and in nine of ten recordings less than the other: leave it
FAR = 0.4  # of a step: so much less is saved where each number's place is taken by some launches. There 2 of 5 saved nothing
MUCH = 0.2  # on a busy processor, too, is worth a change: of 138 recordings there all gained whose rewrite adds no work
# with this, MUCH is worth it also where more rows are computed, or launches take the place of what is read
SURELY_MUCH = 0.1
EXCHANGED = 0.1  # of a step, with other ranks: what one rank saves may be waited for them instead
OFTEN = 0.5  # of what passes at once save besides the waits, that which fixes by hand were seen to save, in the median


@dataclass(frozen=True, slots=True)
class Saving:
    """What waits cost, in parts of a step: all of them (`waits`), and those that the linter's rewrites take away (`offered`).
    And what is saved if the passes of loops around them are made at once, likely and at most, where that is possible."""

    waits: float
    offered: float
    at_once: float = 0.0
    most: float = 0.0
    along: str = ""
    copied: float = 0.0  # what the host works on tensors that it copied, while the device has nothing to do

    @property
    def likely(self) -> float:
        """Whoever fixes a loop by hand often takes it out."""
        return self.waits + OFTEN * max(0.0, self.at_once - self.waits)

    @property
    def less(self) -> float:
        """By how much less the linter's rewrites save."""
        return max(0.0, self.likely - self.offered)

    @property
    def more(self) -> float:
        """How much more may be saved, at most."""
        return self.all - self.likely

    @property
    def all(self) -> float:
        """What may be saved at most, if all goes that may go along."""
        return max(self.most, self.likely + self.copied)


def decide(
    share: float,
    low: float,
    high: float,
    bound: float,
    adds: Adds = Adds.NOTHING,
    doubt: float = 0.0,
    offered: float | None = None,
) -> Decision:
    """What to do about waits that likely cost a `share` of a step, or what lies between `low` and `high`; `adds` says what a
    rewrite has the device do more: rows are counted in as far as they are known, of all else nobody knows how much it is.
    `doubt` is how much the recording itself leaves open. The rewrites that are `offered` may save less than all waits cost."""
    if bound < LIKELY or (share < LITTLE and high < AT_MOST):
        return Decision.LEAVE
    sure = share if offered is None else min(share, offered)
    likely, surely = {Adds.NOTHING: (LIKELY, SURELY), Adds.ROWS: (MUCH, SURELY_MUCH)}.get(adds, (1.0, 1.0))
    if sure >= likely and min(low, sure - doubt) > surely:
        return Decision.FIX
    return Decision.TRY


def answer(
    share: float,
    between: tuple[float, float],
    bound: float,
    adds: Adds = Adds.NOTHING,
    loops: int = 0,
    measured: int = 0,
    doubt: float = 0.0,
    offered: float | None = None,
) -> Answer:
    """The answer for waits that likely cost a `share` of a step, and that what it is `between`; neither passes the `bound`."""
    likely = min(share, bound)
    low, high = min(between[0], likely), min(max(between[1], likely), bound)
    decision = decide(likely, low, high, bound, adds, doubt, offered)
    sure = likely if offered is None else min(likely, offered)
    if decision is Decision.TRY and sure < LIKELY <= likely:
        why = f"one read stays, and waits as long: it all costs {likely:.0%}, so use the value a step later, and measure it"
    else:
        why = _why(decision, sure, low, high, bound, adds, doubt)
    unsure = decision is Decision.TRY and decide(likely, low, high, bound) is Decision.FIX
    return Answer(
        decision, likely, low, high, bound, measured, loops, why, offered=offered, doubt=why if unsure else ""
    )


def _why(decision: Decision, share: float, low: float, high: float, bound: float, adds: Adds, doubt: float) -> str:
    match decision:
        case Decision.FIX:
            return f"likely {share:.1%} of a step, and at least {low:.1%} in nine of ten recordings like this"
        case Decision.LEAVE if bound < LIKELY:
            return f"no fix can save more than {bound:.1%} of a step"
        case Decision.LEAVE:
            if share < 0:
                return f"likely {-share:.1%} of a step more, and in nine of ten recordings like this less than {high:.1%} saved"
            return f"likely {share:.1%} of a step, and less than {high:.1%} in nine of ten recordings like this"
        case _ if adds is not Adds.NOTHING and share >= LIKELY and low > SURELY:
            return "the rewrite gives the device more to do, and how long that takes is only known once it is measured"
        case _ if share >= LIKELY and low > SURELY:
            part = f"{doubt:.0%}" if doubt < 1 else "all"
            return f"this recording leaves {part} of a step open: measuring it settles it"
        case _:
            least = f"{low:.1%}" if low >= 0 else f"{-low:.1%} longer"
            return f"a step may be anything from {least} to {high:.1%} shorter: measuring it settles it"


def without_figure(report: Report, works: bool, asked: bool = True) -> Answer:
    """The answer where no replay tells what is saved: by what is known without one. `works` says that a device did. Nor where
    savings were not `asked` for."""
    bound = report.bound.share if report.bound else None
    silent = report.silent or 0.0
    if report.coverage is not None and report.coverage.refusal:
        return Answer(Decision.UNKNOWN, why=f"{report.coverage.refusal}; {report.coverage.hint}")
    if works and not report.lines and silent <= GATE:
        return Answer(Decision.LEAVE, 0.0, 0.0, 0.0, bound, why="the host never waits for the device")
    if bound is not None and bound < LIKELY:
        return Answer(Decision.LEAVE, bound=bound, why=f"no fix can save more than {bound:.1%} of a step")
    why = "record again: on a machine with nothing else to do, and as many steps as fit into a few seconds"
    if report.recurring:
        why = f"{report.recurring}, for what was not recorded: a quieter machine does not change that"
    if works and not report.lines:
        why = (
            f"in {silent:.0%} of a step a thread waits for the device by no recorded call: record it by `syncscope run`"
        )
    if not asked:
        why = "savings were not asked for"
    if not works:
        why = "record on the device: no work of one is known here"
    return Answer(Decision.UNKNOWN, bound=bound, why=why)


def adding_lines(event_graph: EventGraph, lines: Sequence[Line], members: list[list[int]]) -> dict[int, Adds]:
    """What the rewrite of a line (by number) has the device do more, for those that do: as it says itself, else where rows are
    selected. A device that takes rows by a mask as it is (`ocl`) has to go by positions then. Of rows of which nobody noted how
    many were kept it is not known how much that is, as of branches."""
    selecting = {r for one in event_graph.selections for r in one.reads}
    untold = event_graph.counting - selecting
    by_mask = any(name.startswith("mask_gather") for name in event_graph.trace.names)
    found = dict[int, Adds]()
    for n, (line, rows) in enumerate(zip(lines, members, strict=True)):
        fix = line.finding.fix if line.finding else None
        more = Adds.ROWS if line.op in COUNTS or not selecting.isdisjoint(rows) else Adds.NOTHING
        if fix is not None:
            more = Adds.ROWS if fix.adds is Adds.NOTHING and fix.takes and by_mask else fix.adds
        if more is not Adds.NOTHING:
            found[n] = Adds.BRANCHES if more is Adds.ROWS and not untold.isdisjoint(rows) else more
    return found


def most_of(adds: Iterable[Adds]) -> Adds:
    """What several rewrites together add: what is told least well of them."""
    found = {*adds, Adds.NOTHING}
    return Adds.BRANCHES if found - {Adds.NOTHING, Adds.ROWS} else Adds.ROWS if Adds.ROWS in found else Adds.NOTHING


def clears(line: Line) -> bool:
    """Whether what a line launched for its read goes with it: as its rewrite says, else where the read is a condition, which is
    asked less often, or not at all."""
    fix = line.finding.fix if line.finding else None
    return fix.clears if fix is not None else line.op in CONDITIONS


def doubt_of(event_graph: EventGraph, graph: Graph, freed: Collection[int], step: float) -> float:
    """The part of a step that this recording leaves open, whatever others showed: the more of two.

    The steps themselves are few and unlike; and batches are not pinned yet, which is a copy, too, unless the loader's threads
    make it.
    """
    if step <= 0:
        return 0.0
    chosen = np.zeros((1, len(graph.reads)), bool)
    chosen[0, list(freed)] = True
    return max(float(margins(graph, chosen)[0]), _pinning(event_graph, graph, freed)) / step


def _pinning(event_graph: EventGraph, graph: Graph, freed: Collection[int]) -> float:
    """ns a step that it takes to pin what these reads upload: as long as the driver, which copied it through its own buffer."""
    window, work = timed_part(graph), event_graph.device_work
    counted = {graph.steps[n].index for n in range(window.first + 1, window.last + 1)} if window.last >= 0 else None
    copies = [
        float(work.duration[copy])
        for copy, (read, _) in event_graph.taken_out.uploads.items()
        if read in freed and (counted is None or graph.reads[read].step in counted)
    ]
    return sum(copies) / window.steps


def experience_of(report: Report, event_graph: EventGraph) -> Experience | None:
    """What is known of recordings like this one."""
    others = float(event_graph.trace.meta.get("others") or 0.0)
    return experience(kind_of([line.op for line in report.lines], event_graph.on_processor, others))


def of_all(
    saving: Saving,
    bound: float,
    between: tuple[float, float],
    known: Experience | None,
    adds: Adds,
    unforeseeable: bool,
    doubt: float,
    left_open: float,
    longer: bool = False,
) -> Answer:
    """The answer for all waits, by their `saving`: no `fix` where the plan needs what `adds` work, or too much of a step is in
    `doubt`, and no `leave` while one is not foreseen. Where nothing was ever measured of such, it lies `between` these. Where
    each rewrite would make a step `longer`, waits that cost little are left."""
    bound = max(bound, saving.all)
    low, high = between
    if known is not None:
        low, high = known.around(saving.likely, left_open, saving.less, saving.more)
    loops, measured = (known.loops, known.measured) if known is not None else (0, 0)
    found = answer(saving.likely, (low, high), bound, adds, loops, measured, doubt, saving.offered)
    found = replace(found, along=saving.along, most=max(saving.all, found.share or 0.0))
    if unforeseeable and found.decision is Decision.LEAVE and bound >= LIKELY:
        return replace(
            found, decision=Decision.TRY, why="what a step takes over all rows cannot be foretold: measure it"
        )
    if longer and saving.all < LITTLE:
        return replace(
            found, decision=Decision.LEAVE, why="without them a step would be longer: it would run over all rows"
        )
    return found


def seen(saving: float, idle: float, others: float, trusted: Fidelity) -> float:
    """How much of what a replay says that waits save is seen, in parts of a step: while others had the device, which is a
    processor, and the replay does not give back the recording.

    They take a processor from whatever runs then, and a replay takes that for the work of a read, which goes with it. For how
    long the device was `idle` after waits is seen; of the rest only the part in which others had none of it.
    """
    if others <= BUSY or trusted.enough or saving <= idle:
        return saving
    return idle + (1 - min(1.0, others)) * (saving - idle)


def instead(found: Answer, least: float, others: float) -> Answer:
    """The answer where launches in the place of what is read may undo it: the range begins at `least`. What `others` had of a
    processor makes that range wide, too, and is not asked here; nor of what is much."""
    sure = found.offered or 0.0
    much = sure >= MUCH and (found.low or 0.0) >= SURELY_MUCH
    if found.decision is not Decision.FIX or others > BUSY or sure - least <= FAR or much:
        return found
    more = sure - least
    why = f"launches in the place of what is read may take {more:.0%} of a step: measure it"
    return replace(found, decision=Decision.TRY, why=why, doubt=why)


def beside_others(found: Answer, others: float, adds: Adds = Adds.NOTHING) -> Answer:
    """The answer where the device is a processor that `others` had for this part of its time: `fix` only of what is much, and
    of no rewrite that `adds` work.

    A host that waits leaves its processor to the device. One that does not takes it, and where none is free the step may
    become longer.
    """
    sure = min(found.share or 0.0, found.offered if found.offered is not None else 1.0)
    if found.decision is not Decision.FIX or others <= BUSY or (sure >= MUCH and adds is Adds.NOTHING):
        return found
    why = (
        f"others had the processors, which are the device, for {others:.0%} of its time: a host that waits no longer takes "
        "them, too, and a step may become longer; measure it"
    )
    return replace(found, decision=Decision.TRY, why=why)


def of_one_rank(report: Report) -> Report:
    """The report with no `fix` where its recording is of one rank, which spends much of a step with others: what it saves it
    may wait for them instead, as only all recordings together tell."""
    part = report.exchanged or 0.0
    if part < EXCHANGED:
        return report
    doubt = f"{part:.0%} of a step is exchange with other ranks, or waiting for them"
    why = f"{doubt}: `syncscope ranks` says what the job gains"

    def of(found: Answer | None) -> Answer | None:
        if found is None or found.decision is not Decision.FIX:
            return found
        return replace(found, decision=Decision.TRY, why=why, doubt=doubt)

    lines = tuple(replace(line, answer=of(line.answer)) for line in report.lines)
    return replace(report, answer=of(report.answer), of_waits=of(report.of_waits), lines=lines)


def _not_left(found: Answer, waits: float) -> Answer:
    """The answer for a rewrite that saves too little: where its `waits` cost more, there may be another way."""
    if found.decision is not Decision.LEAVE or min(waits, found.bound or 0.0) < LIKELY:
        return found
    why = f"one read stays, and waits as long: it all costs {waits:.0%}, so use the value a step later, and measure it"
    return replace(found, decision=Decision.TRY, why=why)


def of_line(
    line: Line,
    whole: Answer,
    costs: Prices,
    known: Experience | None,
    number: int,
    adds: Adds,
    kept: float | None,
    doubt: float,
    left_open: float,
) -> Answer:
    """The answer for one line, whose advice is known: of what the whole may be off by, and of its `doubt`, its part. It keeps
    the share `kept` of the rows that it selects."""
    bound = whole.bound if whole.bound is not None else 1.0
    if line.price is None:
        return Answer(Decision.TRY, bound=bound, why=line.why)
    step, price = costs.step or 1.0, costs.lines[number]
    share, low, high = price.share / step, (line.price.low or 0.0) / step, (line.price.high or 0.0) / step
    part = min(1.0, max(0.0, price.share) / costs.saving) if costs.saving > LITTLE * step else 1 / len(costs.lines)
    if known is not None:
        ends = known.around(costs.saving / step, left_open)
        low, high = (share + part * (end - costs.saving / step) for end in ends)
    found = answer(share, (low, high), bound, adds, whole.loops, whole.measured, part * doubt)
    if number in costs.left:
        return replace(found, decision=Decision.LEAVE, why=line.why)
    found = _not_left(found, line.price.share / step)
    return replace(found, why="; ".join([found.why, *_of_what(line, adds, kept)]))


def _of_what(line: Line, adds: Adds, kept: float | None) -> Iterator[str]:
    """What the figure is of: the waits alone, or a rewrite that computes so many times as many rows."""
    if adds is not Adds.NOTHING and kept:
        yield f"in fixed shapes {1 / kept:.3g} times as many rows are computed, which is counted in as far as it is known"
    if line.finding is not None and line.finding.fix is not None and line.finding.fix.stays is not Stays.NONE:
        yield "of the reads that the rewrite brings together one stays, and is not counted in"
    if line.finding is None or line.finding.fix is None:
        yield "no rewrite of it is known, so the figure is of its waits alone"
