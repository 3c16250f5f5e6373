"""Marked OpenCL C: `// !` stands on every line that is flagged, and on no other; in a macro `/* ! */`."""

import textwrap

from syncscope.linter.config import Config
from syncscope.linter.engine import check


def marks(code: str) -> list[int]:
    """The marked lines."""
    lines = enumerate(textwrap.dedent(code).split("\n"), 1)
    return [number for number, line in lines if "// !" in line or "/* ! */" in line]


def flagged(code: str) -> list[tuple[int, str]]:
    """Line and message of every finding."""
    found = check("a.cl", textwrap.dedent(code).encode(), Config(min_confidence="medium", all=True)).findings
    return [(f.place.line, f.message) for f in found]
