"""What the Markdown of several commands has in common."""

from __future__ import annotations

from syncscope.cli._limits import GivenLimit
from syncscope.exporters.markdown import code, plain


def limit(given: GivenLimit) -> str:
    """Whether a limit holds, as an item of a list."""
    below = [f"  - {plain(line.strip())}" for line in (*given.broken[1:], *filter(None, [given.aside]))]
    return "\n".join([_itself(given), *below])


def _itself(given: GivenLimit) -> str:
    if given.unjudged is not None:
        return f"- **not judged** {code(given.option)}: {plain(given.unjudged.message)}; {plain(given.unjudged.hint)}"
    if given.broken:
        return f"- **broken** {code(given.option)}: {plain(given.broken[0])}"
    return f"- held {code(given.option)}{f': {plain(given.figure)}' if given.figure else ''}"
