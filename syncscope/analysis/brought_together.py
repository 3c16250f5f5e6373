"""Which reads are still made once rewrites have brought several of them together.

```text
written    a = x.item(); b = y.item()      [wait a][wait b]     for t in losses: t.item()    [wait][wait][wait]
rewritten  a, b = stack((x, y)).tolist()           [wait  ]     stack(losses).tolist()                   [wait]
```

The host waits as ever, only once: what it saves is the price of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from syncscope.model.finding import Fix, Stays
from syncscope.model.report import Line, Read


def staying(reads: Sequence[Read], lines: Iterable[tuple[Sequence[int], Line]]) -> frozenset[int]:
    """The reads (by number) that stay, of lines with the numbers of theirs: one of each run that one fix brings together.

    Of one place in a loop that is one of each step; what reads once a step there is read after its loop, if the last stays.
    """
    of: dict[Fix, list[int]] = {}
    for rows, line in lines:
        fix = line.finding.fix if line.finding else None
        if fix is not None and fix.stays is not Stays.NONE:
            of.setdefault(fix, []).extend(rows)
    found = set[int]()
    for fix, rows in of.items():
        runs, several = _runs(reads, sorted(rows, key=lambda n: reads[n].start))
        if fix.stays is Stays.FIRST:
            found.update(run[0] for run in runs)
        else:
            found.update(run[-1] for run in runs if several or len(run) > 1)
    return frozenset(found)


def _runs(reads: Sequence[Read], rows: Sequence[int]) -> tuple[list[list[int]], bool]:
    """Reads in their order by runs, which end with the step, or where one of several places reads again; and if of several."""
    several = len({_place(reads[number]) for number in rows}) > 1
    runs: list[list[int]] = []
    for number in rows:
        run = runs[-1] if runs else []
        again = several and _place(reads[number]) in {_place(reads[one]) for one in run}
        if not run or again or reads[run[-1]].step != reads[number].step:
            runs.append([])
        runs[-1].append(number)
    return runs, several


def _place(read: Read) -> tuple[object, ...]:
    return read.place, read.column, read.op
