"""Finds the lines of a GPU training loop where the host waits, says what each costs, and offers the rewrite.

The public door. A name is imported when it is first used, so that `import syncscope` needs neither torch nor OpenCL.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "Place": "syncscope.model.source",
    "Span": "syncscope.model.source",
    "Site": "syncscope.model.fact",
    "Edit": "syncscope.model.finding",
    "Fix": "syncscope.model.finding",
    "Safety": "syncscope.model.finding",
    "Hazard": "syncscope.model.finding",
    "Finding": "syncscope.model.finding",
    "Trace": "syncscope.model.trace",
    "Event": "syncscope.model.trace",
    "Read": "syncscope.model.report",
    "Price": "syncscope.model.report",
    "Report": "syncscope.model.report",
    "UserError": "syncscope.errors",
    "lint": "syncscope.api",
    "trace": "syncscope.api",
    "steps": "syncscope.api",
    "forbid_syncs": "syncscope.api",
    "allow_syncs": "syncscope.api",
    "watch": "syncscope.api",
    "SyncError": "syncscope.tracers.guard",
    "SyncWarning": "syncscope.tracers.guard",
    "report": "syncscope.api",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'syncscope' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
