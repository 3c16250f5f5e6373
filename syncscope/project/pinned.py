"""Whether loaders of a project pin the memory of what they give, whether it sends anything without waiting, and more that its
texts say of its batches."""

from __future__ import annotations

import os
import re
from pathlib import Path

from syncscope.project.folders import content, located, of_texts, root_of, roots, sources

PINS = re.compile(rb"""pin_memory["']?\s*[=:]\s*(?:True|torch\.cuda\.is_available|(?:\w+\.)*use_cuda)""")
OWN_BATCHES = re.compile(rb"^[ \t]*(?:from|import) deepsnap\b|\bdef num_graphs\(", re.MULTILINE)
SENDS = re.compile(rb"""non_blocking["']?\s*[=:]\s*True""")


def pins_memory(path: str) -> bool:
    """Whether a file of the project around this one has a loader pin its memory."""
    return in_project(path, PINS)


def sends_without_waiting(path: str) -> bool:
    """Whether a file of the project around this one says `non_blocking=True`: its readers know the word."""
    return in_project(path, SENDS)


def counts_its_own_graphs(path: str) -> bool:
    """Whether batches of graphs are not torch_geometric's, and may be asked on the device how many graphs they hold."""
    path = located(path)
    folder = Path(path).parent
    root = root_of(str(folder)) or next(map(str, roots(folder)), "")
    return _holds(root, OWN_BATCHES) if os.path.exists(path) else False


def in_project(path: str, said: re.Pattern[bytes]) -> bool:
    """Whether a file of the project around this one holds what is looked for."""
    path = located(path)
    return _holds(root_of(os.path.dirname(path)), said) if os.path.exists(path) else False


@of_texts
def _holds(root: str, said: re.Pattern[bytes]) -> bool:
    return any(said.search(code) for code in map(content, sources(root)))
