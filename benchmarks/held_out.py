"""The answer of a report beside the truth, on loops by somebody who had not read how an answer is made.

    python benchmarks/held_out.py                          on the `ocl` device; --device cuda on a GPU
    python benchmarks/held_out.py --hand fourth_hand       on the loops of another folder
    python benchmarks/held_out.py --load 2                 beside two busy processes
    python benchmarks/held_out.py --keep FOLDER clipped-by-hand     some loops; their recordings stay
    python benchmarks/held_out.py --again FOLDER           what these recordings say by now; --machine WORDS, of another one
    python benchmarks/held_out.py --out benchmarks/held_out.json    adds the run to a file of runs
    python benchmarks/held_out.py --show benchmarks/held_out.json   the tables of such a file

Each loop of `loops/held_out/third_hand`, or of what `--hand` names, is recorded three times as written, by
`syncscope.trace()` without numbers, and its `answer` is what `syncscope report --format json` says. The truth is the loop as
written and fixed, in turns without a recording, in `--truths` processes. Every recording and every timing is a process of its
own; where there are cores enough the next ones begin (the device, our imports) while one works, and then wait. What is truly
saved is the median over turns that follow one another, and its interval that of ranks at 95 %, widened to the medians of the
processes.

*Right* is `fix` or `try` where at least 5 % of a step are surely saved (the truth's lower end), and `leave` where surely less
than 3 % are (its upper end); of other loops no decision is right or wrong. A `fix` is for nothing where less than 1 % is saved.
*Off* is the likely figure beside the truth, in points of a step, *holds* whether the interval holds the truth.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

from prediction import BUSY, HELD_OUT, loops_of, timed

LOOPS = HELD_OUT / "third_hand"
TIMES = 3  # recordings of a loop
TURNS = 12  # ... and so many times four turns of both versions, in all processes together
AHEAD = 4  # processes that begin while one works
# a program that is recorded makes so many steps at least, and goes on for no more than so many s
STEPS, MOST = 60, 20.0
SURE, LITTLE, NOTHING = 0.05, 0.03, 0.01  # shares of a step: worth it, not worth it, none
KEYS = ("decision", "share", "low", "high", "bound")
HEAD = ("right", "fix for nothing", "without a figure", "off: median", "worst", "width: median", "holds")


def record(name: str, torch: Any, device: Any, given: argparse.Namespace, folder: Path) -> None:
    """A program as a user writes it, with one line more."""
    import syncscope

    step = loops_of(HELD_OUT / given.hand)[name](torch, device)
    begin, steps = time.monotonic(), 0
    with syncscope.trace(folder) as trace:
        while (steps < STEPS or time.monotonic() < begin + given.seconds) and time.monotonic() < begin + MOST:
            step(True)
            trace.step()
            steps += 1


def truth(name: str, torch: Any, device: Any, given: argparse.Namespace, folder: Path) -> None:
    """What both versions take, in turns."""
    step = loops_of(HELD_OUT / given.hand)[name](torch, device)
    for written in (True, False) * 5:
        step(written)
    times = timed(torch, device, step, 4, max(1, TURNS // given.truths))
    (folder / "times.json").write_text(json.dumps({"written": times[True], "fixed": times[False]}))


def _device(kind: str) -> tuple[Any, Any]:
    """Torch, and a device of a kind."""
    import torch

    torch.set_num_threads(1)
    if kind == "ocl":
        import syncscope.kernels  # noqa: F401  registers the device
    device = torch.device(kind)
    torch.ones(1, device=device)
    return torch, device


def at_work(do: Callable[..., None], name: str, given: argparse.Namespace, folder: Path, go: Any) -> None:
    """What one process does: it begins, and waits for its turn."""
    torch, device = _device(given.device)
    import syncscope  # noqa: F401  as a program does at its top

    go.wait()
    do(name, torch, device, given, folder)


def saved(times: list[dict[str, list[float]]]) -> dict[str, float]:
    """The share of a step that the fix saves, with its interval, and the step as written in ms."""
    each = [[1 - b / a for a, b in zip(one["written"], one["fixed"], strict=True)] for one in times]
    shares = sorted(share for one in each for share in one)
    count = len(shares)
    left = max(0, math.floor(count / 2 - 0.98 * math.sqrt(count)))  # 95 % of a binomial, by its normal
    medians = [median(one) for one in each]
    low, high = min(shares[left], *medians), max(shares[count - 1 - left], *medians)
    found = {"share": median(shares), "low": low, "high": high}
    return {**found, "ms": median(ms for one in times for ms in one["written"])}


def answer(recording: Path, elsewhere: bool) -> dict[str, Any]:
    """What the report says of a recording; of one made `elsewhere` the loops are here."""
    command = [sys.executable, "-m", "syncscope", "report", str(recording), "--format", "json"]
    command += ["--source", str(Path(__file__).parent)] * elsewhere
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    said = json.loads(done.stdout)["answer"] or {}
    return {key: said.get(key) for key in KEYS}


def made(names: list[str], given: argparse.Namespace, folder: Path) -> Iterator[str]:
    """Recordings and times of each loop, in the folder; its name once they are there."""
    import torch  # noqa: F401  once, for all processes that are made from here; no device is touched in this one

    processes = multiprocessing.get_context("fork")
    begin = time.monotonic()
    works: list[tuple[str, Any, Any]] = []
    for name in names:
        for number in range(max(TIMES, given.truths)):
            where = folder / f"{name}-{number}"
            where.mkdir(parents=True)
            for do in [record] * (number < TIMES) + [truth] * (number < given.truths):
                go = processes.Event()
                works.append(
                    (name, processes.Process(target=at_work, args=(do, name, given, where, go), daemon=True), go)
                )
    ahead = AHEAD if (os.cpu_count() or 2) > 2 * AHEAD else 1
    for place, (name, process, go) in enumerate(works):
        for _, soon, _ in works[place : place + ahead]:
            if soon.pid is None:
                soon.start()
        go.set()
        process.join()
        if process.exitcode:  # also one that dies once all is written: the recorder may have left something broken
            print(f"{name}: a process ended with {process.exitcode}", file=sys.stderr, flush=True)
        if place + 1 < len(works) and works[place + 1][0] == name:
            continue
        yield name
        print(f"{time.monotonic() - begin:4.0f} s  {name}", file=sys.stderr, flush=True)
        rest = names[names.index(name) + 1 :]
        if rest and given.limit and time.monotonic() > begin + given.limit:
            print(f"no time for {', '.join(rest)}", file=sys.stderr)
            break


def measured(names: list[str], folder: Path, elsewhere: bool) -> dict[str, Any]:
    """Truth and answers of each loop that has both in the folder; its recordings may be made `elsewhere`."""
    with ThreadPoolExecutor(max(1, (os.cpu_count() or 2) // 2)) as pool:
        files = {name: sorted(folder.glob(f"{name}-[0-9]/**/*.json.gz")) for name in names}
        answers = {name: [pool.submit(answer, file, elsewhere) for file in some] for name, some in files.items()}
        times = {
            name: [json.loads(file.read_text()) for file in folder.glob(f"{name}-[0-9]/times.json")] for name in names
        }
        return {
            name: {"true": saved(times[name]), "said": [one.result() for one in answers[name]]}
            for name in names
            if times[name] and answers[name]
        }


def right(true: dict[str, float], said: dict[str, Any]) -> bool | None:
    """Whether a decision is right; None where neither is."""
    if true["low"] >= SURE:
        return said["decision"] in ("fix", "try")
    return said["decision"] == "leave" if true["high"] < LITTLE else None


def table(run: dict[str, Any]) -> Iterator[str]:
    """A run in words: what it was, its row of the issue's table, and every loop."""
    yield f"{run['machine']}, {run['date']}{', beside ' + run['beside'] if run['beside'] else ''} (`{run['of']}`):\n"
    pairs = [(one["true"], said) for one in run["loops"].values() for said in one["said"]]
    known = [(true, said) for true, said in pairs if said["share"] is not None]
    judged = [one for true, said in pairs if (one := right(true, said)) is not None]
    nothing = sum(said["decision"] == "fix" and true["share"] < NOTHING for true, said in pairs)
    off = [100 * abs(said["share"] - true["share"]) for true, said in known]
    width = [100 * (said["high"] - said["low"]) for _, said in known]
    holds = sum(_holds(true, said) for true, said in known)
    unbound = sum(said["bound"] is None for _, said in pairs)
    cells = [f"{sum(judged)} of {len(judged)}", str(nothing), f"{len(pairs) - len(known)} of {len(pairs)}"]
    cells[-1] += f", {unbound} without a bound" * bool(unbound)
    cells += [f"{median(off):.1f}", f"{max(off):.1f}", f"{median(width):.0f}"] if known else [""] * 3
    cells += [f"{holds} of {len(known)}"]
    yield f"| {' | '.join(HEAD)} |\n|{' --- |' * len(HEAD)}\n| {' | '.join(cells)} |\n"
    yield f"| loop | ms | truly saved, % | {' | '.join(f'said, {n + 1}' for n in range(TIMES))} |\n|{' --- |' * (TIMES + 3)}"
    for name, one in run["loops"].items():
        true = one["true"]
        words = [_words(true, said) for said in one["said"]]
        share = f"{100 * true['share']:.1f} ({100 * true['low']:.1f} to {100 * true['high']:.1f})"
        yield f"| {name.replace('-', ' ')} | {true['ms']:.1f} | {share} | {' | '.join(words)} |"


def intervals(runs: Iterable[dict[str, Any]]) -> Iterator[tuple[str, int, int]]:
    """Of loops that nothing was learned from: on what, how many answers have an interval, how many of these hold the truth."""
    counted: dict[str, list[bool]] = {"a GPU": [], "a processor": []}
    for run in runs:
        if (HELD_OUT / run["of"]).is_dir():
            held = counted["a processor" if run["machine"].startswith(("PoCL", "cpu")) else "a GPU"]
            for one in run["loops"].values():
                held += (_holds(one["true"], said) for said in one["said"] if said["share"] is not None)
    for what, held in counted.items():
        yield what, len(held), sum(held)
    both = [held for some in counted.values() for held in some]
    yield "both", len(both), sum(both)


def one_in(answers: int, hold: int) -> str:
    """One of how many intervals does not hold the truth, in words: `one in four`."""
    words = "two three four five six seven eight nine ten".split()
    number = round(answers / max(1, answers - hold))
    return f"one in {words[number - 2] if 2 <= number <= 10 else number}"


def _holds(true: dict[str, float], said: dict[str, Any]) -> bool:
    return bool(said["low"] <= true["share"] <= said["high"])


def _words(true: dict[str, float], said: dict[str, Any]) -> str:
    """An answer, marked where it is wrong."""
    wrong = " **wrong**" * (right(true, said) is False)
    if said["share"] is None:
        at_most = f", at most {100 * said['bound']:.0f}" if said["bound"] is not None else ""
        return f"{said['decision']}{at_most}{wrong}"
    return f"{said['decision']} {100 * said['share']:.0f} ({100 * said['low']:.0f} to {100 * said['high']:.0f}){wrong}"


def machine(kind: str) -> str:
    """The machine, in words."""
    cores = len(os.sched_getaffinity(0))
    if kind == "cuda":  # asked in another process: in one that has begun CUDA nothing can be forked that uses it
        ask = "import torch; print(torch.cuda.get_device_name(), torch.__version__, sep=', torch ')"
        words = subprocess.run(
            [sys.executable, "-c", ask], stdout=subprocess.PIPE, text=True, check=True
        ).stdout.strip()
        return f"{words}, {cores} cores"
    return f"{'PoCL' if kind == 'ocl' else kind} on {cores} cores, {platform.machine()}"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("names", nargs="*", metavar="LOOP")
    options.add_argument("--device", default="ocl")
    options.add_argument(
        "--hand", default=LOOPS.name, choices=sorted(folder.name for folder in HELD_OUT.glob("[!_]*/")),
        help=f"who wrote the loops (default {LOOPS.name})",
    )  # fmt: skip
    options.add_argument("--load", type=int, default=0, metavar="N", help="busy processes beside")
    options.add_argument(
        "--seconds", type=float, default=3.0, help="that a recorded program goes on at least (default 3)"
    )
    options.add_argument(
        "--truths", type=int, default=TIMES, help=f"processes that time both versions (default {TIMES})"
    )
    options.add_argument("--limit", type=float, metavar="SECONDS", help="begin no further loop after that")
    options.add_argument("--keep", metavar="FOLDER", type=Path, help="recordings and times, for another look at them")
    options.add_argument(
        "--again", metavar="FOLDER", type=Path, help="what --keep left there is answered once more; runs nothing"
    )
    options.add_argument("--machine", metavar="WORDS", help="on which --again's were recorded (default: this one)")
    options.add_argument("--date", default=date.today().isoformat(), help="of the recordings (default today)")
    options.add_argument("--beside", metavar="WORDS", help="what else was at work (default: what --load says)")
    options.add_argument("--out", metavar="FILE", type=Path, help="a file of runs that this one is added to")
    options.add_argument("--show", metavar="FILE", type=Path, help="the tables of a file of runs; runs nothing")
    given = options.parse_args()
    if given.show:
        runs = json.loads(given.show.read_text())
        for run in runs:
            print(*table(run), "", sep="\n")
        for what, answers, hold in intervals(runs):
            print(f"{what}, loops that nothing was learned from: {hold} of {answers} intervals hold the truth")
        return
    if given.device == "ocl" and "POCL_CPU_MAX_CU_COUNT" not in os.environ:  # as prediction.py: one core is the host's
        cores = str(max(1, (os.cpu_count() or 2) - 1))
        os.environ |= {"POCL_CPU_MAX_CU_COUNT": cores, "POCL_MAX_PTHREAD_COUNT": cores, "OMP_NUM_THREADS": "1"}
    loops = loops_of(HELD_OUT / given.hand)
    if unknown := set(given.names) - set(loops):
        options.error(f"no loop is called {', '.join(sorted(unknown))}; there are {', '.join(loops)}")
    with ExitStack() as stack:
        folder = given.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for _ in range(given.load):
            busy = stack.enter_context(subprocess.Popen([sys.executable, "-c", BUSY]))
            stack.callback(busy.kill)
        names = given.names or list(loops)
        beside = given.beside or (f"{given.load} busy processes" if given.load else "")
        run = {
            "of": given.hand,
            "machine": given.machine or machine(given.device),
            "date": given.date,
            "beside": beside,
        }
        run |= {"load": [round(os.getloadavg()[0], 1)], "loops": {}}
        runs = json.loads(given.out.read_text()) if given.out and given.out.exists() else []
        for name in names if given.again else made(names, given, folder):
            run["loops"] |= measured([name], given.again or folder, bool(given.again))
            run["load"] = [run["load"][0], round(os.getloadavg()[0], 1)]
            if given.out:  # as it goes: what ends a run early takes one loop
                whole = given.out.with_suffix(".new")
                whole.write_text(json.dumps([*runs, run], indent=1) + "\n")
                whole.replace(given.out)
    print(*table(run), sep="\n")


if __name__ == "__main__":
    main()
