"""What is known of a program before any of it runs: whether the linter offers a fix that would be tried."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator

from syncscope.errors import UserError
from syncscope.model.finding import Finding, Safety
from syncscope.model.source import Place
from syncscope.model.trace import Trace
from syncscope.verify.of_libraries import files_of, waited_in
from syncscope.verify.own_files import own_files
from syncscope.verify.plan import Plan
from syncscope.verify.request import Program
from syncscope.verify.results import TriedFix, Verification, by_hand, listed

PART = 0.1  # of the budget that reading may take: then the program is run, whatever there is
SHOWN = 12  # lines that are listed
LATE = "--stale measures the step as if its syncs did not wait"


class NothingToTryError(UserError):
    """No file of the program has a fix that would be tried; `said` lists what there is instead, a line for each."""

    def __init__(self, message: str, hint: str, said: str) -> None:
        super().__init__(message, hint)
        self.said = said


def must_offer(
    program: Program, found: Verification, only: tuple[Place, ...], rules: tuple[str, ...], recording: Trace | None,
    budget: float,
) -> None:  # fmt: skip
    """That there may be something to try: so much is read in a second or two, where a run takes many.

    Nothing is said of a program of which not all files are found. `found` gets the fixes that would not be tried.

    Raises:
        NothingToTryError: no file of the program has a fix that would be tried, and none of the lines of libraries that
            waited in the recording has one.
        UserError: as `Plan`.
    """
    began = time.monotonic()
    files = own_files(program)
    if files is None or not {place.path for place in only} <= {*files}:  # whether it runs others is found out then
        return
    fixes: list[TriedFix] = []
    unmended: list[Finding] = []
    for path in files:
        if only and all(place.path != path for place in only):
            continue
        if time.monotonic() - began > PART * budget:
            return
        plan = Plan([path], only, rules, follow=False)
        fixes += (own := [listed(plan, candidate) for candidate in plan.candidates])
        if any(not fix.why for fix in own):
            return
        fixes += map(by_hand, plan.by_hand)
        unmended += plan.unmended
    if recording is not None and not only:
        fixes += (of_libraries := [*_of_libraries(waited_in(recording), rules)])
        if any(not fix.why for fix in of_libraries):
            return
    found.fixes = fixes
    found.notes += (
        known := [f"{one.place.path}:{one.place.line}  {one.rule}: no rewrite is known" for one in unmended]
    )
    raise NothingToTryError(*_nothing(program, len(files), [*map(_line, fixes), *known], only, rules))


def _of_libraries(waited: Collection[Place], rules: tuple[str, ...]) -> Iterator[TriedFix]:
    """Fixes for lines of installed packages that waited, of which only safe ones are tried unless their line is named."""
    for path in files_of(waited):
        plan = Plan([path], [place for place in waited if place.path == path], rules)
        for candidate in plan.candidates:
            fix = listed(plan, candidate)
            if candidate.fix.safety is not Safety.SAFE:
                fix.why = "it is a library's, and waits here"
                fix.remedy = f"--line {fix.path}:{fix.line} tries it in a copy"
            yield fix


def _line(fix: TriedFix) -> str:
    return f"{fix.path}:{fix.line}  {fix.finding.rule}, {fix.fix.standing}: {fix.told}"


def _nothing(
    program: Program, files: int, lines: list[str], only: tuple[Place, ...], rules: tuple[str, ...]
) -> tuple[str, str, str]:
    """The message, the hint, and the list."""
    count = f"its {files} files were" if files > 1 else "its one file was"
    where = " at " + ", ".join(f"{os.path.relpath(place.path)}:{place.line}" for place in only) if only else ""
    which = f" of {', '.join(rules)}" if rules else ""
    more = [f"and {len(lines) - SHOWN} more, which `syncscope lint` shows"] if len(lines) > SHOWN else []
    said = "" if lines else "; the linter finds no sync in a step"
    message = f"there is no fix{which} to try in {program}{where}: {count} read, nothing was run{said}"
    return message, LATE, "\n".join([*lines[:SHOWN], *more])
