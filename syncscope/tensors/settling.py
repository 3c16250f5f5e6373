"""Answers that hold only for now: those that depend on where the analysis came from."""

from __future__ import annotations

from syncscope.project.modules import Class, ProjectFunction


class Settling:
    """Mark a function as running, and what comes of it as unsettled when it met itself or another that is running.

    An unsettled answer depends on where the analysis came from. It serves for the file at hand and is then forgotten, so that
    what is said of a file never depends on the files seen before it.
    """

    __slots__ = ("before", "function", "what")

    def __init__(self, function: ProjectFunction | None, what: ProjectFunction | Class) -> None:
        self.function = function
        self.what = what

    def __enter__(self) -> None:
        project = self.what.module.project
        self.before = project.cut
        project.cut = set()
        if self.function is not None:
            self.function.running = True

    def __exit__(self, *error: object) -> None:
        project = self.what.module.project
        mine = project.cut
        if self.function is not None:
            self.function.running = False
            mine.discard(self.function)
        if mine and not self.what.module.linted:
            project.unsettled.append(self.what)
        project.cut = self.before | mine
