"""The texts of the lines that wait, as hashes: by these they are known in a recording of a later version, wherever they are."""

from __future__ import annotations

import hashlib
import linecache
import os
from dataclasses import replace

import numpy as np

from syncscope.model.trace import Kind, Trace

LARGEST = 4 << 20  # bytes of a file that is looked into


def with_texts(trace: Trace) -> Trace:
    """The recording with `meta["lines"]`; without those of files that were written after it had begun."""
    reads = trace.rows(Kind.READ)
    codes = np.unique(np.concatenate([trace.place[reads], trace.caller[reads]]))
    by_file: dict[str, list[int]] = {}
    for place in (trace.places[code] for code in codes[codes >= 0].tolist()):
        by_file.setdefault(place.path, []).append(place.line)
    found = {}
    for path, numbers in by_file.items():
        if text := _lines(path, trace.meta["origin_ns"]):
            found[path] = {str(n): _hash(text[n - 1]) for n in numbers if 0 < n <= len(text)}
    return replace(trace, meta=trace.meta | {"lines": found}) if found else trace


def _lines(path: str, began: int) -> list[str]:
    try:
        known = os.stat(path)
        if known.st_mtime_ns > began or known.st_size > LARGEST:
            return []
    except (OSError, ValueError):
        pass  # a cell of a notebook is in no file, and yet known
    return linecache.getlines(path)


def _hash(line: str) -> str:
    return hashlib.blake2b("".join(line.split()).encode("utf-8", "replace"), digest_size=6).hexdigest()
