"""What `with syncscope.trace() as trace:` gives: a session that writes and explains what it recorded, and tries fixes of it."""

from __future__ import annotations

import importlib.util
import os
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from syncscope.errors import UserError
from syncscope.model.report import Report
from syncscope.model.trace import Kind, Trace
from syncscope.model.tried import FixesTried
from syncscope.tracers.saying import say
from syncscope.tracers.session import Session, current

Write = Callable[[Trace, Path], list[Path]]
Explain = Callable[[Trace, bool], Report]
Try = Callable[[Trace, list[Path], Callable[[], object] | None, FrameType, float | str, bool, bool], FixesTried]


class Recording(Session):
    """A session with `save`, `report` and `try_fixes`; by which formats, analysis and trial is for the caller to say."""

    def __init__(
        self, write: Write, explain: Explain, attempt: Try, *, logdir: str | Path | None = None, **schedule: Any
    ) -> None:
        if not any(importlib.util.find_spec(package) for package in ("torch", "pyopencl")):
            raise UserError(
                "nothing can be recorded: neither torch nor pyopencl is installed",
                'pip install "syncscope[trace]" for PyTorch, "syncscope[opencl]" for OpenCL',
            )
        self._write, self._explain, self._try = write, explain, attempt
        self._tried: FixesTried | None = None  # while steps are made again
        self.logdir = None if logdir is None else Path(logdir).absolute()  # the program may go elsewhere
        self.files: list[Path] = []
        self._unseen: weakref.finalize[[int, int], Recording] | None = None
        super().__init__(on_trace=self._keep if self.logdir else None, **schedule)

    @property
    def trace(self) -> Trace:
        """The last finished trace.

        Raises:
            UserError: there is none yet.
        """
        self._seen()
        return super().trace

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, traceback)
        if self.logdir is None and self.traces:
            self._seen()
            self._unseen = weakref.finalize(self, _lost, int((self.traces[-1].kind == Kind.STEP).sum()), os.getpid())

    def _seen(self) -> None:
        if self._unseen is not None:
            self._unseen.detach()

    def _keep(self, trace: Trace) -> None:
        assert self.logdir is not None
        self.files += self._write(trace, self.logdir)

    def save(self, path: str | Path = "runs") -> list[Path]:
        """Writes the last trace: to a file that ends in .json or .json.gz, else into a folder for TensorBoard.

        Raises:
            UserError: nothing was recorded, or it cannot be written.
        """
        written = self._write(self.trace, Path(path))
        self.files += written
        return written

    def report(self, show: bool = True) -> Report:
        """What waited, on which line, and what it costs; printed as a table unless `show` is false.

        Raises:
            UserError: nothing was recorded.
        """
        return self._explain(self.trace, show)

    def try_fixes(
        self,
        step: Callable[[], object] | None = None,
        *,
        budget: float | str = "30s",
        unsafe_fixes: bool = False,
        show: bool = True,
    ) -> FixesTried:
        """Tries the fixes of the program's lines in the running program: its steps are made again and again, as written and
        with each fix, to compare what they compute and how long they take. Then all is as it was before, bit for bit:
        parameters, optimizers, random numbers, names.

            with syncscope.trace("runs") as trace:
                for batch in loader:
                    train_step(batch)
                    trace.step()
            trace.try_fixes()                             # the loop above is run once more
            trace.try_fixes(lambda: train_step(batch))    # or this is a step

        `step` makes one. Without it the loop does in which this stands, or behind which. `budget` is the time that it may take,
        as seconds or as "90s" or "10m". Safe fixes are tried, with `unsafe_fixes` unsafe ones, too. Where the recording still
        runs, it ends here. What is found is printed, unless `show` is false, is part of the recording and of what was written
        of it, and is what `report` goes by.

        Raises:
            UserError: nothing was recorded, or there is nothing that makes a step once more.
        """
        if self._tried is not None:  # asked by a step that is being tried
            return self._tried
        self.__exit__(None, None, None)
        recorded, outer = self.trace, current()
        self._tried = FixesTried()
        if outer is not None:
            outer.pause(True)
        try:
            return self._try(recorded, self.files, step, sys._getframe(1), budget, unsafe_fixes, show)
        finally:
            self._tried = None
            if outer is not None:
                outer.pause(False)


def _lost(steps: int, process: int) -> None:
    """Says of a recording that goes that it was written nowhere, and that nobody asked for it."""
    if os.getpid() == process:
        number = f"{steps} step{'s' * (steps != 1)}" if steps else "what happened, no step"
        ways = (
            '`syncscope.trace("runs")` writes it, `with syncscope.trace() as trace:` and then `trace.report()` show it'
        )
        say(UserError(f"recorded {number}, kept in memory alone, and nobody asked for it", ways))
