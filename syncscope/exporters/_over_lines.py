"""Plain prose over several lines, for a terminal: no word is broken, and a command in backticks, to be pasted, is one word."""

from __future__ import annotations

import re

_WORD = re.compile(r"(?:`[^`\n]*`|\S)+")
_COLOR = re.compile(r"\x1b\[[0-9;]*m")


def over_lines(line: str, width: int | None, margin: str) -> str:
    """A line over as many as it takes, those that follow behind a margin; as it is where no width is given."""
    if width is None or _size(line) <= width:
        return line
    words = _WORD.findall(line)
    told = [line[: len(line) - len(line.lstrip())] + "".join(words[:1])]
    for word in words[1:]:
        if _size(told[-1]) + 1 + _size(word) > width:
            told.append(margin + word)
        else:
            told[-1] += f" {word}"
    return "\n".join(told)


def _size(text: str) -> int:
    """Columns that it takes, without its colours."""
    return len(_COLOR.sub("", text))
