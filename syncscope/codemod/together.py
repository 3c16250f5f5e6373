"""Several fixes as one: what stands beside each other and waits alike is mended together."""

from __future__ import annotations

import ast
from bisect import bisect_left, insort
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from textwrap import dedent

from syncscope.model.finding import Edit, Fix
from syncscope.model.source import Span

MOST_TITLES = 3


def together(fixes: Sequence[Fix]) -> Fix:
    """One fix of several that are called alike and are equally safe: what they put at one place is put there in their order.

    A fix that replaces what another has replaced is left out, as where both fold one long statement: it is mended next.
    """
    put: dict[Span, dict[str, None]] = {}
    places: list[Span] = []  # the same, in order: none overlaps another
    taken: list[Fix] = []
    for fix in fixes:
        if all(_apart(edit, put, places) for edit in fix.edits):
            taken.append(fix)
            for edit in fix.edits:
                if edit.span not in put:
                    insort(places, edit.span)
                put.setdefault(edit.span, {})[edit.text] = None
    edits = tuple(Edit(span, "".join(texts)) for span, texts in sorted(put.items()))
    each = dict.fromkeys(taken)
    return replace(
        taken[0],
        title=_called(taken),
        edits=edits,
        terms=tuple(dict.fromkeys(said for fix in taken for said in fix.terms)),
        left=sum(fix.left for fix in each),
        fills=sum(fix.fills for fix in each),
        rounds=any(fix.rounds for fix in taken),
        redraws=any(fix.redraws for fix in taken),
        drawbacks=frozenset().union(*(fix.drawbacks for fix in taken)),
    )


def _called(fixes: Sequence[Fix]) -> str:
    """What several fixes of one rewrite are called, of others the first."""
    titles = dict.fromkeys(fix.title for fix in fixes if fix.rewrite == fixes[0].rewrite)
    return "; ".join(titles) if len(titles) <= MOST_TITLES else fixes[0].title


def apart(fixes: Sequence[Fix]) -> bool:
    """Whether no fix replaces anything that another does, or names something else alike where both put statements."""
    edits = {edit for fix in fixes for edit in fix.edits}
    put = [edit for edit in edits if edit.span.start == edit.span.end]
    places = len({edit.span for edit in put})
    if len(edits) - len(put) + places != len(together(fixes).edits):
        return False
    return places == len(put) or _named_apart(put)


def _named_apart(put: Sequence[Edit]) -> bool:
    """Whether all that is put somewhere are statements, and no two give a value to one name."""
    names: list[str] = []
    for edit in put:
        try:
            tree = ast.parse(dedent(edit.text))
        except SyntaxError:
            return False
        names += {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return len(names) == len(set(names))


def _apart(edit: Edit, put: Mapping[Span, Container[str]], places: Sequence[Span]) -> bool:
    """Whether an edit replaces nothing that another does: both may put something at one place, or say the same."""
    span = edit.span
    at = bisect_left(places, span.end, key=attrgetter("start"))
    while at and places[at - 1].end > span.start:
        at -= 1
        if not (places[at] == span and edit.text in put[span]):
            return False
    return True
