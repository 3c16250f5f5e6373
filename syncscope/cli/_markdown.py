"""What the Markdown of several commands has in common."""

from __future__ import annotations

from syncscope.cli._limits import GivenLimit
from syncscope.exporters.markdown import code, plain


def limit(given: GivenLimit) -> str:
    """Whether a limit holds, as an item of a list."""
    if given.unjudged is not None:
        return f"- **not judged** {code(given.option)}: {plain(given.unjudged.message)}; {plain(given.unjudged.hint)}"
    if not given.broken:
        return f"- held {code(given.option)}"
    first, *rest = given.broken
    return "\n".join(
        [f"- **broken** {code(given.option)}: {plain(first)}", *(f"  - {plain(line.strip())}" for line in rest)]
    )
