"""Fixes into files: whole fixes, no overlap, until nothing changes; written atomically, or not at all."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from syncscope import files
from syncscope.codemod.leftover_imports import leftovers
from syncscope.errors import UserError
from syncscope.files import regular
from syncscope.linter.notebooks import Notebook, source_of
from syncscope.linter.source import CFile, SourceFile, any_code, disjoint
from syncscope.model.finding import Edit, Finding, Fix, Safety

PASSES = 30  # of one file; a set of fixes that has not settled by then goes in circles


@dataclass(frozen=True, slots=True)
class Mended:
    """A file after its fixes: the new bytes, what was applied, and why something was not."""

    raw: bytes
    applied: tuple[Finding, ...] = ()
    refused: tuple[str, ...] = ()


def mend(
    path: str, raw: bytes, check: Callable[[SourceFile], Sequence[Finding]], allowed: Collection[Safety]
) -> Mended:
    """Apply every fix of an allowed tier, lint again, and so on until there is none.

    A fix that would leave code that does not parse is refused and named; so is a rule whose fixes never settle.
    """
    refused: dict[str, str] = {}  # rule -> why
    while True:
        result, restless = settle(path, raw, check, allowed, refused)
        if not restless:
            return result
        for rule in restless:
            refused[rule] = f"{path}: the fixes of {rule} undo one another; none was made"


def settle(
    path: str,
    raw: bytes,
    check: Callable[[SourceFile], Sequence[Finding]],
    allowed: Collection[Safety],
    refused: dict[str, str],
) -> tuple[Mended, set[str]]:
    """One try at `mend`; the second value names the rules that did not come to rest."""
    applied: list[Finding] = []
    bad: dict[tuple[str, str], str] = {}
    first = source = source_of(path, raw)
    last = set[str]()
    for _ in range(PASSES):
        wanted = [
            f
            for f in check(source)
            if f.fix and f.fix.tier in allowed and f.rule not in refused and (f.rule, key(f.fix)) not in bad
        ]
        taken = compatible(wanted)
        if not taken:
            return Mended(tidied(first, source).raw, tuple(applied), (*refused.values(), *bad.values())), set()
        new = edited(source, edits_of(taken))
        if new is None:
            for finding in taken:
                if edited(source, edits_of([finding])) is None:
                    said = f"{finding.place}: the fix of {finding.rule} was not made: it would leave code that does not parse"
                    bad[finding.rule, key(finding.fix)] = said
            taken = [f for f in taken if (f.rule, key(f.fix)) not in bad][:1]
            if not taken:
                continue
            new = edited(source, edits_of(taken))
        if new is None or new.raw == source.raw:
            bad.update({(f.rule, key(f.fix)): f"{f.place}: the fix of {f.rule} changes nothing" for f in taken})
            continue
        source, last = new, {f.rule for f in taken}
        applied += taken
    return Mended(raw), last


def tidied(before: SourceFile, after: SourceFile) -> SourceFile:
    """The file without the imports that only the old code used, unless it may be there to hand names on."""
    if after is before or isinstance(after, (Notebook, CFile)) or os.path.basename(after.path) == "__init__.py":
        return after
    return edited(after, leftovers(before.code, after.code)) or after


def key(fix: Fix | None) -> str:
    """What a fix would write, wherever it would write it."""
    return "\0".join(edit.text for edit in fix.edits) if fix else ""


def edits_of(findings: Iterable[Finding]) -> list[Edit]:
    """All edits of their fixes."""
    return [edit for finding in findings if finding.fix for edit in finding.fix.edits]


def compatible(findings: Iterable[Finding]) -> list[Finding]:
    """The findings whose fixes can be made together, the first in the file first; fixes that are equal are one."""
    taken: list[Finding] = []
    edits: list[Edit] = []
    fixes: set[tuple[Edit, ...]] = set()
    for finding in sorted(findings, key=lambda f: (f.fix.edits[0].span if f.fix else f.span, f.rule)):
        assert finding.fix is not None
        if finding.fix.edits in fixes:
            continue
        if disjoint([*edits, *finding.fix.edits]):
            taken.append(finding)
            edits += finding.fix.edits
            fixes.add(finding.fix.edits)
    return taken


@any_code()
def edited(source: SourceFile, edits: Iterable[Edit]) -> SourceFile | None:
    """The file with these edits made, or None where it could not be parsed or written then."""
    try:
        new = source_of(source.path, source.edited(edits))
        if isinstance(new, Notebook) and isinstance(source, Notebook) and len(new.broken) > len(source.broken):
            return None
        if isinstance(new, CFile):
            return new
        ast.parse(new.code)
    except (SyntaxError, ValueError, UserError, RecursionError, MemoryError):
        return None
    return new


def write(path: str, raw: bytes, before: bytes) -> None:
    """Replace a file by what is linted and mended of it.

    Raises:
        UserError: it cannot be written, or no longer holds `before`.
    """
    try:
        now = regular(path)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}", "run the command again") from None
    if now != before:
        raise UserError(f"{path}: it changed while it was linted; not written", "run the command again")
    files.write(path, raw, durable=True)


def changed_lines(before: bytes, after: bytes) -> int:
    """How many lines of a file a change takes the place of, or puts between others."""
    return sum(max(end - start, new_end - new) for start, end, new, new_end in _changes(before, after))


def lines_now(before: bytes, after: bytes) -> list[str]:
    """The lines of a changed file that are new or follow on what was taken out: `41`, `74-75`."""
    spans = ((new + 1, max(new_end, new + 1)) for _, _, new, new_end in _changes(before, after))
    return [str(first) if first == last else f"{first}-{last}" for first, last in spans]


def _changes(before: bytes, after: bytes) -> list[tuple[int, int, int, int]]:
    """The lines of a file, from and to, that are otherwise, and those that stand in their place."""
    if before == after:
        return []
    blocks = SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False).get_opcodes()
    return [(start, end, new, new_end) for kind, start, end, new, new_end in blocks if kind != "equal"]
