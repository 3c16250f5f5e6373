"""Runs of the program, each in a process of its own, one after the other; and their end, whatever happens."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from syncscope.verify import unheld
from syncscope.verify.clearing import Survivor, end, end_below
from syncscope.verify.request import JOURNAL, OUTPUT, RESULT, STEPPED, WITHIN, Request
from syncscope.verify.spent import IMPORTS, UNDOING, Seconds
from syncscope.verify.undo import Remains, undo

ROUNDS = 40  # runs from one fork server: then another, whose memory lies elsewhere
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
TOLD = 25  # last lines of what a program printed


class RunFailedError(Exception):
    """A run ended before its steps were made, after `steps` of them; `code` is its exit code, `said` what it printed last."""

    def __init__(self, code: int, said: str, steps: int = 0) -> None:
        super().__init__(said)
        self.code, self.said, self.steps = code, said, steps

    @property
    def raised(self) -> str:
        """The name of the exception, `ValueError`; "" where none is known."""
        name = self._last_line.partition(":")[0].rpartition(".")[2]
        return name if name.isidentifier() else ""

    @property
    def why(self) -> str:
        """In one line: that of the exception, which may say more in others."""
        if self.code == 0:
            return "it ended with exit code 0 and no step was counted"
        if self._last_line:
            return self._last_line
        lines = [line for line in self.said.splitlines() if line.strip()]
        return f"it ended with exit code {self.code}" + (f": {lines[-1].strip()}" if lines else "")

    @property
    def _last_line(self) -> str:
        """The first line below the last frame of a traceback, `ValueError: too long`; "" where there is none."""
        lines = [line for line in self.said.splitlines() if line.strip() and self.code]
        frames = [number for number, line in enumerate(lines) if line.startswith('  File "')]
        below = lines[frames[-1] :] if frames else []
        return next((line for line in below if not line[0].isspace()), "")


class TimeIsUpError(Exception):
    """The budget was spent while a run was under way."""


@dataclass(frozen=True)
class RunResult:
    """What one run left: `found` are its JSON values, other files lie in `folder`."""

    folder: Path
    found: dict[str, Any]


class Processes:
    """Runs requests. The copies that overlays name, and what runs leave, lie in one temporary folder. `warn` is told, before
    the first, what of them could not be taken back; `spent` what their time goes to."""

    def __init__(
        self, deadline: float, warn: Callable[[str], None] = lambda line: None, spent: Seconds | None = None
    ) -> None:
        self.deadline = deadline  # by time.monotonic
        self.warn = warn
        self.spent = spent or Seconds()
        self.count = 0
        self.importing = 0.0  # s until runs could begin
        self.starting = 0.0  # s that runs took up to the ends of their first steps
        self.heard_by = ""  # who tells of what runs do to files: KERNEL or PYTHON
        self.remains = Remains()  # what could not be taken back
        self._temporary = tempfile.TemporaryDirectory(prefix="syncscope-verify-", ignore_cleanup_errors=True)
        self._survivor = Survivor(self._temporary.name)
        self._server: subprocess.Popen[bytes] | None = None
        self._served = 0
        self._children: list[int] = []
        self._imports = ""
        self._talk: tuple[int, int] | None = None  # where we speak to a run, and hear it
        self._theirs: tuple[int, int] | None = None  # the same by its own numbers: where it hears us, and speaks
        self._talking: Path | None = None  # the folder of one that is under way
        self._heard = b""

    def __enter__(self) -> Processes:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._survivor, _undisturbed(), self.spent.on(UNDOING):
            self._end()
            self._take_back()
            self._temporary.cleanup()

    def import_before(self, modules: Sequence[str]) -> None:
        """From now on runs are forked from a process that has imported these, or others of the same libraries."""
        known, wanted = _libraries(self._imports), _libraries(" ".join(modules))
        if (not known and wanted) or known - wanted:  # what is missing beside others is mostly imported by these
            self._imports = " ".join(modules)
            self._end()

    def left(self) -> float:
        """Seconds until the budget is spent."""
        return self.deadline - time.monotonic()

    @property
    def printed(self) -> str:
        """The last line that the run which is under way, or was the last, has printed so far."""
        outputs = Path(self._temporary.name, str(self.count)).glob(f"*/{OUTPUT}")
        said = "\n".join(map(_last, outputs)).strip()
        return said.splitlines()[-1] if said else ""

    @property
    def stepped(self) -> bool:
        """Whether any run has ended a step so far."""
        return any(Path(self._temporary.name).glob(f"*/*/{STEPPED}"))

    def run(self, request: Request, files: Mapping[str, bytes] | None = None) -> RunResult:
        """One run, with these contents in place of the files; as `side_by_side`."""
        return self.side_by_side([(request, files or {})])[0]

    def side_by_side(self, wanted: Sequence[tuple[Request, Mapping[str, bytes]]]) -> list[RunResult]:
        """Runs that take turns, each with these contents in place of the files.

        Raises:
            RunFailedError: a program failed, or did not make the steps that were asked for.
            TimeIsUpError: the budget is spent.
        """
        self.hush()
        together, requests = self._prepared(wanted)
        try:
            codes = self._answer(requests)
        finally:
            with _undisturbed(), self.spent.on(UNDOING):  # who presses Ctrl-C twice wants the files back, too
                self._kill()  # and what it may have left running
                self.remains |= undo(together / JOURNAL)
        return [self._result(request, code) for request, code in zip(requests, codes, strict=True)]

    def _prepared(self, wanted: Sequence[tuple[Request, Mapping[str, bytes]]]) -> tuple[Path, list[Request]]:
        """The folder of some runs, and their requests with copies of files in it."""
        first = self.count == 0
        self.count += len(wanted)
        together = Path(self._temporary.name, str(self.count))
        requests = []
        for number, (request, files) in enumerate(wanted):
            folder = together / str(number)
            folder.mkdir(parents=True)
            journal = str(together / JOURNAL)
            copies = _copied(folder, files)
            requests.append(replace(request, folder=str(folder), journal=journal, overlay=copies, first=first))
        return together, requests

    # a run with which we talk

    def begin(self, request: Request, files: Mapping[str, bytes], versions: Sequence[Mapping[str, bytes]]) -> None:
        """Begins a run in which these versions of files take turns, until `hush`.

        Raises:
            TimeIsUpError: the budget is spent.
        """
        self.hush()
        self._talking, (made,) = self._prepared([(request, files)])
        copies = tuple(
            _copied(Path(made.folder, f"version{number}"), version) for number, version in enumerate(versions, 1)
        )
        self._serve()
        assert self._talk is not None
        self._heard = b""
        self._send([replace(made, versions=copies, talk=self._theirs)])

    def say(self, what: Mapping[str, Any]) -> None:
        """Tells the run that is under way."""
        assert self._talk is not None
        assert self._talking is not None
        os.write(self._talk[0], json.dumps({**what, "run": str(self._talking / "0")}).encode() + b"\n")

    def hear(self) -> dict[str, Any]:
        """What it says next.

        Raises:
            RunFailedError: it has ended.
            TimeIsUpError: the budget is spent.
        """
        assert self._talk is not None
        assert self._talking is not None
        assert self._server is not None
        assert self._server.stdout is not None
        while b"\n" not in self._heard:
            either = self._talk[1], self._server.stdout.fileno()
            ready, _, _ = select.select(either, [], [], max(0.0, self.left()))
            if not ready:
                self.hush()
                raise TimeIsUpError
            if self._talk[1] in ready:
                self._heard += os.read(self._talk[1], 1 << 16)
                continue
            line = self._line()
            output = _last(self._talking / "0" / OUTPUT)
            self._take_back()
            raise RunFailedError(int(line), output)
        line, _, self._heard = self._heard.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found if found["run"] == str(self._talking / "0") else self.hear()

    @property
    def talks(self) -> bool:
        """Whether a run is under way with which we talk."""
        return self._talking is not None

    def hush(self) -> None:
        """Ends the run with which we talk, if one is under way."""
        if self._talking is not None:
            with _undisturbed():
                self._kill()
                with contextlib.suppress(RunFailedError, TimeIsUpError):
                    self._line()  # its exit code
                self._take_back()

    def _take_back(self) -> None:
        """What the run with which we talked has done to files."""
        talking, self._talking = self._talking, None
        if talking is not None:
            with _undisturbed(), self.spent.on(UNDOING):
                self._kill()
                self.remains |= undo(talking / JOURNAL)

    def _result(self, request: Request, code: int) -> RunResult:
        folder = Path(request.folder)
        result = folder / RESULT
        found = json.loads(result.read_text()) if result.is_file() else None
        if found is None or code or found["code"] or (request.steps and request.kind != "trace" and not found["steps"]):
            found = found or {}
            raise RunFailedError(code or found.get("code", 0), _last(folder / OUTPUT), found.get("steps", 0))
        self.starting += found.get("ready", 0.0)
        return RunResult(folder, found)

    def _answer(self, requests: Sequence[Request]) -> list[int]:
        """The exit codes of the requests' processes."""
        self._serve(len(requests))
        self._send(requests)
        return [int(code) for code in self._line().split()]

    def _send(self, requests: Sequence[Request]) -> None:
        """Has them run."""
        assert self._server is not None
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps([request.said() for request in requests]).encode() + b"\n")
        self._server.stdin.flush()
        self._children = [int(child) for child in self._line().split()]

    def _serve(self, more: int = 1) -> None:
        """Has a process there from which so many more runs can be forked."""
        # elsewhere a fork of a large process is not to be trusted
        if self._served >= ROUNDS or sys.platform != "linux":
            self._end()
        if self._server is None:
            with self.spent.on(IMPORTS):
                self._import()
        self._served += more

    def _import(self) -> None:
        began = time.monotonic()
        (asked, ask), (answer, answered) = os.pipe(), os.pipe()
        self._talk, self._theirs = (ask, answer), (asked, answered)
        self._server, self._served = _serving(self._imports, self._theirs), 0
        os.close(asked)
        os.close(answered)
        self._survivor.tell(self._server.pid)
        before, self.heard_by = self.heard_by, self._line().decode().split()[1]
        for line in unheld.said(self.heard_by) if not before else ():
            self.warn(line)
        self.importing += time.monotonic() - began

    def _line(self) -> bytes:
        """A line from the server.

        Raises:
            TimeIsUpError: it does not come in time.
        """
        assert self._server is not None
        assert self._server.stdout is not None
        ready, _, _ = select.select([self._server.stdout], [], [], max(0.0, self.left()))
        if not ready:
            self._end()
            raise TimeIsUpError
        line = self._server.stdout.readline()
        if not line:
            self._end()
            raise RunFailedError(1, "the process from which runs are forked has ended")
        return line

    def _kill(self) -> None:
        children, self._children = self._children, []
        for child in children:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child, signal.SIGKILL)
        if self._server is not None:
            end_below(self._server.pid)  # and what has left its group

    def _end(self) -> None:
        """Ends the server and all that runs."""
        self._kill()
        server, self._server = self._server, None
        if server is not None:
            end(server.pid)
            server.communicate()
        talk, self._talk = self._talk, None
        for descriptor in talk or ():
            os.close(descriptor)


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Whoever wants us to end is heard when this is done. A mask of this thread does not do: another one hears it then."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []
    before = {number: signal.signal(number, lambda number, _: heard.append(number)) for number in ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if heard:
            signal.raise_signal(heard[0])


def _copied(folder: Path, files: Mapping[str, bytes]) -> dict[str, str]:
    """Contents of files as copies in a folder: where each lies."""
    copies = {}
    folder.mkdir(exist_ok=True)
    for number, (path, content) in enumerate(files.items()):
        copy = folder / f"{number}-{Path(path).name}"
        copy.write_bytes(content)
        copies[os.path.realpath(path)] = str(copy)
    return copies


def _serving(imports: str, kept: Sequence[int]) -> subprocess.Popen[bytes]:
    """A fork server. Ctrl-C is for us to hear, and to end it."""
    root = str(Path(__file__).parents[2])
    steps = f"sys.path.insert(0, {root!r})", "from syncscope.verify.trial import serve", f"sys.path.remove({root!r})"
    code = "; ".join(("import sys", *steps, "serve()"))
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # as multiprocessing does
    given = {**surroundings(), **os.environ, WITHIN: imports}
    command = [sys.executable, *flags, "-c", code]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, stdin=pipe, stdout=pipe, bufsize=0, env=given, start_new_session=True, pass_fds=kept
    )


def _libraries(modules: str) -> set[str]:
    return {module.partition(".")[0] for module in modules.split()}


def surroundings() -> dict[str, str]:
    """What a program's environment holds besides, unless the user has said otherwise."""
    cores = str(max(1, (os.cpu_count() or 2) - 1))  # where the CPU is the device: a GPU would leave all to the host
    given = {"PYTHONHASHSEED": "0", "POCL_CPU_MAX_CU_COUNT": cores, "POCL_MAX_PTHREAD_COUNT": cores}
    given["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"  # whoever asks for CUDA on import must not begin it before the fork
    return given


def _last(path: Path) -> str:
    try:
        return "\n".join(path.read_text(errors="replace").splitlines()[-TOLD:])
    except OSError:
        return ""
