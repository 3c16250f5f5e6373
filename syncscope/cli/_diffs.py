"""What `syncscope lint --diff` prints: each fix with what it changes, or as a patch all that `--fix` would write.

Each diff is of the file as those before it leave it, so that `patch -p1` and `git apply` make all of them, one after the other.
What cannot be made beside them, as another way to the same or what changes the same text, is behind a bar: both pass over it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from syncscope.exporters._alike import FixWords, like_it, with_twins
from syncscope.exporters._diff import unified
from syncscope.exporters._over_lines import over_lines
from syncscope.model.finding import Edit, Finding, Fix
from syncscope.model.words import visible

if TYPE_CHECKING:
    from syncscope.linter.session import Linted
    from syncscope.linter.source import SourceFile

BAR = "\N{VERTICAL LINE} "
BARRED = "  it changes what a diff above changes, so that a bar keeps it out of the patch:\n"


def patch(linted: Linted, color: bool) -> str:
    """All that `--fix` would write."""
    return "".join(unified(name, before, after, color=color) for name, before, after in linted.patches())


def each(linted: Linted, color: bool, width: int | None) -> str:
    """Each fix with its safety, what it changes, and its diff upon those before it; of twins all together."""
    from syncscope.linter.notebooks import presented, worded
    from syncscope.linter.source import disjoint

    fixes = list(linted.fixes())
    shown = [
        replace(presented(source, finding), fix=worded(source, finding.fix))
        for source, finding, _ in fixes
        if finding.fix
    ]
    own = {id(one): of for one, of in zip(shown, fixes, strict=True)}

    def line_of(finding: Finding) -> str:
        source, found, _ = own[id(finding)]
        return source.code[source.starts[found.place.line - 1] :].split(b"\n", 1)[0].decode("utf-8", "replace")

    offers, pieces = FixWords(alone=True), list[str]()
    told: dict[tuple[int, tuple[Edit, ...]], str] = {}  # where a diff was shown
    made: dict[int, tuple[Edit, ...]] = {}  # by the diffs of each source so far
    for finding, *twins in with_twins(shown, line_of):
        source, found, others = own[id(finding)]
        where = f"{visible(source.label(found.span.start))}:{finding.place.line}:{finding.column}"
        also = f" (and {others} more)" if others else ""
        like = f", {like_it(twins)}" if twins else ""
        pieces.append(f"{where}: {finding.rule}{also}{like}\n")
        ways = zip(*map(ways_of, (finding, *twins)), strict=True)
        for number, (said, same) in enumerate(zip(offers.of(finding), ways, strict=True)):
            pieces.append(f"{over_lines(f'  {visible(said)}', width, '    ')}\n")
            edits = edits_of(same)
            if (first := told.setdefault((id(source), edits), where)) != where:
                pieces.append(f"  the diff is the one at {first}\n")
                continue
            before = made.get(id(source), ())
            if number == 0 and disjoint([*before, *edits]):
                made[id(source)] = (*before, *edits)
                pieces += upon(source, before, edits, color)
            else:
                pieces.append(BARRED if number == 0 else "")
                pieces += [f"  {BAR}{row}\n" for row in "".join(upon(source, (), edits, color)).splitlines()]
        pieces.append("\n")
    return "".join(pieces)


def upon(source: SourceFile, made: tuple[Edit, ...], edits: tuple[Edit, ...], color: bool) -> list[str]:
    """What edits change where others are made already: a diff of each part of the source."""
    there = {name: after for name, _, after in source.versions(made)}
    after = {name: text for name, _, text in source.versions((*made, *edits))}
    changed = source.versions(edits)
    return [unified(name, there.get(name, text), after[name], color=color) for name, text, _ in changed]


def ways_of(finding: Finding) -> list[Fix]:
    """The fix of a finding, and the other way if there is one."""
    return [fix for fix in (finding.fix, finding.fix and finding.fix.also) if fix is not None]


def edits_of(fixes: Iterable[Fix]) -> tuple[Edit, ...]:
    """The edits of fixes that are twins; those of the first, where they would change the same text."""
    first, *others = fixes
    edits = sorted({*first.edits, *(edit for fix in others for edit in fix.edits)}, key=lambda edit: edit.span)
    meet = any(before.span.overlaps(after.span) for before, after in pairwise(edits))
    return first.edits if meet else tuple(edits)
