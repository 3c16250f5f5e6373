"""Whether the tensors of a project live on the host: it trains, and says nowhere on what device."""

from __future__ import annotations

import os
import re

from syncscope.project.folders import MOST_SOURCES, content, located, of_texts, pages, project_around, sources

_DEVICES = re.compile(
    rb"cuda|gpu|\bmps\b|\bxpu\b|\bdevice|accelerat|lightning|\.to\(|\bTrainer\b|\bfabric\b", re.IGNORECASE
)
_TRAINS = b".backward("


def stays_on_host(path: str) -> bool:
    """Whether the project around a file trains, and neither it nor its pages speak of a device, or of who would choose one; of
    a program of one file nothing is said."""
    path = located(path)
    return _stays(project_around(path)) if os.path.isfile(path) else False


@of_texts
def _stays(root: str) -> bool:
    files = sources(root)
    if len(files) < 2 or len(files) >= MOST_SOURCES:
        return False
    texts = [*map(content, files)]
    return any(_TRAINS in text for text in texts) and not any(map(_DEVICES.search, (*texts, *pages(root))))
