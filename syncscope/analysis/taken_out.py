"""What goes with a read that is taken out: its launches, the host's time in it, and what the host does faster then."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.hosts import Host, Recorder, recorded
from syncscope.analysis.nesting import Nesting
from syncscope.analysis.start_causes import DeviceWork
from syncscope.analysis.uploads import pinned_bandwidth
from syncscope.analysis.waits import FROM_PAGEABLE, TO_HOST, TO_PAGEABLE
from syncscope.model.ops import COPIES, COUNTS, VALUES, Op
from syncscope.model.report import Read, Step
from syncscope.model.trace import WAY, Flag, Kind, Trace

FETCHED = VALUES | {Op.DISTRIBUTION_VALIDATE, Op.CLIP_GRAD_NORM, Op.TRANSFORMER_MASK, Op.GRAD_SCALER, Op.LOSS_SCALE}
ROUNDED = 1_000  # ns by which the end of an expression may be off: some files have whole microseconds
SLOWER = 80_000.0  # ns a wait: what a host that slept was seen to lose by cold caches, at most
PACE = 0.15, 150_000.0  # of its own work after a wait a host was seen to lose, at most; longer gaps, ns, are sleep
CACHES = 2.5e6  # bytes: with so many copied by the host, its caches hold e times less of what it works with
COLDEST = 150_000.0  # ns that filling them again was seen to take, at most
OPTIMIZER = re.compile(r"^Optimizer\.(?:step|zero_grad)#")
PAGEABLE = re.compile(rf"{FROM_PAGEABLE.pattern}|{TO_PAGEABLE.pattern}")
Times = NDArray[np.float64]


class TakenOut:
    """What goes with each read of a recording.

    `fetching` are the reads that only fetch a value, `copying` those that fetch a tensor, `counting` those that ask how many
    there are; `uploads` are copies (by number) from pageable memory: which read each is for, and how long it would take if it
    were pinned, ns, at `pinned` bytes a ns.
    """

    def __init__(
        self,
        trace: Trace,
        reads: Sequence[Read],
        host: Host,
        work: DeviceWork,
        steps: Sequence[Step],
        pinned: float | None,
    ) -> None:
        self._trace, self._reads, self._host, self._work = trace, reads, host, work
        self._steps = {step.index: step for step in steps}
        self._number_of = {row: number for number, read in enumerate(reads) for row in read.calls}
        self._by_call = np.argsort(work.enqueued, kind="stable")
        self.clearing = frozenset[int]()  # of which the rewrite computes no longer what they ask for
        self.taking = frozenset[int]()  # of which the rewrite takes rows all the same, by positions that are known
        self.whole = frozenset(number for number, read in enumerate(reads) if read.row >= 0)
        self.fetching = frozenset(number for number in self.whole if reads[number].op in FETCHED)
        self.copying = frozenset(number for number in self.whole if reads[number].op in COPIES)
        self.counting = self._counting_of()
        self.pinned = pinned or pinned_bandwidth(trace)
        self.uploads = self._uploads_of()

    def launched_by(self, reads: Collection[int]) -> NDArray[np.intp]:
        """For each piece of work in the expression of which of these reads it was enqueued; -1 for the rest."""
        trace, found = self._trace, np.full(len(self._work.start), -1, np.intp)
        lane = trace.lane[np.where(self._host.row >= 0, self._host.row, 0)]
        numbers = [*reads]
        rows = np.array([self._reads[number].row for number in numbers], np.intp)
        over = trace.start[rows] + trace.duration[rows]
        items = np.searchsorted(self._host.begin + self._host.origin, [trace.start[rows], over])
        bounds = np.searchsorted(self._work.enqueued[self._by_call], items)
        over = over - self._host.origin + ROUNDED
        for turn in np.flatnonzero(bounds[0] < bounds[1]).tolist():
            work = self._by_call[slice(*bounds[:, turn])]
            item = self._work.enqueued[work]
            within = (lane[item] == trace.lane[rows[turn]]) & (self._host.end[item] <= over[turn])
            found[work] = np.where(within, numbers[turn], -1)
        return found

    def still_taken(self) -> tuple[NDArray[np.intp], dict[int, float]]:
        """The work that takes rows for the reads that are `taking`, which their expressions launch last; and by read the host's
        time, ns, after its last wait, in which it is launched."""
        of = self.launched_by(self.taking)
        last = {int(of[j]): j for j in self._by_call.tolist() if of[j] >= 0}
        ended = self._trace.end
        spent = {n: float(ended[self._reads[n].row] - ended[self._reads[n].calls[-1]]) for n in last}
        return np.array(sorted(last.values()), np.intp), {n: max(0.0, time) for n, time in spent.items()}

    def cleared(self, clearing: Collection[int] | None) -> NDArray[np.intp]:
        """For each piece of work which of the reads that are `clearing` its line launched it for: right before it; -1 else.

        A function of torch's own may ask, as `Categorical(logits=net(x))` does whether its logits are numbers. Of what the line
        launched that alone is for it which came by the same call in there: not `net`, nor what the function is called for.
        """
        clearing = self.clearing if clearing is None else clearing
        trace, host, found = self._trace, self._host, np.full(len(self._work.start), -1, np.intp)
        if not clearing or not len(host.row):
            return found
        plain = (host.row >= 0) & ~host.holds
        place = np.where(plain, trace.place[np.where(plain, host.row, 0)], -1)
        ways = trace.flags[np.maximum(host.row, 0)] >> WAY
        begin, for_read = host.begin + host.origin, np.full(len(host.row), -1, np.intp)
        for number in clearing:
            row = self._reads[number].row
            item = int(np.searchsorted(begin, trace.start[row])) - 1 if row >= 0 and trace.place[row] >= 0 else -1
            way = self._way(number)
            while item >= 0 and place[item] == trace.place[row] and (way < 0 or ways[item] == way):
                for_read[item] = number
                item -= 1
        return np.asarray(for_read[self._work.enqueued], np.intp)

    def _way(self, number: int) -> int:
        """By which call in torch's own Python a line came to a read that a function there makes; -1 where the line reads."""
        read, trace = self._reads[number], self._trace
        asks = trace.known(read.row).library
        if not asks or str(trace.places[trace.place[read.row]]).endswith(asks):
            return -1
        return int(trace.flags[read.calls[0]] >> WAY)

    def give_back(self, spare: Times, going: NDArray[np.intp], launching: Times) -> None:
        """Notes by work what the host has to `spare` where that work goes: what its items took for `launching` it, each once,
        however much it enqueued. That is where it was asked for, and not what a driver kept it back for."""
        items, first = np.unique(self._work.enqueued[going], return_index=True)
        spare[going[first]] = launching[items]

    def spared(self, going: Collection[int], recorder: Recorder) -> dict[int, float]:
        """By call: the host's time, ns, that it takes where its read is not made; negative, for the read's own Python goes too.

        Such an expression goes with its wait, and the host's own time in it too. Its calls take nothing, and the last of them
        gives back what the expression took besides, less the recorder's time in it. The same for the other reads that are
        `going`.
        """
        found, operators = {}, self._trace.start[recorded(self._trace)]
        for number, read in enumerate(self._reads):
            if number in going:
                besides = float(read.besides)
                if recorder.each and read.row >= 0:
                    start = self._trace.start[read.row]
                    first, last = np.searchsorted(operators, [start, start + self._trace.duration[read.row]])
                    besides = max(0.0, besides - recorder.each * float(last - first))
                found.update(dict.fromkeys(read.calls, 0.0))
                found[read.calls[-1]] = -besides * (1 - recorder.share)
        return found

    def slower(self) -> NDArray[np.float64]:
        """By how much longer the host's work may have taken up to the next wait, for it waited here; ns by its item."""
        gap, held = self._host.gap, np.flatnonzero(self._host.holds)
        beyond = np.maximum(0.0, gap - np.median(gap[gap > 0])) if gap.any() else gap
        first = np.append(beyond[1:], 0.0).clip(0.0, SLOWER)
        own = np.concatenate(([0.0], np.cumsum(np.where(gap < PACE[1], gap, 0.0))))
        pace: NDArray[np.float64] = np.zeros(len(gap))
        pace[held] = PACE[0] * np.diff(own[np.append(held + 1, len(gap))])
        return np.asarray(np.maximum(first, pace))

    def colder(self, gaps: Times, cost: Times) -> dict[int, float]:
        """By read: what the host's work after it took longer, ns, for the read copied through the host's caches.

        That is work up to the next such copy: `gaps` before the host's items, and the `cost` of those that are launches. On the
        host of an H200 (2 MB of second-level cache) a loop took about 40 us longer beside an upload of 0.5 MB, 90 of 1.5, 120
        of 4 and 140 of 8 MB, as long where nothing but the host copied, and half of that beside a download.
        """
        trace, number_of = self._trace, self._number_of
        by_host = np.array([bool(PAGEABLE.search(name)) for name in trace.names], bool)
        copied: dict[int, int] = {}  # bytes by item
        found: dict[int, float] = {}
        if not len(gaps):
            return found
        for j in np.flatnonzero(by_host[trace.name[self._work.row]]).tolist():
            item = int(self._work.enqueued[j])
            copied[item] = copied.get(item, 0) + max(0, int(trace.bytes[self._work.row[j]]))
        work = np.where(gaps < PACE[1], gaps, 0.0) + np.where(self._host.holds, 0.0, cost)
        so_far = np.append(np.cumsum(work), work.sum())
        for item, following in pairwise([*sorted(copied), len(work)]):
            number = number_of.get(int(self._host.row[item]), -1)
            lost = min(COLDEST, PACE[0] * float(so_far[following] - so_far[item]))
            found[number] = found.get(number, 0.0) + lost * (1 - math.exp(-copied[item] / CACHES))
        return found

    def anew(self, most: bool = False) -> dict[int, float]:
        """By read: what operators after it took longer on the host, ns, for they were called as none before (`Flag.ANEW`).

        A number that is read, or so many rows as are kept, is another in each step; a tensor, and all rows, are always alike.
        Those of an optimizer are not for a read: it counts its steps. An operator's like are those of its name that were known,
        else all that were known. Both are told by their medians, for others take a processor from one of them by chance; at
        `most` each took as long as it did for the read. The last read of the step that was over is taken for the reason.
        """
        trace, found = self._trace, dict[int, float]()
        rows = trace.rows(Kind.OP)
        new = (trace.flags[rows] & Flag.ANEW) != 0
        if not new.any() or new.all():
            return found
        ended = trace.end
        asking = sorted(self.fetching | self.counting, key=lambda number: int(ended[self._reads[number].row]))
        if not asking:
            return found
        known = rows[~new]
        over = ended[[self._reads[number].row for number in asking]]
        optimizing = Nesting(trace, Kind.ANNOTATION)
        medians = dict[int, tuple[float, float]]()  # ns, by the operator's name: as usual, and anew
        reach = dict[int, int]()  # by thread: when the last of them was over, for those within are its own
        for row in rows[new].tolist():
            start, lane = int(trace.start[row]), int(trace.lane[row])
            last = int(np.searchsorted(over, start, side="right")) - 1
            if start < reach.get(lane, 0) or last < 0:
                continue
            reach[lane] = int(ended[row])
            number, following = asking[last], self._reads[asking[last + 1]] if last + 1 < len(asking) else None
            step = self._steps.get(self._reads[number].step)
            within = following is not None and trace.start[following.row] <= start
            if within or (step is not None and start >= step.end):
                continue
            around = optimizing.around(lane, start, reach[lane])
            if any(OPTIMIZER.search(trace.names[trace.name[region]]) for region in around):
                continue
            if (name := int(trace.name[row])) not in medians:
                alike, such = known[trace.name[known] == name], rows[new & (trace.name[rows] == name)]
                of = trace.duration[alike if len(alike) else known], trace.duration[such]
                medians[name] = float(np.median(of[0])), float(np.median(of[1]))
            usual, anew = medians[name]
            found[number] = found.get(number, 0.0) + max(0.0, (float(trace.duration[row]) if most else anew) - usual)
        return found

    def _counting_of(self) -> frozenset[int]:
        """The reads that ask how many there are. An index on the host, which is copied the other way, asks nothing."""
        trace = self._trace
        back = np.array([bool(TO_HOST.search(name)) for name in trace.names], bool)
        asking = [number for number in self.whole if self._reads[number].op in COUNTS]
        work = self.launched_by(asking)
        found = work[(work >= 0) & back[trace.name[self._work.row]]]
        return frozenset(found.tolist())

    def _uploads_of(self) -> dict[int, tuple[int, float]]:
        """The copies (by number) from pageable memory that a read is for: its number, and how long each would take if pinned.

        The driver copies through a buffer of its own, and that is the host's time. From pinned memory the copy engine fetches
        it: the host only asks for it, and the copy waits its turn in its queue.
        """
        trace, number_of = self._trace, self._number_of
        found: dict[int, tuple[int, float]] = {}
        paged = np.array([bool(FROM_PAGEABLE.search(name)) for name in trace.names], bool)
        for j in np.flatnonzero(paged[trace.name[self._work.row]]).tolist():
            row = int(self._work.row[j])
            call = int(self._host.row[self._work.enqueued[j]]) if len(self._host.row) else -1
            if call in number_of:
                size, duration = int(trace.bytes[row]), float(trace.duration[row])
                found[j] = number_of[call], min(duration, size / self.pinned) if size > 0 else duration
        return found
