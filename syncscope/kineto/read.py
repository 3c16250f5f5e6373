"""The JSON of torch.profiler, of any age and maker -> a `Trace`."""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Iterator
from typing import BinaryIO

from syncscope.errors import UserError
from syncscope.kineto import source as files
from syncscope.kineto.columns import Columns
from syncscope.kineto.scan import MOST, SMALLEST, Scan
from syncscope.kineto.twice import once
from syncscope.model.trace import Trace


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Without the cycle collector: nothing made while reading has cycles, and looking for them takes a tenth of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def read(source: str | os.PathLike[str] | bytes | BinaryIO, most: int = MOST) -> Trace:
    """The trace in a file: a path, an fsspec URL, its bytes or an open binary file; plain or gzip.

    A file that is truncated or damaged is used as far as it is whole, and what stands in it twice once; `meta["notes"]` says
    so. Names are `visible`: control characters are written as Python escapes them.

    An event takes 62 bytes (70 where lines of calls are known), and up
    to 90 while they are put in order; beside them reading needs some 60 MB, whatever the size of the file
    (`benchmarks/read_speed.py` prints both).

    At most `most` bytes of text are read, unpacked, and `meta["notes"]` says where there was more.

    Raises:
        UserError: it cannot be opened, or there is no list of events in it.
    """
    scan = Scan()
    columns = Columns(scan.head)
    with files.opened(source) as (name, file), _uncollected():
        seen = 0
        for events, text in scan.batches(files.pieces(file, scan.unpacking, most), name):
            columns.add(events, text)
            seen += len(events)
            if seen > most // SMALLEST:  # events of a few bytes each: a bomb, which would take more memory than text
                scan.cut = True
                scan.notes.append(f"{files.too_much(most)}, or {seen:,} events; what came before is used")
                break
    lost = scan.lost + columns.lost
    if lost:
        where = f", the first at byte {scan.first_lost:,} of the JSON" if scan.first_lost >= 0 else ""
        scan.notes.append(f"{lost:,} broken event{'s' * (lost > 1)} left out{where}")
    trace = columns.trace(scan.notes)
    if scan.cut:
        trace.meta["cut"] = True
    if scan.unpacking.damaged:
        trace.meta["damaged"] = True
    if scan.torn:
        trace.meta["torn"] = True
    if not len(trace) and lost:
        hint = "is it a trace of torch.profiler (export_chrome_trace) or of syncscope? If so, record or copy it again"
        raise UserError(f"{name} holds no whole event ({scan.notes[-1]})", hint, name)
    return once(trace).visible()
