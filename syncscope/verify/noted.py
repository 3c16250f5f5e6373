"""What some steps of a run compute, noted from one moment of it to another."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

from syncscope.verify.capture import Capture
from syncscope.verify.processes import RunResult
from syncscope.verify.request import Request
from syncscope.verify.values import Values, values_of


class Noted:
    """One such part of a run; `folder` is empty, and gets arrays. `count` is its steps so far."""

    def __init__(self, request: Request, folder: Path, optimizers: dict[int, Any]) -> None:
        self.request, self.folder, self.optimizers = request, folder, optimizers
        self.count = 0
        self._stack = contextlib.ExitStack()
        self._capture = Capture(self)
        self._found: dict[str, Any] = {}

    def begin(self) -> None:
        """Now."""
        self.folder.mkdir()
        self._capture.listen(self._stack)

    def step(self) -> None:
        """A step has ended."""
        self.count += 1
        self._capture.boundary()

    def end(self) -> None:
        """What comes now is no part of it."""
        from syncscope.tracers.hooks import reads

        self._found = {"steps": self.count, **self._capture.found()}
        self._stack.close()
        reads.local.inside = False

    def values(self) -> Values:
        """All that was noted."""
        return values_of(RunResult(self.folder, json.loads(json.dumps(self._found))))
