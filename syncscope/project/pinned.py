"""Whether loaders of a project pin the memory of what they give."""

from __future__ import annotations

import os
import re
from functools import lru_cache

from syncscope.project.folders import content, located, root_of, sources

PINS = re.compile(rb"""pin_memory["']?\s*[=:]\s*(?:True|torch\.cuda\.is_available|(?:\w+\.)*use_cuda)""")


def pins_memory(path: str) -> bool:
    """Whether a file of the project around this one has a loader pin its memory."""
    path = located(path)
    return in_project(root_of(os.path.dirname(path))) if os.path.exists(path) else False


@lru_cache(maxsize=8)
def in_project(root: str) -> bool:
    """Whether a file of a project says so."""
    return any(PINS.search(code) for code in map(content, sources(root)))
