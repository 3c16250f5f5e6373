"""What the linter shows of files, held against what was recorded of their lines while they ran."""

from __future__ import annotations

import ast
import hashlib
from collections import defaultdict
from pathlib import Path
from typing import Any

Finding = dict[str, Any]
Statement = tuple[int, int]
EVERY, ELSEWHERE = 0.9, 1 / 3


def statements(path: Path) -> dict[int, Statement]:
    """The innermost statement of each line; of one with a body, its head."""
    of: dict[int, Statement] = {}
    aside = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Try)
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.stmt) or isinstance(node, aside):
            continue
        body = getattr(node, "body", None)
        first, last = node.lineno, max(node.lineno, body[0].lineno - 1) if body else node.end_lineno or node.lineno
        for line in range(first, last + 1):
            if line not in of or of[line][1] - of[line][0] > last - first:
                of[line] = (first, last)
    return of


class Score:
    """Statements that wait in every step, and findings, of some files."""

    def __init__(self, sources: Path) -> None:
        self.sources = sources
        self.shown = self.waiting = self.named = 0
        self.missed: list[str] = []
        self.false: list[str] = []
        self.never_ran: list[str] = []

    def add(self, path: str, truth: dict[str, Any], findings: list[Finding]) -> None:
        """One file: the share of the steps in which each line waited, the lines that ran, and what is shown of it.

        Raises:
            ValueError: the file is not the one that was recorded.
        """
        source = self.sources / path
        if hashlib.sha1(source.read_bytes()).hexdigest() != truth["sha1"]:
            raise ValueError(f"{path} is not what was recorded")
        of = statements(source)
        share: dict[Statement, float] = defaultdict(float)
        for line, (part, _) in truth["waits"].items():
            if int(line) in of:
                share[of[int(line)]] = max(share[of[int(line)]], part)
        ran = {of[line] for line in truth["executed"] if line in of}
        rules = {
            of[line]: each["rule"]
            for each in findings
            for line in range(each["line"], each["end_line"] + 1)
            if line in of
        }
        every = {place for place, part in share.items() if part >= EVERY}
        inside = {of[line] for line in truth.get("inside", ()) if line in of}  # the host waits, in another library
        elsewhere = {place for place in ran - inside if share.get(place, 0) < ELSEWHERE}
        self.waiting += len(every)
        self.shown += len(every & rules.keys())
        self.named += len((every | elsewhere) & rules.keys())
        self.missed += [f"{path}:{place[0]}" for place in sorted(every - rules.keys())]
        self.false += [f"{path}:{place[0]} {rules[place]}" for place in sorted(elsewhere & rules.keys())]
        self.never_ran += [f"{path}:{place[0]} {rules[place]}" for place in sorted(rules.keys() - ran)]

    def told(self) -> list[str]:
        """Each line that is missed, each false alarm, and what is shown in code that no run reached."""
        named = {"missed": self.missed, "false": self.false, "never ran": self.never_ran}
        return [f"{name} {each}" for name, places in named.items() for each in places]

    @property
    def figures(self) -> tuple[float, float]:
        """Recall, and precision."""
        return self.shown / max(1, self.waiting), self.shown / max(1, self.named)

    def __str__(self) -> str:
        recall, precision = self.figures
        return (
            f"{self.shown} of {self.waiting} statements shown that wait in every step, {self.named - self.shown} others:"
            f" recall {recall:.3f}, precision {precision:.3f}; {len(self.never_ran)} shown in what never ran"
        )
