"""What there is to say of one file."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from syncscope.model.finding import Finding


@dataclass(frozen=True, slots=True)
class Hidden:
    """How many findings are not shown, by reason."""

    cold: int = 0
    unsure: int = 0  # less than medium
    allowed: int = 0
    medium: int = 0  # where only what is surer is asked for
    by_file: int = 0  # of what is cold, for the name of its file or folder alone

    def __add__(self, other: Hidden) -> Hidden:
        return Hidden(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found in one file. Lines, spans and edits are those of `SourceFile.code`, see `presented`.

    `also` are those that wait in a step, too, and that nobody gains by reading more of than a line.
    `silenced` are those that a comment lets stand. `unread` is a file that names neither torch nor OpenCL,
    and that nobody passes tensors to.
    `relied` holds path and content hash of every other file that an answer relied on, where it is for the cache. `problem` says
    why the file could not be read at all. `asked` has how often each rewrite was asked for a fix, and how many seconds it took;
    `failed`, which rules of the user's own raised what, and at which line of this file.
    """

    path: str
    findings: tuple[Finding, ...] = ()
    also: tuple[Finding, ...] = ()
    hidden: Hidden = Hidden()
    relied: tuple[tuple[str, str], ...] = ()
    problem: str = ""
    silenced: tuple[Finding, ...] = ()
    unread: bool = False
    asked: dict[str, tuple[int, float]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
