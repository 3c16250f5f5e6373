"""The texts of the lines that wait, as hashes: by these they are known in a recording of a later version, wherever they are.

Of each file of the user's that ran, one of the whole: where that is the same, so are the lines that did not wait meanwhile.
"""

from __future__ import annotations

import ast
import hashlib
import os
from dataclasses import replace

import numpy as np

from syncscope.model.source import installed, text_hash
from syncscope.model.trace import Kind, Meta, Trace
from syncscope.tracers import cells

LARGEST = 1 << 20  # bytes of a file that is looked into
CHAIN = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)  # what hangs together: `x.sum().item()`


def with_texts(trace: Trace) -> Trace:
    """The recording with `meta["lines"]` and `meta["files"]`; without those of files that were written after it had begun."""
    reads = trace.rows(Kind.READ)
    columns: dict[int, set[int]] = {int(code): set() for code in np.unique(trace.caller[reads])}
    for code, column in zip(trace.place[reads].tolist(), trace.column[reads].tolist(), strict=True):
        columns.setdefault(code, set()).add(column)
    by_file: dict[str, dict[int, set[int]]] = {}
    for code, there in columns.items():
        if code >= 0:
            place = trace.places[code]
            by_file.setdefault(place.path, {}).setdefault(place.line, set()).update(there)
    found = {}
    for path, numbers in by_file.items():
        if text := _lines(path, trace.meta["origin_ns"]):
            numbers = {n: there for n, there in numbers.items() if 0 < n <= len(text)}
            waits = _expressions(text, numbers)
            found[path] = {str(n): " ".join([text_hash(text[n - 1]), *sorted(waits[n])]) for n in sorted(numbers)}
    own = sorted({place.path for place in trace.places if not installed(place.path)})
    files = {path: _hash(text) for path in own if (text := _lines(path, trace.meta["origin_ns"]))}
    told: Meta = {"lines": found, "files": files} if found else {"files": files} if files else {}
    return replace(trace, meta=trace.meta | told) if told else trace


def _hash(text: list[str]) -> str:
    """That of a whole file, in which white space tells what is done when."""
    return hashlib.blake2b("".join(text).encode("utf-8", "replace"), digest_size=8).hexdigest()


def _expressions(text: list[str], columns: dict[int, set[int]]) -> dict[int, set[str]]:
    """Of each line the hashes of the expressions that wait there, by the columns at which they begin: all of what hangs
    together, as `x.sum().item()` does, wherever it ends."""
    found: dict[int, set[str]] = {n: set() for n in columns}
    widest: dict[tuple[int, int], ast.expr] = {}
    try:
        tree = ast.parse("".join(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return found
    for node in ast.walk(tree):  # from the outermost to the innermost
        if isinstance(node, CHAIN) and node.lineno in columns:
            row = text[node.lineno - 1].encode("utf-8", "replace")
            widest.setdefault((node.lineno, len(row[: node.col_offset].decode("utf-8", "replace")) + 1), node)
    for n, there in columns.items():
        found[n] = {text_hash(ast.unparse(widest[n, column])) for column in there if (n, column) in widest}
    return found


def _lines(path: str, began: int) -> list[str]:
    try:
        known = os.stat(path)
        if known.st_mtime_ns > began or known.st_size > LARGEST:
            return []
    except (OSError, ValueError):
        pass  # a cell of a notebook is in no file, and yet known
    return cells.lines(path)
