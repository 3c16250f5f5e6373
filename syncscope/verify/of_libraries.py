"""Lines of installed packages that wait: which, and which of their fixes are tried without being named.

Only safe ones are, in a copy as all others. Nothing is ever written into a library.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from syncscope.analysis.baseline import with_right_baseline
from syncscope.analysis.event_graph import event_graph_of
from syncscope.model.source import Place
from syncscope.model.trace import Trace
from syncscope.tracers.places import LIBRARY, kind_of_file


def real(waited: Iterable[Place]) -> set[Place]:
    """Those of the places that lie in files of installed packages, links resolved."""
    there = {place for place in waited if kind_of_file(place.path) == LIBRARY and os.path.isfile(place.path)}
    return {Place(os.path.realpath(place.path), place.line) for place in there}


def waited_in(recording: Trace | None) -> set[Place]:
    """The lines of installed packages that waited in a recording."""
    if recording is None:
        return set()
    reads = event_graph_of(with_right_baseline(recording)).reads
    return real(place for one in reads if (place := one.place) is not None)


def files_of(waited: Iterable[Place]) -> Sequence[str]:
    """Each file once."""
    return sorted({place.path for place in waited})
