"""One recording from `with` to the end: which steps are recorded, what is recorded of them, and the trace it becomes."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import NoReturn, ParamSpec, Self, TypeVar

from syncscope.errors import UserError
from syncscope.model.trace import Trace
from syncscope.tracers import dry_run
from syncscope.tracers.hooks import listening, look
from syncscope.tracers.hooks.listeners import Listener
from syncscope.tracers.opencl.dispatch import armed
from syncscope.tracers.process_recording import ProcessRecording, Window, running
from syncscope.tracers.step_times import Moment, StepTimes

ENOUGH = 3  # steps before a recording that are alike, to hold it against
AFTER = 10  # steps that are timed after it where there were fewer: the first are seldom like the others
T = TypeVar("T")
A = ParamSpec("A")

_open: list[Session] = []
os.register_at_fork(after_in_child=_open.clear)
_exit = os._exit


def _exit_after_saving(status: int) -> NoReturn:
    """`os._exit` runs nothing that is still to run: the recordings of this process are ended first.

    Other threads would go on meanwhile, for seconds: where somebody waits for what is left in a folder, that is enough, and
    where nobody is to be given the trace, there is nothing to end.
    """
    others_run = threading.active_count() > 1
    left: list[ProcessRecording] = []
    try:
        for session in reversed(_open.copy()):
            recording = session._take.recording if session._take is not None else None
            if recording is not None and recording.kept and others_run:
                recording.events.flush()
                break
            if session._on_trace is not None or recording is None:
                session.__exit__(None, None, None)
            elif not recording.kept:
                left.append(recording)
        for recording in left:  # last: an outer session may want what the same recording has
            recording.unlink()
    finally:
        _exit(status)


def _restore_exit() -> None:
    if len(_open) <= 1:
        os._exit = _exit


def current() -> Session | None:
    """The innermost session that is open, if any."""
    return _open[-1] if _open else None


class Session:
    """Records what the `with` block does. A trace holds `active` steps, after `wait` and `warmup` steps, `repeat` times;
    without `active`, everything up to the end. `on_trace` is called with each finished trace; where it returns False, what the
    trace was made of stays in the folder `folder`. Where a recording cannot be finished, `on_failure` is told instead of the
    program.

    Steps before the recording run without a hook and are timed, so that a trace says what recording it cost. Where there were
    few, so are some after it, and the trace is finished once they are done.

    Raises:
        UserError: a number of steps makes no sense, this session is recording already, or there is no room to record into.
    """

    def __init__(
        self,
        *,
        wait: int = 0,
        warmup: int = 0,
        active: int | None = None,
        repeat: int = 1,
        record_shapes: bool = False,
        operators: bool = False,
        memory: bool = False,
        folder: Path | None = None,
        on_trace: Callable[[Trace], object] | None = None,
        on_failure: Callable[[Exception], None] | None = None,
    ) -> None:
        if min(wait, warmup, repeat) < 0 or (active is not None and active < 1):
            raise UserError(
                f"wait={wait}, warmup={warmup}, active={active}, repeat={repeat} records nothing",
                "active is at least 1, the others at least 0",
            )
        self.wait, self.warmup, self.active, self.repeat = wait, warmup, active, repeat
        self.traces: list[Trace] = []
        self.count = 0  # steps so far
        self.cycle = 0
        self._record_shapes = record_shapes
        self._operators = operators
        self._memory = memory
        self._folder = folder
        self._on_trace = on_trace
        self._on_failure = on_failure
        self._take: Window | None = None
        self._ended: tuple[Window, Trace] | None = None  # waits for steps to be held against
        self._untraced, self._traced = StepTimes(), StepTimes()
        self._enough = 0  # untraced steps with which it is finished
        self._marked = False  # somebody marks the steps: finding them would count twice
        self._process = 0
        self._stack = contextlib.ExitStack()
        self._calls = 0  # of a decorated function, that are running
        self._lock = threading.RLock()
        self._held: Moment | None = None  # where the first found step ended, until it is counted
        self._found = False  # a step was found

    @property
    def trace(self) -> Trace:
        """The last finished trace.

        Raises:
            UserError: there is none yet.
        """
        self._deliver()
        if not self.traces:
            raise UserError(
                "nothing has been recorded yet", "leave the `with` block first, and make as many steps as asked"
            )
        return self.traces[-1]

    def __enter__(self) -> Self:
        if self in _open:
            raise UserError("this recording is running already", "make one of its own for the inner block")
        self._process = os.getpid()
        with contextlib.ExitStack() as stack:
            _open.append(self)
            stack.callback(_open.remove, self)
            stack.enter_context(armed())
            stack.enter_context(listening(Listener(step=self._found_step)))
            stack.callback(_restore_exit)
            os._exit = _exit_after_saving
            self._untraced.boundary()
            self._turn()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self not in _open or os.getpid() != self._process:
            return  # ended already, or a child: the recording is its parent's
        try:
            if self._held is not None:
                self._boundary(self._held)
            self._finish()
            self._deliver()
        except UserError as failed:
            if error is None:
                raise
            error.add_note(f"syncscope: the recording was lost: {failed}")  # what the program raised comes first
        finally:
            self._stack.close()

    def __call__(self, function: Callable[A, T]) -> Callable[A, T]:
        """As a decorator: records every call of the function. Calls within a call, and in other threads meanwhile, are part of
        its recording, which ends with the last of them."""

        @functools.wraps(function)
        def recorded(*args: A.args, **kwargs: A.kwargs) -> T:
            with self._call():
                return function(*args, **kwargs)

        return recorded

    @contextlib.contextmanager
    def _call(self) -> Iterator[None]:
        with self._lock:
            if not self._calls:
                self.__enter__()
            self._calls += 1
        try:
            yield
        finally:
            with self._lock:
                self._calls -= 1
                if not self._calls:
                    self.__exit__(*sys.exc_info())

    def step(self) -> None:
        """A training step ends here, and the next begins."""
        if not self._marked and self.count:
            self._start_over()
        self._marked, self._held = True, None
        self._boundary(self._now())

    def _now(self) -> Moment:
        return (self._untraced if self._take is None else self._traced).now()

    def _found_step(self) -> None:
        """An optimizer has stepped. The first is held back: whoever marks steps has not yet had the chance to."""
        if self._marked:
            return
        now = self._now()
        if not self._found:
            self._found, self._held = True, now
            return
        if self._held is not None:
            self._boundary(self._held)
            self._held = None
        self._boundary(now)

    def _start_over(self) -> None:
        """The first mark comes after steps were found: an optimizer that steps several times in one of the user's."""
        self.count = self.cycle = 0
        self._untraced, self._traced = StepTimes(), StepTimes()
        taken, self._take = self._take, None
        ended, self._ended = self._ended, None
        if ended is not None:
            ended[0].recording.remove()
        if taken is not None and not self.wait + self.warmup:
            self._take, self.cycle = taken, 1
            taken.forget_steps()
        elif taken is not None:
            taken.end()
            taken.recording.remove()
        elif not self.wait + self.warmup:
            self.count = -1  # it was over already: the next step is the first

    def _boundary(self, at: Moment) -> None:
        self.count += 1
        if self._take is not None:
            self._traced.boundary(at)
            self._take.boundary(at.at)
        elif running():  # an outer one
            self._untraced.pause()
        else:
            self._untraced.boundary(at)
            if len(self._untraced) >= self._enough:
                self._deliver()
        look()
        self._turn()

    def _turn(self) -> None:
        """Begins or ends a take where the schedule says so."""
        length = self.wait + self.warmup + (self.active or 0)
        if self.active is None:
            if self._take is None and self.count >= self.wait + self.warmup:
                self._begin()
            return
        turn, at = divmod(self.count, length)
        if self._take is not None and turn >= self.cycle:
            self._finish()
        done = self.repeat and self.cycle >= self.repeat
        if at >= self.wait + self.warmup and not done and self._take is None:
            self._begin()

    def _begin(self) -> None:
        self._deliver()
        self._untraced.pause()
        self._take = Window(self.count, self._folder, self._record_shapes, self._operators, self._memory)
        self.cycle = self.count // (self.wait + self.warmup + (self.active or 1)) + 1
        self._traced = StepTimes()
        self._traced.boundary()

    def _finish(self) -> None:
        take, self._take = self._take, None
        if take is not None:
            self._traced.pause()
            with self._told():
                self._ended = take, take.end()
            before = len(self._untraced.lengths())
            enough = before >= ENOUGH or take.recording.lingers  # steps after it would not be those of a run without it
            self._enough = 0 if enough else len(self._untraced) + AFTER
            self._untraced.boundary()
            if enough:
                self._deliver()

    def _deliver(self) -> None:
        """Gives away the trace of the recording that has ended, if one has."""
        if self._ended is None:
            return
        (take, trace), self._ended = self._ended, None
        with self._told():
            said = {"untraced": self._untraced.facts(), "traced": self._traced.facts()}
            trace.meta.update({key: value for key, value in said.items() if value})  # type: ignore[typeddict-item]
            self.traces = [trace]  # the earlier ones went to on_trace: memory stays flat
            if self._on_trace is None or self._on_trace(trace) is not False:
                take.recording.remove()

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except Exception as failed:
            if self._on_failure is None:
                raise
            self._on_failure(failed)


def steps_of(loader: Iterable[T]) -> Iterator[T]:
    """The batches of a loader, each of them a step of the recording."""
    for batch in loader:
        yield dry_run.mark(batch)
        session = current()
        if session is not None:
            session.step()
