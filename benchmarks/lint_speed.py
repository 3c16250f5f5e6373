"""How fast the linter is: `python benchmarks/lint_speed.py [folders]`.

CPU seconds are user and system time of the whole process tree, start-up included, on the files that mention torch; ratios are
of runs side by side on the same files. Without folders, four public packages of about a million and a half lines are unpacked
into build/lint_speed (nothing of them is run); `--many` takes fifteen others, each the work of somebody else, and asks only for
the multiple of `ast.parse`. TorchFix gets an environment of its own there; where it cannot be installed,
that is said. It is run as its readme has it, by flake8, and once more without: its own checks in a bare loop over the files.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

BUILD = Path(__file__).parents[1] / "build" / "lint_speed"
PACKAGES = ("transformers==5.23.0", "timm==1.0.31", "kornia==0.9.0", "monai==1.6.1")
MANY = (
    "accelerate==1.15.0", "botorch==0.18.1", "captum==0.9.0", "e3nn==0.6.0", "gpytorch==1.15.2", "kornia==0.9.0",
    "mmengine==0.10.7", "open_clip_torch==3.3.0", "peft==0.21.2", "pykeen==1.11.1", "pyro-ppl==1.9.2", "pytorch-ignite==0.5.5",
    "speechbrain==1.1.2", "torch_geometric==2.8.0.post1", "trl==1.16.0",
)  # fmt: skip
TORCHFIX = "torchfix==0.7.0"
SAMPLE = 60_000  # lines that TorchFix lints, neighbours in one package: it needs about a CPU second for 900 of them
LINT = (sys.executable, "-m", "syncscope", "lint", "--isolated", "--exit-zero", "--statistics")
PARSE = """
import ast, sys
for path in sys.argv[1:]:
    with open(path, "rb") as file:
        ast.parse(file.read())
"""
# which pip compiles, too
AS_INSTALLED = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(BUILD / "bytecode")}
CHECKS = """
import sys
from torchfix.torchfix import TorchChecker
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        list(TorchChecker(None, file.readlines()).run())
"""


class Run(NamedTuple):
    """What a command took: wall and CPU seconds, and the peak of its memory in MB."""

    wall: float
    cpu: float
    memory: float


def run(*command: str, cache: str = os.devnull) -> Run:
    start = time.perf_counter()
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **AS_INSTALLED, "SYNCSCOPE_CACHE_DIR": cache, "PYTHONWARNINGS": "ignore"},
    )
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(
            f"it ended with {os.waitstatus_to_exitcode(status)}, so nothing was timed: {' '.join(command)[:300]}"
        )
    peak = used.ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)
    return Run(time.perf_counter() - start, used.ru_utime + used.ru_stime, peak)


def best(times: int, *command: str, cache: str = os.devnull) -> Run:
    return min((run(*command, cache=cache) for _ in range(times)), key=lambda r: r.wall)


def median(times: int, *command: str) -> Run:
    """The run whose CPU seconds are the middle of so many."""
    return sorted((run(*command) for _ in range(times)), key=lambda r: r.cpu)[times // 2]


def corpus(name: str, packages: Iterable[str]) -> list[Path]:
    folder = BUILD / name
    for package in packages:
        mark = folder / f".{package}"
        if not mark.exists():
            print(f"unpacking {package} ...", flush=True)
            pip = (sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-compile", "--target", str(folder))
            subprocess.run([*pip, package], check=True, stderr=subprocess.DEVNULL)
            mark.touch()
    return [folder]


def with_torch(folders: list[Path]) -> list[Path]:
    files = (path for folder in folders for path in sorted(folder.rglob("*.py")))
    return [path for path in files if path.is_file() and b"torch" in path.read_bytes()]


def lines(files: list[Path]) -> int:
    return sum(path.read_bytes().count(b"\n") for path in files)


def flake8() -> Path | None:
    """The flake8 that has TorchFix, in an environment of its own: TorchFix wants an older libcst than we."""
    home = BUILD / "torchfix"
    found = home / ("Scripts" if os.name == "nt" else "bin") / "flake8"
    if not found.exists():
        print(f"installing {TORCHFIX} ...", flush=True)
        venv.create(home, with_pip=True)
        done = subprocess.run([found.with_name("python"), "-m", "pip", "install", "-q", TORCHFIX], check=False)
        if done.returncode:
            return None
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folders", nargs="*", type=Path, help="what to lint instead of the packages")
    parser.add_argument(
        "--ratio",
        action="store_true",
        help="only the CPU seconds beside those of ast.parse",
    )
    parser.add_argument("--many", action="store_true", help="fifteen packages, and as --ratio")
    parser.add_argument("--repeat", type=int, default=3, help="so many turns; of what is short the best")
    said = parser.parse_args()
    named = ("many", MANY) if said.many else ("corpus", PACKAGES)
    folders = said.folders or corpus(*named)
    files = with_torch(folders)
    if not files:
        parser.error(f"no Python file that mentions torch in {' '.join(map(str, said.folders))}")
    names, count = list(map(str, files)), lines(files)
    print(f"{len(files)} files that mention torch, {count:,} lines\n")

    run(*LINT, "--no-cache", "--jobs", "1", *names[:100])  # so that there is bytecode
    parses, colds = [run(sys.executable, "-c", PARSE, *names).cpu], []
    with tempfile.TemporaryDirectory() as elsewhere:  # .gitignore leaves out what is in build/
        copies = [shutil.copytree(each, f"{elsewhere}/{at}/{each.name}") for at, each in enumerate(folders)]
        for _ in range(said.repeat):  # in turns: the machine gets slower and faster
            # Folders, as most do: each file that is named is compiled, too.
            colds.append(run(*LINT, "--no-cache", "--jobs", "1", *copies))
            parses.append(run(sys.executable, "-c", PARSE, *names).cpu)
    ratios = sorted(2 * cold.cpu / sum(beside) for cold, beside in zip(colds, pairwise(parses), strict=True))
    cold = sorted(colds, key=lambda r: r.cpu)[said.repeat // 2]
    print(f"cold, one process      {cold.cpu:7.1f} CPU s  {count / cold.cpu:9,.0f} lines a CPU s   (at least 40,000)")
    print(
        f"  as a multiple of ast.parse alone   {statistics.median(ratios):5.2f}   ({ratios[0]:.2f} to {ratios[-1]:.2f} in"
        f" {said.repeat} turns; {count / statistics.median(parses):,.0f} lines a CPU s)"
    )
    print(f"memory                 {cold.memory:7.0f} MB at most   (for a million lines at most 300)")
    if said.ratio or said.many:
        return

    two = run(*LINT, "--no-cache", "--jobs", "2", *names)
    print(f"two processes          {cold.wall / two.wall:7.2f} times one, by the clock   (at least 1.7)")

    with tempfile.TemporaryDirectory() as cache:
        thousand = names[:1000]
        first = run(*LINT, *thousand, cache=cache)
        warm = best(said.repeat, *LINT, *thousand, cache=cache)
        print(f"warm, {len(thousand)} files       {warm.wall:7.2f} s   (at most 0.5)   cold: {first.wall:.2f} s")

    clean = BUILD / "clean.py"
    BUILD.mkdir(parents=True, exist_ok=True)
    clean.write_text("import torch\n\n\ndef forward(x: torch.Tensor):\n    return torch.relu(x) + 1\n")
    one = best(max(said.repeat, 5), *LINT, "--no-cache", str(clean))
    print(f"one file               {one.wall:7.2f} s from a cold start   (at most 0.3)")

    torchfix = flake8()
    if torchfix is None:
        print("TorchFix               not compared: it could not be installed")
        return
    sample, left = [], SAMPLE
    for path in files[len(files) // 2 :]:
        if left > 0:
            sample.append(path)
            left -= lines([path])
    same, count = [*map(str, sample)], lines(sample)
    before = median(said.repeat, *LINT, "--no-cache", "--jobs", "1", *same)
    theirs = run(str(torchfix), "--jobs", "1", "--isolated", "--select", "TOR", "--exit-zero", *same)
    bare = run(str(torchfix.with_name("python")), "-c", CHECKS, *same)
    after = median(said.repeat, *LINT, "--no-cache", "--jobs", "1", *same)
    ours = (before.cpu + after.cpu) / 2
    print(
        f"TorchFix               {theirs.cpu / ours:7.1f} times our CPU s on the same {len(sample)} files   (at least 20)"
        f"   {count / theirs.cpu:,.0f} lines a CPU s against {count / ours:,.0f}\n"
        f"  its checks alone     {bare.cpu / ours:7.1f} times, without flake8"
    )


if __name__ == "__main__":
    main()
