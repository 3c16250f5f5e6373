"""The process of one run: the program as it would run by itself, its steps counted, ended after as many as were asked for.

Processes are forked from one that has imported torch, and a few other libraries if the program does (`serve`): a fork costs a
fiftieth of a second where the imports take several. No device has been touched there yet, no thread begun, and each child lives
and ends alone.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import multiprocessing.util
import os
import random
import socket
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic
from types import ModuleType
from typing import Any

from syncscope.verify import clearing, deterministic, imported, notified
from syncscope.verify.journal import Journal
from syncscope.verify.notified import Ears
from syncscope.verify.request import HEARD_BY, KERNEL, OUTPUT, PYTHON, READY, RESULT, STEPPED, TRACE, WITHIN, Request
from syncscope.verify.room import room
from syncscope.verify.taking_turns import BLOCK, Runner, Turn, conduct

FEWEST, MOST = 12, 200  # steps of a run whose number nobody has said
LONGEST = 70  # letters of a folder in which `pymp-********/listener-********` may lie: a socket's name has at most 103
PRELOADED = "numpy", "numpy.random", "torch", "torch._dynamo", "torch.utils.data"  # what every training program imports
LIBRARIES = ("scipy", "sklearn", "torchvision", "timm", "PIL", "pandas")  # begin no thread, read no environment
OURS = (  # what each run needs of ours
    *("syncscope.tracers.program", "syncscope.tracers.redirect", "syncscope.tracers.step_times"),
    *("syncscope.verify.audited", "syncscope.verify.overlay", "syncscope.verify.capture", "syncscope.verify.started"),
)
TRAINERS = ("pytorch_lightning", "lightning", "torchmetrics", "transformers", "accelerate")  # begin none, but read it


def serve() -> None:
    """Runs the requests of each line from standard input side by side, each in a child; says the children's numbers, then
    their exit codes."""
    gc.disable()  # none of what is imported is garbage: to look through it again and again takes a sixth of the time
    for name in (*PRELOADED, *OURS, *os.environ.pop(WITHIN, "").split()):
        with contextlib.suppress(Exception):  # the program itself will say what is wrong
            importlib.import_module(name)
    imported.look_up()
    gc.freeze()  # none of that is the program's: no child looks through it, nor copies it by that
    gc.enable()
    clearing.adopt()
    kernel = os.environ.pop(HEARD_BY, KERNEL) == KERNEL and notified.works()
    try:
        print(READY, KERNEL if kernel else PYTHON, flush=True)
        for line in sys.stdin:
            clearing.bury()
            requests = [Request.of(request) for request in json.loads(line)]
            ears = Ears(_journal(requests, hears_all=True)) if kernel else Ears()
            runners: list[Runner] = []
            for request in requests:
                runners.append(_started(request, runners, ears, kernel))
            print(*(runner.child for runner in runners), flush=True)
            print(*conduct(runners, ears), flush=True)
            ears.close()
    finally:  # where nobody hears us any more: what we leave behind, nobody finds
        clearing.end_below(os.getpid())


def _journal(requests: Sequence[Request], hears_all: bool) -> Journal:
    """Of runs that go on side by side. What the first of all makes before its first step stays."""
    first = [Path(request.folder, STEPPED) for request in requests if request.first]
    return Journal(Path(requests[0].journal), lambda: any(not step.exists() for step in first), hears_all)


def _started(request: Request, others: list[Runner], ears: Ears, kernel: bool) -> Runner:
    go, told = os.pipe(), os.pipe()
    here, there = socket.socketpair()
    child = os.fork()
    if child == 0:
        here.close()
        for end in (go[1], told[0], *(end for other in others for end in (other.go, other.told)), *ears.heard_by):
            os.close(end)  # should we end, none of them waits for its turn any more
        _alone(request, Turn(go[0], told[1]), there if kernel else None)
    there.close()
    os.close(go[0])
    os.close(told[1])
    if kernel:
        ears.hear(here)
    here.close()
    return Runner(child, go[1], told[0])


def _alone(request: Request, turn: Turn, asking: socket.socket | None) -> None:
    """In the child: does not come back."""
    code = 70
    try:
        os.setsid()  # what it starts can be ended with it
        output = os.open(Path(request.folder, OUTPUT), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for number, handle in ((0, os.open(os.devnull, os.O_RDONLY)), (1, output), (2, output)):
            os.dup2(handle, number)
        if asking is not None:
            notified.ask(asking)
            asking.close()
        turn.wait()
        code = run(request, turn, heard=asking is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def run(request: Request, turn: Turn, heard: bool) -> int:
    """The program, watched; its exit code, if it ends before we end it. `heard`: the kernel tells what it does to files."""
    from syncscope.tracers import program, redirect
    from syncscope.verify import audited, overlay

    seed(request.seed)
    keep_within(request.folder)
    overlay.install(request.overlay)
    what = request.program
    with redirect.to(what.device), _WATCHES[request.kind](request, turn) as watch:
        if not heard:
            audited.listen(_journal([request], hears_all=False))
        code = program.run(what.target, what.arguments, module=what.module)
        watch.finish(code)
    return code


def keep_within(folder: str) -> None:
    """The sockets by which a loader's workers hand over their batches lie in this folder: they are killed, and clear nothing.

    Not all that is temporary: what compilers keep there is to be found again by the next run.
    """
    if len(folder) > LONGEST:
        return
    before, tempfile.tempdir = tempfile.tempdir, folder
    multiprocessing.util.get_temp_dir()  # is made now, and kept in mind for all processes that this one starts
    tempfile.tempdir = before


def seed(number: int) -> None:
    """The same random numbers for every run of a program that sets no seed itself."""
    random.seed(number)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(number % 2**32)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(number)


class Observed:
    """Counts steps, and ends the process after the last: what the program would do then is of no interest."""

    def __init__(self, request: Request, turn: Turn) -> None:
        self.request, self._turn = request, turn
        self.folder = Path(request.folder)
        self.count = 0
        self.optimizers: dict[int, Any] = {}
        self._main: str | None = None
        self._cut = False  # ended by us
        self._began, self._since, self._ready = monotonic(), 0.0, 0.0
        self._stack = contextlib.ExitStack()
        self._process = os.getpid()

    def __enter__(self) -> Observed:
        from syncscope.tracers.hooks.patches import beats

        self._stack.callback(beats.when_imported("torch.optim.optimizer", self._optimizers))
        self.listen(self._stack)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _optimizers(self, module: ModuleType) -> None:
        def stepped(optimizer: Any, args: Any, kwargs: Any) -> None:
            self.optimizers.setdefault(id(optimizer), optimizer)
            self.stepped(optimizer)

        module.register_optimizer_step_post_hook(stepped)

    def stepped(self, optimizer: Any) -> None:
        """An optimizer has made its step: the program's first one ends a step, others may follow in it."""

    def listen(self, stack: contextlib.ExitStack) -> None:
        """Says what is to be heard."""
        from syncscope.tracers.hooks import listening
        from syncscope.tracers.hooks.listeners import Listener

        stack.enter_context(listening(Listener(step=self._step)))

    def _step(self) -> None:
        if os.getpid() != self._process:
            return
        self.count += 1
        if self.count == 1:
            (self.folder / STEPPED).touch()
            self._main = getattr(sys.modules["__main__"], "__file__", None)  # runpy takes a module away at its end
        self.boundary()
        if self.count <= 3:
            self._since = monotonic()
            self._ready = self._ready or self._since - self._began
        steps, seconds = self.request.steps, self.request.seconds
        enough = self.count >= FEWEST and monotonic() - self._since >= seconds
        if self.count >= (steps or MOST) or (steps is None and enough):
            self.end()
        if self.request.beside and (self.count == 1 or self.count % BLOCK == 0):
            self.pause()
            self._turn.pass_on()

    def end(self) -> None:
        """Nothing of what the program would still do is run, as when it is killed."""
        self._cut = True
        self.finish(0)
        os._exit(0)

    def pause(self) -> None:
        """Others go on now: what follows is no step."""

    def boundary(self) -> None:
        """A step has ended."""

    def found(self) -> dict[str, Any]:
        """What there is to tell at the end, as JSON values."""
        return {}

    def finish(self, code: int) -> None:
        """Leaves what was found."""
        if os.getpid() != self._process:
            return
        own = imported.own_files(self._main)
        said = {"steps": self.count, "code": code, "files": own, "device": device_of(self.optimizers), **self.found()}
        said["room"] = room()
        said["ready"] = self._ready  # s until the first step had ended
        said["cut"] = self._cut  # it would have gone on
        wanted = {
            name for name in (*LIBRARIES, *TRAINERS) if name in sys.modules and not imported.is_own(sys.modules[name])
        }
        said["imports"] = [name for name in list(sys.modules) if name.partition(".")[0] in wanted]
        (self.folder / RESULT).write_text(json.dumps(said))


def device_of(optimizers: Mapping[int, Any]) -> str:
    """Where the work was done, as far as we know: what may be used is not what is trained on."""
    torch = sys.modules.get("torch")
    if "syncscope.kernels" in sys.modules:
        groups = [group for one in optimizers.values() for group in one.param_groups]
        on_cpu = groups and all(p.is_cpu for group in groups for p in group["params"])
        return "cpu" if on_cpu else "ocl"
    for name in ("cuda", "xpu"):
        if getattr(getattr(torch, name, None), "_initialized", False):
            return name
    return "cpu"


class Timed(Observed):
    """The time of each step, with nothing else in place than what counts them."""

    def __init__(self, request: Request, turn: Turn) -> None:
        from syncscope.tracers.step_times import StepTimes

        super().__init__(request, turn)
        self._times = StepTimes(kept=None, queued=True, apart=0)

    def boundary(self) -> None:
        """Notes the time."""
        self._times.boundary()

    def pause(self) -> None:
        """The first step of the next block is not counted: there the device has no work that was left."""
        self._times.pause()

    def found(self) -> dict[str, Any]:
        """ns of the steps from the first one's end on; None where kernels were built."""
        return {"lengths": self._times.every()}


class Valued(Observed):
    """What the program computes: losses, parameters, and every value that it reads, by line."""

    def listen(self, stack: contextlib.ExitStack) -> None:
        """Steps, reads and backward passes."""
        from syncscope.verify.capture import Capture
        from syncscope.verify.started import Started

        self.capture, self.started = Capture(self), Started() if self.request.first else None
        super().listen(stack)
        deterministic.from_the_start()
        self.capture.listen(stack)
        if self.started is not None:
            self.started.listen()

    def boundary(self) -> None:
        """May change the last bits, to see how far that carries."""
        deterministic.OneOrder().hold()
        self.capture.boundary()
        if self.started is not None and self.count == 1:
            self.started.boundary()
        if self.request.perturb and self.count == 1:
            from syncscope.verify.capture import perturb

            perturb(self.optimizers.values(), self.request.seed)

    def found(self) -> dict[str, Any]:
        """The parameters go to a file of their own."""
        return {"started": self.started and self.started.lines()} | self.capture.found()


class Traced(Observed):
    """A short recording of it."""

    def listen(self, stack: contextlib.ExitStack) -> None:
        """The recording begins after `skip` steps, and takes the others."""
        from syncscope import kineto
        from syncscope.tracers.session import Session

        def keep(trace: Any) -> None:
            kineto.save(trace, self.folder / TRACE)
            self.finish(0)
            os._exit(0)

        def failed(error: Exception) -> None:
            raise error

        active = max(1, (self.request.steps or FEWEST) - self.request.skip)
        folder = self.folder / "recording"
        folder.mkdir()
        stack.enter_context(
            Session(wait=self.request.skip, active=active, folder=folder, on_trace=keep, on_failure=failed)
        )


class AnsweredLate(Timed):
    """Blocks of steps in turns: as they are, and with the reads of single values answered with those of the step before."""

    def listen(self, stack: contextlib.ExitStack) -> None:
        """Steps and reads."""
        from syncscope.verify.stale import Stale

        self.stale = Stale(self.request)
        super().listen(stack)
        self.stale.listen(stack)

    def boundary(self) -> None:
        """Another block may begin here."""
        super().boundary()
        self.stale.boundary()

    def found(self) -> dict[str, Any]:
        """Which steps were which, too."""
        return super().found() | self.stale.found()


class InTurns(Observed):
    """Blocks of steps of several versions, as they are asked for."""

    def __init__(self, request: Request, turn: Turn) -> None:
        from syncscope.verify import overlay
        from syncscope.verify.in_turns import Conductor

        super().__init__(request, turn)
        self._conductor = Conductor(request, self.optimizers)
        self._conductor.ended = self.end
        overlay.put({path: one.tree for path, one in self._conductor.files.items()}, self._conductor.heard)

    def listen(self, stack: contextlib.ExitStack) -> None:
        """Steps, and what loaders give."""
        super().listen(stack)
        deterministic.own_workspace()
        self._conductor.listen()

    def stepped(self, optimizer: Any) -> None:
        """Values are compared from where the last one has stepped."""
        self._conductor.stepped(optimizer)

    def boundary(self) -> None:
        """Another block may begin here, or nobody asks for more."""
        if not self._conductor.boundary():
            self.end()


_WATCHES = {"turns": InTurns, "time": Timed, "values": Valued, "trace": Traced, "stale": AnsweredLate}
