"""An example of a rule or a rewrite: its documentation, its specification and its test."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from syncscope.model.finding import Safety

MARK = "  # !"  # at the end of a line of Python that must be flagged


@dataclass(frozen=True, slots=True)
class Example:
    """Code with `# !` on each line that must be flagged; no mark: it must stay silent.

    `fixed` is the code after the fix, without marks, and `safety` the fix's tier; both None where there is no fix. `inputs`
    describes the arguments with which the last function is run as written and as fixed, for instance
    `"x: float[n, c]; keep: bool[n]"` (the words are those of tests/rules/equivalence.py); "" where it cannot be run alone.
    `instead` is what to write where no fix can be made, or what is offered beside a fix: shown on the rule's page, and run as a
    fix is. `rule` names the rule that flags it, where several list the rewrite whose example it is. `suffix` is that of a file
    which holds it.
    """

    code: str
    fixed: str | None = None
    safety: Safety | None = None
    inputs: str = ""
    instead: str | None = None
    rule: str = ""
    suffix: str = ".py"

    @property
    def language(self) -> str:
        """The language that it is written in, as Markdown calls it."""
        return {".cl": "c", ".py": "python", ".cpp": "cpp"}[self.suffix]

    @property
    def mark(self) -> str:
        """What ends a line that must be flagged."""
        return MARK if self.language == "python" else MARK.replace("#", "//")


class Shows(Enum):
    """What a kernel does that has a hazard, where it is run."""

    NOTHING = "it is not run"
    HANG = "it does not end"
    WRONG = "its result is wrong, or not the same each time"
    ERROR = "it cannot be compiled or enqueued"
    WAITS = "the host waits more often"
    UNSEEN = "on PoCL it does what was meant, and the page says why"


@dataclass(frozen=True, slots=True)
class KernelExample(Example):
    """An example in OpenCL C, or of the program on the host around it.

    `run` is Python that runs it and sets `right`; `run(name, items, group, *arguments)` is given, which compiles the code,
    enqueues the kernel of that name, and copies back what the arrays hold; also `np`, `cl`, `queue` and `context`. As written
    the code does what `shows` says, as `fixed` or as in `instead` it does not.
    """

    suffix: str = ".cl"
    shows: Shows = Shows.NOTHING
    run: str = ""
