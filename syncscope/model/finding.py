"""What the linter says, and what it offers to change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple

from syncscope.model.heat import SURE, Heat
from syncscope.model.source import Place, Span


class Severity(Enum):
    """How much a finding in hot code matters."""

    WARNING = "warning"  # the host waits for all that is queued, or a kernel is wrong
    NOTE = "note"  # by design, or rarely dear: said once, with the switch that avoids it


class Safety(Enum):
    """How far a fix can be trusted."""

    __hash__ = object.__hash__  # a fix, which has each of them, is looked up by the thousand
    SAFE = "safe"  # bit for bit the same value, gradient, dtype and error
    UNSAFE = "unsafe"  # says what changes
    SUGGEST = "suggest"  # shown, never applied


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the bytes of this span by this text."""

    span: Span
    text: str


class Adds(Enum):
    """What a device does more once code is rewritten, and when that pays; as its value in words."""

    __hash__ = object.__hash__
    NOTHING = ""
    ROWS = (  # as benchmarks/kept_share.py prints on an H100, of cross_entropy: of 2.0 million numbers, of 5.5 to 66 million
        "what hangs on the selection then runs over all rows, forward and backward: up to some two million numbers that pays "
        "at any share of kept rows, and of more only where it is large (measured: from 15 to 58 % on)"
    )
    BRANCHES = "both branches then run every time: that pays where they are small"
    PASSES = "up to fifteen more passes then run in each loop: that pays where loops are long"


class Stays(Enum):
    """Which of the reads that a fix mends together is still made."""

    __hash__ = object.__hash__
    NONE = "none"
    FIRST = "first"  # what they read is known before the first of them
    LAST = "last"


class Way(Enum):
    """How a rewrite mends what it is for, where what a step gains by that hangs on the waits around it."""

    __hash__ = object.__hash__
    OTHER = "other"
    CHECKS = "checks"  # what raises asks otherwise, or later
    JOINS = "joins"  # numbers of several tensors are read as one
    LISTS = "lists"  # so are all numbers of a list
    READS_ONCE = "reads once"  # a number has a name, and is not read again
    READS_BEFORE = "reads before"  # what the passes of a loop read is read before it
    NOTES = "notes"  # a tensor is noted in place of its number
    ADDS_UP = "adds up"  # what passes add up is read behind the loop, or on some of them
    INDEXES = "indexes"  # what several masks select is taken by positions that are looked for once
    LOOKS_BEFORE = "looks before"  # so is what each pass of a loop selects by one mask, before the loop


class Drawback(Enum):
    """What speaks against a fix, wherever it stands."""

    UNPINNED = "unpinned"  # nothing in sight pins the memory that it copies
    READS_WORSE = "reads worse"  # a reader looks twice, where the old code said what it does
    NO_NUMBER = "no number"  # a tensor of no dimensions stands where a number stood


BETWEEN = "; "
"""What stands between terms that are printed."""


@dataclass(frozen=True, slots=True)
class Fix:
    """Edits that belong together: all of them or none.

    The `terms` say what an UNSAFE fix changes, or why a SUGGEST one must be checked by hand, each in words. `adds` is what the
    device does more then: `ROWS` is priced by how many rows were kept. Of the reads it mends together one may be what `stays`,
    and of several such fixes that are one, as many as are `left`.
    Where it `clears` the line of a read, what that launched for it goes, too; where it `takes` rows all the same, by positions,
    what took them stays. `also` is another way to the same, to be made by hand. `rewrite` is the name of what made it, and
    `gains` says in words how many waits go. A `hint` asks for more than its edits, as for callers that take a tensor then, and
    what a step gains little by says so in `why_by_hand`: both are left to people, however safe they are.
    The last bits of what is computed may be others where it `rounds`, and other random numbers are drawn where it `redraws`.
    Of elements it `fills` so many, each in a statement of its own.
    """

    title: str
    edits: tuple[Edit, ...]
    safety: Safety
    terms: tuple[str, ...] = ()
    adds: Adds = Adds.NOTHING
    stays: Stays = Stays.NONE
    left: int = 0
    clears: bool = False
    takes: bool = False
    also: Fix | None = field(default=None, compare=False)
    rewrite: str = field(default="", compare=False)
    gains: str = field(default="", compare=False)
    hint: bool = False
    rounds: bool = False
    redraws: bool = False
    way: Way = Way.OTHER
    drawbacks: frozenset[Drawback] = frozenset()
    fills: int = 0
    why_by_hand: str = ""

    @property
    def changes(self) -> str:
        """What it changes, or why it must be checked, as it is printed."""
        return BETWEEN.join(self.terms)

    @property
    def conditions(self) -> tuple[str, ...]:
        """Why it is left to people, what is changed and what is added, each in words."""
        return tuple(filter(None, (self.why_by_hand, *self.terms, self.adds.value)))

    @property
    def words(self) -> str:
        """The same, as it is printed; "" where it is none of them."""
        return BETWEEN.join(self.conditions)

    @property
    def tier(self) -> Safety:
        """What has it made: a command for what is safe, or for what is unsafe, or a person."""
        return Safety.SUGGEST if self.hint or self.why_by_hand else self.safety

    @property
    def standing(self) -> str:
        """How safe it is, and whether it is left to people all the same, in words."""
        return self.safety.value if self.tier is self.safety else f"{self.safety.value}, by hand"


@dataclass(frozen=True, slots=True)
class Hazard:
    """A named way of making the host wait: its prose, the op names under which a trace shows it, and its page's address."""

    name: str
    summary: str
    prose: str
    seen_as: tuple[str, ...] = ()
    address: str = ""


class Identity(NamedTuple):
    """Hashes by which a finding is known again: of the expression that waits, without and with the names of locals, of what it
    waits for, and of the function around it; "" where there is none. None of them has the name of a rule. `leaves` has those
    of what may wait in its place once its fix is made, with spaces between."""

    wait: str = ""
    text: str = ""
    value: str = ""
    body: str = ""
    leaves: str = ""


NO_IDENTITY = Identity()
CONFIDENCE = ("low", "low", "medium", "high")
"""The word for each `Finding.confidence`."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A hazard seen in source.

    Lines and columns begin at 1, columns count characters, the end is exclusive; in a notebook they count within `cell` (from
    1; 0 is a plain file), and `in_file` has the first and the last line in the notebook's own text. `span` and edits are bytes
    of the code that was analysed. `confidence` is 0 to 3. A finding that is not `hot` lies in code that runs rarely or on the
    host. `severity` is "error", "warning" or "note". `fingerprint` stays when lines move and locals are renamed: a hash of the
    function's name and of what waits there. By `known_by` it is known again in another function, too. Where there is no `fix`,
    `advice` is what could be made of it by hand, and where there is none `why_not` says what keeps a rewrite from it. What
    `repeats` waits many times in a step: in a loop inside of it. Where its `fix` mends others of its function, too, `alone` is
    the one for itself.
    """

    rule: str
    place: Place
    column: int
    end_line: int
    end_column: int
    span: Span
    message: str
    confidence: int
    heat: Heat = SURE
    why: tuple[str, ...] = ()
    fix: Fix | None = None
    advice: Fix | None = None
    why_not: str = ""
    function: str = ""  # dotted name of the enclosing function, "" at module level
    severity: str = "warning"
    cell: int = 0
    fingerprint: str = ""
    known_by: Identity = NO_IDENTITY
    in_file: tuple[int, int] | None = None
    repeats: bool = False
    alone: Fix | None = field(default=None, compare=False)

    @property
    def file_lines(self) -> tuple[int, int]:
        """The first and the last line in the text of the file, for whoever shows that: of a notebook it is JSON."""
        return self.in_file or (self.place.line, self.end_line)

    @property
    def hot(self) -> bool:
        """Whether it lies in code that runs in every step."""
        return self.heat.hot

    @property
    def short(self) -> bool:
        """Whether it does, and nobody gains by reading more than a line of it."""
        return self.heat.hot and not self.heat.whole

    def cooled(self, heat: Heat) -> Finding:
        """The finding as one that is told in a line."""
        return replace(self, heat=heat, severity="note")

    @property
    def source_name(self) -> str:
        """The key of `Report.sources` under which the lines stand that the finding speaks of."""
        return f"{self.place.path}:cell {self.cell}" if self.cell else self.place.path


def all_told(whole: Sequence[Finding], also: Sequence[Finding]) -> list[Finding]:
    """Findings, and among them what is told in a line, in the order of files and lines."""
    if not also:
        return list(whole)
    files = {path: at for at, path in enumerate(dict.fromkeys(f.place.path for f in (*whole, *also)))}
    return sorted((*whole, *also), key=lambda f: (files[f.place.path], f.cell, f.span.start, f.rule))
