"""Which reads are still made once rewrites have brought several of them together.

```text
written    a = x.item(); b = y.item()      [wait a][wait b]     for t in losses: t.item()    [wait][wait][wait]
rewritten  a, b = stack((x, y)).tolist()           [wait  ]     stack(losses).tolist()                   [wait]
```

The host waits as ever, only once: what it saves is the price of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from syncscope.model.finding import Fix
from syncscope.model.report import Line, Read


def staying(reads: Sequence[Read], lines: Iterable[tuple[Sequence[int], Line]]) -> frozenset[int]:
    """The reads (by number) that stay, of lines with the numbers of theirs: the last of each run that one fix brings together.

    Of one place in a loop that is the last of each step; what reads once a step there is read after its loop.
    """
    of: dict[Fix, list[int]] = {}
    for rows, line in lines:
        fix = line.finding.fix if line.finding else None
        if fix is not None and fix.reads_once:
            of.setdefault(fix, []).extend(rows)
    return frozenset(last for rows in of.values() for last in _last(reads, sorted(rows, key=lambda n: reads[n].start)))


def _last(reads: Sequence[Read], rows: Sequence[int]) -> Iterable[int]:
    """Of reads in their order the last of each run, which ends with the step, or where one of several places reads again."""
    several = len({_place(reads[number]) for number in rows}) > 1
    runs: list[list[int]] = []
    for number in rows:
        run = runs[-1] if runs else []
        again = several and _place(reads[number]) in {_place(reads[one]) for one in run}
        if not run or again or reads[run[-1]].step != reads[number].step:
            runs.append([])
        runs[-1].append(number)
    return [run[-1] for run in runs if several or len(run) > 1]


def _place(read: Read) -> tuple[object, ...]:
    return read.place, read.column, read.op
