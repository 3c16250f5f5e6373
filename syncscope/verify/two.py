"""Two versions of a program that somebody else wrote."""

from __future__ import annotations

import os
from collections.abc import Collection

from syncscope.errors import UserError
from syncscope.model.trace import Trace
from syncscope.turns.weaving import CannotTakeTurnsError
from syncscope.verify.failing import cannot_run
from syncscope.verify.foretold import foretold
from syncscope.verify.plan import content_of
from syncscope.verify.request import Program
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
    files = search.begin(twice=not runs.in_one)
    if runs.texts is not None:
        if runs.texts.before.keys().isdisjoint(os.path.realpath(path) for path in files):
            raise UserError(
                f"none of the {len(runs.texts.before)} files that differ from {runs.texts.commit} ran in its steps",
                "an installed copy may have been imported in their place: pip install -e .",
            )
        if runs.texts.missing:
            found.notes.append(f"no text stands in for what only one of both has: {', '.join(runs.texts.missing)}")
    elif (apart := differ(runs.program, other, files)) and runs.in_one:
        runs.go_apart(CannotTakeTurnsError(f"they import files that differ, as {os.path.relpath(apart)}"))
        compared.own_noise()
    runs.tell(f"{runs.words(OTHER)}: what does it compute")
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


def differ(program: Program, other: Program, files: Collection[str]) -> str:
    """The first of the program's own files beside it for which the other script imports a file with another text; "" where
    there is none: both import the same."""
    folder, beside = (os.path.dirname(os.path.realpath(one.target)) for one in (program, other))
    for path in sorted(map(os.path.realpath, files)):
        own = os.path.relpath(path, folder)
        if path == os.path.realpath(program.target) or own.startswith(os.pardir):
            continue
        counterpart = os.path.join(beside, own)
        if not os.path.isfile(counterpart) or content_of(path) != content_of(counterpart):
            return path
    return ""
