"""Whether the tensors of a project, or of what trains in it, live on the host: it trains, and says nowhere on what device."""

from __future__ import annotations

import os
import re

from syncscope.project.devices import switches_default
from syncscope.project.folders import MOST_SOURCES, content, located, of_texts, pages, project_around, sources

_MOVES = rb"cuda|gpu|\bmps\b|\bxpu\b|\bdevice|accelerat|lightning|\.to\(|\bfabric\b"
_DEVICES, _MOVED = (re.compile(words, re.IGNORECASE) for words in (_MOVES + rb"|\bTrainer\b", _MOVES))
_TRAINS = b".backward("
_GIVEN = re.compile(rb"\btorch\.(?:as_)?(?:from_numpy|tensor|(?:Float|Long)Tensor|zeros|ones|full|arange|rand\w*)\(")
_TRAINED = re.compile(rb"(?<![\w.])((?:self\.)?\w+)\.parameters\(\)")


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


def trains_on_host(code: bytes) -> bool:
    """Whether a class or a function with this text makes the network that it trains and tensors that this is given, and speaks
    of no device: who moved the one from outside would have nothing that moves the other."""
    if _TRAINS not in code or _MOVED.search(code) or not _GIVEN.search(code):
        return False
    made = rb"(?<![\w.])%b(?::[^=\n]+)? = [\w.]*\b[A-Z]\w*\("
    return any(re.search(made % re.escape(each), code) for each in {*_TRAINED.findall(code)})


def default_is_switched(path: str) -> bool:
    """Whether anything in the project around a file has torch make on another device what it is told no device of."""
    path = located(path)
    return not os.path.isfile(path) or _is_switched(project_around(path))


@of_texts
def _is_switched(root: str) -> bool:
    return any(switches_default(content(path)) for path in sources(root))
