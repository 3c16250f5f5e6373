"""Which lines of whole training programs would wait in every step on a GPU, and how many of them the linter shows.

    python benchmarks/program_waits.py                     the figures: recall, precision, by program
    python benchmarks/program_waits.py --list              with each line that is missed, and each false alarm
    python benchmarks/program_waits.py --record [NAMES]    runs the programs anew, and keeps what waited in waits.json

The programs lie in `programs/`: single files, and folders with a file that is started, as users write them. Each runs once,
from its first line to its last, on a device that is pretended (`pretended_device.py`). A step of training ends where a line of
the program steps an optimizer: torch tells of every such step, whatever the loop looks like. Each line that does it (for a
discriminator, a generator, a teacher, a range test of the learning rate) has steps of its own, from one time to the next; a
line's share is that of the steps in which it waited, and of several such lines the one that gives it the largest. Where one
pass of the loop makes several steps with the same data, as PPO does after each rollout, so many are one (`STEPS_IN_A_PASS`).

A line waits in every step if its share is 0.9 or more (the last batch of an epoch may lack something), and only elsewhere
(set-up, evaluation, the end of an epoch, a log every N steps) if it is less than a third. What lies between, a branch taken
by chance, may be shown or not. The default list should show the former, and none of the others that ran. Recording needs
`coverage`, and `tqdm` and scikit-learn, which the programs import.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from shown import Finding, Score

from syncscope.cli import commands

PROGRAMS = Path(__file__).parent / "programs"
WAITS = PROGRAMS / "waits.json"
STEPS_IN_A_PASS = {"ppo.py": 16}
FEWEST = 8  # steps, for a share of them to mean something

Truth = dict[str, dict[str, Any]]


def programs() -> list[Path]:
    """Files and folders, each a program."""
    return sorted(each for each in PROGRAMS.iterdir() if each.suffix == ".py" or any(each.glob("*.py")))


def started(program: Path) -> Path:
    """The file that a user would start: of a folder, the one that no other imports."""
    if program.is_file():
        return program
    texts = {path: path.read_text() for path in program.glob("*.py")}
    (first,) = (path for path in texts if 'if __name__ == "__main__"' in texts[path])
    return first


def record(program: Path) -> Truth:
    """Run a program, and say which of its lines waited in what share of the steps; for a process of its own."""
    import runpy

    import step_waits
    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook

    class Recorder(step_waits.Recorder):
        """Counts, for each line that steps an optimizer, in how many of its steps each other line has waited."""

        def __init__(self, sources: Path) -> None:
            super().__init__(sources)
            self.times: dict[tuple[str, int], int] = defaultdict(int)
            self.since: dict[tuple[str, int], set[tuple[str, int]]] = {}
            self.shares: dict[tuple[str, int], dict[tuple[str, int], int]] = defaultdict(lambda: defaultdict(int))
            self.in_a_pass = STEPS_IN_A_PASS.get(program.name, 1)

        def aside(self, path: str) -> bool:
            return not path.startswith(self.sources)

        def heard(self, word: str) -> None:
            if place := self.place():
                self.words[place].add(word)
                for waited in self.since.values():
                    waited.add(place)

        def stepped(self, *_: Any) -> None:
            if not (by := self.place()):
                return
            self.times[by] += 1
            if self.times[by] % self.in_a_pass == 0:
                for place in self.since.pop(by, ()):
                    self.shares[by][place] += 1
                self.since[by] = set()

        def share(self, place: tuple[str, int]) -> float:
            """Before the first step nobody counts."""
            passes = {by: times // self.in_a_pass - 1 for by, times in self.times.items() if times >= FEWEST}
            return round(max((self.shares[by][place] / n for by, n in passes.items() if n > 0), default=0.0), 3)

    first = started(program)
    recorder = Recorder(PROGRAMS.resolve())
    sys.path[0], sys.argv = str(first.parent), [str(first)]
    step_waits.seeded()
    lines = recorder.lines()
    register_optimizer_step_post_hook(recorder.stepped)
    with step_waits.pretended(recorder.heard):
        torch.cuda.synchronize = lambda *_: recorder.heard("synchronize")
        with lines.collect():
            runpy.run_path(str(first), run_name="__main__")
    recorder.collected(lines)
    for path, line in recorder.words:
        recorder.waits[path][line] = recorder.share((path, line))
    return recorder.truth()


def recorded(program: Path) -> Truth:
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder, "waits.json")
        done = subprocess.run(
            [sys.executable, str(Path(__file__).resolve()), "--alone", str(program.resolve()), str(kept)],
            cwd=folder,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise RuntimeError(f"{program.name} ended: {done.stderr[-2000:]}")
        found: Truth = json.loads(kept.read_text())
        return found


def kept(truth: Truth) -> str:
    """One file a line, for whoever reads a difference."""
    rows = (f"{json.dumps(path)}: {json.dumps(truth[path])}" for path in sorted(truth))
    return "{\n" + ",\n".join(rows) + "\n}\n"


def lint(program: Path) -> list[Finding]:
    """The default list of a program that is linted where nothing else lies, as its user would; the paths from PROGRAMS on."""
    with tempfile.TemporaryDirectory() as folder:
        copied, told = Path(folder).resolve() / program.name, Path(folder, "found.json")
        copy = shutil.copytree if program.is_dir() else shutil.copy
        copy(program, copied)
        asked = ["lint", "--isolated", "--exit-zero", "--no-cache", "--format", "json", "-o", str(told), str(copied)]
        commands(asked, standalone_mode=False)
        found: list[Finding] = json.loads(told.read_text())
        return [{**each, "path": Path(each["path"]).relative_to(copied.parent).as_posix()} for each in found]


def score_of(chosen: list[Path], each: bool = False) -> Score:
    """What is shown of some programs, against what was recorded; `each` prints it by program, too."""
    truth: Truth = json.loads(WAITS.read_text())
    total = Score(PROGRAMS)
    for program in chosen:
        alone = Score(PROGRAMS)
        by: dict[str, list[Finding]] = defaultdict(list)
        for finding in lint(program):
            by[finding["path"]].append(finding)
        for path, held in truth.items():
            if Path(path).parts[0] == program.name:
                for score in (alone, total):
                    score.add(path, held, by[path])
        if each:
            print(f"{program.name:24}", alone)
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of the names of programs")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--alone", nargs=2, type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_intermixed_args()
    if asked.alone:
        program, to = asked.alone
        to.write_text(json.dumps(record(program)))
        return
    chosen = [each for each in programs() if not asked.names or any(part in each.name for part in asked.names)]
    if asked.record:
        truth: Truth = json.loads(WAITS.read_text()) if WAITS.exists() else {}
        for program in chosen:
            truth = {path: held for path, held in truth.items() if Path(path).parts[0] != program.name}
            truth.update(recorded(program))
            WAITS.write_text(kept(truth))
            print(program.name, file=sys.stderr, flush=True)
        return
    total = score_of(chosen, each=True)
    if asked.list:
        print(*total.told(), sep="\n")
    print(total)


if __name__ == "__main__":
    main()
