"""Finds the lines of a GPU training loop where the host waits, says what each costs, and offers the rewrite.

The public door. A name is imported when it is first used, so that `import syncscope` needs neither torch nor OpenCL.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from syncscope.api import allow_syncs as allow_syncs
    from syncscope.api import forbid_syncs as forbid_syncs
    from syncscope.api import lint as lint
    from syncscope.api import report as report
    from syncscope.api import steps as steps
    from syncscope.api import trace as trace
    from syncscope.api import watch as watch
    from syncscope.errors import UserError as UserError
    from syncscope.model.fact import Site as Site
    from syncscope.model.finding import Edit as Edit
    from syncscope.model.finding import Finding as Finding
    from syncscope.model.finding import Fix as Fix
    from syncscope.model.finding import Hazard as Hazard
    from syncscope.model.finding import Safety as Safety
    from syncscope.model.report import Price as Price
    from syncscope.model.report import Read as Read
    from syncscope.model.report import Report as Report
    from syncscope.model.source import Place as Place
    from syncscope.model.source import Span as Span
    from syncscope.model.trace import Event as Event
    from syncscope.model.trace import Trace as Trace
    from syncscope.tracers.guard import SyncError as SyncError
    from syncscope.tracers.guard import SyncWarning as SyncWarning

_NAMES = {  # by where they live; the imports above are for type checkers, which see no others
    "api": "allow_syncs forbid_syncs lint report steps trace watch",
    "errors": "UserError",
    "model.fact": "Site",
    "model.finding": "Edit Finding Fix Hazard Safety",
    "model.report": "Price Read Report",
    "model.source": "Place Span",
    "model.trace": "Event Trace",
    "tracers.guard": "SyncError SyncWarning",
}
_HOMES = {name: f"syncscope.{home}" for home, names in _NAMES.items() for name in names.split()}

__all__ = sorted(_HOMES)

if not TYPE_CHECKING:  # a type checker would take it for any name at all

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module 'syncscope' has no attribute {name!r}")
        value = globals()[name] = getattr(importlib.import_module(_HOMES[name]), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
