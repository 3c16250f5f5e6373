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
    def why(self) -> str:
        """In one line: that of the exception, which may say more in others."""
        if self.code == 0:
            return "it ended with exit code 0 and no step was counted"
        lines = [line for line in self.said.splitlines() if line.strip()]
        frames = [number for number, line in enumerate(lines) if line.startswith('  File "')]
        if frames and (raised := [line for line in lines[frames[-1] :] if not line[0].isspace()]):
            return raised[0]
        return f"it ended with exit code {self.code}" + (f": {lines[-1].strip()}" if lines else "")


class TimeIsUpError(Exception):
    """The budget was spent while a run was under way."""


@dataclass(frozen=True)
class RunResult:
    """What one run left: `found` are its JSON values, other files lie in `folder`."""

    folder: Path
    found: dict[str, Any]


class Processes:
    """Runs requests. The copies that overlays name, and what runs leave, lie in one temporary folder. `warn` is told, before
    the first, what of them could not be taken back."""

    def __init__(self, deadline: float, warn: Callable[[str], None] = lambda line: None) -> None:
        self.deadline = deadline  # by time.monotonic
        self._warn = warn
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

    def __enter__(self) -> Processes:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._survivor, _undisturbed():
            self._end()
            self._temporary.cleanup()

    def import_before(self, modules: Sequence[str]) -> None:
        """From now on runs are forked from a process that has imported these."""
        if modules:
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
        first = self.count == 0
        self.count += len(wanted)
        together = Path(self._temporary.name, str(self.count))
        requests = []
        for number, (request, files) in enumerate(wanted):
            folder = together / str(number)
            folder.mkdir(parents=True)
            copies = {}
            for copied, (path, content) in enumerate(files.items()):
                copy = folder / f"{copied}-{Path(path).name}"
                copy.write_bytes(content)
                copies[os.path.realpath(path)] = str(copy)
            journal = str(together / JOURNAL)
            requests.append(replace(request, folder=str(folder), journal=journal, overlay=copies, first=first))
        try:
            codes = self._answer(requests)
        finally:
            with _undisturbed():  # who presses Ctrl-C twice wants the files back, too
                self._kill()  # and what it may have left running
                self.remains |= undo(together / JOURNAL)
        return [self._result(request, code) for request, code in zip(requests, codes, strict=True)]

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
        if (
            self._served >= ROUNDS or sys.platform != "linux"
        ):  # elsewhere a fork of a large process is not to be trusted
            self._end()
        if self._server is None:
            began = time.monotonic()
            self._server, self._served = _serving(self._imports), 0
            self._survivor.tell(self._server.pid)
            before, self.heard_by = self.heard_by, self._line().decode().split()[1]
            for line in unheld.said(self.heard_by) if not before else ():
                self._warn(line)
            self.importing += time.monotonic() - began
        self._served += len(requests)
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps([request.said() for request in requests]).encode() + b"\n")
        self._server.stdin.flush()
        self._children = [int(child) for child in self._line().split()]
        return [int(code) for code in self._line().split()]

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


def _serving(imports: str) -> subprocess.Popen[bytes]:
    """A fork server. Ctrl-C is for us to hear, and to end it."""
    root = str(Path(__file__).parents[2])
    steps = f"sys.path.insert(0, {root!r})", "from syncscope.verify.trial import serve", f"sys.path.remove({root!r})"
    code = "; ".join(("import sys", *steps, "serve()"))
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # as multiprocessing does
    cores = str(max(1, (os.cpu_count() or 2) - 1))  # where the CPU is the device: a GPU would leave all to the host
    given = {"PYTHONHASHSEED": "0", "POCL_CPU_MAX_CU_COUNT": cores, "POCL_MAX_PTHREAD_COUNT": cores}
    given["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"  # whoever asks for CUDA on import must not begin it before the fork
    given |= {**os.environ, WITHIN: imports}
    command = [sys.executable, *flags, "-c", code]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, bufsize=0, env=given, start_new_session=True)


def _last(path: Path) -> str:
    try:
        return "\n".join(path.read_text(errors="replace").splitlines()[-TOLD:])
    except OSError:
        return ""
