"""Reading a large trace, and the whole report of it, beside orjson and Meta's HTA on the same file.

    python benchmarks/read_speed.py TRACE.json.gz --times 15
    python benchmarks/read_speed.py TRACE.json.gz --times 15 --pairs 7     only orjson and the command line, in turns

The trace is repeated with shifted times and correlations to the size of a long recording (15 times the A100 training trace
of 34 MB is 526 MB), written plain and packed, and each reader runs in a process of its own: CPU seconds (user and system)
and peak memory of that process. HTA and orjson are installed into an environment of their own below --work; a peer that
cannot be installed is left out, and said.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path
from statistics import median

PEERS = {"orjson": ["orjson"], "hta": ["HolisticTraceAnalysis", "pandas<3", "setuptools<81"]}
REPORT = """
import sys
from syncscope import kineto
from syncscope.analysis.summary import summarize
trace = kineto.read(sys.argv[1])
report = summarize(trace)
print(len(trace), "events,", len(report.reads), "reads,", report.verdict, file=sys.stderr)
"""
READ = """
import sys
from syncscope import kineto
print(len(kineto.read(sys.argv[1])), "events", file=sys.stderr)
"""
MEMORY = """
import sys
from syncscope import kineto
def most():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) * 1024
open("/proc/self/clear_refs", "w").write("5")
before = most()
print(len(kineto.read(sys.argv[1])), most() - before)
"""
CLI = "import sys; from syncscope.cli import main; sys.argv[0] = 'syncscope'; sys.argv.insert(1, 'report'); main()"
ORJSON = """
import gc, sys, orjson
gc.disable()
data = open(sys.argv[1], "rb").read()
print(len(orjson.loads(data)["traceEvents"]), "entries", file=sys.stderr)
"""
HTA = """
import sys
from hta.trace_analysis import TraceAnalysis
analysis = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir="/")
analysis.get_temporal_breakdown(visualize=False)
analysis.get_idle_time_breakdown(ranks=[0], visualize=False)
analysis.get_gpu_kernel_breakdown(visualize=False)
analysis.get_cuda_kernel_launch_stats(ranks=[0], visualize=False)
analysis.get_queue_length_summary(ranks=[0])
"""
MEASURE = """
import os, resource, sys
pid = os.fork()
if not pid:
    os.dup2(2, 1)
    os.execv(sys.executable, [sys.executable, "-c", sys.argv[1], *sys.argv[2:]])
_, status, used = os.wait4(pid, 0)
if status:
    sys.exit(1)
print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
"""


def repeated(source: Path, times: int, folder: Path) -> tuple[Path, Path]:
    """The trace `times` times over, as plain JSON and packed."""
    plain = folder / f"{source.name.partition('.')[0]}-x{times}.json"
    packed = plain.with_suffix(".json.gz")
    if not (plain.exists() and packed.exists()):
        with gzip.open(source) as file:
            trace = json.load(file)
        events = trace.pop("traceEvents")
        stamps = [e["ts"] for e in events if e.get("ph") == "X"]
        span = int(max(stamps) - min(stamps)) + 100_000  # us
        numbers = 1 + max(e.get("args", {}).get("correlation", 0) for e in events)
        with open(plain, "w") as out:
            out.write(json.dumps(trace)[:-1] + ',\n  "traceEvents": [\n')
            for copy in range(times):
                for number, event in enumerate(events):
                    if copy and event.get("ph") == "M":
                        continue
                    event["ts"] += span if copy else 0
                    args = event.get("args", {})
                    if copy and "correlation" in args:
                        args["correlation"] += numbers
                    if copy and "id" in event and isinstance(event["id"], int):
                        event["id"] += numbers
                    out.write(("" if not copy and not number else ",\n") + "  " + json.dumps(event))
            out.write("\n  ]\n}\n")
        with open(plain, "rb") as raw, gzip.open(packed, "wb", 6) as out_packed:
            while piece := raw.read(1 << 20):
                out_packed.write(piece)
    return plain, packed


def measured(python: Path, code: str, *arguments: str) -> tuple[float, float] | None:
    """CPU seconds and peak MB of a process; None where it failed."""
    ran = subprocess.run([python, "-c", MEASURE, code, *arguments], capture_output=True, text=True, check=False)
    if ran.returncode:
        print(ran.stderr[-500:], file=sys.stderr)
        return None
    cpu, memory = ran.stdout.split()[-2:]
    return float(cpu), float(memory)


def per_event(source: Path, times: int, folder: Path) -> tuple[float, float] | None:
    """Bytes that reading takes at most for each further event, and besides; by two lengths of one recording. Linux only."""
    found = []
    for length in (max(1, times // 3), times):
        plain, _ = repeated(source, length, folder)
        ran = subprocess.run([sys.executable, "-c", MEMORY, plain], capture_output=True, text=True, check=False)
        if ran.returncode:
            return None
        found.append([int(word) for word in ran.stdout.split()])
    (few, less), (many, more) = found
    each = (more - less) / max(1, many - few)
    return each, more - each * many


def peers(folder: Path, wanted: Sequence[str] = tuple(PEERS)) -> dict[str, Path]:
    """The interpreter of an environment for each peer that can be installed."""
    found = {}
    for name in wanted:
        home = folder / f"venv-{name}"
        python = home / "bin" / "python"
        if not (home / "installed").exists():
            venv.create(home, with_pip=True)
            done = subprocess.run([python, "-m", "pip", "install", "-q", *PEERS[name]], check=False)
            if done.returncode:
                print(f"{name} cannot be installed here: left out")
                continue
            (home / "installed").touch()
        found[name] = python
    return found


def in_turns(plain: Path, orjson: Path, pairs: int) -> None:
    """The command line beside `orjson.loads`, one after the other: a machine's pace drifts, and meets both."""
    ratios, most = [], 0.0
    for _ in range(pairs):
        theirs, ours = measured(orjson, ORJSON, str(plain)), measured(Path(sys.executable), CLI, str(plain))
        if theirs is None or ours is None:
            raise SystemExit("one of them failed")
        ratios.append(ours[0] / theirs[0])
        most = max(most, ours[1])
        print(
            f"orjson.loads {theirs[0]:6.2f} CPU s, syncscope report {ours[0]:6.2f} CPU s: {ratios[-1]:.2f}", flush=True
        )
    print(
        f"syncscope report / orjson.loads: {median(ratios):.2f} in the median of {pairs} pairs, {most:.0f} MB at most"
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("trace", type=Path)
    options.add_argument("--times", type=int, default=15)
    options.add_argument("--work", type=Path, default=Path("build/benchmarks"))
    options.add_argument("--no-peers", action="store_true")
    options.add_argument("--pairs", type=int, metavar="N", help="only the command line beside orjson, N times in turns")
    given = options.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    plain, packed = repeated(given.trace, given.times, given.work.absolute())
    size = plain.stat().st_size / 1e6
    print(f"{plain.name}: {size:.0f} MB of JSON, {packed.stat().st_size / 1e6:.0f} MB packed\n")
    if given.pairs:
        in_turns(plain, peers(given.work.absolute(), ["orjson"])["orjson"], given.pairs)
        return
    if (taken := per_event(given.trace, given.times, given.work.absolute())) is not None:
        print(f"reading takes {taken[0]:.0f} bytes an event and {taken[1] / 1e6:.0f} MB besides, at most\n")
    here = Path(sys.executable)
    runs = [
        ("syncscope: read into columns", here, READ, plain),
        ("syncscope: read, prices, report object", here, REPORT, plain),
        ("syncscope: the same, packed", here, REPORT, packed),
        ("syncscope report (command line)", here, CLI, plain),
    ]
    others = {} if given.no_peers else peers(given.work.absolute())
    if "orjson" in others:
        runs.append(("orjson.loads, collector off", others["orjson"], ORJSON, plain))
    if "hta" in others:
        runs.append(("HTA: load and five summaries", others["hta"], HTA, packed))
    table = {}
    for name, python, code, file in runs:
        result = measured(python, code, str(file))
        if result is None:
            print(f"{name:42} failed")
            continue
        table[name] = result
        cpu, memory = result
        print(
            f"{name:42} {cpu:7.2f} CPU s {memory:7.0f} MB   {1000 * cpu / size:6.2f} ms and {memory / size:.2f} MB per MB"
        )
    ours = table.get("syncscope: read, prices, report object")
    packed_too = table.get("syncscope: the same, packed")
    print()
    if ours and "orjson.loads, collector off" in table:
        cpu, memory = table["orjson.loads, collector off"]
        print(f"report / orjson.loads alone: {ours[0] / cpu:.2f} of the CPU, {ours[1] / memory:.2f} of the memory")
    if packed_too and "HTA: load and five summaries" in table:
        cpu, memory = table["HTA: load and five summaries"]
        less = f"{cpu / packed_too[0]:.1f}x the CPU, {memory / packed_too[1]:.1f}x the memory"
        print(f"HTA / report, both from the packed file: {less}")


if __name__ == "__main__":
    main()
