"""What comments say of a wait, or of its whole file: what one wants, or lets stand, no command takes away."""

from __future__ import annotations

import ast
import itertools
import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from textwrap import shorten

from syncscope.linter.overlaps import Overlaps
from syncscope.linter.source import SourceFile
from syncscope.linter.worth.edits import written_again
from syncscope.model.fact import Site
from syncscope.model.finding import Finding, Fix, Safety
from syncscope.model.source import line_starts
from syncscope.rules import View

_WAITS = re.compile(r"\b(sync(s|ed|ing)?|synchroni[sz]\w*|wait(s|ed|ing)?|block until)\b", re.IGNORECASE)
_UNMEANT = re.compile(
    r"\b(no|not|non|never|avoid\w*|without|don't|doesn't|prevent\w*|async\w*|instead|todo|fixme|slow\w*|expensive|needless\w*|"
    r"unnecessar\w*|syncscope)\b",
    re.IGNORECASE,
)
# A wish or an order: "# this waits", "# WAIT 2" and "# GPU sync" only note what happens, as who wants to be rid of it does.
_WANTED = re.compile(
    r"^\W*(we |let's |just )?(sync|synchroni[sz]e|wait)\b(?!\W*\d)|\b(block until|(to|then) (sync|synchroni[sz]e|wait)\b|"
    r"forc(e|es|ed|ing)\b|ensur\w*|mak(e|es|ing) sure|must\b|need(s|ed)?\b|requir\w*|explicit\w*|deliberate\w*|"
    r"intend\w*|intention\w*|on purpose|so that|tim(e|es|ed|ing|ings)\b|benchmark\w*|measur\w*|profil\w*)",
    re.IGNORECASE,
)
_REGRETTED = re.compile(
    rf"{_WAITS.pattern}|\b(todo|fixme|hack|slow\w*|expensive|needless\w*|unnecessar\w*|instead|syncscope)\b",
    re.IGNORECASE,
)
_HEAD = 2000  # bytes: it is said first, below the licence
_GENERATED = re.compile(
    rb"\bauto(?:matically)?[- ]?generated\b|@generated\b|\bdo not (?:manually )?edit\b", re.IGNORECASE
)
_NOTEBOOK = b".ipynb"  # what is exported from one is written back to it: `nbdev_update`


def by_comment(source: SourceFile, site: Site, fix: Fix) -> str:
    """Why a comment leaves a fix to people; "" where none does."""
    found = ((words, about) for words, judge in JUDGES if (about := judge(source, site, fix)))
    return next((words.format(about) for words, about in found), "")


def _wanted(source: SourceFile, site: Site, fix: Fix) -> str:
    """The comment that wants the host to wait where a fix changes code, `x.item()  # force a sync`, or above it; else ""."""
    if not (lines := _lines(source.code)):
        return ""
    starts = line_starts(source.code)
    changed = [site.span, *(edit.span for edit in fix.edits)]
    said: dict[str, None] = {}
    for span in changed:
        first, last = bisect_right(starts, span.start) - 1, bisect_right(starts, span.end) - 1
        above = [line for line in lines[max(first - 1, 0) : first] if line.lstrip().startswith(b"#")]
        said |= dict.fromkeys(map(_comment, [*above, *lines[first : last + 1]]))
    wanted = (each for each in said if _WAITS.search(each) and _WANTED.search(each) and not _UNMEANT.search(each))
    return shorten(next(wanted, "").strip(), 40, placeholder=" ...")


def _called_for(source: SourceFile, site: Site, fix: Fix) -> str:
    """The call that waits, where a comment beside it or above says why it is there: "`item()` as in the paper"; else ""."""
    if not isinstance(site.node, ast.Call) or not isinstance(site.node.func, ast.Attribute):
        return ""
    name = site.node.func.attr
    if f"{name}()".encode() not in source.code:
        return ""
    starts, lines = line_starts(source.code), _split(source.code)
    first, last = (bisect_right(starts, at) - 1 for at in (site.span.start, site.span.end))
    before = map(lines.__getitem__, range(first - 1, -1, -1))
    above = itertools.takewhile(lambda line: line.lstrip().startswith(b"#"), before)
    said = " ".join(map(_comment, [*reversed([*above]), *lines[first : last + 1]]))
    return f".{name}()" if re.search(rf"\b{name}\(\)", said) and not _REGRETTED.search(said) else ""


def _is_generated(source: SourceFile, site: Site, fix: Fix) -> bool:
    """Whether a file says at its head that a change of it is lost when it is made anew, and names no notebook that takes it."""
    head = source.code[:_HEAD]
    return _GENERATED.search(head) is not None and _NOTEBOOK not in head


JUDGES: tuple[tuple[str, Callable[[SourceFile, Site, Fix], bool | str]], ...] = (
    ('the comment "{}" here says that the wait is meant', _wanted),
    ("a comment here says why `{}` is called", _called_for),
    ("this file is generated, as it says: what it is made from is to be changed", _is_generated),
)
"""In the order in which they are asked. What a judge gives is what the reason is about."""


def sparing(finding: Finding, site: Site | None, allowed: Overlaps[Site], view: View) -> Finding:
    """The finding with a fix that is made by hand where it would take away what an `allow` lets stand in another statement."""
    fix = finding.fix
    if site is None or fix is None or not allowed:
        return finding
    statement = view.function(site).statement(site.node)
    near = {id(other): other for edit in fix.edits for other in allowed.of(edit.span)}
    others = (other for other in near.values() if view.function(other).statement(other.node) is not statement)
    taken = next((other for other in others if _takes(fix, other, view.code)), None)
    if taken is None:
        return finding
    said = f"it takes away what a comment lets stand in line {taken.place.line}"
    return replace(finding, fix=replace(fix, safety=Safety.SUGGEST, terms=(said, *fix.terms)))


def _takes(fix: Fix, site: Site, code: bytes) -> bool:
    """Whether a fix replaces what waits at a site by something else."""
    over = (e for e in fix.edits if e.span.start < site.span.end and site.span.start < e.span.end)
    return any(not written_again(edit, site, code) for edit in over)


@lru_cache(maxsize=2)
def _split(code: bytes) -> list[bytes]:
    return code.splitlines()


@lru_cache(maxsize=8)
def _lines(code: bytes) -> list[bytes]:
    """The lines of a file; none where no comment of it speaks of waiting."""
    said = code.lower()
    if not (b"sync" in said or b"wait" in said or b"block until" in said):  # most: seen in a tenth of the time
        return []
    lines = code.splitlines()
    return lines if any(b"#" in line and _WAITS.search(_comment(line)) for line in lines) else []


def _comment(line: bytes) -> str:
    return line.partition(b"#")[2].decode(errors="replace")
