"""How a place is shown to who works here."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from syncscope.model.source import Place


def here(place: Place) -> str:
    """The place, relative to this folder if it is in it."""
    return f"{relative(place.path)}:{place.line}"


def relative(path: str) -> str:
    """The path, relative to this folder if it is in it."""
    shown = os.path.relpath(path) if os.path.isabs(path) else path
    return path if shown.startswith(os.pardir) else shown
