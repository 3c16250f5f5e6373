"""An example of a rule or a rewrite: its documentation, its specification and its test."""

from __future__ import annotations

from dataclasses import dataclass

from syncscope.model.finding import Safety

MARK = "  # !"  # at the end of a line that must be flagged


@dataclass(frozen=True, slots=True)
class Example:
    """Code with `# !` on each line that must be flagged; no mark: it must stay silent.

    `fixed` is the code after the fix, without marks, and `safety` the fix's tier; both None where there is no fix. `inputs`
    describes the arguments with which the last function is run as written and as fixed, for instance
    `"x: float[n, c]; keep: bool[n]"` (the words are those of tests/rules/equivalence.py); "" where it cannot be run alone.
    `instead` is what to write where no fix can be made: shown on the rule's page, and run as a fix is. `rule` names the rule
    that flags it, where several list the rewrite whose example it is.
    """

    code: str
    fixed: str | None = None
    safety: Safety | None = None
    inputs: str = ""
    instead: str | None = None
    rule: str = ""
