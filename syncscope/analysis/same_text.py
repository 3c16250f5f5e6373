"""Which line of one recording is which of another: by the texts that both know, or by those of files that are at hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from pathlib import Path

from syncscope.analysis.sources import at_hand
from syncscope.model.source import Place, installed
from syncscope.model.trace import Trace

COMMON = 0.5  # of the lines of two files that are the same text, from which on one is a copy of the other
LONGEST = 9  # digits of a line's number
LARGEST = 1 << 20  # bytes of a file that is compared


def same_lines(
    before: tuple[Trace, Iterable[str]], after: tuple[Trace, Iterable[str]]
) -> dict[str, tuple[str, dict[Place, Place]]]:
    """Of paths of the second recording the one in the first, and the line there of each line that is the same text.

    Given are the paths of each of which the other has none. A file that was changed after it was recorded says nothing.
    """
    (first, second), found = (_texts(*each) for each in (before, after)), {}
    for path, lines in second.items():
        matches = ((other, SequenceMatcher(None, text, lines)) for other, text in first.items())
        other, best = max(matches, key=lambda pair: pair[1].ratio(), default=(None, None))
        if other is None or best is None or best.ratio() < COMMON:
            continue
        del first[other]
        blocks = ((a + n, b + n) for a, b, size in best.get_matching_blocks() for n in range(1, size + 1))
        found[path] = other, {Place(path, b): Place(other, a) for a, b in blocks}
    return found


def place_before(place: Place | None, texts: Mapping[str, Mapping[Place, Place]]) -> Place | None:
    """Where a place of the second recording is in the first, as far as that is known; None where its text is new."""
    return place if place is None or place.path not in texts else texts[place.path].get(place)


def same_recorded(before: Trace, after: Trace, known: Mapping[str, str]) -> dict[str, dict[Place, Place]]:
    """Of each path of the second recording of whose lines both know the text: the place in the first of each line that is the
    same text. `known` has the path there of each."""
    one, other = recorded_texts(before), recorded_texts(after)
    return {
        path: {Place(path, b): Place(first, a) for a, b in _matched(one[first], other[path])}
        for path, first in known.items()
        if first in one and path in other
    }


def unchanged(before: Trace, after: Trace, known: Mapping[str, str]) -> frozenset[str]:
    """The files of the second recording that are the same text in the first, as a whole; `known` has their paths there."""
    one, other = before.meta.get("files", {}), after.meta.get("files", {})
    return frozenset(path for path, text in other.items() if one.get(known.get(path, path)) == text)


def renamed(before: Trace, after: Trace, known: Mapping[str, str]) -> dict[str, str]:
    """The path in the first recording of files that only the second names, where most lines of both are the same text."""
    one, other = (
        {path: Counter(text for text, *_ in lines.values()) for path, lines in recorded_texts(trace).items()}
        for trace in (before, after)
    )
    left = one.keys() - set(known.values())
    found: dict[str, str] = {}
    for path in other.keys() - known.keys():
        common = {old: (one[old] & other[path]).total() for old in sorted(left)}
        best = max(common, key=lambda old: common[old], default="")
        if best and common[best] > COMMON * max(one[best].total(), other[path].total()):
            found[path] = best
            left.remove(best)
    return found


def moved(before: Trace, after: Trace, texts: Mapping[str, Mapping[Place, Place]]) -> dict[str, dict[Place, Place]]:
    """Where lines of the second recording stood in another file of the first: of the same text, in a function of the same name,
    and in neither file any other is."""
    first, second = _by_text(before), _by_text(after)
    taken = {place for lines in texts.values() for place in lines.values()}
    found: dict[str, dict[Place, Place]] = {}
    for key, places in second.items():
        came = [place for place in places if place not in texts.get(place.path, {})]
        gone = [place for place in first.get(key, ()) if place not in taken]
        for new, old in zip(came, gone, strict=False):
            if new.path != old.path:
                found.setdefault(new.path, {})[new] = old
    return found


def _by_text(trace: Trace) -> dict[tuple[str, str], list[Place]]:
    """The places of which a recording knows the text, by it and by the function around them."""
    functions = functions_of(trace)
    found: dict[tuple[str, str], list[Place]] = {}
    for path, lines in recorded_texts(trace).items():
        for n, (text, *_) in sorted(lines.items()):
            found.setdefault((text, functions.get(Place(path, n), "")), []).append(Place(path, n))
    return found


def at_one_statement(
    before: Place | None, after: Place | None, known: Mapping[str, str], texts: Mapping[str, Mapping[Place, Place]]
) -> bool:
    """Whether a line of the second recording is one of the first, rewritten or not: of the same text, or between the same lines
    that both have and as far below and above them, but for lines that came or went there."""
    if before is None or after is None or known.get(after.path) != before.path:
        return False
    same = texts.get(after.path, {})
    if (there := same.get(after)) is not None or before in same.values():
        return there == before
    old, new = _neighbours(before, {place: place for place in same.values()}), _neighbours(after, same)
    if old != new:
        return False
    later = {there: place.line - there.line for place, there in same.items()}
    above, below = (later.get(place) if place else None for place in old)
    by = [0 if above is None else above, below if below is not None else above or 0]
    return min(by) <= after.line - before.line <= max(by)


def _neighbours(place: Place, same: Mapping[Place, Place]) -> tuple[Place | None, Place | None]:
    """Where in the first recording those of these lines are that are the next above and below a place."""
    above = max((p for p in same if p.line < place.line), key=lambda p: p.line, default=None)
    below = min((p for p in same if p.line > place.line), key=lambda p: p.line, default=None)
    return above and same[above], below and same[below]


def functions_of(trace: Trace) -> dict[Place, str]:
    """The function around each place of a recording; "" where that is not known."""
    return {place: trace.function(code) for code, place in enumerate(trace.places)}


def waiting(trace: Trace) -> dict[Place | None, frozenset[str]]:
    """What a recording knows of the expressions that wait at each of its places: a hash of each."""
    return {
        Place(path, n): frozenset(its)
        for path, lines in recorded_texts(trace).items()
        for n, (_, *its) in lines.items()
    }


def recorded_texts(trace: Trace) -> dict[str, dict[int, list[str]]]:
    """What a recording knows of its files' lines, by path and line: a hash of the text, then of each expression that waits."""
    return {
        path: {
            int(n): text.split() for n, text in lines.items() if n.isdecimal() and len(n) <= LONGEST and text.strip()
        }
        for path, lines in trace.meta.get("lines", {}).items()
    }


def _matched(before: Mapping[int, list[str]], after: Mapping[int, list[str]]) -> Iterator[tuple[int, int]]:
    """Lines of equal text, by their hashes: those in one order first, then what was moved."""
    one, other = (sorted((n, text) for n, (text, *_) in each.items()) for each in (before, after))
    blocks = SequenceMatcher(None, [t for _, t in one], [t for _, t in other], autojunk=False).get_matching_blocks()
    same = {b + n: a + n for a, b, size in blocks for n in range(size)}
    left = {a: one[a][1] for a in range(len(one)) if a not in set(same.values())}
    for b, (_, text) in enumerate(other):
        if b not in same and (a := next((a for a, t in left.items() if t == text), None)) is not None:
            same[b] = a
            del left[a]
    return ((one[a][0], other[b][0]) for b, a in same.items())


def _texts(trace: Trace, paths: Iterable[str]) -> dict[str, list[str]]:
    recorded = trace.meta.get("origin_ns", 0)
    files = at_hand(sorted(path for path in paths if not installed(path)))
    return {path: text for path, file in files.items() if (text := _lines(file, recorded))}


def _lines(file: Path, recorded: int) -> list[str]:
    try:
        known = file.stat()
        if known.st_mtime_ns > recorded or known.st_size > LARGEST:
            return []
        return file.read_text("utf-8").split("\n")
    except (OSError, ValueError):
        return []
