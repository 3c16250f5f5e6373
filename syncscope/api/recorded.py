"""What becomes of a recording in the program that made it: it is written, reported, its fixes are tried there."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from syncscope.model.trace import Trace
    from syncscope.model.tried import FixesTried


def spare(path: Path) -> None:
    """Refuse a place where somebody's file is: a recording takes that of another recording, and no other.

    Raises:
        UserError: something else is there.
    """
    from syncscope.errors import UserError
    from syncscope.kineto import header

    if path.is_file() and path.stat().st_size:
        if not path.name.endswith((".json", ".json.gz")):
            raise UserError(f"{path} is no folder", "name a folder, or a file that ends in .json or .json.gz")
        if not header.is_trace(path):
            raise UserError(f"{path} is no recording, and is not written over", "choose another name")


def write(recorded: Any, path: Path) -> list[Path]:
    """A trace as one JSON file, or as a folder for TensorBoard."""
    from syncscope import kineto
    from syncscope.exporters import tensorboard
    from syncscope.tracers.unseen import unseen

    with unseen():
        spare(path)
        if not path.name.endswith((".json", ".json.gz")):
            return tensorboard.save(recorded, path, tensorboard.of_rank("syncscope", recorded))
        stem = path.name.removesuffix(".gz").removesuffix(".json")
        own = path.with_name(tensorboard.of_rank(stem, recorded) + path.name[len(stem) :])
        kineto.save(recorded, own)
        return [_named(own, path)]


def _named(own: Path, path: Path) -> Path:
    """The file `own` under the name that was asked for, unless that is another rank's, which ends at the same time."""
    from syncscope.kineto import header

    if own == path:
        return path
    mine = header.rank(own)
    try:
        os.link(own, path)
    except FileExistsError:
        there = header.rank(path)
        if there is None or there == mine:
            os.replace(own, path)
            return path
        return own
    except OSError:  # a disk without links
        return own
    own.unlink()
    return path


def report(recorded: Any, show: bool) -> Any:
    """Its report, which is printed where it is to be shown."""
    from syncscope.api import reports
    from syncscope.tracers.unseen import unseen

    with unseen():
        result = reports.report(recorded)
        if show and not reports.shown_in_notebook(result):
            from syncscope.exporters import terminal

            _print(lambda width: [terminal.render(result, width)])
    return result


def try_fixes(
    recorded: Trace,
    files: list[Path],
    step: Callable[[], object] | None,
    frame: FrameType,
    budget: float | str,
    unsafe: bool,
    show: bool,
) -> FixesTried:
    """Tries fixes in the running program, which asks in this frame; the recording and its files know what is found."""
    from syncscope import kineto
    from syncscope.analysis.measured import tried
    from syncscope.cli._duration import seconds_of
    from syncscope.errors import UserError
    from syncscope.tracers.unseen import unseen
    from syncscope.verify.asked_for import AskedFor
    from syncscope.verify.results import as_object

    def tell(line: str) -> None:
        if show:
            print(f"syncscope: {line}", file=sys.stderr, flush=True)

    if not (seconds := seconds_of(budget)):
        raise UserError(f"budget={budget!r} is no time", "write 90, '90s' or '10m'")
    code = getattr(step, "__code__", None)
    paths = [place.path for place in recorded.places] + [of.co_filename for of in (frame.f_code, code) if of]
    with unseen():
        found = as_object(AskedFor(step, frame, paths, seconds, unsafe, tell).make())
        recorded.meta["verified"] = found
        for path in files:
            if path.name.endswith((".json", ".json.gz")) and path.exists():
                written = kineto.read(path)
                written.meta["verified"] = found
                kineto.save(written, path)
        if show:
            from syncscope.exporters import _tried

            _print(lambda width: _tried.rows(found, width))
    return tried(found)


def _print(rows: Callable[[int], Iterable[Any]]) -> None:
    from syncscope.exporters._narrow import Narrow

    console = Narrow(highlight=False)
    for row in rows(console.width):
        console.print(row)
