"""Several fixes as one: what stands beside each other and waits alike is mended together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from syncscope.model.finding import Edit, Fix
from syncscope.model.source import Span

MOST_TITLES = 3


def together(fixes: Sequence[Fix]) -> Fix:
    """One fix of several that are called alike and are equally safe: what they put at one place is put there in their order.

    A fix that replaces what another has replaced is left out, as where both fold one long statement: it is mended next.
    """
    put: dict[Span, dict[str, None]] = {}
    taken: list[Fix] = []
    for fix in fixes:
        if all(_apart(edit, put) for edit in fix.edits):
            taken.append(fix)
            for edit in fix.edits:
                put.setdefault(edit.span, {})[edit.text] = None
    edits = tuple(Edit(span, "".join(texts)) for span, texts in sorted(put.items()))
    changes = "; ".join(dict.fromkeys(fix.changes for fix in taken if fix.changes))
    return replace(taken[0], title=_called(taken), edits=edits, changes=changes)


def _called(fixes: Sequence[Fix]) -> str:
    """What several fixes of one rewrite are called, of others the first."""
    titles = dict.fromkeys(fix.title for fix in fixes if fix.rewrite == fixes[0].rewrite)
    return "; ".join(titles) if len(titles) <= MOST_TITLES else fixes[0].title


def apart(fixes: Sequence[Fix]) -> bool:
    """Whether no fix replaces anything that another does."""
    return len({edit for fix in fixes for edit in fix.edits}) == len(together(fixes).edits)


def _apart(edit: Edit, put: dict[Span, dict[str, None]]) -> bool:
    """Whether an edit replaces nothing that another does: both may put something at one place, or say the same."""
    span = edit.span
    return not any(
        other.start < span.end and span.start < other.end and not (other == span and edit.text in texts)
        for other, texts in put.items()
    )
