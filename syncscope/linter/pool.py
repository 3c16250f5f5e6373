"""Work spread over processes: chunks out, answers back, and a worker that dies takes one file with it, not the run."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import signal
import sys
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

from syncscope.interpreters import safe_path

T = TypeVar("T")
R = TypeVar("R")

CHUNK_BYTES = 150_000  # of the last chunks
SELDOM = 10_000_000  # objects made and not freed before circles are looked for: those of a million lines hold 30,000


def chunks(items: Sequence[T], weigh: Callable[[T], int], workers: int = 1) -> list[list[T]]:
    """Items in order, so that one worker gets neighbours, whose imports it then knows; ever fewer, so that all end together."""
    found: list[list[T]] = []
    weight, most = 0, CHUNK_BYTES
    left = sum(map(weigh, items))
    for item in items:
        if not found or weight >= most:
            found.append([])
            weight, most = 0, max(CHUNK_BYTES, left // (2 * workers))
        found[-1].append(item)
        weight += weigh(item)
        left -= weigh(item)
    return found


def spread(
    function: Callable[[T], R], todo: Sequence[Sequence[T]], jobs: int, crashed: Callable[[T], R]
) -> Iterator[list[R]]:
    """The answers to each chunk, as they come. `crashed` answers for an item that killed its worker.

    Raises what `function` raises. However this ends, no worker outlives it.
    """
    # A fork starts in milliseconds with everything imported; elsewhere the workers import what they need.
    context: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    waiting = deque(todo)
    workers: dict[Connection, tuple[BaseProcess, Sequence[T]]] = {}
    started: list[BaseProcess] = []

    def start() -> Connection:
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, function, [*workers, ours]), daemon=True)
        with safe_path(), uninterrupted():  # between the fork and our knowing of it, Ctrl-C would leave an orphan
            process.start()
            started.append(process)
        theirs.close()
        workers[ours] = (process, ())
        return ours  # type: ignore[no-any-return]  # the context is Any: its two kinds share no type

    def give(pipe: Connection) -> None:
        process, _ = workers.pop(pipe)
        if waiting:
            chunk = waiting.popleft()
            workers[pipe] = (process, chunk)
            pipe.send(chunk)
        else:
            pipe.close()
            process.join()

    try:
        for _ in range(min(jobs, len(waiting))):
            give(start())
        while workers:
            for ready in wait(list(workers)):
                assert isinstance(ready, Connection)
                process, chunk = workers[ready]
                try:
                    answer = ready.recv()
                except (EOFError, OSError):
                    process.join()
                    del workers[ready]
                    if len(chunk) > 1:
                        waiting.extendleft([[item] for item in reversed(chunk)])
                    else:
                        yield [crashed(item) for item in chunk]
                    if waiting:
                        give(start())
                    continue
                if isinstance(answer, BaseException):
                    raise answer
                give(ready)
                yield answer
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.join()


def _serve(pipe: Connection, function: Callable[[T], R], inherited: Sequence[Connection]) -> None:
    """A worker: answers chunks until the pipe is closed. Ctrl-C is the parent's to handle."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for other in inherited:
        other.close()  # a worker holds its siblings' pipes, too (a spawned one is sent them), and would keep them open
    with frugal():
        while True:
            try:
                chunk = pipe.recv()
            except (EOFError, OSError):
                return
            try:
                answer: Any = [function(item) for item in chunk]
            except Exception as error:
                error.add_note("".join(traceback.format_exception(error)))
                answer = error
            pipe.send(answer)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C back for a moment, where the system can."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def frugal() -> Iterator[None]:
    """Look for circles of garbage seldom: trees of syntax are freed by counting references, and dear to go through."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(SELDOM, 20, 50)
    try:
        yield
    finally:
        gc.freeze()
        gc.unfreeze()  # what is alive counts as old: else the first small garbage would have it all gone through
        gc.set_threshold(*before)
