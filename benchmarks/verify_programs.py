"""`syncscope verify` of programs of others, as they are: seconds to the decision, which way, and the device's memory it takes.

    verify_programs.py --from ~/others --budget 60s [--again 300s] [--apart [--copies 2]] [--alone] [--within 170] [NAME]

`--from` is a folder with a checkout of each repository in `PROGRAMS`, at that commit; `--list` prints them. What the programs
would download is drawn at random there first: digits, words and pictures. Three have their trainer from a library, and two of
these are our own (`trained_by_libraries/`). Memory is the most that a process and all that it has started hold of the device at
once: verify, and the program alone, which runs for some seconds. `--again` verifies those that were decided once more, with
another budget. Both come after the others. `--within` begins no program for which no time is left.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import random
import signal
import struct
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from device_memory import SAMPLED, DeviceMemory, Taken

HERE = Path(__file__).resolve().parent
ALONE, STEADY = 25.0, 8.0  # s that a program runs by itself at most, and once its memory no longer grows
LETTERS = "abcdefghijklmnopqrstuvwxyz \n"


@dataclass(frozen=True)
class Program:
    """What is run: `command` in `folder`, of a checkout of `repository` at `commit`; none is our own."""

    name: str
    repository: str
    commit: str
    folder: str
    command: str


EXAMPLES = ("pytorch/examples", "77f55b912142e11fcfdf5b530231fb9c52f181e8")
PROGRAMS = (
    Program("CleanRL ppo", "vwxyzjn/cleanrl", "fe8d8a03c41a7ef5b523e2e354bd01c363e786bb", "", "cleanrl/ppo.py"),
    Program("dcgan", *EXAMPLES, "dcgan", "main.py --dataset fake --dataroot . --accel --workers 2"),
    Program("vae", *EXAMPLES, "vae", "main.py --epochs 30"),
    Program("transformers Trainer", "", "", "", "gpt_by_transformers.py"),
    Program("pytorch-lightning", "", "", "", "pictures_by_lightning.py"),
    Program(
        "nanoGPT", "karpathy/nanoGPT", "3adf61e154c3fe3fca428ad6bc3818b27a3b8291", "",
        "train.py config/train_shakespeare_char.py --compile=False",
    ),
    Program("minGPT adder", "karpathy/minGPT", "37baab71b9abea1b76ab957409a1cc2fbfba8a26", "", "projects/adder/adder.py"),
    Program("siamese_network", *EXAMPLES, "siamese_network", "main.py"),
    Program("mnist", *EXAMPLES, "mnist", "main.py --epochs 30"),
    Program(
        "timm train.py", "huggingface/pytorch-image-models", "aa4b5850c1543fa488abf260f18390eda46cf85d", "",
        "train.py --data-dir pictures --model resnet18 --num-classes 4 --batch-size 32 --epochs 200 --log-interval 5 -j 4",
    ),
    Program("imagenet", *EXAMPLES, "imagenet", "main.py --dummy -a resnet18 -b 64 --workers 8"),
    Program("word_language_model", *EXAMPLES, "word_language_model", "main.py --data words --accel --epochs 40"),
    Program(
        "PyG explainer", "pyg-team/pytorch_geometric", "5c6461b2305ad068a6d61165b3c55852a11aaa41", "examples/explain",
        "gnn_explainer_ba_shapes.py",
    ),
)  # fmt: skip


@dataclass
class Outcome:
    """Of one program one way. Seconds are of the whole command, memory is in MiB; None where there is no such device."""

    name: str
    budget: str
    seconds: float
    decision: str
    way: str
    why: str
    ratio: float | None
    low: float | None
    high: float | None
    values: str
    memory: float | None
    said: dict[str, Any]
    alone: float | None = None
    again: Outcome | None = None

    def row(self) -> str:
        memory = "" if not self.memory else f"{self.memory:.0f}" + (f" of {self.alone:.0f}" if self.alone else "")
        if self.memory and self.alone:
            memory += f" ({self.memory / self.alone:.2f})"
        way = self.way + (f": {self.why}" if self.why else "")
        again = ""
        if self.again is not None:
            again = (
                f"{'the same' if self.again.decision == self.decision else self.again.decision} {self.again.interval()}"
            )
            again = f"{again.strip()}, {self.again.seconds:.0f} s"
        return (
            f"| {self.name} | {self.seconds:.0f} | {way} | {self.decision} | {self.interval()} | {self.values} | {memory} "
            f"| {again} |"
        )

    def interval(self) -> str:
        """The ratio, in words; "" where none is known."""
        if self.ratio is None:
            return ""
        told = f"{self.ratio:.3f}"
        if self.low is not None and self.high is not None:
            told += f" ({self.low:.3f} to {self.high:.3f})"
        return told + " of processor time" * (self.said.get("ratio_of") == "processor time")


HEAD = """| program | s | turns | decision | ratio | values | memory, MiB, of its own | with the other budget |
| --- | --- | --- | --- | --- | --- | --- | --- |"""
DECIDED = ("gain", "no gain", "refused")


def checkout(program: Program, others: Path) -> Path:
    """Where it is run."""
    if not program.repository:
        return HERE / "trained_by_libraries"
    return others / program.repository.partition("/")[2] / program.folder


def prepare(others: Path) -> None:
    """Draws what the programs would download, where it is not there yet."""
    draw = random.Random(0)
    _digits(others / "examples" / "data" / "MNIST" / "raw")
    words = others / "examples" / "word_language_model" / "words"
    for part, lines in (("train", 6000), ("valid", 600), ("test", 600)):
        path = words / f"{part}.txt"
        if words.parent.is_dir() and not path.exists():
            words.mkdir(exist_ok=True)
            path.write_text(
                "".join(" ".join(f"w{draw.randrange(4000)}" for _ in range(20)) + "\n" for _ in range(lines))
            )
    letters = others / "nanoGPT" / "data" / "shakespeare_char"
    if letters.parents[1].is_dir() and not (letters / "meta.pkl").exists():
        letters.mkdir(parents=True, exist_ok=True)
        for part, number in (("train", 1_000_000), ("val", 100_000)):
            np.random.default_rng(0).integers(len(LETTERS), size=number, dtype=np.uint16).tofile(
                letters / f"{part}.bin"
            )
        numbers = {letter: number for number, letter in enumerate(LETTERS)}
        meta = {"vocab_size": len(LETTERS), "itos": dict(enumerate(LETTERS)), "stoi": numbers}
        (letters / "meta.pkl").write_bytes(pickle.dumps(meta))
    pictures = others / "pytorch-image-models" / "pictures"
    if pictures.parent.is_dir() and not pictures.exists():
        from PIL import Image

        for part, number in (("train", 256), ("validation", 8)):
            for kind in range(4):
                folder = pictures / part / f"kind{kind}"
                folder.mkdir(parents=True)
                for picture in range(number):
                    drawn = np.random.default_rng(picture).integers(256, size=(64, 64, 3), dtype=np.uint8)
                    Image.fromarray(drawn).save(folder / f"{picture}.jpg")


def _digits(folder: Path) -> None:
    if not folder.parents[2].is_dir() or folder.exists():
        return
    folder.mkdir(parents=True)
    drawn = np.random.default_rng(0)
    for part, number in (("train", 60000), ("t10k", 10000)):
        pictures = drawn.integers(256, size=(number, 28, 28), dtype=np.uint8)
        kinds = np.arange(number, dtype=np.uint8) % 10
        head = struct.pack(">iiii", 2051, number, 28, 28)
        (folder / f"{part}-images-idx3-ubyte").write_bytes(head + pictures.tobytes())
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">ii", 2049, number) + kinds.tobytes())


def alone(command: list[str], folder: Path, environment: dict[str, str], memory: DeviceMemory) -> float | None:
    """MiB that a program takes, once that no longer grows; None without a device."""
    if memory.used() is None:
        return None
    most, grown, until = 0.0, time.monotonic(), time.monotonic() + ALONE
    silent: dict[str, Any] = {
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
        "stdin": subprocess.DEVNULL,
    }
    taken = Taken(memory)
    with subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True, **silent) as process:
        taken.follow(process.pid)
        while process.poll() is None and time.monotonic() < until:
            if (now := taken.most or 0.0) > most:
                most, grown = now, time.monotonic()
            if most and time.monotonic() - grown > STEADY:
                break
            time.sleep(SAMPLED)
        taken.end()
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    return taken.most


def run(
    command: list[str], folder: Path, environment: dict[str, str], seconds: float, memory: DeviceMemory
) -> tuple[str, str, int | None, float | None]:
    """What it printed, its complaints, its exit code, None where it was ended after these seconds, and MiB of the device."""
    pipes: dict[str, Any] = {
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "stdin": subprocess.DEVNULL,
        "text": True,
    }
    taken = Taken(memory)
    with subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True, **pipes) as process:
        taken.follow(process.pid)
        code: int | None = None
        try:
            out, complaints = process.communicate(timeout=seconds)
            code = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGINT)
            try:
                out, complaints = process.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                out, complaints = process.communicate()
        taken.end()
    return out, complaints, code, taken.most


def environment_of(program: Program, others: Path) -> dict[str, str]:
    """With the checkout's own packages."""
    paths = [str(HERE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    if program.repository.endswith("minGPT"):
        paths.insert(0, str(others / "minGPT"))
    offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "WANDB_MODE": "disabled"}
    return os.environ | offline | {"PYTHONPATH": os.pathsep.join(paths)}


def decision_of(said: dict[str, Any], code: int | None, complaints: str) -> str:
    """In a word or two."""
    if said.get("error") and "no fix to try" in said["error"]:
        return "nothing to try"
    if code == 0:
        return "gain"
    if code == 1:
        return "refused" if any(fix["values"] == "changed" for fix in said["fixes"]) else "no gain"
    if code == 3:
        return "undecided"
    if code is None:
        return "cut by --within"
    last = said.get("error") or (complaints.strip().splitlines() or ["ended"])[-1]
    return f"failed: {last[:150]}"


def verified(
    program: Program, options: argparse.Namespace, budget: str, memory: DeviceMemory, seconds: float
) -> Outcome:
    """One program, verified."""
    folder = checkout(program, options.others)
    command, environment = program.command.split(), environment_of(program, options.others)
    how = ["--budget", budget, "--format=json", "--quiet", *options.how]
    began = time.monotonic()
    asked = [sys.executable, "-m", "syncscope", "verify", *how, *command]
    out, complaints, code, most = run(asked, folder, environment, seconds, memory)
    took = time.monotonic() - began
    try:
        said = json.loads(out)
    except ValueError:
        said = {}
    return Outcome(
        program.name,
        budget,
        took,
        decision_of(said, code, complaints),
        said.get("way") or "",
        said.get("why_processes") or "",
        said.get("ratio"),
        said.get("low"),
        said.get("high"),
        said.get("values") or "",
        most,
        said or {"complaints": complaints[-2000:]},
    )


def ways(outcomes: Sequence[Outcome]) -> list[str]:
    """How often each way was taken, for turns and for values, and what was set aside so that the others could take turns."""

    def told(counts: Counter[str]) -> str:
        return "; ".join(f"{way} {count}" for way, count in counts.most_common())

    turns = Counter(
        (one.way + (f" ({one.why})" if one.why else ""))
        or ("none after a run" if one.said.get("runs") else "nothing was run")
        for one in outcomes
    )
    compared = [one.said for one in outcomes if one.values]
    values = Counter(
        f"runs of their own ({said['why_compared_apart']})" if said["why_compared_apart"]
        else "one process" if said["compared_steps"] != said["steps"] else "whole runs"
        for said in compared
    )  # fmt: skip
    fixes = [fix for one in outcomes for fix in one.said.get("fixes", []) if fix["safety"] != "suggest"]
    aside = sum("--apart tries it" in fix["why"] for fix in fixes)
    return [f"turns: {told(turns)}", f"values: {told(values)}", f"set aside: {aside} of {len(fixes)} fixes"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="of programs; all without one")
    parser.add_argument("--from", dest="others", type=Path, default=Path("others"))
    parser.add_argument("--budget", default="60s")
    parser.add_argument("--apart", dest="how", action="append_const", const="--apart", default=[])
    parser.add_argument("--device", help="as verify's: cpu or ocl in place of cuda")
    parser.add_argument("--copies", help="with --apart: of a program that are in memory at once")
    parser.add_argument("--again", help="another budget, for those that were decided")
    parser.add_argument("--alone", action="store_true", help="run each by itself, too, for its memory")
    parser.add_argument("--within", type=float, default=1e5, help="s for all")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--output", type=Path, help="what verify said of each, as JSON")
    options = parser.parse_args()
    options.others = options.others.resolve()
    if options.copies:
        options.how.append(f"--copies={options.copies}")
    if options.device:
        options.how.append(f"--device={options.device}")
    if options.list:
        for program in PROGRAMS:
            named = (
                f"{program.repository} {program.commit[:12]}"
                if program.repository
                else "benchmarks/trained_by_libraries"
            )
            print(f"{program.name:22} {named:58} {program.folder + '/' if program.folder else ''}{program.command}")
        return
    until, memory = time.monotonic() + options.within, DeviceMemory()
    prepare(options.others)
    outcomes: list[Outcome] = []

    def keep() -> None:
        if options.output:
            options.output.write_text(json.dumps([asdict(outcome) for outcome in outcomes], indent=1))

    print(HEAD, flush=True)
    known = {program.name: program for program in PROGRAMS}
    for name in options.names or known:
        left = until - time.monotonic()
        if left < 5 or not checkout(known[name], options.others).is_dir():
            print(f"| {name} | | {'no time was left' if left < 5 else 'not there'} | | | | | |", flush=True)
            continue
        outcomes.append(verified(known[name], options, options.budget, memory, left))
        print(outcomes[-1].row(), flush=True)
        keep()
    for one in outcomes if options.alone else ():
        program = known[one.name]
        if one.said.get("runs") and until - time.monotonic() > ALONE:  # where nothing ran there is nothing to compare
            command, environment = program.command.split(), environment_of(program, options.others)
            one.alone = alone([sys.executable, *command], checkout(program, options.others), environment, memory)
            keep()
    for one in outcomes if options.again else ():
        left = until - time.monotonic()
        if one.decision in DECIDED and left > 5:
            one.again = verified(known[one.name], options, options.again, memory, left)
            keep()
    if options.again or options.alone:
        print(HEAD, *(one.row() for one in outcomes), sep="\n")
    print(*ways(outcomes), sep="\n")


if __name__ == "__main__":
    main()
