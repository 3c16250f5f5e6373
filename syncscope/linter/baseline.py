"""A baseline: the findings a project lives with, so that only new ones are reported.

A finding is known by its file, its rule and the text of its statement (`Finding.fingerprint`), not by its line. A known finding
whose file is gone is looked for in all others: a file that was renamed brings its own along.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable

from syncscope import files
from syncscope.errors import UserError
from syncscope.files import regular
from syncscope.model.finding import Finding
from syncscope.project.folders import folder_around, located

VERSION = 1


def save(path: str, findings: Iterable[tuple[Finding, str]]) -> int:
    """Write these findings, each with the text of its line, as a baseline; how many there are.

    Raises:
        UserError: the file cannot be written.
    """
    known: dict[str, list[dict[str, str]]] = {}
    for finding, text in findings:
        entry = {"rule": finding.rule, "fingerprint": finding.fingerprint, "code": text.strip()}
        known.setdefault(relative(finding.place.path, path), []).append(entry)
    for entries in known.values():
        entries.sort(key=lambda e: (e["rule"], e["fingerprint"]))
    told = {"version": VERSION, "findings": dict(sorted(known.items()))}
    files.write(path, (json.dumps(told, indent=1, ensure_ascii=False) + "\n").encode())
    return sum(map(len, known.values()))


def load(path: str) -> Counter[tuple[str, str]]:
    """How often each finding is known, by file (relative to the baseline's folder) and fingerprint.

    Raises:
        UserError: no baseline, or none that can be read.
    """
    hint = "write one with --write-baseline"
    try:
        told = json.loads(regular(path))
        if told["version"] != VERSION:
            raise UserError(f"{path}: a baseline of version {told['version']}, this syncscope reads {VERSION}", hint)
        return Counter((name, e["fingerprint"]) for name, entries in told["findings"].items() for e in entries)
    except OSError as error:
        raise UserError(f"cannot read the baseline {path}: {error.strerror}", hint) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(f"{path}: not a baseline ({type(error).__name__}: {error})", hint) from None


def unknown(findings: Iterable[Finding], known: Counter[tuple[str, str]], path: str) -> list[Finding]:
    """The findings that a baseline, read from `path`, does not hold."""
    left = Counter(known)
    folder = folder_around(path)
    new = []
    for finding in findings:
        key = (relative(finding.place.path, path), finding.fingerprint)
        if left[key]:
            left[key] -= 1
        else:
            new.append(finding)
    homeless: Counter[str] = Counter()
    for (name, fingerprint), count in left.items():
        if count and not os.path.exists(os.path.join(folder, name)):
            homeless[fingerprint] += count
    if not homeless:
        return new
    rest = []
    for finding in new:
        if homeless[finding.fingerprint]:
            homeless[finding.fingerprint] -= 1
        else:
            rest.append(finding)
    return rest


def relative(path: str, baseline: str) -> str:
    """A path as a baseline names it: relative to its folder, with slashes."""
    return os.path.relpath(located(path), folder_around(baseline)).replace(os.sep, "/")
