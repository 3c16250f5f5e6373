"""Two versions of a program that somebody else wrote."""

from __future__ import annotations

from syncscope.model.trace import Trace
from syncscope.verify.failing import cannot_run
from syncscope.verify.foretold import foretold
from syncscope.verify.results import CHANGED
from syncscope.verify.search import Search
from syncscope.verify.versions import Set

OTHER: Set = frozenset({0})


def compare(search: Search, recording: Trace | None) -> None:
    """Values of the two, and times unless these are others; `search.found` grows meanwhile.

    Raises:
        UserError: a version cannot be run.
    """
    runs, compared, found, other = search.runs, search.compared, search.found, search.runs.other
    assert other is not None
    runs.in_one, runs.foreseen = not runs.settings.apart, [OTHER]
    search.begin(twice=not runs.in_one)
    runs.tell("the other version: what does it compute")
    compared.note(OTHER, compared.must_run(OTHER, other))
    found.difference = compared.apart(OTHER)  # which is said where there is no time to know how far rounding carries
    search.best = OTHER
    search.note(OTHER)
    found.values, why, found.difference = compared.judge(OTHER, rounds=True, safe=False)
    if why:
        found.notes.append(why)
    if found.values == CHANGED:
        found.refused = True
        return
    recording = recording or runs.recording()
    search.until_narrow([OTHER])
    if OTHER in runs.failed:  # in a run that is timed, which makes more steps
        raise cannot_run(other, runs.failed[OTHER])
    if recording is not None:
        found.promise(foretold(recording, *compared.both(OTHER)))
