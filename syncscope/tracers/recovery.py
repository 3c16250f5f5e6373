"""What a process that is gone had recorded, from the files that it left."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

from syncscope.errors import UserError, in_words, naming
from syncscope.model.trace import Kind, Trace
from syncscope.tracers import python_events, record_file
from syncscope.tracers.process_recording import assemble, cut, known_sources
from syncscope.tracers.python_events import Written


def left_behind(folder: Path) -> list[Path]:
    """What Python saw of each recording in this folder whose process, one of this user's, is gone; oldest first."""
    found = []
    for path in folder.glob(f"syncscope-*{record_file.SUFFIX}"):
        # of somebody else, or gone by now
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, UserError):
            header, records = record_file.read(path)
            ours = path.stat().st_uid == os.getuid()
            if ours and header["source"] == python_events.NAME and len(records) and not _lives(int(header["pid"])):
                found.append((path.stat().st_mtime_ns, path))
    return [path for _, path in sorted(found)]


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def recover_file(path: Path) -> Trace:
    """The trace of which a file is a part: the others are those of its process, beside it.

    Raises:
        UserError: it cannot be read.
    """
    with naming(str(path)):
        try:
            process = int(record_file.read(path).header["pid"])
            trace = recover(path.parent, f"syncscope-{process}-")
        except UserError:
            raise
        except Exception as error:  # cut off anywhere
            raise UserError(
                f"{path} cannot be read as a recording: {in_words(error)}", "keep it, and report that as a bug"
            ) from error
        if trace is None:
            raise UserError(
                f"{path} holds no recording", f"it should be called syncscope-{process}-...{record_file.SUFFIX}"
            )
    return trace


def recover(folder: Path, prefix: str = "") -> Trace | None:
    """The trace of a process that died while it recorded into this folder, as its first window; None where it left nothing.
    Its files are all there, or those whose name begins with `prefix`.

    What Python saw is written once a second at a step or a read, the hook's records with every call.
    """
    found, unreadable = [], []
    for path in sorted(folder.glob(f"{prefix}*{record_file.SUFFIX}")):
        try:
            found.append(record_file.read(path))
        except (UserError, OSError) as failed:  # what others have is not lost with it
            unreadable.append(failed)
    if not found:
        if unreadable:
            raise unreadable[0]
        return None
    readers: dict[str, Any] = {python_events.NAME: Written} | {
        name: source.recovered for name, source in known_sources().items()
    }
    first = min((contents.header for contents in found), key=lambda header: header["monotonic_ns"])
    found.sort(key=lambda contents: contents.header["source"] != python_events.NAME)  # it says what lines' numbers mean
    parts = [readers[contents.header["source"]](contents) for contents in found if contents.header["source"] in readers]
    whole = assemble(parts, first["monotonic_ns"], first["origin_ns"])
    whole.meta["notes"].append("the program ended without ending its recording: what it had written is here")
    whole.meta["notes"] += [in_words(failed) for failed in unreadable]
    windows = whole.correlation[whole.kind == Kind.STEP]
    return cut(whole, int(windows.min()) if len(windows) else 0, first["monotonic_ns"], None)
