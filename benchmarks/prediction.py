"""Predictions against reality: what a loop takes without its waits, foretold from a run with them, then run.

    python benchmarks/prediction.py                       the loops that the intervals are learned from, on the `ocl` device
    python benchmarks/prediction.py --loops held_out      those that they are not learned from
    python benchmarks/prediction.py --device cuda         on a GPU
    python benchmarks/prediction.py many-reads clipping   some, of whichever folder
    python benchmarks/prediction.py --load 1 --steps 10   beside a busy process, ten steps recorded
    python benchmarks/prediction.py --cold one-read       each round in a process of its own, with no kernels built before
    python benchmarks/prediction.py --again FOLDER        what `--keep FOLDER` left, priced once more

`--loops` also takes a folder of one's own: `benchmarks/loops/__init__.py` says what a file holds.

Every loop is run as written and without its waits, in turns, without a recording and without Python's garbage collector
(which goes over all that earlier recordings left, for 100 ms at once): that is the truth. What is saved is the median over
turns that follow one another, one of each version, for machines get slower and faster; A/A is the same of turns of equal
versions. A loop whose A/A is over 5 % says nothing about a price of 5 %: it is marked as noisy, and the errors are given with
those and without.

In the middle of each round's turns a recording of it as written foretells the step without waits, and the range in which it may
lie: a machine that is faster for a second is so for both. Recordings whose replay cannot be trusted give no price, and are
counted. *Off* is in points of the share of a step that is saved. A price is outside where its range meets neither the truth's
95 % interval, by the rounds, nor what its own round measured, give or take A/A. Where nobody waits nothing is foretold, and
nothing refused (uploads to `ocl` do not wait). A price promises a shorter step where all of its range is shorter: the last line
says of how many, and in how many of these rounds it was longer by more than A/A. Beside it stands what blocked time would have
foretold: the step less the time the host was blocked.

A price is of the waits alone. Some rewrites compute otherwise, too: a Python loop over what was read becomes one batched call.
*Launches* says how many times as many the loop without waits makes, without those of the reads themselves; where that is a
fifth more or less it does other work, and the errors are given with those and without.

On a processor that is also the device (PoCL), the device is given one core less than there are, so that host and device do
not slow each other down more than a GPU would. Other programs must leave both alone: `chrt -r 10` before the command helps.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from loops import Step
from prediction_table import Round, report

WARM = 20  # steps before a recording, which are timed without it
TURNS = (True, False, False, True)  # timed before a recording and again after it: as written, or without waits
TURN = 0.04  # s that a turn takes at least
LOOPS = Path(__file__).with_name("loops")
LEARNED_FROM, HELD_OUT = LOOPS / "learned_from", LOOPS / "held_out"
# as other programs are
BUSY = "import os\nos.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))\nwhile True: pass"


def loops_of(folder: Path) -> dict[str, Callable[[Any, Any], Step]]:
    """The loops of a folder, by the names of their files."""
    found = {}
    for file in sorted(folder.glob("[!_]*.py")):
        spec = importlib.util.spec_from_file_location(file.stem, file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found[file.stem.replace("_", "-")] = module.loop
    return found


def chosen(folder: str | None, named: bool) -> dict[str, Callable[[Any, Any], Step]]:
    """The loops of a folder here or anywhere; without one, those to learn from, and all there are where some are `named`."""
    if folder is not None:
        return loops_of(LOOPS / folder if (LOOPS / folder).is_dir() else Path(folder))
    return loops_of(LEARNED_FROM) | (loops_of(HELD_OUT) if named else {})


def timed(torch: Any, device: Any, run: Step, steps: int, turns: int) -> dict[bool, list[float]]:
    """ms of a step without a recording, as written (True) and without waits, of each turn: so many times `TURNS`.

    A turn is many steps in a row, and the device waited for at the end.
    """
    synchronize = getattr(torch, device.type).synchronize

    def turn(reads: bool, steps: int) -> float:
        for _ in range(3):
            run(reads)
        synchronize()
        begin = time.perf_counter()
        for _ in range(steps):
            run(reads)
        synchronize()
        return 1e3 * (time.perf_counter() - begin) / steps

    times: dict[bool, list[float]] = {True: [], False: []}
    with uncollected():
        counts = {reads: max(steps, math.ceil(1e3 * TURN / turn(reads, steps))) for reads in times}
        for reads in TURNS * turns:
            times[reads].append(turn(reads, counts[reads]))
    return times


@contextmanager
def uncollected() -> Iterator[None]:
    """Without Python's garbage collector."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def recorded(run: Step, reads: bool, steps: int, warm: int) -> Any:
    """The trace of some steps of a loop."""
    import syncscope

    with uncollected(), syncscope.trace(wait=0, warmup=warm, active=steps) as session:
        for _ in range(warm + steps):
            run(reads)
            session.step()
    return session.trace


def rounds_of(
    torch: Any, device: Any, run: Step, given: argparse.Namespace, kept: str | None = None
) -> Iterator[Round]:
    """The rounds of one loop. A cold one records first, before anything was built. Its recordings are `kept` by that name."""
    from syncscope.kineto import save

    steps = given.steps
    early = [recorded(run, True, steps, 0)] if given.one_cold else []
    for reads in (True, False):
        for _ in range(3):
            run(reads)
    without = recorded(run, False, steps, WARM)  # which reads it does not make
    if kept:
        save(without, f"{kept}-without.json.gz")
    for number in range(1 if given.one_cold else given.rounds):
        before = timed(torch, device, run, steps, given.turns)
        trace = early.pop() if early else recorded(run, True, steps, WARM)
        after = timed(torch, device, run, steps, given.turns)
        if kept:
            save(trace, f"{kept}-{number}-written.json.gz")
        yield foretold(before[True] + after[True], before[False] + after[False], trace, without)


def foretold(written: list[float], unwaited: list[float], trace: Any, without: Any) -> Round:
    """What was measured, with what a recording of the loop as written foretells; one `without` says which reads go."""
    from syncscope.analysis.compare import compare

    found = compare(trace, without)
    launches = found.calls[1] / found.calls[0] if all(found.calls) else 1.0
    if found.predicted is None or found.predicted_range is None or found.before.step is None:
        return Round(written, unwaited, waits=bool(found.refusal) or found.unforeseen, launches=launches)
    blocked = sum(line.blocked for line in found.gone)
    blocked += sum(c.before.blocked - c.after.blocked for c in found.changed if c.before and c.after)
    told = (found.before.step, found.predicted, *found.predicted_range, found.before.step - blocked)
    step, predicted, low, high, by_blocked = (time / 1e6 for time in told)
    return Round(written, unwaited, step, predicted, low, high, by_blocked, launches=launches)


def again(kept: Path, name: str, rounds: list[dict[str, Any]]) -> Iterator[Round]:
    """The rounds that were kept of a loop, priced anew; of a round with two recordings of its own, these two."""
    from syncscope.kineto import read

    for number, one in enumerate(rounds):
        own = kept / f"{name}-{number}-without.json.gz"
        without = read(own if own.exists() else kept / f"{name}-without.json.gz")
        yield foretold(one["written"], one["without"], read(kept / f"{name}-{number}-written.json.gz"), without)


def in_processes(name: str, given: argparse.Namespace) -> Iterator[Round]:
    """Rounds of which each is a process that has never built a kernel, with two recordings of its own."""
    for number in range(given.rounds):
        with tempfile.TemporaryDirectory() as folder:
            cache = {"SYNCSCOPE_CACHE_DIR": folder, "POCL_CACHE_DIR": f"{folder}/pocl"}
            where = ["--loops", given.loops] if given.loops else []
            words = [name, *where, "--device", given.device, "--steps", str(given.steps)]
            command = [sys.executable, __file__, *words, "--turns", str(given.turns), "--one-cold", "--keep", folder]
            done = subprocess.run(command, env=os.environ | cache, stdout=subprocess.PIPE, text=True, check=True)
            if given.keep:
                for recording in Path(folder).glob("*.json.gz"):
                    which = recording.name.rpartition("-")[2]
                    shutil.copy(recording, Path(given.keep, f"{name}-{number}-{which}"))
            found = json.loads(done.stdout.splitlines()[-1])
            yield Round(**found)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("names", nargs="*", default=[], metavar="LOOP")
    options.add_argument(
        "--loops", metavar="FOLDER", help="learned_from (default; with names, any), held_out, or a folder of one's own"
    )
    options.add_argument("--device", default="ocl")
    options.add_argument("--rounds", type=int, default=6)
    options.add_argument("--steps", type=int, default=14, help="recorded in each round (default 14)")
    options.add_argument(
        "--turns", type=int, default=2, help="times that turns are made around each recording (default 2)"
    )
    options.add_argument("--load", type=int, default=0, metavar="N", help="busy processes beside")
    options.add_argument("--cold", action="store_true", help="each round in a process that has built no kernel")
    options.add_argument("--keep", metavar="FOLDER", help="the recordings and rounds.json, for another look at them")
    options.add_argument("--again", metavar="FOLDER", type=Path, help="price what --keep left there, and run nothing")
    options.add_argument("--one-cold", action="store_true", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.device == "ocl" and "POCL_CPU_MAX_CU_COUNT" not in os.environ:
        cores = str(max(1, (os.cpu_count() or 2) - 1))
        os.environ |= {"POCL_CPU_MAX_CU_COUNT": cores, "POCL_MAX_PTHREAD_COUNT": cores, "OMP_NUM_THREADS": "1"}
        os.execv(sys.executable, [sys.executable, *sys.argv])
    import torch

    torch.set_num_threads(1)
    if given.again:
        kept = json.loads((given.again / "rounds.json").read_text())
        report((name, list(again(given.again, name, kept[name]))) for name in given.names or kept)
        return
    if given.device == "ocl":
        import syncscope.kernels  # noqa: F401  registers the device
    device = torch.device(given.device)
    loops = chosen(given.loops, bool(given.names))
    if unknown := set(given.names) - set(loops):
        options.error(f"no loop is called {', '.join(sorted(unknown))}; there are {', '.join(loops)}")
    if given.one_cold:
        name = given.names[0]
        found = rounds_of(torch, device, loops[name](torch, device), given, f"{given.keep}/{name}")
        print(json.dumps(asdict(next(found))))
        return

    def measured() -> Iterator[tuple[str, list[Round]]]:
        rounds = {}
        for name in given.names or loops:
            if given.cold:
                each = in_processes(name, given)
            else:
                kept = given.keep and f"{given.keep}/{name}"
                each = rounds_of(torch, device, loops[name](torch, device), given, kept)
            found = []
            for one in each:
                found.append(one)
                if given.keep:
                    rounds[name] = [asdict(one) for one in found]
                    Path(given.keep, "rounds.json").write_text(json.dumps(rounds, indent=1))
            yield name, found

    with ExitStack() as stack:
        for _ in range(given.load):
            busy = stack.enter_context(subprocess.Popen([sys.executable, "-c", BUSY]))
            stack.callback(busy.kill)
        report(measured())


if __name__ == "__main__":
    main()
