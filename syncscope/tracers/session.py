"""One recording from `with` to the end: which steps are recorded, what is recorded of them, and the trace it becomes."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic_ns
from types import TracebackType
from typing import ParamSpec, Self, TypeVar

from syncscope.errors import UserError, in_words
from syncscope.model.trace import Trace
from syncscope.tracers import exits
from syncscope.tracers.decorated import Decorated
from syncscope.tracers.hooks import listening, look
from syncscope.tracers.hooks.listeners import Listener
from syncscope.tracers.opencl.dispatch import armed
from syncscope.tracers.own_schedule import ENOUGH as ENOUGH_CHOSEN
from syncscope.tracers.own_schedule import OwnSchedule, Phase
from syncscope.tracers.process_recording import Window, running
from syncscope.tracers.saying import say
from syncscope.tracers.step_times import Moment, StepTimes

ENOUGH = 3  # steps before a recording that are alike, to hold it against
AFTER = 10  # steps that are timed after it where there were fewer: the first are seldom like the others
T = TypeVar("T")
A = ParamSpec("A")

_open: list[Session] = []
os.register_at_fork(after_in_child=_open.clear)


def current() -> Session | None:
    """The innermost session that is open, if any."""
    return _open[-1] if _open else None


class Session:
    """Records what the `with` block does. A trace holds `active` steps, after `wait` and `warmup` steps, `repeat` times;
    without `active`, everything up to the end. Without any number it chooses its steps itself (`own_schedule`), and the trace
    is made at the end; not if it is to be `whole`, nor with `memory`, for what is held was made before. With `at_end` a single
    trace is made then, for to make it may take seconds. `on_trace` is called with each finished trace; where it returns False,
    what the trace was made of stays in the folder `folder`.

    A program does not end because somebody watches it: what fails while it is recorded is not raised. The recording ends there,
    what it has is kept, and `on_failure` is told; without one, a line on standard error says it.

    Steps before the recording run without a hook and are timed, so that a trace says what recording it cost. Where there were
    few, so are some after it, and the trace is finished once they are done.

    Raises:
        UserError: a number of steps makes no sense, or this session is recording already.
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
        whole: bool = False,
        at_end: bool = False,
        folder: Path | None = None,
        on_trace: Callable[[Trace], object] | None = None,
        on_failure: Callable[[UserError], None] | None = None,
    ) -> None:
        if min(wait, warmup, repeat) < 0 or (active is not None and active < 1):
            raise UserError(
                f"wait={wait}, warmup={warmup}, active={active}, repeat={repeat} records nothing",
                "active is at least 1, the others at least 0",
            )
        self.wait, self.warmup, self.active, self.repeat = wait, warmup, active, repeat
        self.traces: list[Trace] = []
        self.ended_by = ""  # the error that the program raised, and did not catch, by name
        self.count = 0  # steps so far
        self.cycle = 0
        self._record_shapes = record_shapes
        self._operators = operators
        self._memory = memory
        self._folder = folder
        self._on_trace = on_trace
        self._on_failure = on_failure
        self._chooses = active is None and not wait + warmup and not (whole or memory)
        self._at_end = self._chooses or (at_end and repeat == 1)
        self._own = OwnSchedule()
        self._since = 0  # when the last step ended, ns of CLOCK_MONOTONIC
        self._opening: tuple[Window, StepTimes] | None = None  # the first steps, until there are enough others
        self._kept_opening = False
        self._lingers = False  # what recorded the opening slows all that follows: no baseline is to be had
        self._take: Window | None = None
        self._ended: Window | None = None  # waits for steps to be held against, or for the end
        self._made: Trace | None = None  # its trace, where it is not made at the end
        self._untraced, self._traced = StepTimes(), StepTimes()
        self._enough = 0  # untraced steps with which it is finished
        self._marked = False  # somebody marks the steps: finding them would count twice
        self._process = 0
        self._stack = contextlib.ExitStack()
        self._stepping = threading.RLock()  # threads may mark steps: what ended first is counted first
        self._calls = Decorated(self)
        self._held: Moment | None = None  # where the first found step ended, until it is counted
        self._found = False  # a step was found
        self._paused = False
        self.failed = ""  # why no more is recorded, though it is not over

    @property
    def trace(self) -> Trace:
        """The last finished trace.

        Raises:
            UserError: there is none yet.
        """
        self._deliver()
        if not self.traces:
            passed, before = max(0, self.count), self.wait + self.warmup
            if before and passed <= before and self not in _open:
                raise UserError(
                    f"nothing was recorded: it let {before} steps pass first, and there were {passed}",
                    "ask for fewer with wait and warmup, or for no number: then it chooses itself",
                )
            if self.failed:
                raise UserError(f"nothing was recorded: {self.failed}")
            raise UserError(
                "nothing has been recorded yet", "leave the `with` block first, and make as many steps as asked"
            )
        return self.traces[-1]

    @property
    def is_over(self) -> bool:
        """Whether all is recorded that is to be; its trace may still be made at the end."""
        if self._chooses or self.failed:
            return self._counts
        done = bool(self.repeat) and self.cycle >= self.repeat and self._take is None
        return done and len(self._untraced) >= self._enough

    def pause(self, on: bool) -> None:
        """Steps are none of the program's for the time being: they are not counted."""
        self._paused = on
        self._untraced.pause()
        self._since = monotonic_ns()

    def takes(self) -> list[Window]:
        """All that is being recorded, or waits to become a trace."""
        opening = self._opening[0] if self._opening is not None else None
        return [take for take in (self._take, self._ended, opening) if take is not None]

    def __enter__(self) -> Self:
        if self in _open:
            raise UserError("this recording is running already", "make one of its own for the inner block")
        self._process = os.getpid()
        with contextlib.ExitStack() as stack:
            _open.append(self)
            stack.callback(_open.remove, self)
            stack.enter_context(armed())
            stack.enter_context(listening(Listener(step=self._found_step)))
            stack.enter_context(exits.saving(self, self._on_trace is not None))
            with self._told():
                self._untraced.boundary()
                self._turn()
            self._since = monotonic_ns()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self not in _open or os.getpid() != self._process:
            return  # ended already, or a child: the recording is its parent's
        if isinstance(error, Exception):  # neither Ctrl-C nor sys.exit()
            self.ended_by = type(error).__name__
        try:
            if self._held is not None:
                self._boundary(self._held)
            with self._told():
                self._choose()
                self._finish()
            self._deliver()
        finally:
            with self._told():
                self._stack.close()

    def __call__(self, function: Callable[A, T]) -> Callable[A, T]:
        """As a decorator: records every call of the function. Calls within a call, and in other threads meanwhile, are part of
        its recording, which ends with the last of them."""
        return self._calls.around(function)

    def step(self) -> None:
        """A training step ends here, and the next begins; once the recording has ended, nothing does."""
        if self._paused or self not in _open:
            return
        with self._stepping:
            if not self._marked and self.count:
                with self._told():
                    self._start_over()
            self._marked, self._held = True, None
            self._boundary(self._now())

    @property
    def _records(self) -> bool:
        return self._take is not None and not self._take.over  # a schedule of its own keeps it as the take

    @property
    def _counts(self) -> bool:
        return bool(self.failed) or (self._chooses and self._own.phase is Phase.OVER)  # and does no more

    def _now(self) -> Moment:
        if self._counts:
            return Moment(monotonic_ns(), None, 0)
        return (self._traced if self._records else self._untraced).now()

    def _found_step(self) -> None:
        """An optimizer has stepped. The first is held back: whoever marks steps has not yet had the chance to."""
        if self._marked or self._paused:
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
        if self.failed:
            return
        self.count = self.cycle = 0
        self._untraced, self._traced = StepTimes(), StepTimes()
        taken, self._take = self._take, None
        ended, self._ended = self._ended, None
        if ended is not None:
            ended.drop()
        if self._chooses and taken is None:  # its own schedule goes on where it is
            self.count = -1
        elif taken is not None and not self.wait + self.warmup:
            self._take, self.cycle = taken, 1
            taken.forget_steps()
        elif taken is not None:
            taken.drop()
        elif not self.wait + self.warmup:
            self.count = -1  # it was over already: the next step is the first

    def _boundary(self, at: Moment) -> None:
        self.count += 1
        if self.failed:
            return
        try:
            self._passed(at)
            if self._take is not None and not self._take.over:
                self._take.recording.demand_room()
        except Exception as failed:
            self._end_early(failed)

    def _passed(self, at: Moment) -> None:
        if self._take is not None and self._records:
            self._traced.boundary(at)
            self._take.boundary(at.at)
        elif running() or self._counts:  # an outer one
            self._untraced.pause()
        else:
            self._untraced.boundary(at)
            if len(self._untraced) >= self._enough and not self._at_end:
                self._deliver()
        look()
        if self._chooses:
            self._next(at)
        else:
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

    def _next(self, at: Moment) -> None:
        """A step has ended at that moment: the next is recorded, or not, as the schedule of its own says."""
        before, length = self._own.phase, at.at - self._since
        self._since = at.at
        phase = self._own.step(length, at.built)
        if self._opening is not None and self._own.steps[Phase.RECORDED] >= ENOUGH_CHOSEN:
            self._opening[0].drop()
            self._opening = None
        if phase is before:
            return
        if phase is Phase.BEFORE and self._take is not None:
            self._opening, self._take = (self._take, self._traced), None
            self._traced.pause()
            self._opening[0].stop()
            self._lingers = self._opening[0].recording.lingers
            self._untraced.boundary()
        elif phase is Phase.RECORDED:
            self._begin()
        elif phase is Phase.AFTER and self._take is not None:
            self._traced.pause()
            self._take.stop()
            self._untraced.boundary()
        elif phase is Phase.OVER:
            self._untraced.pause()
        self._since = monotonic_ns()  # not what it took to change over

    def _choose(self) -> None:
        """At the end: the opening is what was recorded, where there were too few other steps."""
        if self._opening is None:
            return
        if self._take is not None:
            self._take.drop()
        (self._take, self._traced), self._opening = self._opening, None
        self._kept_opening = True

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
            self._ended = take
            take.stop()
            if not self._at_end:
                self._made = take.end()
            before = len(self._untraced.lengths())
            enough = before >= ENOUGH or take.recording.lingers  # steps after it would not be those of a run without it
            self._enough = 0 if enough else len(self._untraced) + AFTER
            self._untraced.boundary()
            if enough and not self._at_end:
                self._deliver()

    def _deliver(self) -> None:
        """Gives away the trace of the recording that has ended, if one has."""
        if self._ended is None:
            return
        take, self._ended = self._ended, None
        made, self._made = self._made, None
        kept, take.recording.kept = take.recording.kept, True  # until the trace is safe
        try:
            trace = take.end() if made is None else made
            said = {"untraced": None if self._lingers else self._untraced.facts(), "traced": self._traced.facts()}
            trace.meta.update({key: value for key, value in said.items() if value})  # type: ignore[typeddict-item]
            ended = {"ended_by": self.ended_by, "ended_early": self.failed}
            trace.meta.update({key: why for key, why in ended.items() if why})  # type: ignore[typeddict-item]
            chosen = self._own.words(self._kept_opening) if self._chooses else ""
            early = f"the recording ended early: {self.failed}" if self.failed else ""
            trace.meta["notes"] = [note for note in (chosen, *trace.meta.get("notes", []), early) if note]
            self.traces = [trace]  # the earlier ones went to on_trace: memory stays flat
            if self._on_trace is None or self._on_trace(trace) is not False:
                take.recording.kept = kept
                take.recording.remove()
        except Exception as failed:
            files = [] if self._on_failure else take.recording.files  # who is told knows where they lie
            lies = f"`syncscope report {files[0]}` shows it until you delete it" if files else ""
            self.failed = self.failed or in_words(failed)
            self._tell(UserError(f"the recording could not be finished: {in_words(failed)}", lies))

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except Exception as failed:
            self._end_early(failed)

    def _end_early(self, why: Exception) -> None:
        """Nothing more is recorded: the program goes on, and what there is becomes a trace at the end."""
        if self.failed:
            return
        self.failed = in_words(why)
        self._untraced.pause()
        for take in self.takes():
            with contextlib.suppress(Exception):
                take.stop()
        if self.takes() or self.traces:
            kept = "the program goes on, and what was recorded before is kept"
            self._tell(UserError(f"the recording ended after step {self.count}: {self.failed}", kept))
        else:
            self._tell(UserError(self.failed, why.hint if isinstance(why, UserError) else ""))

    def _tell(self, failed: UserError) -> None:
        (self._on_failure or say)(failed)
