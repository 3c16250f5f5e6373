"""Lines that would wait in every training step on a GPU, found without one, and how many of them the linter shows.

    python benchmarks/step_waits.py STEPS.py SOURCES                   the figures: recall, precision
    python benchmarks/step_waits.py STEPS.py SOURCES --list            with each line that is missed, and each false alarm
    python benchmarks/step_waits.py STEPS.py SOURCES --out truth.json  keeps what was recorded, in step-truth's form
    python benchmarks/step_waits.py STEPS.py SOURCES --against truth.json   beside what a GPU said of the same steps

SOURCES is a folder of unpacked packages that can be imported. STEPS.py is read with `D` (the device), `step`,
`train(net, loss)`, `loop(fit)` (steps of a `fit` that runs them all itself), `absent(names)` (of packages that are imported and
that no step needs) and `STEPS` (a function that makes a step, by name) defined, as step-truth's steps.py is; that lies beside
the checkout in ../shared, or where SYNCSCOPE_SHARED says. Each step runs five times on a device that is pretended
(`pretended_device.py`); what waits in each of the last three is what a step waits for. Of the 84 lines that waited on an H200
in the 81 steps of step-truth that run there, 82 are found, and no other. Of the two that are not, one is in a branch that other
random numbers take, and one waits in a kernel that CUDA alone has. Of eight packages that it was not made on (yolox 0.3.0,
mushroom-rl 1.10.2, sbi 0.27.0, pytorch-forecasting 1.8.0, XuanCe 1.4.4, multivae 1.0.3, pytorch-lifestream 0.7.0, PyMIC 0.6.2;
161 steps) an H200 waits at 539 lines: all are found, and 11 others, by four faults that are mended. Needs `coverage`, and what
the packages need.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib.abc
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import FrameType
from typing import Any
from unittest import mock

import coverage
import numpy as np
import torch
import torch._dynamo  # it asks each function of torch.cuda what it is, once: before they are replaced
from pretended_device import Operators, tensors
from torch.autograd.function import BackwardCFunction
from torch.optim.optimizer import register_optimizer_step_post_hook

Step = Callable[[], Any]
STEPS = "<steps>"  # what the file of steps is called in frames
COUNTED = "counted"  # what coverage calls the steps of a loop of which lines are asked
MOST = 60  # seconds of a processor for one step
ROOT = Path(__file__).parents[1]
SCORE = Path(os.environ.get("SYNCSCOPE_SHARED", ROOT.parent / "shared")) / "step-truth" / "score.py"
# frames of these do not say whose wait it is; those of torchvision and torchmetrics do
ASIDE = str(Path(torch.__file__).parent) + os.sep, str(Path(__file__).parent) + os.sep, "<"


ANSWERS: dict[str, Any] = {
    **dict.fromkeys("_lazy_init init reset_peak_memory_stats set_device set_rng_state".split()),
    **dict.fromkeys("manual_seed manual_seed_all".split()),
    **dict.fromkeys(
        "current_device memory_allocated max_memory_allocated memory_reserved max_memory_reserved".split(), 0
    ),
    **dict.fromkeys("is_available is_initialized is_bf16_supported".split(), True),
    "device_count": 1,
    "get_device_name": "pretended",
    "get_device_capability": (8, 0),
    "mem_get_info": (1 << 34, 1 << 34),
    "device": contextlib.nullcontext(),
    **dict.fromkeys("stream current_stream default_stream".split(), mock.MagicMock()),
}
"""What torch.cuda answers on a machine with one GPU. Streams and events stand for nothing: who waits for one is not heard."""


LEGACY = [f"{kind}Tensor" for kind in "Float Double Half BFloat16 Byte Char Short Int Long Bool".split()]


def legacy(name: str, sparse: bool = False) -> type:
    """`torch.cuda.FloatTensor` and its like, of which a torch without CUDA has the names alone."""
    dtype = getattr(torch, name).dtype

    def new(_: type, *given: Any) -> torch.Tensor:
        return torch.sparse_coo_tensor(*given) if sparse else torch.empty(0, dtype=dtype, device="cuda").new(*given)

    return type(name, (), {"__module__": "torch.cuda", "__new__": new})


@contextlib.contextmanager
def pretended(heard: Callable[[str], None]) -> Iterator[None]:
    """Within it there is a device `cuda:0`, and `heard` is told what waits for it."""
    below = Operators(heard)
    apply, lists = BackwardCFunction.apply, torch._C._group_tensors_by_device_and_dtype

    def backward(node: Any, *grads: Any) -> Any:
        with below.functions:  # autograd leaves modes of this kind behind
            return apply(node, *grads)

    def grouped(held: Any, *rest: Any) -> Any:
        groups = lists(held, *rest).items()
        return {(next((x.device for x in tensors(each[0])), at), dtype): each for (at, dtype), each in groups}

    init, enabled = torch.autocast.__init__, torch.is_autocast_enabled

    def autocast(self: Any, device_type: str, dtype: Any = None, *rest: Any, **more: Any) -> None:
        dtype = dtype or torch.get_autocast_dtype(device_type)
        init(self, "cpu" if device_type == "cuda" else device_type, dtype, *rest, **more)

    def is_autocast_enabled(*_: Any) -> bool:
        return bool(enabled("cpu"))

    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(torch.autocast, "__init__", autocast))
        stack.enter_context(mock.patch.object(torch, "is_autocast_enabled", is_autocast_enabled))
        stack.enter_context(mock.patch.object(torch.Tensor, "record_stream", return_value=None))
        for name, answer in ANSWERS.items():
            stack.enter_context(mock.patch.object(torch.cuda, name, lambda *_, answer=answer, **__: answer))
        for name in ("synchronize", "empty_cache"):
            stack.enter_context(mock.patch.object(torch.cuda, name, lambda *_, word=name, **__: heard(word)))
        for name in LEGACY:
            stack.enter_context(mock.patch.object(torch.cuda, name, legacy(name)))
            stack.enter_context(mock.patch.object(torch.cuda.sparse, name, legacy(name, sparse=True), create=True))
        for name in ("Stream", "Event"):
            stack.enter_context(mock.patch.object(torch.cuda, name, mock.MagicMock))
        stack.enter_context(mock.patch.object(BackwardCFunction, "apply", backward))
        stack.enter_context(mock.patch.object(torch._C, "_group_tensors_by_device_and_dtype", grouped))
        stack.enter_context(below)
        stack.enter_context(below.functions)
        yield


def train(net: Any, loss: Callable[[Any], Any]) -> Step:
    """A training step of `net`: its loss, backward, AdamW."""
    net = net.to("cuda").train()
    optimizer = torch.optim.AdamW([each for each in net.parameters() if each.requires_grad], 1e-5)

    def go() -> None:
        value = loss(net)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()

    return go


class Ended(BaseException):
    """A loop has run as many steps as were asked for; no `except Exception` of a package's is meant."""


class Loop:
    """Steps that `fit` runs, each until so many optimizers of torch's have stepped, once so many have that belong to what `fit`
    does before.
    """

    def __init__(self, fit: Step, optimizers: int = 1, before: int = 0) -> None:
        self.fit, self.optimizers, self.before = fit, optimizers, before

    def run(self, ended: Callable[[], None]) -> None:
        """Runs `fit`, until `ended`, which is called after each step, ends it."""
        count = itertools.count(1 - self.before)

        def stepped(*_: object) -> None:
            done = next(count)
            if done > 0 and not done % self.optimizers:
                ended()

        hook = register_optimizer_step_post_hook(stepped)
        try:
            with contextlib.suppress(Ended):
                self.fit()
        finally:
            hook.remove()


class Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Packages of these names, and all in them, hold whatever is asked of them."""

    def __init__(self, names: str) -> None:
        self._names = set(names.split())

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """For these names this loader."""
        return ModuleSpec(name, self, is_package=True) if name.split(".")[0] in self._names else None

    def create_module(self, spec: ModuleSpec) -> Any:
        """A module that has any name."""
        return mock.MagicMock(name=spec.name)

    def exec_module(self, module: Any) -> None:
        """Nothing to run."""
        module.__path__ = []


def absent(names: str) -> None:
    """Let packages be imported that no step needs, whether they are there or not; `names` with spaces between."""
    sys.meta_path.insert(0, Absent(names))


def makers(path: Path) -> dict[str, Callable[[], Step | Loop]]:
    """The steps of a file, by name."""
    steps: dict[str, Callable[[], Step | Loop]] = {}
    given = {
        "D": "cuda",
        "STEPS": steps,
        "train": train,
        "loop": Loop,
        "absent": absent,
        "torch": torch,
        "np": np,
        "__name__": "steps",
        "__file__": str(path),
    }
    given["step"] = lambda make: steps.setdefault(make.__name__, make)
    exec(compile(path.read_text(), STEPS, "exec"), given)
    return steps


def seeded() -> None:
    for seed in (torch.manual_seed, np.random.seed, random.seed):
        seed(0)


class Recorder:
    """Which lines of the sources wait, and which run."""

    def __init__(self, sources: Path) -> None:
        self.sources = str(sources) + os.sep
        self.waits: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(int))
        self.words: dict[tuple[str, int], set[str]] = defaultdict(set)
        self.ran: dict[str, set[int]] = defaultdict(set)
        self.inside: dict[str, set[int]] = defaultdict(set)  # lines that call what waits in another library
        self.seen: set[tuple[str, int]] = set()

    def aside(self, path: str) -> bool:
        """Whether frames of a file do not say whose wait it is: torch's own warning looks past torch."""
        return path.startswith(ASIDE)

    def place(self) -> tuple[str, int] | None:
        """The innermost line that is not aside, if it is one of the sources and not of the steps that these call."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename != STEPS and self.aside(frame.f_code.co_filename):
            frame = frame.f_back
        if frame is None or not frame.f_code.co_filename.startswith(self.sources):
            return None
        return frame.f_code.co_filename.removeprefix(self.sources), frame.f_lineno

    def caller(self) -> tuple[str, int] | None:
        """The innermost line of the sources, whatever it calls."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and not frame.f_code.co_filename.startswith(self.sources):
            if frame.f_code.co_filename == STEPS:
                return None
            frame = frame.f_back
        return frame and (frame.f_code.co_filename.removeprefix(self.sources), frame.f_lineno)

    def heard(self, word: str) -> None:
        if place := self.place():
            self.seen.add(place)
            self.words[place].add(word)
        elif place := self.caller():
            self.inside[place[0]].add(place[1])

    def lines(self) -> coverage.Coverage:
        """What collects which lines of the sources run."""
        return coverage.Coverage(data_file=None, include=[f"{self.sources}*"], config_file=False, messages=False)

    def collected(self, lines: coverage.Coverage) -> None:
        for path in lines.get_data().measured_files():
            self.ran[path.removeprefix(self.sources)].update(lines.get_data().lines(path) or ())

    def of_step(self, go: Step, lines: coverage.Coverage) -> list[set[tuple[str, int]]]:
        """What waits in each of three steps that follow two others."""
        go(), go()
        times = []
        with lines.collect():
            for _ in range(3):
                self.seen = set()
                go()
                times.append(self.seen)
        return times

    def of_loop(self, loop: Loop, lines: coverage.Coverage) -> list[set[tuple[str, int]]]:
        """What waits in each of five steps of a loop. Lines count as run where the last three run them."""
        times: list[set[tuple[str, int]]] = []

        def ended() -> None:
            times.append(self.seen)
            self.seen = set()
            if len(times) == 2:
                lines.switch_context(COUNTED)
            if len(times) == 5:
                lines.switch_context("")
                raise Ended

        self.seen = set()
        with lines.collect():
            loop.run(ended)
        if len(times) < 5:
            raise ValueError(f"the loop ran {len(times)} steps")
        lines.get_data().set_query_context(COUNTED)
        return times

    def record(self, make: Callable[[], Step | Loop]) -> int:
        """Make a step, run it, and say how many lines wait each time."""
        seeded()
        lines = self.lines()
        with pretended(self.heard):
            go = make()
            times = self.of_loop(go, lines) if isinstance(go, Loop) else self.of_step(go, lines)
        self.collected(lines)
        each = set.intersection(*times[-3:])
        for path, line in each:
            self.waits[path][line] += 1
        return len(each)

    def truth(self) -> dict[str, Any]:
        """By file: its hash, the lines that ran, and of those that waited in how many steps, or what share of them, and how;
        and the lines that call what waits in another library.
        """
        return {
            path: {
                "sha1": hashlib.sha1(Path(self.sources, path).read_bytes()).hexdigest(),
                "executed": sorted(ran),
                "waits": {str(line): [n, " ".join(self.words[path, line])] for line, n in self.waits[path].items()},
                **({"inside": sorted(self.inside[path])} if self.inside[path] else {}),
            }
            for path, ran in self.ran.items()
        }


def compare(truth: dict[str, Any], other: dict[str, Any]) -> None:
    """Lines of steps that ran in both."""
    here, there = (
        {(path, line) for path, held in each["files"].items() for line in held["waits"]} for each in (truth, other)
    )
    print(f"{len(here & there)} of {len(there)} lines that waited on the GPU, and {len(here - there)} others")
    for name, places in (("missed", there - here), ("others", here - there)):
        print(name, *sorted(f"{path}:{line}" for path, line in places))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("steps", type=Path)
    parser.add_argument("sources", type=Path)
    parser.add_argument("names", nargs="*", help="parts of the names of steps")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--list", action="store_true")
    asked = parser.parse_intermixed_args()
    os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")  # what is compiled would not be heard
    sources = asked.sources.resolve()
    sys.path.insert(0, str(sources))
    recorder, done = Recorder(sources), dict[str, Any]()
    signal.signal(signal.SIGPROF, lambda *_: (_ for _ in ()).throw(TimeoutError(f"more than {MOST} s")))
    for name, make in makers(asked.steps).items():
        if asked.names and not any(part in name for part in asked.names):
            continue
        signal.setitimer(signal.ITIMER_PROF, MOST)
        try:
            done[name] = recorder.record(make)
        except Exception as error:  # a step that does not run says nothing, and the others do
            done[name] = f"{type(error).__name__}: {str(error)[:120]}"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        print(f"{name}: {done[name]}", file=sys.stderr, flush=True)
        if asked.out:  # after each, for whoever ends a run that takes too long
            asked.out.write_text(json.dumps({"steps": done, "files": recorder.truth()}))
    truth = {"steps": done, "files": recorder.truth()}
    if asked.against:
        compare(truth, json.loads(asked.against.read_text()))
        return
    with tempfile.TemporaryDirectory() as folder:
        kept, found = asked.out or Path(folder, "truth.json"), Path(folder, "found.json")
        kept.write_text(json.dumps(truth))
        lint = [sys.executable, "-m", "syncscope", "lint", "--isolated", "--exit-zero", "--no-cache", "--all"]
        with found.open("w") as file:
            subprocess.run(
                [*lint, "--min-confidence", "low", "--format", "json", "."], cwd=sources, stdout=file, check=True
            )
        score = [
            sys.executable,
            str(SCORE),
            str(kept.resolve()),
            str(sources),
            str(found),
            *(["--list"] if asked.list else []),
        ]
        subprocess.run(score, check=True)


if __name__ == "__main__":
    main()
