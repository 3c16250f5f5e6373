"""When the ranks of a job met, on one clock: what a page draws of them, a lane for each rank."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from syncscope.analysis.job import in_order
from syncscope.analysis.joint_replay import JointReplay
from syncscope.analysis.meeting_key import MeetingKey
from syncscope.analysis.rank import Rank

MOST = 40_000  # kernels of collectives that are drawn
LANES = 64  # ranks that are


class Drawn(NamedTuple):
    """A kernel of a collective: its step (-1 outside of any), when it begins, until when it waits for others and when it is
    over, ns of the job's clock, and which of the `meets` it is; where it is of none, nobody knows what it waits."""

    step: int
    start: float
    waits_until: float
    end: float
    meet: int


@dataclass(frozen=True, slots=True)
class RankLane:
    """What is drawn of a rank: each step by its number, and its collectives."""

    number: int
    steps: dict[int, tuple[float, float]]
    collectives: tuple[Drawn, ...]


@dataclass(frozen=True, slots=True)
class JobTimeline:
    """The lanes of a job; `late` has of each collective its key, the rank that came last, and by what, "" where none did.

    So many `steps` and `ranks` there are: of many those are drawn in which most was waited, and that others waited for most.
    """

    lanes: tuple[RankLane, ...]
    late: tuple[tuple[str, int, str], ...]
    steps: int
    ranks: int


def job_timeline(ranks: Sequence[Rank], most: int = MOST, lanes: int = LANES) -> JobTimeline:
    """The lanes of these ranks, of so many at most, with so many kernels."""
    joint = JointReplay(in_order(ranks))
    meets = joint.meets()
    waited, owed = Counter[int](), Counter[int]()
    for meet in meets:
        waited[meet.step] += int(meet.imposed)
        for each in meet.owed:
            owed[each.rank] += int(each.time)
    shown = sorted(range(len(ranks)), key=lambda r: -owed[joint.ranks[r].number])[:lanes]
    number = {meet.key: n for n, meet in enumerate(meets)}
    drawn = _collectives(joint, number, set(shown))
    counts = Counter(one.step for own in drawn.values() for one in own)
    kept, room = set[int](), most
    for step in sorted(counts, key=lambda step: (-waited[step], step)):
        room -= counts[step]
        if room >= 0 or not kept:
            kept.add(step)
    return JobTimeline(
        lanes=tuple(
            RankLane(
                joint.ranks[r].number,
                {step: when for step, when in _steps(joint, r).items() if step in kept},
                tuple(one for one in drawn[r] if one.step in kept),
            )
            for r in sorted(shown)
        ),
        late=tuple((str(meet.key), meet.late, "" if meet.together else str(meet.cause)) for meet in meets),
        steps=len(counts),
        ranks=len(ranks),
    )


def _steps(joint: JointReplay, r: int) -> dict[int, tuple[float, float]]:
    rank = joint.ranks[r]
    moved = joint.begins[r] - rank.graph.origin
    return {step.index: (step.start + moved, step.end + moved) for step in rank.graph.steps}


def _collectives(joint: JointReplay, number: dict[MeetingKey, int], shown: set[int]) -> dict[int, list[Drawn]]:
    """The collectives of these ranks by its position, each in the order of their starts."""
    found: dict[int, list[Drawn]] = {r: [] for r in shown}
    for key, who in joint.matched.who.items():
        starts = {r: joint.begins[r] + joint.ranks[r].collectives[c].start for r, c in who}
        last, meet = max(starts.values()), number.get(key, -1)
        for r, c in who:
            if r in shown:
                end = joint.begins[r] + joint.ranks[r].collectives[c].end
                until = min(last, end) if meet >= 0 else starts[r]
                found[r].append(Drawn(key.step, starts[r], until, end, meet))
    for own in found.values():
        own.sort()
    return found
