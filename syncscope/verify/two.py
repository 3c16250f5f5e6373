"""Two versions of a program that somebody else wrote."""

from __future__ import annotations

from syncscope.model.trace import Trace
from syncscope.verify.failing import cannot_run
from syncscope.verify.foretold import foretold
from syncscope.verify.results import CHANGED
from syncscope.verify.search import Search, Set
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
    search.tell("the other version: what does it compute")
    search.values[OTHER] = values_of(search.runs(OTHER, other))
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
        found.promise(foretold(recording, *search.both(OTHER)))
