"""Which ranks take part in a collective, as far as its recording says so."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby, pairwise

from syncscope.model.detail import Detail
from syncscope.model.trace import Meta

NUMBER = re.compile(r"[0-9]{1,9}")


def group_of(known: Detail, meta: Meta) -> str | None:
    """The group of a collective in words, alike on all its ranks and on no others: its name, and which ranks it has where that
    are not all; None where nothing is said of it.

    Of ranks that split a group each calls its own part by the same name, and libraries that call NCCL themselves name none.
    """
    name, world = known.process_group, int(meta.get("world_size") or 0)
    groups = meta.get("groups") or {}
    ranks = tuple(map(int, NUMBER.findall(known.group_ranks))) or tuple(groups.get(name, ()))
    if not ranks and not name and len(several := {each for each in map(tuple, groups.values()) if len(each) > 1}) == 1:
        (ranks,) = several  # there is no other
    if world and (len(ranks) == world or known.group_size == world):
        return name
    return " ".join(filter(None, (name, in_short(ranks)))) or None


def in_short(ranks: Sequence[int]) -> str:
    """Rank numbers as ranges: `0-3`, `0-12/4` where they are 4 apart, `0,5`."""
    steps = [b - a for a, b in pairwise(ranks)]
    if len(ranks) > 2 and len(set(steps)) == 1 and steps[0] > 1:
        return f"{ranks[0]}-{ranks[-1]}/{steps[0]}"
    runs = [[n for _, n in run] for _, run in groupby(enumerate(ranks), lambda pair: pair[1] - pair[0])]
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
