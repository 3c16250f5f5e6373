"""A process that has imported what every training program imports, to be forked: what `verify` forks its runs from, and other
programs of tests. A first fork of it has imported ours, too, and is forked for runs and commands.

To import torch and its compilers takes three seconds of a processor, and most of these tests less than one without. How
`verify` starts that process for a user, and how it ends, is asked by its `test_clearing.py`, `test_undo.py` and
`test_verify_command.py`.
"""

import atexit
import contextlib
import fcntl
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

ROOT = Path(__file__).parents[1]
FREE = 100  # descriptors from here on are none that anybody has named
LARGEST = 1 << 17  # bytes of an environment
LATER = (  # what many runs import, too, and `syncscope run`
    *("syncscope.analysis.summary", "syncscope.cli.run", "syncscope.exporters.terminal", "syncscope.tracers.dry_run"),
    *("syncscope.tracers.session", "syncscope.verify.in_the_run", "syncscope.verify.in_turns", "libcst"),
)
asking = threading.Lock()  # one question, one answer
told: dict[int, int] = {}  # where it is said how a fork has ended, by its number


Python = Callable[..., "subprocess.CompletedProcess[str]"]


def in_a_process(
    *arguments: str,
    env: Mapping[str, str] | None = None,
    folder: Path | None = None,
    ours: bool = False,
    out: BinaryIO | int = subprocess.PIPE,
) -> "subprocess.CompletedProcess[str]":
    """`python ARGUMENTS`."""
    command, pipe = [sys.executable, *arguments], subprocess.PIPE
    return subprocess.run(command, stdout=out, stderr=pipe, text=True, timeout=500, env=env, cwd=folder)


class Served:
    """As much of a `Popen` as `verify` asks for. It is no child of ours: its parent buries it."""

    def __init__(self, pid: int, stdin: BinaryIO, stdout: BinaryIO) -> None:
        self.pid, self.stdin, self.stdout = pid, stdin, stdout

    def communicate(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            self.stdin.close()
        end = time.monotonic() + 500
        while Path(f"/proc/{self.pid}").exists() and time.monotonic() < end:
            time.sleep(0.005)
        self.stdout.close()


@contextlib.contextmanager
def process(environment: dict[str, str]) -> Iterator[socket.socket]:
    """It runs; whoever asks it for a fork speaks to this socket."""
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, __file__, str(there.fileno())]
    with (
        here,
        subprocess.Popen(command, stdin=subprocess.DEVNULL, env=environment, pass_fds=[there.fileno()]) as warm,
    ):
        there.close()
        yield here
        here.close()
        warm.wait(300)


def serving(warm: socket.socket, environment: dict[str, str], kept: Sequence[int]) -> Served:
    """A fork that serves runs, with these descriptors of ours under their own numbers."""
    (asked, ask), (answer, answered) = os.pipe(), os.pipe()
    said = {"environment": environment, "folder": os.getcwd(), "numbers": [0, 1, 2, *kept], "ours": True}
    with asking:
        socket.send_fds(warm, [json.dumps(said).encode()], [asked, answered, 2, *kept])
        child = int(warm.recv(64))
    os.close(asked)
    os.close(answered)
    return Served(child, open(ask, "wb", 0), open(answer, "rb", 0))


def ran(
    warm: socket.socket,
    *arguments: str,
    env: Mapping[str, str] | None = None,
    folder: Path | None = None,
    ours: bool = False,
    out: BinaryIO | None = None,
) -> subprocess.CompletedProcess[str]:
    """A fork that runs what `python SCRIPT ...` would, or `python -c CODE`, in this folder or the working one; with `ours` of a
    process that has imported what `syncscope run` does. Where it is to print is `out`, or what it prints is given back."""
    with tempfile.TemporaryFile("w+") as printed, tempfile.TemporaryFile("w+") as err, open(os.devnull) as nothing:
        streams = nothing.fileno(), (out or printed).fileno(), err.fileno()
        code = _code_of(warm, arguments, os.environ if env is None else env, str(folder or os.getcwd()), ours, streams)
        printed.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(arguments, code, printed.read(), err.read())


def _code_of(
    warm: socket.socket,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    folder: str,
    ours: bool,
    streams: Sequence[int],
) -> int:
    """How a fork has ended that ran this."""
    answer, answered = os.pipe()  # of which the fork knows nothing: what it starts may live on
    said = {"environment": dict(environment), "folder": folder, "numbers": [0, 1, 2], "ours": ours, "ran": arguments}
    with asking:
        socket.send_fds(warm, [json.dumps(said).encode()], [*streams, answered])
        os.close(answered)
        warm.recv(64)
    with open(answer) as told:
        return int(told.read() or 70)


ASKS = """#!{python} -S
import json, os, socket, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
    door.connect("\\0" + {name!r})
    said = [sys.argv[1:], dict(os.environ), os.getcwd()]
    socket.send_fds(door, [json.dumps(said).encode()], [0, 1, 2])
    sys.exit(int(door.recv(64)))
"""


@contextlib.contextmanager
def program(warm: socket.socket, path: Path, code: str) -> Iterator[None]:
    """A program for scripts that start it by its name: it has a fork run `python -c CODE ...`, with its own streams."""

    def serves(door: socket.socket) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                one, _ = door.accept()
                threading.Thread(target=answers, args=(one,), daemon=True).start()

    def answers(one: socket.socket) -> None:
        with one:
            said, given, _, _ = socket.recv_fds(one, LARGEST, 3)
            arguments, environment, folder = json.loads(said)
            ended = _code_of(warm, ["-c", code, *arguments], environment, folder, True, given)
            for each in given:
                os.close(each)
            one.send(str(ended).encode())

    name = str(path)
    path.write_text(ASKS.format(python=sys.executable, name=name))
    path.chmod(0o755)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
        door.bind("\0" + name)
        door.listen()
        threading.Thread(target=serves, args=(door,), daemon=True).start()
        try:
            yield
        finally:
            door.shutdown(socket.SHUT_RDWR)


def _run(arguments: Sequence[str]) -> int:
    """As Python does with its command line, up to the exit code. Its streams are as Python makes them of what they are now."""
    code: Any = 0
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    try:
        if arguments[0] == "-c":
            sys.argv[:] = ["-c", *arguments[2:]]
            sys.modules["__main__"] = ModuleType("__main__")
            exec(compile(arguments[1], "<string>", "exec"), sys.modules["__main__"].__dict__)
        else:
            sys.argv[:] = arguments
            sys.path[0] = str(Path(arguments[0]).resolve().parent)
            runpy.run_path(arguments[0], run_name="__main__")
    except SystemExit as left:
        code = left.code or 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return int(code)


def _take_over(said: dict[str, Any], given: Sequence[int]) -> None:
    """In the fork: its descriptors, environment and paths."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    os.chdir(said["folder"])
    for number, one in zip(said["numbers"], [fcntl.fcntl(one, fcntl.F_DUPFD, FREE) for one in given], strict=True):
        os.dup2(one, number)
        os.close(one)
    for one in given:
        if one not in said["numbers"]:
            os.close(one)
    os.environ.clear()
    os.environ.update(said["environment"])
    own = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
    sys.path[:] = [*([] if sys.flags.safe_path else [""]), *own, *(each for each in sys.path if each not in own)]
    sys.argv[:] = ["-c"]


def _become(said: dict[str, Any], given: Sequence[int]) -> None:
    """In the fork: does not come back. Runs compare what names hold here and below, and numbers of descriptors differ."""
    code = 70
    try:
        _take_over(said, given)
        given = ()
        if "ran" in said:
            code = _run(said["ran"])
        else:
            from syncscope.verify.trial import serve

            serve()
    finally:
        os._exit(code)


def _bury(number: int, frame: object) -> None:
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] in told:
                end = told.pop(ended[0])
                os.write(end, str(os.waitstatus_to_exitcode(ended[1])).encode())
                os.close(end)


def _import(names: Sequence[str]) -> None:
    gc.disable()  # as `serve` does
    for name in names:
        importlib.import_module(name)
    gc.freeze()
    gc.enable()


def _asked_for(there: socket.socket) -> tuple[dict[str, Any], Sequence[int]]:
    """In each fork, what it is to be. The process itself ends in here, when nobody is there to ask."""
    sys.path[0] = str(ROOT)
    from syncscope.verify import imported
    from syncscope.verify.trial import OURS, PRELOADED

    sys.path.pop(0)
    _import(PRELOADED)
    signal.signal(signal.SIGCHLD, _bury)
    ours: socket.socket | None = None  # to the fork of this process that has imported ours, too
    while True:
        said, given, _, _ = socket.recv_fds(there, LARGEST, 16)
        if not said:
            sys.exit()
        what = json.loads(said)
        if what["ours"] and there is not ours:
            if ours is None:
                ours, asked = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                if _fork() == 0:
                    for end in (there, ours):
                        end.close()
                    there = ours = asked
                    for one in given:
                        os.close(one)
                    _import((*OURS, *LATER))
                    imported.look_up()
                    continue
                asked.close()
            socket.send_fds(ours, [said], given)
            for one in given:
                os.close(one)
            there.send(ours.recv(64))
            continue
        child = _fork(given.pop() if "ran" in what else None)
        if child == 0:
            there.close()
            if ours is not None:
                ours.close()
            return what, given
        for one in given:
            os.close(one)
        there.send(str(child).encode())


def _fork(end: int | None = None) -> int:
    """As `os.fork`; how the child has ended will be told there."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    child = os.fork()
    if end is not None:
        told[child] = end
    if child == 0:
        for one in told.values():
            os.close(one)
        told.clear()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    return child


if __name__ == "__main__":
    _become(*_asked_for(socket.socket(fileno=int(sys.argv[1]))))
