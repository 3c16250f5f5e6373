"""How a place is shown to who works here."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from syncscope.model.source import Place


def here(place: Place) -> str:
    """The place, relative to this folder if it is in it."""
    path = os.path.relpath(place.path) if os.path.isabs(place.path) else place.path
    return f"{place.path if path.startswith(os.pardir) else path}:{place.line}"
