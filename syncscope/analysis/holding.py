"""Where the host waits in a graph, or a step ends: one entry each, and what of its time is left if the wait is taken out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.entries import Hold
from syncscope.analysis.hosts import DRIVEN, Host
from syncscope.model.report import Read

CALL = 1_000.0, 4_000.0  # ns that the call of a read takes at least and at most if it does not wait


@dataclass(frozen=True)
class Saved:
    """What the host is given back with a read that is taken out, ns: what made an item `slower`, what ran `colder` behind a
    read (by its number) or is done `anew` without it; and what a call, by its row, takes then (`spared`)."""

    slower: NDArray[np.float64]
    colder: Mapping[int, float]
    anew: Mapping[int, float]
    spared: Mapping[int, float]


class Holding:
    """Makes the holds of a graph in the order of its stream; `of_reads` has the positions there of each read's."""

    def __init__(
        self,
        host: Host,
        reads: Sequence[Read],
        targets: Mapping[int, tuple[int, ...]],
        returns: Mapping[int, float],
        share: float,
        saved: Saved,
    ) -> None:
        self.of_reads: list[list[int]] = [[] for _ in reads]
        self._host, self._reads, self._targets, self._returns = host, reads, targets, returns
        self._share, self._saved = share, saved
        self._read_of = {row: number for number, read in enumerate(reads) for row in read.calls}
        self._quickest = min(returns.values(), default=0.0)  # what it differs from a call's own time is the clocks'

    def hold(self, item: int, since: float, position: int, more: int) -> Hold:
        """That of an item of the host, at this position of the stream."""
        host, saved = self._host, self._saved
        row = int(host.row[item])
        if row < 0:
            return Hold(since, (), 0.0, 0.0, -1, -1 - row, more)
        back, number = self._returns[row], self._read_of.get(row, -1)
        if number >= 0:
            self.of_reads[number].append(position)
        freely = min(back - self._quickest + CALL[0], CALL[1], float(host.end[item] - host.began[item]))
        freely = saved.spared.get(row, freely)
        if number >= 0 and row == self._reads[number].calls[-1]:
            freely -= max(float(saved.slower[item]), saved.colder.get(number, 0.0)) + saved.anew.get(number, 0.0)
        returning = back - self._share * min(max(back, 0.0), DRIVEN)
        return Hold(since, self._targets[row], returning, freely, number, -1, more)
