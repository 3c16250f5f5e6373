"""Passes over a loader in which nothing has to do with a device: what they count is counted on the host, most likely."""

from __future__ import annotations

import re

from syncscope.model.source import line_starts
from syncscope.project.modules import ProjectFunction
from syncscope.project.of_file import MANY, kept

_SHOWS = re.compile(
    rb"\.(to|cuda|npu|xpu|backward)\(|device|model|net\b|accelerat|fabric|trainer|policy|actor|critic|encoder|decoder|optim|"
    rb"forward|loss|prefetch|gpu|rank\b",
    re.IGNORECASE,
)
"""What is sent to a device, or given to what lies on one, and who has batches brought there: one word of it is enough."""


@kept(MANY)
def shows_no_device(function: ProjectFunction) -> bool:
    """Whether the text of a function, and of what it stands in, speaks neither of a device nor of a network."""
    source, node = function.module.source, function.node
    outer = getattr(function.closure, "function", None)
    starts, end = line_starts(source), node.end_lineno or node.lineno
    text = source[starts[node.lineno - 1] : starts[end] if end < len(starts) else len(source)]
    return not _SHOWS.search(text) and (outer is None or shows_no_device(outer))
