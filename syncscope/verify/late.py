"""What the step would be if reads of single values did not wait: the ratio of blocks of steps, in turns."""

from __future__ import annotations

import statistics
from itertools import pairwise

from syncscope.errors import UserError
from syncscope.verify import timing
from syncscope.verify.processes import RunFailedError
from syncscope.verify.results import Verification
from syncscope.verify.runs import Runs
from syncscope.verify.search import Search
from syncscope.verify.stale import BLOCK
from syncscope.verify.versions import AS_WRITTEN

SETTLE = 2  # steps of a block that are still under what went before
FEWEST = 4  # pairs of blocks from which an interval is believed
MOST = 20 * BLOCK  # steps of a run
RUNS = 20
LEAST = 3 * BLOCK  # steps of a program: the first block is not compared


def measure(search: Search) -> None:
    """Runs the program until the interval is narrow; `search.found` grows meanwhile.

    Raises:
        UserError: nothing waits there, or the program makes too few steps.
    """
    runs, found = search.runs, search.found
    found.stale, search.budget.least = True, 3
    search.begin(twice=False)
    if found.device == "cpu":
        raise UserError(
            f"{runs.program} works on the CPU, where no sync waits for a device",
            runs.program.to_a_device,
        )
    if runs.ends_by_itself and found.steps < LEAST:
        raise too_few(runs, found.steps)
    pairs: list[tuple[float, float]] = []
    same: list[tuple[float, float]] = []
    before: list[float] = []
    after: list[float] = []
    fetching: list[float] = []
    answered = steps = 0
    try:
        while len(pairs) < FEWEST or not timing.narrow(found.ratio, runs.settings.precision, FEWEST):
            runs.tell("syncs answered with the value of the step before, in turns")
            try:
                run = runs.run_late(runs.settings.steps or MOST)
            except RunFailedError as error:
                raise UserError(
                    f"{runs.program} fails where syncs are answered late: {error.why}",
                    "--line answers those of one line only",
                ) from None
            blocks = blocks_of(run.found["lengths"], run.found["late"])
            if not blocks:
                raise too_few(runs, run.found["steps"])
            answered += run.found["answered"]
            fetching.append(run.found["fetching"])
            if not answered:
                at = " at the lines that are named" if runs.settings.only else ""
                raise UserError(
                    f"no single value is read in a step of {runs.program}{at}",
                    "what selects or copies many cannot be late",
                )
            steps += sum(run.found["late"])
            pairs += blocks
            same += [(a, b) for (a, _), (b, _) in pairwise(blocks)]
            before += [a for a, _ in blocks]
            after += [b for _, b in blocks]
            note(found, pairs, same, before, after)
            if search.budget.spent() > 1 or runs.processes.count > RUNS:
                break
    finally:
        if answered:
            reads = answered / max(1, steps)
            found.reads_after = max(0.0, (found.reads_before or 0.0) - reads)
            found.notes.append(
                f"{reads:.3g} syncs a step were answered with the value of the step before: keep nothing of what it computed"
            )
            stay = search.compared.values[AS_WRITTEN].stay()
            if stay and not runs.settings.only:
                found.notes.append(stay)
        if answered and found.after:
            each = statistics.median(fetching)
            found.notes.append(
                f"fetching a value beside the work took the host {each / 1e3:.1f} us, {reads * each / found.after:.1%} of a "
                "step: without the sync that goes, too"
            )


def too_few(runs: Runs, steps: int) -> UserError:
    """What is said of a program that ends before two blocks of steps can be compared."""
    return UserError(
        f"{runs.program} makes {steps} steps: too few to be compared in blocks of {BLOCK}",
        f"let it make {LEAST} at least",
    )


def note(
    found: Verification,
    pairs: list[tuple[float, float]],
    same: list[tuple[float, float]],
    before: list[float],
    after: list[float],
) -> None:
    """What is known by now."""
    found.ratio, found.same = timing.ratio_of(pairs), timing.ratio_of(same)
    found.before, found.after = statistics.median(before), statistics.median(after)


def blocks_of(lengths: list[float | None], late: list[bool]) -> list[tuple[float, float]]:
    """The steps (as it is, answered late) of every two blocks. `lengths` begins with the second step, `late` with the first."""
    found: list[tuple[float, float]] = []
    halves: dict[bool, float] = {}
    for first in range(BLOCK, len(lengths) + 1 - BLOCK + 1, BLOCK):
        own = [length for length in lengths[first - 1 + SETTLE : first - 1 + BLOCK] if length is not None]
        if len(own) < BLOCK - SETTLE:
            continue
        halves[late[first]] = statistics.fmean(sorted(own)[:-1])
        if (first // BLOCK) % 2 == 0:
            if len(halves) == 2:
                found.append((halves[False], halves[True]))
            halves = {}
    return found
