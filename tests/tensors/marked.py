"""Marked code: `# waits: op` stands on every line that waits, and on no other."""

import textwrap

from syncscope.tensors.interpret import sites


def whole(code: str) -> str:
    """The code as a file that knows torch."""
    return "import torch\nfrom torch import nn\n" + textwrap.dedent(code)


def marks(code: str) -> set[tuple[int, str]]:
    """Line and op of every mark."""
    lines = enumerate(whole(code).splitlines(), 1)
    return {(number, op.strip(" #")) for number, line in lines for op in line.split("# waits: ")[1:]}


def waits(code: str, confidence: int = 0) -> set[tuple[int, str]]:
    """Line and op of every wait that is told of with this confidence at least."""
    return {
        (site.place.line, str(site.op))
        for site in sites(whole(code).encode(), "use.py")
        if site.confidence >= confidence
    }
