"""Findings as text: the line, arrows under what is meant, and what can be done."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence

from syncscope.exporters._alike import FixWords, like_it, with_twins
from syncscope.exporters._over_lines import over_lines
from syncscope.model.finding import CONFIDENCE, Finding, Fix
from syncscope.model.words import visible

WIDEST, LEAST = 140, 40  # columns of source shown; a longer line is cut around the arrows
STYLES = {"error": "31;1", "warning": "33;1", "note": "36;1", "place": "1", "rule": "35", "dim": "2", "fix": "32"}


def text(
    findings: Iterable[Finding],
    sources: Mapping[str, bytes],
    *,
    color: bool = False,
    provenance: bool = False,
    groups: Sequence[Sequence[Finding]] | None = None,
    width: int | None = None,
) -> str:
    """All findings, one below the other. `provenance` adds how each is known. Of `groups` the first of each is shown, and where
    the others are that have the same to say. No line is longer than a given `width`, but for names and commands."""
    lines = {name: source.decode("utf-8", "replace").split("\n") for name, source in sources.items()}

    def line_of(finding: Finding) -> str:
        known = lines.get(finding.source_name, [])
        return known[finding.place.line - 1] if 0 < finding.place.line <= len(known) else ""

    told: dict[tuple[str, Fix], tuple[int, int]] = {}  # a fix that mends several, and line and column of the first
    findings = [*findings] if groups is None else [each for group in groups for each in group]
    offers, said = FixWords(findings), []
    for finding, *twins in with_twins(findings, line_of) if groups is None else groups:
        mended = offers.of(finding)
        if finding.fix is not None:
            here = finding.place.line, finding.column
            first = told.setdefault((finding.source_name, finding.fix), here)
            if first != here:
                which = f"of line {first[0]}" if first[0] != here[0] else "above"
                mended = [f"the fix {which} mends this, too"]
        mended += [like_it(twins)] if twins else []
        known = lines.get(finding.source_name, [])
        said.append(f"{frame(finding, known, color=color, provenance=provenance, mended=mended, width=width)}\n\n")
    return "".join(said)


def frame(
    finding: Finding,
    lines: list[str],
    *,
    color: bool = False,
    provenance: bool = False,
    mended: list[str] | None = None,
    width: int | None = None,
) -> str:
    """One finding: its place and rule, the source with arrows, then notes; `mended` is what is said of its fix, if not all."""

    def paint(style: str, words: str) -> str:
        return f"\x1b[{STYLES[style]}m{words}\x1b[0m" if color and words else words

    where = f"{finding.source_name}:{finding.place.line}:{finding.column}"
    head = f"{paint('place', where)}: {paint(finding.severity, finding.severity)}: {finding.message}"
    gutter = " " * len(str(finding.place.line))
    shown = [over_lines(f"{head} [{paint('rule', finding.rule)}]", width, f"  {gutter}   ")]
    room = WIDEST if width is None else max(LEAST, min(WIDEST, width - len(f"  {gutter} | ......")))
    if 0 < finding.place.line <= len(lines):
        line, arrows = excerpt(lines[finding.place.line - 1].rstrip("\r"), finding, room)
        shown.append(f"  {paint('dim', f'{finding.place.line} |')} {line}")
        shown.append(f"  {gutter} {paint('dim', '|')} {paint(finding.severity, arrows)}")
    told = (f"  {gutter} {paint('dim', '=')} {note}" for note in notes(finding, provenance, mended))
    shown += [over_lines(note, width, f"  {gutter}   ") for note in told]
    return "\n".join(shown)


def notes(finding: Finding, provenance: bool, mended: list[str] | None) -> list[str]:
    """What is known beside the message: how sure it is, whether it is hot, what would mend it."""
    said = []
    if finding.heat.words or finding.why:
        reasons = [finding.heat.words, "in a loop of the step: many times" if finding.repeats else ""]
        why = "; ".join(filter(None, reasons))
        heat = f"{'hot' if finding.hot else 'cold'}{f' ({why})' if why else ''}"
        said.append(f"confidence {CONFIDENCE[finding.confidence]}, {heat}")
    if provenance:
        said += [f"known because {why}" if n == 0 else f"        and {why}" for n, why in enumerate(finding.why)]
    said += FixWords().of(finding) if mended is None else mended
    return said


def excerpt(line: str, finding: Finding, room: int = WIDEST) -> tuple[str, str]:
    """The line, cut where it is longer than there is room, and the arrows below it, aligned whatever its letters are."""
    start = min(finding.column - 1, len(line))
    end = min(finding.end_column - 1, len(line)) if finding.end_line == finding.place.line else len(line.rstrip())
    left = 0
    if len(line) > room:
        left = max(0, min(start - room // 4, len(line) - room))
    cut = line[left : left + room]
    before, under = cut[: start - left], cut[start - left : max(end - left, 0)]
    ahead = "..." if left else ""
    behind = "..." if left + room < len(line) else ""
    pad = "".join("\t" if c == "\t" else " " * width(c) for c in before)
    return ahead + shown(cut) + behind, " " * len(ahead) + pad + "^" * max(1, sum(map(width, under)))


def shown(code: str) -> str:
    """Text of a source file, visible; tabs stay."""
    return "\t".join(map(visible, code.split("\t")))


def line_of(source: bytes | None, number: int) -> str:
    """The text of a line (the first is 1), stripped and visible; empty where there is none."""
    lines = (source or b"").splitlines()
    return visible(lines[number - 1].decode(errors="replace").strip()) if 0 < number <= len(lines) else ""


def width(c: str) -> int:
    """Columns that a terminal gives a character."""
    if c == "\t":
        return 1
    if not c.isprintable() and len(visible(c)) > 1:
        return len(visible(c))
    if c.isascii():
        return 1
    if unicodedata.combining(c):
        return 0
    return 2 if unicodedata.east_asian_width(c) in "WF" else 1
