"""What is printed where a terminal has little room: prose goes on below itself, and a path that is longer than its column loses
its outer folders, so that what tells it from others, the file and the line, is there. A command, in backticks, stays whole."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from syncscope.exporters._figures import shortened

_QUOTED = re.compile(r"`[^`]*`")
_WORD = re.compile(r"\S+")
_PATH = re.compile(r"[^\s()\[\],;'\"]*/[^\s()\[\],;'\"]*[^\s()\[\],;:.'\"]")


class Narrow(Console):
    """A console on which no path is cut at its end or broken over two lines."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        options = options or self.options
        if isinstance(renderable, str):
            renderable = self.render_str(renderable, highlight=options.highlight, markup=options.markup)
        if isinstance(renderable, Text):
            renderable = narrowed(renderable, options.max_width)
        return super().render(renderable, options)


def narrowed(text: Text, width: int) -> Text:
    """The text with each path that is longer than a line of this width shortened to it."""
    if all(len(word) <= width for word in text.plain.split()):
        return text
    quoted = [match.span() for match in _QUOTED.finditer(text.plain)]
    made, done = text.blank_copy(), 0
    for word in _WORD.finditer(text.plain):
        path = _PATH.search(word[0]) if len(word[0]) > width else None
        if path is None or any(start < word.end() and word.start() < end for start, end in quoted):
            continue
        start, end = word.start() + path.start(), word.start() + path.end()
        room = max(1, width - (len(word[0]) - len(path[0])))
        made.append_text(text[done:start])
        made.append(shortened(path[0], room), text.get_style_at_offset(Console(), start))
        done = end
    return made.append_text(text[done:])
