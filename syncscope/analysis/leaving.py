"""What leaves a step with the reads and selections that are taken out of it, and what comes in its place."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.changes import Supposed
from syncscope.analysis.growth import shortest
from syncscope.analysis.hosts import Host, Recorder
from syncscope.analysis.occupancy import filled, used
from syncscope.analysis.selections import SelectedRows
from syncscope.analysis.start_causes import DeviceWork
from syncscope.analysis.taken_out import TakenOut
from syncscope.model.report import Read
from syncscope.model.trace import Trace

MANY = 4  # launches in the place of a read that fetches a value, at most: where much was done with the number
BRIEF = 25  # percentile of the device's work: how short they are, for they work on one number


class Leaving:
    """By the number of a piece of work `with_read`: the read that it goes with, or, beyond their number, the selection (-1: it
    stays), and what is `left` of it then, ns (-1: nothing). `spare` is what the host is given back with a piece, ns."""

    def __init__(
        self,
        trace: Trace,
        reads: Sequence[Read],
        host: Host,
        work: DeviceWork,
        out: TakenOut,
        going: Collection[int],
        supposed: Supposed,
        launching: NDArray[np.float64],
    ) -> None:
        self._trace, self._reads, self._host, self._work, self._out = trace, reads, host, work, out
        self._going, self._supposed, self._launching = going, supposed, launching
        self.with_read, self.left = out.launched_by(going), np.full(len(work.start), -1.0)
        self.spare = np.zeros(len(work.start))
        for j, (number, time) in out.uploads.items():
            self.with_read[j], self.left[j] = number, time
        still, self.taking = out.still_taken() if supposed.how == "offered" else (np.zeros(0, np.intp), {})
        self.with_read[still] = -1  # what takes rows by positions

    def clear(self) -> None:
        """Take what lines launched for their reads with these."""
        for_read = self._out.cleared(
            self._out.clearing | self._out.counting if self._supposed.how == "easiest" else None
        )
        cleared = np.flatnonzero((for_read >= 0) & (self.with_read < 0) & (not self._supposed.stays))
        self.with_read[cleared] = for_read[cleared]
        self._out.give_back(self.spare, cleared, self._launching)

    def select(self, chosen: Sequence[SelectedRows]) -> None:
        """Let what runs over the rows of these selections run over all rows without them."""
        trace, work, added = self._trace, self._work, self._supposed.added
        least = shortest(trace, work.row) if chosen else work.duration
        for turn, one in sorted(enumerate(chosen), key=lambda pair: -len(pair[1].most)):  # the innermost last
            of = len(self._reads) + turn
            least_of = one.work if one.told else one.most[:0]
            over = {"nothing": least_of, "known": one.work, "most": one.most}[added]
            over = over[(self.with_read[over] < 0) | (self.with_read[over] >= len(self._reads))]
            full = filled(trace, work.row[over], "each" if added == "most" else "all")
            if added != "most":
                full = full * used(trace, work.row[over], one.kept)
            self.with_read[over] = of
            self.left[over] = one.over_all(over, work.duration[over], least[over], full)
            if not self._supposed.stays and len(one.back):
                self.with_read[one.back], self.left[one.back] = of, -1.0
                self._out.give_back(self.spare, one.back, self._launching)

    def spared(self, recorder: Recorder, plain: Collection[int]) -> dict[int, float]:
        """What each call of a read takes once that goes, ns by its row; where something `stays` in its place, with the launches
        of that, unless the rewrite is a `plain` one."""
        spared = self._out.spared(self._going, recorder)
        for of, time in self.taking.items():
            ending = self._reads[of].calls[-1]
            spared[ending] = min(0.0, spared.get(ending, 0.0) + time)
        launches = self._work.launch[:-1] & ~self._host.holds
        if self._supposed.stays and launches.any():
            each = float(self._launching[launches].mean())
            fetched = self._out.fetching - frozenset(plain)
            many = min(MANY, launches.sum() / max(1, len(fetched)))  # all together no more than there are
            for number in fetched:
                spared[self._reads[number].calls[-1]] += many * each
            copies = np.flatnonzero(np.isin(self.with_read, list(fetched)))
            _, last = np.unique(self.with_read[copies][::-1], return_index=True)
            brief = self._work.usual_gap + np.percentile(self._work.duration, BRIEF)
            self.left[copies[::-1][last]] = many * brief
        return spared
