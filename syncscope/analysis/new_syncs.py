"""How many syncs of a step are new, where lines may have moved, been rewritten, or been cut in two."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from syncscope.analysis.same_text import at_one_statement, place_before
from syncscope.analysis.summary import key_of_line
from syncscope.analysis.window_rates import StepCounts, may_be_alike, may_lie_between
from syncscope.model.report import Line
from syncscope.model.source import Place

Pairs = Sequence[tuple[Line | None, Line | None]]
Counts = list[tuple[Line, float]]  # by how many a step
Texts = Mapping[str, Mapping[Place, Place]]
Waits = tuple[Mapping[Place | None, frozenset[str]], Mapping[Place | None, frozenset[str]]]
Functions = tuple[Mapping[Place, str], Mapping[Place, str]]
Alike = Callable[[Line, Line], bool]

SLIGHT = 1e-9  # of a sync: what is left where floats should be equal


@dataclass(frozen=True, slots=True)
class NewSyncs:
    """The lines that have more syncs than before, by how many a step, the most first; and how many a step has more.

    Where the texts of lines are not known, a line that moved may look like one that is new: then `surely` is less than `count`.
    `in_place` has each line that waits where another has gone, which is not called new: it is the same, rewritten, or waits for
    the same statement in another operation. `at_times` are lines that wait in some steps only, of which the first recording
    has some that are not counted, `between_times` those of an unchanged file, of which it is too short to have any: neither
    are new.
    """

    lines: tuple[tuple[Line, float], ...] = ()
    count: float = 0.0
    surely: float = 0.0
    in_place: tuple[tuple[Line, Line], ...] = ()
    at_times: tuple[Line, ...] = ()
    between_times: tuple[Line, ...] = ()


def new_syncs(
    pairs: Pairs,
    known: Mapping[str, str],
    texts: Texts,
    waits: Waits,
    functions: Functions,
    counts: tuple[StepCounts, StepCounts],
    same_files: Collection[str] = (),
) -> NewSyncs:
    """What a step waits for more often, by lines that are the same in both. `known` and `texts` are as in `compare`, `waits`
    has what is known of the expressions that wait, by the places of either recording, `functions` those around these places,
    `counts` how often in each step, and `same_files` are those that are the same in both.

    A line of the same text has what it has more, unless that is what two windows of one program may differ by: it waits in some
    steps only, or did so before in those that are not counted. Among the others of one file and op, whose texts are known, what
    is gone goes against what came if the same expression waits, since one statement may have become two. Where no texts are
    known, anything goes against anything. What the device's fallbacks read is no sync of the user's. Whatever is left then is
    new only in so far as its statement waits more often than before, in any op: one wait of it may have become another. Which
    statement that was has to be sure: a gate that takes one for another lets a new sync through.
    """
    firm, fewer, at_times, between = list[tuple[Line, float]](), list[tuple[Line, float]](), list[Line](), list[Line]()
    came: dict[tuple[str, str], Counts] = {}
    gone: dict[tuple[str, str], Counts] = {}
    told = {known[path] for path in texts if path in known}

    def is_alike(a: Line, b: Line) -> bool:
        return may_be_alike(counts[0], key_of_line(a), counts[1], key_of_line(b))

    for a, b in pairs:
        line = b or a
        if line is None or line.fallback:
            continue
        more = (b.count if b else 0.0) - (a.count if a else 0.0)
        if b is not None and more > 0:
            if a is None and _was_uncounted(b, counts, texts):
                at_times.append(b)
                continue
            if a is None and _stands_in(same_files, b) and may_lie_between(*counts, key_of_line(b)):
                between.append(b)
                continue
            more = 0.0 if a is not None and is_alike(a, b) else more
        if b is not None and _is_firm(a, b, texts):
            firm += [(b, more)] if more > 0 else []
            fewer += [(a, -more)] if a is not None and more < 0 else []
            continue
        path = known.get(b.place.path, b.place.path) if b and b.place else a.place.path if a and a.place else ""
        key = path, line.op
        if path in told:
            gone.setdefault(key, []).extend([(a, a.count)] if a else [])
            came.setdefault(key, []).extend([(b, b.count)] if b else [])
        elif b is not None and more > 0:
            came.setdefault(key, []).append((b, more))
        else:
            gone.setdefault(key, []).append((line, -more))
    lines = firm
    for key in dict.fromkeys([*came, *gone]):
        if key[0] in told:
            left, less = _settled(came.get(key, []), gone.get(key, []), waits, is_alike)
            lines, fewer = lines + left, fewer + less
    lines, in_place = _by_statement(lines, fewer, known, texts, functions, is_alike)
    count = surely = sum(more for _, more in lines)
    for key, found in came.items():
        if key[0] not in told:
            lines = lines + found
            count += (total := sum(more for _, more in found))
            surely += max(0.0, total - sum(less for _, less in gone.get(key, [])))
    old = {id(b) for a, b in pairs if a is not None}
    ordered = sorted(lines, key=lambda of: (-of[1], id(of[0]) in old))
    return NewSyncs(tuple(ordered), count, surely, tuple(in_place), tuple(at_times), tuple(between))


def same_wait(a: Line, b: Line, waits: Waits) -> bool:
    """Whether an expression waits in a line of the first recording and in one of the second."""
    one, other = (frozenset() if line.caller else its.get(line.place) for line, its in zip((a, b), waits, strict=True))
    return bool(one and other and one & other)


def _same_statement(a: Line, b: Line, known: Mapping[str, str], texts: Texts, functions: Functions) -> bool:
    """Whether a line of the second recording may be one of the first, rewritten: in its function and at its place there."""
    if not at_one_statement(a.place, b.place, known, texts):
        return False
    if a.caller is not b.caller and not at_one_statement(a.caller, b.caller, known, texts):
        return False
    one, other = (around.get(its) for around, its in zip(functions, map(_place, (a, b)), strict=True) if its)
    return one == other


def rewritten(
    came: Sequence[Line], gone: Sequence[Line], known: Mapping[str, str], texts: Texts, functions: Functions
) -> list[tuple[int, int]]:
    """Which lines that came are lines that are gone, rewritten. A statement that may be two of the other recording
    is none of them."""
    found = [
        (n, m)
        for (n, b), (m, a) in product(enumerate(came), enumerate(gone))
        if _same_statement(a, b, known, texts, functions)
    ]
    places = {(_place(gone[m]), _place(came[n])) for n, m in found}
    before, after = (Counter(pair[side] for pair in places) for side in (0, 1))
    return [(n, m) for n, m in found if before[_place(gone[m])] == after[_place(came[n])] == 1]


def _settled(came: Counts, gone: Counts, waits: Waits, is_alike: Alike) -> tuple[Counts, Counts]:
    """What is left of what came, and of what is gone, when one went against the other where the same expression waits."""
    left, less = [more for _, more in came], [count for _, count in gone]
    for (n, (b, _)), (m, (a, _)) in product(enumerate(came), enumerate(gone)):
        if left[n] > SLIGHT and less[m] > SLIGHT and same_wait(a, b, waits):
            left[n], less[m] = _against((b, left[n]), (a, less[m]), is_alike)
    return _left(came, left), _left(gone, less)


def _by_statement(
    came: Counts, gone: Counts, known: Mapping[str, str], texts: Texts, functions: Functions, is_alike: Alike
) -> tuple[Counts, list[tuple[Line, Line]]]:
    """What is left of what came when what is gone from the same statement went against it, whatever the op, and these pairs."""
    found = rewritten([b for b, _ in came], [a for a, _ in gone], known, texts, functions)
    in_place: list[tuple[Line, Line]] = []
    left, less = [more for _, more in came], [count for _, count in gone]
    for n, m in found:
        b, a = came[n][0], gone[m][0]
        if left[n] > SLIGHT and less[m] > SLIGHT:
            left[n], less[m] = _against((b, left[n]), (a, less[m]), is_alike)
            in_place.append((a, b))
    return _left(came, left), in_place


def _place(line: Line) -> Place | None:
    """The user's line that waits or leads to the wait."""
    return line.caller or line.place


def _against(came: tuple[Line, float], gone: tuple[Line, float], is_alike: Alike) -> tuple[float, float]:
    """What is left of either: of what came nothing where both are whole lines and it waits no more often but for chance."""
    (b, more), (a, less) = came, gone
    whole = more == b.count and less == a.count and a.op == b.op and is_alike(a, b)
    return 0.0 if whole else more - min(more, less), less - min(more, less)


def _left(lines: Counts, counts: Sequence[float]) -> Counts:
    return [(line, count) for (line, _), count in zip(lines, counts, strict=True) if count > SLIGHT]


def _stands_in(files: Collection[str], line: Line) -> bool:
    """Whether all that is known of where a line stands is in these files."""
    places = [place for place in (line.place, line.caller) if place is not None]
    return bool(places) and all(place.path in files for place in places)


def _was_uncounted(b: Line, counts: tuple[StepCounts, StepCounts], texts: Texts) -> bool:
    """Whether a line that is in no counted step of the first recording is in others, so that it came no more often."""
    there = (place_before(b.place, texts), place_before(b.caller, texts)) if b.place else (None, None)
    return there[0] is not None and any(
        (op, place, caller) == (b.op, *there) and may_be_alike(counts[0], key, counts[1], key_of_line(b))
        for key in counts[0].lines()
        for op, place, _, _, _, caller in [key]
    )


def _is_firm(a: Line | None, b: Line, texts: Texts) -> bool:
    """Whether both are surely one line: of the same text, or of the same module where no line is known."""
    if a is None or b.place is None:
        return a is not None
    here = b.place.path in texts and place_before(b.place, texts) == a.place
    return here and place_before(b.caller, texts) == a.caller
