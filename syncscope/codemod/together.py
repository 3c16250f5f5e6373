"""Several fixes as one: what stands beside each other and waits alike is mended together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from syncscope.model.finding import Edit, Fix
from syncscope.model.source import Span


def together(fixes: Sequence[Fix]) -> Fix:
    """One fix of several that are called alike and are equally safe: what they write at one place is written in their order."""
    put: dict[Span, dict[str, None]] = {}
    for fix in fixes:
        for edit in fix.edits:
            put.setdefault(edit.span, {})[edit.text] = None
    edits = tuple(Edit(span, "".join(texts)) for span, texts in sorted(put.items()))
    return replace(fixes[0], edits=edits, changes="; ".join(dict.fromkeys(fix.changes for fix in fixes if fix.changes)))
