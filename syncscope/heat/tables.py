"""Tables of functions and classes, as text: `LOSSES = {"focal": focal}`, or `LOSSES["focal"] = focal` in its own file."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping

from syncscope.project.outline import plain, words

_FILLS = re.compile(
    rb"\n(\w+)(?:[ \t]*(?::[^=\n]+)?=[ \t]*(?:[{\[]|\w*[dD]ict\()|\[[^\]\n]+\][ \t]*=(?!=)|\.(?:update|register|add)\()"
)  # no `^`, which is tried everywhere
QUOTED = re.compile(rb"\"[\w.]+\"|'[\w.]+'")  # a name that is but text
END = re.compile(rb"\n(?=[^\s#)\]}\"'])")  # of what stands at the top level: behind it its next statement


def tables(sources: Mapping[str, bytes], known: Collection[bytes]) -> dict[bytes, list[tuple[str, bytes]]]:
    """By a table's name the statements, each with its file, that put something into it which is `known`."""
    found: dict[bytes, list[tuple[str, bytes]]] = defaultdict(list)
    for path, source in sources.items():
        source = b"\n" + source
        for fills in _FILLS.finditer(source):
            end = END.search(source, fills.end())
            statement = QUOTED.sub(b"", plain(source[fills.start(1) : len(source) if end is None else end.end()]))
            if not words(statement).isdisjoint(known):
                found[fills[1]].append((path, statement))
    return found
