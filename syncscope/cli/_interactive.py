"""`--interactive`: each fix and each suggestion is shown, and made or not as the user says."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING

import click

from syncscope.cli._console import echo
from syncscope.errors import UserError

if TYPE_CHECKING:
    from syncscope.linter.run import Files
    from syncscope.linter.session import Linted
    from syncscope.linter.source import SourceFile
    from syncscope.model.finding import Finding, Safety


def ask(linted: Linted, files: Files) -> Linted:
    """Ask about every fix of these findings, file by file; a file is written as soon as its last question is answered."""
    try:
        return answered(linted, files)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        raise UserError(
            "--interactive asks about each fix, and there is no terminal that answers",
            "start it in one; `syncscope lint --diff` shows the fixes, and --fix makes those that are safe",
        ) from None


def answered(linted: Linted, files: Files) -> Linted:
    """The findings that are left when each question is answered."""
    from syncscope.linter.gathering import gather

    sources: dict[str, SourceFile] = {source.path: source for source, _ in linted.found}
    always: set[tuple[str, Safety]] = set()
    changed = False
    for source in sources.values():
        mended, stop = ask_file(source, linted, files, always)
        if mended.raw != source.raw:
            from syncscope.linter.fixing import write

            write(source.path, mended.raw, source.raw)
            changed = True
        if stop:
            break
    if not changed:
        return linted
    from syncscope.cli._watch import forget

    forget()
    return gather(files, revision=linted.since.revision if linted.since else None)


def ask_file(
    source: SourceFile, linted: Linted, files: Files, always: set[tuple[str, Safety]]
) -> tuple[SourceFile, bool]:
    """The file with the fixes that were wanted, and whether to ask no more."""
    from syncscope.linter.fixing import edited, key
    from syncscope.linter.run import Job, to_mend

    job = Job(
        source.path,
        files.config(source.path),
        baseline=files.first.baseline,
        since=linted.since.then if linted.since else None,
    )
    declined: Counter[tuple[str, str]] = Counter()  # how many of the fixes that are alike, the first in the file first
    while True:
        alike: Counter[tuple[str, str]] = Counter()
        finding = None
        for one in to_mend(source, job):
            if one.fix:
                same = (one.rule, key(one.fix))
                alike[same] += 1
                if alike[same] > declined[same]:
                    finding = one
                    break
        if finding is None or finding.fix is None:
            return source, False
        kind = finding.rule, finding.fix.tier
        answer = "y" if kind in always else question(source, finding)
        if answer == "q":
            return source, True
        if answer == "a":
            always.add(kind)
        new = edited(source, finding.fix.edits) if answer in "ya" else None
        if new is not None:
            source = new
            continue
        if answer in "ya":
            echo("not made: it would leave code that does not parse", err=True)
        declined[finding.rule, key(finding.fix)] += 1


def question(source: SourceFile, finding: Finding) -> str:
    """Show a finding and its fix, and ask: y, n, a or q."""
    from syncscope.cli._console import columns, paints
    from syncscope.exporters._diff import unified
    from syncscope.exporters._source_frame import frame
    from syncscope.linter.notebooks import presented
    from syncscope.model.finding import Safety
    from syncscope.model.words import all_visible

    color = paints(sys.stdout)
    shown = presented(source, finding)
    lines = source.texts()[shown.source_name].decode("utf-8", "replace").split("\n")
    echo(frame(all_visible(shown), lines, color=color, width=columns(sys.stdout)))
    assert finding.fix is not None
    for name, before, after in source.versions(finding.fix.edits):
        echo(unified(name, before, after, color=color), nl=False)
    suggested = finding.fix.tier is Safety.SUGGEST
    words = "make this fix? [y]es, [n]o, [a]ll of this rule, [q]uit"
    if suggested:
        words = "make this suggestion? [y]es, [n]o, [a]ll suggestions of this rule, [q]uit"
    answer: str = click.prompt(words, type=click.Choice(["y", "n", "a", "q"]), show_choices=False, default="n")
    return answer
