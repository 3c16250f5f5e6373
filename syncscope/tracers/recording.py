"""What `with syncscope.trace() as trace:` gives: a session that can write and explain what it recorded."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

from syncscope.errors import UserError
from syncscope.model.report import Report
from syncscope.model.trace import Trace
from syncscope.tracers.session import Session

Write = Callable[[Trace, Path], list[Path]]
Explain = Callable[[Trace, bool], Report]


class Recording(Session):
    """A session with `save` and `report`; which formats and which analysis is for the caller to say."""

    def __init__(self, write: Write, explain: Explain, *, logdir: str | Path | None = None, **schedule: Any) -> None:
        if not any(importlib.util.find_spec(package) for package in ("torch", "pyopencl")):
            raise UserError(
                "nothing can be recorded: neither torch nor pyopencl is installed",
                'pip install "syncscope[trace]" for PyTorch, "syncscope[opencl]" for OpenCL',
            )
        self._write, self._explain = write, explain
        self.logdir = None if logdir is None else Path(logdir).absolute()  # the program may go elsewhere
        self.files: list[Path] = []
        super().__init__(on_trace=self._keep if self.logdir else None, **schedule)

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
