"""By what others know findings again, from run to run: one text for each, that no other has."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator

from syncscope.model.finding import Finding


def fingerprints(findings: Iterable[Finding]) -> Iterator[str]:
    """Of each finding: of its function and of what waits there, counted, so that it stays when lines move, and when the file is
    renamed. What stands in no function is of its file."""
    seen: Counter[tuple[str, str]] = Counter()
    for finding in findings:
        same = ("" if finding.function else finding.place.path, finding.fingerprint)
        seen[same] += 1
        yield hashlib.sha256("\0".join([*same, str(seen[same])]).encode()).hexdigest()
