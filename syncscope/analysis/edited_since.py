"""Where the lines of a recording stand now, in files that were edited since: by the texts of which it keeps a hash.

```text
recorded   10  n = pred.norm().item()        now   14  n = pred.norm().item()    the line of 10, four further down
           11  return pred / n                     15  return pred / n           beside it in one function: as far down
           20  return err[mask].mean()             24  return err[keep].mean()   none has the text of 20: as recorded
```
"""

from __future__ import annotations

import tokenize
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from syncscope.analysis.same_text import recorded_texts
from syncscope.model.source import AS_RECORDED, Place, text_hash
from syncscope.model.trace import Trace


def as_it_is_now(trace: Trace, files: Mapping[str, Path]) -> tuple[Trace, list[str]]:
    """The recording with its places where they stand now in these files, by the paths it names; and what is to be said of it.

    A place whose line is not there any more is in no file, so that neither text nor rule of another line is taken for its own.
    """
    now: dict[Place, Place] = {}
    said = []
    for path, lines in recorded_texts(trace).items():
        text = _lines(files[path]) if path in files and files[path].suffix == ".py" else None
        if text is None:
            continue
        hashes = [text_hash(line) for line in text]
        recorded = {n: its[0] for n, its in lines.items()}
        if all(n <= len(hashes) and hashes[n - 1] == its for n, its in recorded.items()):
            continue
        at = _found(recorded, hashes)
        functions = {p.line: trace.function(code) for code, p in enumerate(trace.places) if p.path == path}
        moved = {n: _beside(n, recorded, at, functions) for n in functions} | {n: at.get(n) for n in recorded}
        now |= {Place(path, n): _place(files[path], n, line) for n, line in moved.items()}
        said.append(_words(files[path], len(recorded), len(at)))
    places = tuple(now.get(place, Place(str(files.get(place.path, place.path)), place.line)) for place in trace.places)
    return replace(trace, places=places), said


def _place(file: Path, recorded: int, line: int | None) -> Place:
    return Place(f"{file}{AS_RECORDED}", recorded) if line is None else Place(str(file), line)


def _words(file: Path, waits: int, found: int) -> str:
    if found == waits:
        return f"{file} was edited since the recording: its lines stand where they are now"
    lost = waits - found
    which = (
        "none of its lines that wait is"
        if not found
        else f"{lost} of its {waits} lines that wait {'is' if lost == 1 else 'are'} not"
    )
    return (
        f'{file} was edited since the recording, and {which} there any more: what stands "as recorded" is shown without '
        "its source and rewrite"
    )


def _found(recorded: Mapping[int, str], hashes: list[str]) -> dict[int, int]:
    """Where lines of these texts stand now: those that are there once first, then of several the one that moved as far as the
    nearest of these."""
    there: dict[str, list[int]] = {}
    for n, its in enumerate(hashes, 1):
        there.setdefault(its, []).append(n)
    once = {its for its, count in Counter(recorded.values()).items() if count == len(there.get(its, ())) == 1}
    found = {n: there[its][0] for n, its in recorded.items() if its in once}
    for n, its in sorted(recorded.items()):
        left = [line for line in there.get(its, ()) if line not in found.values()]
        if n not in found and left:
            near = min(found, key=lambda other: abs(other - n), default=None)
            expected = n if near is None else n + found[near] - near
            found[n] = min(left, key=lambda line: abs(line - expected))
    return found


def _beside(n: int, recorded: Mapping[int, str], at: Mapping[int, int], functions: Mapping[int, str]) -> int | None:
    """Where a line stands now of which no text was kept: as far from where it was as those around it, or the next one in its
    function; None where these do not say."""
    known = sorted(recorded)
    place = bisect_left(known, n)
    beside = known[max(0, place - 1) : place + 1]
    if len(beside) < 2 or not all(other in at for other in beside) or len({at[other] - other for other in beside}) > 1:
        beside = [other for other in beside if other in at and functions.get(other) == functions.get(n)]
    moved = {at[other] - other for other in beside}
    return n + moved.pop() if len(moved) == 1 else None


def _lines(file: Path) -> list[str] | None:
    """The lines of a Python file as Python reads them; None where it cannot."""
    try:
        with tokenize.open(file) as opened:
            return opened.readlines()
    except (OSError, SyntaxError, ValueError):
        return None
