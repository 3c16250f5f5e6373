"""Two versions of a program that somebody else wrote."""

from __future__ import annotations

from syncscope.model.trace import Trace
from syncscope.verify.failing import cannot_run
from syncscope.verify.foretold import foretold
from syncscope.verify.results import CHANGED
from syncscope.verify.search import AS_WRITTEN, Search, Set
from syncscope.verify.values import values_of

OTHER: Set = frozenset({0})


def compare(search: Search, recording: Trace | None) -> None:
    """Values and times of the two; `search.found` grows meanwhile.

    Raises:
        UserError: a version cannot be run.
    """
    found, other = search.found, search.other
    assert other is not None
    search.in_one, search.foreseen = not search.settings.apart, [OTHER]
    search.as_written(twice=not search.in_one)
    recording = recording or search.recording()
    search.compare([OTHER])
    if OTHER not in search.beside_it:
        search.tell("the other version: what does it compute")
        search.values[OTHER] = values_of(search.runs(OTHER, other))
        search.own_noise()
    found.values, why, found.difference = search.judge(OTHER, rounds=True, safe=False)
    if why:
        found.notes.append(why)
    if found.values == CHANGED:
        found.refused = True
    search.best = OTHER
    search.until_narrow([OTHER])
    if OTHER in search.failed:  # in a run that is timed, which makes more steps
        raise cannot_run(other, search.failed[OTHER])
    if recording is not None:
        before, after = search.pieces(OTHER)
        as_written = search.beside_it.get(OTHER, search.values[AS_WRITTEN])
        found.promise(foretold(recording, as_written, search.values[OTHER], before, after))
