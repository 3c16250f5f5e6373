"""A finding and its rewrite as objects of JSON: docs/report-schema.json says what every field means."""

from __future__ import annotations

from typing import Any

from syncscope.exporters._diff import of_fix
from syncscope.model.finding import CONFIDENCE, Finding, Fix
from syncscope.model.heat import FOLLOWS, Reason
from syncscope.model.report import Report


def finding(found: Finding) -> dict[str, Any]:
    """A finding of the linter. Lines and columns begin at 1; `cell` is there in notebooks only."""
    return {
        "path": found.place.path,
        **({"cell": found.cell} if found.cell else {}),
        "line": found.place.line,
        "column": found.column,
        "end_line": found.end_line,
        "end_column": found.end_column,
        "rule": found.rule,
        "confidence": CONFIDENCE[found.confidence],
        "severity": found.severity,
        "hot": found.hot,
        "heat": found.heat.words,
        "worth": worth(found),
        "function": found.function,
        "message": found.message,
        "why": list(found.why),
        "fingerprint": found.fingerprint,
        "fix": offered(found),
        **({} if found.advice is None else {"by_hand": in_words(found.advice)}),
        **({"why_not": found.why_not} if found.why_not else {}),
    }


def in_words(fix: Fix) -> dict[str, str]:
    """What could be made of it by hand, and what would have to be so, or be changed elsewhere."""
    return {"title": fix.title, "safety": fix.safety.value, "needs": fix.words}


def worth(found: Finding) -> dict[str, Any] | None:
    """Whether it is the first to wait, and many times in a step, waits beside another, or once in so many steps; None where
    it is in no step."""
    reason, about = found.heat.reason, found.heat.about
    if not found.hot:
        return None
    if reason is Reason.SOMETIMES:
        return {"kind": "once_in", "steps": int(about[1])}
    if reason is Reason.DELAYED:
        return {"kind": "once_in"}
    if reason in FOLLOWS:
        return {"kind": "follows", "line": int(about[0]) if about else found.place.line}
    return {"kind": "first", **({"many": True} if found.repeats else {})}


def offered(found: Finding) -> dict[str, Any] | None:
    """The rewrite that a finding offers; its edits are UTF-8 byte offsets."""
    return None if found.fix is None else of_fix_alone(found.fix)


def of_fix_alone(fix: Fix) -> dict[str, Any]:
    """A rewrite, and beside it the other way to the same, if there is one."""
    by_hand = fix.why_by_hand or "it asks for more than its edits" * fix.hint
    return {
        "title": fix.title,
        "safety": fix.safety.value,
        "changes": fix.changes,
        **({"by_hand": by_hand} if by_hand else {}),
        **({"gains": fix.gains} if fix.gains else {}),
        **({"adds": fix.adds.name.lower()} if fix.adds.value else {}),
        "edits": [{"start": e.span.start, "end": e.span.end, "text": e.text} for e in fix.edits],
        **({} if fix.also is None else {"also": of_fix_alone(fix.also)}),
    }


def with_diff(found: Finding, report: Report) -> dict[str, Any] | None:
    """The rewrite with its diff, which is null where the source is not at hand."""
    if found.fix is None:
        return None
    source = report.sources.get(found.source_name)
    return {**(offered(found) or {}), "diff": None if source is None else of_fix(found.fix, found.source_name, source)}
