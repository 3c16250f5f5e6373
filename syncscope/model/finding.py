"""What the linter says, and what it offers to change."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from syncscope.model.source import Place, Span


class Safety(Enum):
    """How far a fix can be trusted."""

    SAFE = "safe"  # bit for bit the same value, gradient, dtype and error
    UNSAFE = "unsafe"  # says what changes
    SUGGEST = "suggest"  # shown, never applied


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the bytes of this span by this text."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """Edits that belong together: all of them or none.

    `changes` says in one sentence what an UNSAFE fix changes, or why a SUGGEST one must be checked by hand.
    """

    title: str
    edits: tuple[Edit, ...]
    safety: Safety
    changes: str = ""


@dataclass(frozen=True, slots=True)
class Hazard:
    """A named way of making the host wait: its prose, and the op names under which a trace shows it."""

    name: str
    summary: str
    prose: str
    seen_as: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """A hazard seen in source.

    Lines and columns begin at 1, columns count characters, the end is exclusive. `confidence` is 0 to 3. A finding that is
    not `hot` lies in code that runs rarely or on the host.
    """

    rule: str
    place: Place
    column: int
    end_line: int
    end_column: int
    span: Span
    message: str
    confidence: int
    hot: bool
    heat: str = ""
    why: tuple[str, ...] = ()
    fix: Fix | None = None
    function: str = ""  # dotted name of the enclosing function, "" at module level
