"""What an editor offers at a place: an edit once, however many findings it mends, and under a title that no other there has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from textwrap import shorten

from pygls.workspace import PositionCodec

from syncscope.linter.lsp_documents import Document
from syncscope.model.finding import Edit, Finding

LONGEST = 60  # characters of an expression in a title


@dataclass(frozen=True, slots=True)
class QuickFix:
    """Edits that the user can choose, and the findings that they mend."""

    title: str
    document: Document
    findings: tuple[Finding, ...]
    edits: tuple[Edit, ...]
    preferred: bool = False


def told_apart(offers: Sequence[QuickFix], codec: PositionCodec) -> list[QuickFix]:
    """Those that make the same edits as one; of those called alike each says its line, its expression, or its column."""
    of_edits: dict[tuple[Edit, ...], QuickFix] = {}
    for offer in offers:
        first = of_edits.get(offer.edits)
        of_edits[offer.edits] = replace(first, findings=first.findings + offer.findings) if first else offer
    found = list(of_edits.values())
    for way in (_line, _expression, _column):
        found = _by(way, found, codec)
    return found


def _by(
    way: Callable[[QuickFix, PositionCodec], str], offers: Sequence[QuickFix], codec: PositionCodec
) -> list[QuickFix]:
    """The offers, those called alike with what tells them apart, where it does: in one line the line does not."""
    ways = {at: way(offer, codec) for at, offer in enumerate(offers)}
    alike = Counter(offer.title for offer in offers)
    kinds = Counter(title for title, _ in {(offer.title, ways[at]) for at, offer in enumerate(offers)})
    return [
        replace(offer, title=f"{offer.title}, {ways[at]}") if alike[offer.title] > 1 < kinds[offer.title] else offer
        for at, offer in enumerate(offers)
    ]


def _line(offer: QuickFix, codec: PositionCodec) -> str:
    return f"line {offer.document.range(offer.findings[0].span, codec).start.line + 1}"


def _expression(offer: QuickFix, codec: PositionCodec) -> str:
    """What the host waits at, as it is written."""
    span = offer.findings[0].span
    text = offer.document.source.code[span.start : span.end].decode("utf-8", "replace")
    return f"`{shorten(text, LONGEST, placeholder='…')}`"


def _column(offer: QuickFix, codec: PositionCodec) -> str:
    return f"column {offer.document.range(offer.findings[0].span, codec).start.character + 1}"
