"""`syncscope verify` of programs of others, as they are: seconds to the decision, which way, and the device's memory it takes.

    python benchmarks/verify_programs.py --from ~/others --budget 60s [--apart] [--alone] [--within 170] [NAME ...]

`--from` is a folder with a checkout of each repository in `PROGRAMS`, at that commit; `--list` prints them. What the programs
would download is drawn at random there first: digits, words and pictures. Three have their trainer from a library, and two of
these are our own (`trained_by_libraries/`). Memory is the most that the device has in use, above what it had before: of the
program alone, which runs for some seconds, and of verify. `--within` begins no program for which no time is left.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import pickle
import random
import signal
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
ALONE, STEADY = 25.0, 8.0  # s that a program runs by itself at most, and once its memory no longer grows
RESTS = 1.5  # s in which no memory is given back
SAMPLED = 0.05  # s between two looks at the device's memory
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
    alone: float | None
    said: dict[str, Any]

    def row(self) -> str:
        interval = "" if self.ratio is None else f"{self.ratio:.3f}"
        if self.low is not None and self.high is not None:
            interval += f" ({self.low:.3f} to {self.high:.3f})"
        interval += " of processor time" * (self.said.get("ratio_of") == "processor time" and self.ratio is not None)
        memory = "" if not self.memory else f"{self.memory:.0f}" + (f" of {self.alone:.0f}" if self.alone else "")
        if self.memory and self.alone:
            memory += f" ({self.memory / self.alone:.2f})"
        way = self.way + (f": {self.why}" if self.why else "")
        return f"| {self.name} | {self.seconds:.0f} | {way} | {self.decision} | {interval} | {self.values} | {memory} |"


HEAD = """| program | s | turns | decision | ratio | values | memory, MiB, of its own |
| --- | --- | --- | --- | --- | --- | --- |"""


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


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_uint64), ("free", ctypes.c_uint64), ("used", ctypes.c_uint64))


def _first_visible() -> int:
    """NVML counts all GPUs of a machine, whatever CUDA is to see."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES", "").partition(",")[0]
    return int(named) if named.isdigit() else 0


class DeviceMemory:
    """What all processes together have in use of the first GPU that is visible, by NVML; nothing where there is none."""

    def __init__(self) -> None:
        self._handle = ctypes.c_void_p()
        try:
            self._library: Any = ctypes.CDLL("libnvidia-ml.so.1")
            if self._library.nvmlInit_v2() or self._library.nvmlDeviceGetHandleByIndex_v2(
                _first_visible(), ctypes.byref(self._handle)
            ):
                self._library = None
        except OSError:
            self._library = None

    def used(self) -> float | None:
        """MiB."""
        told = _Memory()
        if self._library is None or self._library.nvmlDeviceGetMemoryInfo(self._handle, ctypes.byref(told)):
            return None
        return float(told.used) / 2**20

    def at_rest(self) -> float | None:
        """MiB, once that no longer shrinks: processes that were ended give theirs back a little later."""
        least, until = self.used(), time.monotonic() + RESTS
        while least is not None and time.monotonic() < until:
            time.sleep(SAMPLED)
            if (now := self.used() or 0.0) < least - 1:
                least, until = now, time.monotonic() + RESTS
        return least

    @contextmanager
    def most(self) -> Iterator[list[float]]:
        """One number at the end: the most that was in use meanwhile, above what was before."""
        found: list[float] = []
        before, ended, seen = self.at_rest(), threading.Event(), [0.0]

        def look() -> None:
            while not ended.wait(SAMPLED):
                seen.append((self.used() or 0.0) - (before or 0.0))

        looking = threading.Thread(target=look, daemon=True)
        looking.start()
        try:
            yield found
        finally:
            ended.set()
            looking.join()
            if before is not None:
                found.append(max(seen))

    def most_alone(self, command: list[str], folder: Path, environment: dict[str, str]) -> float | None:
        """MiB that a program takes, once that no longer grows; None without a device."""
        if (before := self.at_rest()) is None:
            return None
        most, grown, until = 0.0, time.monotonic(), time.monotonic() + ALONE
        silent: dict[str, Any] = {
            "stdout": subprocess.DEVNULL,
            "stderr": subprocess.DEVNULL,
            "stdin": subprocess.DEVNULL,
        }
        with subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True, **silent) as process:
            while process.poll() is None and time.monotonic() < until:
                if (now := (self.used() or 0.0) - before) > most:
                    most, grown = now, time.monotonic()
                if most and time.monotonic() - grown > STEADY:
                    break
                time.sleep(SAMPLED)
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        return most


def run(command: list[str], folder: Path, environment: dict[str, str], seconds: float) -> tuple[str, str, int | None]:
    """What it printed, its complaints, and its exit code; None where it was ended after these seconds."""
    pipes: dict[str, Any] = {
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "stdin": subprocess.DEVNULL,
        "text": True,
    }
    with subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True, **pipes) as process:
        try:
            out, complaints = process.communicate(timeout=seconds)
            return out, complaints, process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGINT)
            try:
                out, complaints = process.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                out, complaints = process.communicate()
            return out, complaints, None


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


def verified(program: Program, options: argparse.Namespace, memory: DeviceMemory, seconds: float) -> Outcome:
    """One program: alone for some seconds, and verified."""
    folder = checkout(program, options.others)
    command, environment = program.command.split(), environment_of(program, options.others)
    how = ["--budget", options.budget, "--format=json", "--quiet", *options.how]
    began = time.monotonic()
    with memory.most() as most:
        asked = [sys.executable, "-m", "syncscope", "verify", *how, *command]
        out, complaints, code = run(asked, folder, environment, seconds)
    took = time.monotonic() - began
    try:
        said = json.loads(out)
    except ValueError:
        said = {}
    is_known = not options.alone or not said.get("runs")  # where nothing ran there is nothing to compare
    alone = None if is_known else memory.most_alone([sys.executable, *command], folder, environment)
    return Outcome(
        program.name,
        options.budget,
        took,
        decision_of(said, code, complaints),
        said.get("way") or "",
        said.get("why_processes") or "",
        said.get("ratio"),
        said.get("low"),
        said.get("high"),
        said.get("values") or "",
        max(most, default=None),
        alone,
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
    parser.add_argument("--alone", action="store_true", help="run each by itself, too, for its memory")
    parser.add_argument("--within", type=float, default=1e5, help="s for all")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--output", type=Path, help="what verify said of each, as JSON")
    options = parser.parse_args()
    options.others = options.others.resolve()
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
    outcomes = []
    print(HEAD, flush=True)
    known = {program.name: program for program in PROGRAMS}
    for name in options.names or known:
        left = until - time.monotonic()
        if left < 5 or not checkout(known[name], options.others).is_dir():
            print(f"| {name} | | {'no time was left' if left < 5 else 'not there'} | | | | |", flush=True)
            continue
        outcomes.append(verified(known[name], options, memory, left))
        print(outcomes[-1].row(), flush=True)
        if options.output:
            options.output.write_text(json.dumps([asdict(outcome) for outcome in outcomes], indent=1))
    print(*ways(outcomes), sep="\n")


if __name__ == "__main__":
    main()
