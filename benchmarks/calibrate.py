"""What prices are off by: loops recorded in several ways, and timed in turns as written and without their waits.

    python benchmarks/calibrate.py record FOLDER --device cuda          the loops in `loops/learned_from`, and their truth
    python benchmarks/calibrate.py record FOLDER --device ocl --load 2  beside two busy processes
    python benchmarks/calibrate.py pairs FOLDER... -o pairs.json        what the report says of each recording, beside the truth
    python benchmarks/calibrate.py learn pairs.json... --machine WORDS  the table that reports take their intervals from
    python benchmarks/calibrate.py score                                how good that is, each loop told by the others

A recording is kept as `LOOP.SIZE.WAY.json.gz`, all truths as `truth.json`. The ways: `first`, without any number, as the
first thing that is done with a loop, for most of a second; `again`, the same over twenty steps of a loop that is warm; `wait`,
six steps before and fourteen recorded. A loop
is timed in turns around each recording, and its truth is of all its turns: the share of a step that its waits really cost, its
second lowest and second highest.

`learn` adds to `measured_pairs.json` those whose truth is known to within 10 points, and none of a loop in `held_out`. They
take the place of what was measured of their loops on such a machine before, which is of what a report said then. From all that
is there it writes the table, `syncscope/analysis/experience.json`. That the one is made of the other, and what it covers, is
held by `tests/analysis/test_intervals_from_measured_loops.py`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

import loops
from loops import Step
from prediction import BUSY as BURNER
from prediction import HELD_OUT, LEARNED_FROM, loops_of, timed, uncollected

from syncscope.analysis.answer import LIKELY, SURELY_MUCH, beside_others, decide
from syncscope.analysis.answer import MUCH as ON_BUSY
from syncscope.analysis.experience import (
    BUSY,
    COVERED,
    LONGER,
    TABLE,
    Likeness,
    MeasuredPair,
    kind_of,
    learned,
    left_out,
)
from syncscope.analysis.fidelity import HOPELESS
from syncscope.model.answer import Answer, Decision

STEPS = 20
# of a step, from the second lowest turn to the second highest: a truth that is known no better teaches nothing
KNOWN = 0.1
NOTHING = 0.01  # of a step: who saves less saves nothing
MUCH = 0.05  # of a step: what is surely to be found
MEASURED = Path(__file__).with_name("measured_pairs.json")
WAYS: dict[str, tuple[dict[str, Any], float]] = {  # what is asked of a recording, and how long it has at least, s
    "first": ({}, 0.8),
    "again": ({}, 0.0),
    "wait": ({"wait": 6, "active": 14}, 0.0),
}


def record(given: argparse.Namespace) -> None:
    """Loops, recorded and timed, until all are or the time is over; what is there already is not done again."""
    import torch

    torch.set_num_threads(1)
    if given.device == "ocl":
        import syncscope.kernels  # noqa: F401  registers the device
    device = torch.device(given.device)
    given.folder.mkdir(parents=True, exist_ok=True)
    kept = given.folder / "truth.json"
    truths = json.loads(kept.read_text()) if kept.exists() else {}
    every = [(size, name) for size in given.sizes for name in names(LEARNED_FROM)]
    random.Random(given.seed).shuffle(every)
    until = time.monotonic() + given.seconds
    with ExitStack() as stack:
        for _ in range(given.load):
            busy = stack.enter_context(subprocess.Popen([sys.executable, "-c", BURNER]))
            stack.callback(busy.kill)
        for size, name in every:
            key = f"{name}.{size}"
            if time.monotonic() > until:
                break
            if key in truths or (given.names and name not in given.names):
                continue
            loops.TIMES[given.device] = size
            try:
                run = loops_of(LEARNED_FROM)[name](torch, device)
                written, without = rounds(torch, device, run, given, f"{given.folder}/{key}")
            except Exception as failed:  # one that this device cannot run says nothing of the others
                print(f"{key}: {type(failed).__name__}: {failed}", file=sys.stderr, flush=True)
                continue
            truths[key] = truth(written, without) | {"loop": name, "load": given.load}
            kept.write_text(json.dumps(truths, indent=1))
            print(f"{key:34} {median(written):8.2f} ms, saves {truths[key]['saves']:+.1%}", flush=True)


def names(folder: Path) -> list[str]:
    """The loops of a folder, without loading them."""
    return [file.stem.replace("_", "-") for file in sorted(folder.glob("[!_]*.py"))]


def rounds(torch: Any, device: Any, run: Step, given: argparse.Namespace, kept: str) -> tuple[list[float], list[float]]:
    """ms a step of each turn, as written and without waits, around the recordings, which are kept."""
    import syncscope
    from syncscope.kineto import save

    found: dict[bool, list[float]] = {True: [], False: []}
    for way, (schedule, lasts) in WAYS.items():
        if way not in given.ways:
            continue
        with uncollected(), syncscope.trace(**schedule) as session:
            begin, count = time.monotonic(), 0
            while count < STEPS or time.monotonic() - begin < lasts:
                run(True)
                session.step()
                count += 1
        if session.trace is not None:
            save(session.trace, f"{kept}.{way}.json.gz")
        for which, times in timed(torch, device, run, 5, given.turns).items():
            found[which] += times
    return found[True], found[False]


def truth(written: list[float], without: list[float]) -> dict[str, Any]:
    """The share saved by all turns, each of one version beside one of the other."""
    shares = sorted(1 - b / a for a, b in zip(written, without, strict=True))
    return {
        "saves": median(shares),
        "low": shares[min(1, len(shares) - 1)],
        "high": shares[max(-2, -len(shares))],
        "written_ms": median(written),
        "turns": len(shares),
    }


def pairs(given: argparse.Namespace) -> None:
    """What is said of every recording of some folders, beside its truth."""
    work = [(folder, file) for folder in given.folders for file in sorted(folder.glob("*.json.gz"))]
    with ProcessPoolExecutor(given.jobs) as pool:
        found = [one for one in pool.map(said, *zip(*work, strict=True)) if one is not None] if work else []
    given.output.write_text("[\n" + ",\n".join(json.dumps(one) for one in found) + "\n]\n")
    print(f"{len(found)} recordings of {len({one['loop'] for one in found})} loops")


def said(folder: Path, file: Path) -> dict[str, Any] | None:
    """What the report says of one recording, and its truth."""
    import syncscope

    key, _, way = file.name.removesuffix(".json.gz").rpartition(".")
    true = json.loads((folder / "truth.json").read_text()).get(key)
    if true is None:
        return None
    report = syncscope.report(file, code=Path(loops.__file__).parent)  # a user's recording has its sources at hand
    return {"key": key, "way": way, "of": folder.name, **true, "said": facts(report)}


def facts(report: Any) -> dict[str, Any]:
    """What an interval may depend on."""
    step, found, meta = (report.saving_step or report.step or 0.0), report.answer, report.trace.meta
    bound = report.bound
    priced = {line.op: 0.0 for line in report.lines}
    for line in report.lines:
        priced[line.op] += line.price.share / step if line.price and step else 0.0
    return {
        "share": found.share if found else None,
        "less": found.share - min(found.share, found.offered) if found and found.offered is not None else 0.0,
        "more": max(found.share, found.most) - found.share if found and found.most is not None else 0.0,
        "decision": found.decision if found else None,
        "range": [end / step for end in report.saving_range] if report.saving_range and step else None,
        "bound": found.bound if found else None,
        "left": {name: getattr(bound, name) / bound.step for name in ("device", "host", "chain")} if bound else None,
        "step_ms": step / 1e6,
        "ops": priced,
        "reads": sum(line.count for line in report.lines),
        "blocked": sum(line.blocked for line in report.lines) / step if step else None,
        "idle_after": sum(line.idle_after for line in report.lines) / step if step else None,
        "late": [report.fidelity, report.unexplained, report.silent],
        "others": meta.get("others"),
        "processor": any(isinstance(one, dict) and one.get("processor") for one in meta.get("devices") or []),
        "baseline": [(meta.get(which) or {}).get("median_ns") for which in ("untraced", "traced")],
        "spread": [
            (meta.get(which) or {}).get(end) for which in ("untraced", "traced") for end in ("low_ns", "high_ns")
        ],
        "steps": [len(report.steps), report.steady],
        "busy": report.device_busy,
    }


def kind(pair: dict[str, Any]) -> Likeness:
    """Of what kind a measured pair is."""
    return kind_of(pair["ops"], pair["processor"], pair["others"])


def as_pairs(measured: list[dict[str, Any]]) -> list[MeasuredPair]:
    """What was measured, for the table."""
    return [
        MeasuredPair(
            one["loop"], kind(one), one["said"], one["true"], one["bound"], one["open"], one["less"], one["more"]
        )
        for one in measured
    ]


def machine_of(pair: dict[str, Any]) -> str:
    """On what kind of machine a kept pair was measured."""
    return kind_of(pair["ops"], pair["processor"], pair["others"]).machine


def learn(given: argparse.Namespace) -> None:
    """Adds pairs, instead of older ones of their loops on such a machine, and makes the table of all that are there."""
    kept = json.loads(MEASURED.read_text()) if MEASURED.exists() and not given.anew else {"runs": {}, "pairs": []}
    held_out = {name for folder in (HELD_OUT, *HELD_OUT.glob("*/")) for name in names(folder)}
    added: list[dict[str, Any]] = []
    for file in given.files:
        run = f"{given.date} {given.machine}"
        for one in json.loads(file.read_text()):
            said = one["said"]
            if said["share"] is None or one["high"] - one["low"] > KNOWN or one["loop"] in held_out:
                continue
            # nobody waits; no replay tells it
            if not said["ops"] or max(part or 0.0 for part in said["late"]) > HOPELESS:
                continue
            kept["runs"][given.run_name] = run
            added.append(
                {
                    "run": given.run_name,
                    "loop": one["loop"],
                    "way": one["way"],
                    **{key: round(value, 4) for key, value in (("said", said["share"]), ("true", one["saves"]))},
                    **{key: round(one[key], 4) for key in ("low", "high")},
                    **{key: round(said[key], 4) for key in ("bound", "less", "more")},
                    "open": round(max(part or 0.0 for part in said["late"]), 4),
                    "others": round(said["others"] or 0.0, 2),
                    "processor": said["processor"],
                    "ops": sorted(said["ops"]),
                }
            )
    anew = {(one["loop"], machine_of(one)) for one in added}
    kept["pairs"] = [one for one in kept["pairs"] if (one["loop"], machine_of(one)) not in anew] + added
    kept["runs"] = {
        name: words for name, words in kept["runs"].items() if name in {one["run"] for one in kept["pairs"]}
    }
    rows = ",\n".join("  " + json.dumps(one) for one in kept["pairs"])
    MEASURED.write_text(f'{{"runs": {json.dumps(kept["runs"], indent=1)},\n"pairs": [\n{rows}\n]}}\n')
    TABLE.write_text(table(kept))
    score(given)


def table(kept: dict[str, Any]) -> str:
    """The table as it is shipped."""
    kinds = {name: asdict(known) for name, known in learned(as_pairs(kept["pairs"])).items()}
    rounded = {name: {key: round(value, 4) for key, value in known.items()} for name, known in kinds.items()}
    return json.dumps({"runs": kept["runs"], "covered": COVERED, "kinds": rounded}, indent=1) + "\n"


def score(given: argparse.Namespace) -> None:
    """What the intervals hold of loops from which they were not learned, and how wide they are; by machine. And how each is
    decided by that alone: what rewrites add, and how far a recording's steps are unlike, is not known here."""
    measured = json.loads(MEASURED.read_text())["pairs"]
    pairs = as_pairs(measured)
    told = left_out(pairs)
    other = sorted({pair.loop for pair in pairs} - {pair.loop for pair, _, _ in told})
    count, named = len(pairs) - len(told), ", ".join(other) or "no loop"
    print(f"over {LONGER:.0%} longer, for the rewrite added work, so not of waits: {count} recordings, all of {named}")
    print(f"{'':34}{'loops':>6}{'recordings':>11}{'covered':>9}{'width':>7}{'off':>6}{'worst':>7}  points")
    machines = sorted({pair.kind.machine for pair, _, _ in told})
    others = left_out(pairs, by_another_hand())
    for machine in (*machines, "all", *(f"{machine}, another hand" for machine in machines)):
        of, _, hand = machine.partition(", ")
        some = [one for one in (others if hand else told) if of in ("all", one[0].kind.machine)]
        if not some:
            continue
        inside = sum(low <= pair.true <= high for pair, low, high in some) / len(some)
        off = sorted(100 * abs(pair.true - pair.said) for pair, _, _ in some)
        width, loops = 100 * median(high - low for _, low, high in some), len({pair.loop for pair, _, _ in some})
        print(f"{machine:34}{loops:6}{len(some):11}{inside:9.0%}{width:7.0f}{median(off):6.1f}{off[-1]:7.1f}")
    ends = {id(pair): one for pair, one in zip(pairs, measured, strict=True)}
    print(f"\n{'':18}{'5 % or more surely saved':>26}{'under 3 % surely':>19}{'nothing saved':>16}")
    print(f"{'':18}{'fix or try':>17}{'fix':>9}{'leave':>19}{'fix':>16}")
    for machine in sorted({pair.kind.machine for pair, _, _ in told}):
        decided = [
            (ends[id(pair)], decided_of(pair, low, high)) for pair, low, high in told if pair.kind.machine == machine
        ]
        much = [word for one, word in decided if one["low"] >= MUCH]
        little = [word for one, word in decided if one["high"] <= LIKELY]
        nothing = [word for one, word in decided if one["high"] <= LIKELY and one["true"] <= 0.0]
        settled, fixed = sum(word in (Decision.FIX, Decision.TRY) for word in much), much.count(Decision.FIX)
        print(
            f"{machine:18}{settled:10} of {len(much):<4}{fixed:8}{little.count(Decision.LEAVE):12} of {len(little):<4}"
            f"{nothing.count(Decision.FIX):10} of {len(nothing)}"
        )
    print("", *beside(told, ends), *much_of(told), sep="\n")


def beside(told: list[tuple[MeasuredPair, float, float]], ends: dict[int, dict[str, Any]]) -> Iterator[str]:
    """What it costs and what it gains not to say *fix* of little beside others: by its figure and interval alone."""
    for from_on in (0.0, ON_BUSY):
        some = [
            (pair, ends[id(pair)])
            for pair, low, high in told
            if pair.kind.machine == "a busy processor" and min(pair.said, pair.said - pair.less) >= from_on
            if decide(pair.said, low, high, pair.bound, offered=pair.said - pair.less) is Decision.FIX
        ]
        nothing = [pair.loop for pair, one in some if one["true"] < NOTHING]
        sure = sum(one["low"] >= MUCH for _, one in some)
        words = f", from {from_on:.0%} of a step on" * bool(from_on)
        named = f" ({', '.join(sorted(set(nothing)))})" * bool(nothing)
        yield f"beside others{words}: {len(some)} are fix, {sure} of them surely save 5 %, {len(nothing)} nothing{named}"


def much_of(told: list[tuple[MeasuredPair, float, float]]) -> Iterator[str]:
    """What those saved of which so much is said that it is `fix` whatever takes a read's place."""
    for machine in sorted({pair.kind.machine for pair, _, _ in told}):
        some = [
            pair
            for pair, low, _ in told
            if pair.kind.machine == machine and pair.said - pair.less >= ON_BUSY and low >= SURELY_MUCH
        ]
        loops, least = len({pair.loop for pair in some}), min(some, key=lambda pair: pair.true, default=None)
        if least is not None:
            words = f"{machine}, {ON_BUSY:.0%} and {SURELY_MUCH:.0%} at least"
            yield f"{words}: {len(some)} recordings of {loops} loops, the least saves {least.true:.0%} ({least.loop})"


def by_another_hand() -> set[str]:
    """The loops that were held out until what was said of them was known; here they are told by all others."""
    runs = json.loads(MEASURED.with_name("held_out.json").read_text())
    return {name for run in runs if run["of"] == "another_hand" for name in run["loops"]}


def decided_of(pair: MeasuredPair, low: float, high: float) -> Decision:
    """What is decided of a recording by its figure and interval alone."""
    offered = pair.said - pair.less
    found = decide(min(pair.said, pair.bound), low, high, pair.bound, offered=offered)
    busy = BUSY if pair.kind.machine != "a busy processor" else 1.0
    return beside_others(Answer(found, pair.said, offered=offered), busy).decision


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = options.add_subparsers(required=True)
    one = commands.add_parser("record")
    one.set_defaults(run=record)
    one.add_argument("folder", type=Path)
    one.add_argument("names", nargs="*", metavar="LOOP")
    one.add_argument("--device", default="ocl")
    one.add_argument("--sizes", type=lambda text: [int(x) for x in text.split(",")], default=None)
    one.add_argument("--ways", type=lambda text: text.split(","), default=list(WAYS))
    one.add_argument("--seconds", type=float, default=3600.0, help="after which no other loop is begun")
    one.add_argument("--turns", type=int, default=1, help="times that four turns are made after each recording")
    one.add_argument("--load", type=int, default=0, metavar="N", help="busy processes beside")
    one.add_argument("--seed", type=int, default=0, help="of the order of the loops")
    other = commands.add_parser("pairs")
    other.set_defaults(run=pairs)
    other.add_argument("folders", type=Path, nargs="+")
    other.add_argument("-o", "--output", type=Path, default=Path("pairs.json"))
    other.add_argument("--jobs", type=int, default=os.cpu_count())
    third = commands.add_parser("learn")
    third.set_defaults(run=learn)
    third.add_argument("files", type=Path, nargs="+")
    third.add_argument("--machine", required=True, help="in words")
    third.add_argument("--run-name", required=True, help="what this run is called")
    third.add_argument(
        "--anew", action="store_true", help="without the pairs of before: they are of what a report said then"
    )
    third.add_argument("--date", default=time.strftime("%Y-%m-%d"))
    commands.add_parser("score").set_defaults(run=score)
    given = options.parse_args()
    if getattr(given, "device", "") == "ocl" and "POCL_CPU_MAX_CU_COUNT" not in os.environ:
        cores = str(max(1, (os.cpu_count() or 2) - 1))
        os.environ |= {"POCL_CPU_MAX_CU_COUNT": cores, "POCL_MAX_PTHREAD_COUNT": cores, "OMP_NUM_THREADS": "1"}
        os.execv(sys.executable, [sys.executable, *sys.argv])
    if given.run is record and given.sizes is None:
        given.sizes = [loops.TIMES.get(given.device, 1)]
    given.run(given)


if __name__ == "__main__":
    main()
