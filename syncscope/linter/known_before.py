"""What became of the findings of a command that were there before: that a baseline holds, or that stood at a revision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from syncscope.linter.known import Found, KnownFinding

if TYPE_CHECKING:
    from syncscope.linter.baseline import Baseline
    from syncscope.linter.revision import Revision


@dataclass
class InBaseline:
    """What a baseline holds of what was linted."""

    found: int = 0  # findings that it holds
    gone: Counter[KnownFinding] = field(default_factory=Counter)  # what it holds, and is not found any more
    moved: Sequence[tuple[KnownFinding, KnownFinding, Found]] = ()  # what it holds, and stands elsewhere now, where


@dataclass
class SinceRevision:
    """What was there at a revision: only files that are otherwise now are linted."""

    revision: Revision
    then: Baseline | None  # what was found there; None where nothing is found now
    reached: int  # files that did not change, and hold what steps reach only since
    found: int = 0  # findings that were there then
