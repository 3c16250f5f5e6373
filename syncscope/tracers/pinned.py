"""How fast the GPU fetches from pinned memory, measured once on a machine: what uploads from pageable memory could be."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from syncscope import files
from syncscope.tracers.hooks.reads import unheard

BYTES = 16 << 20
ROUNDS = 5


def of_uploads(names: Iterable[str], recording: bool = False) -> dict[str, float]:
    """What belongs into the meta of a recording with these events: what its uploads could be, where none of them tells. While
    somebody is `recording` only what is known is told: measuring would be in what they get."""
    copies = [name for name in names if name.endswith("-> Device)")]
    if not any("Pageable" in name for name in copies) or any("Pinned" in name for name in copies):
        return {}
    found = pinned_bandwidth(measure=not recording)
    return {"pinned": found} if found else {}


def pinned_bandwidth(measure: bool = True) -> float | None:
    """Bytes a ns (GB/s) of copies to the current CUDA or ROCm device, as kept for it, else measured; None where that fails.

    Measuring takes some ms, on a stream of its own, and what it waits for is no read of the program's.
    """
    import torch

    try:
        said = torch.cuda.get_device_properties(torch.cuda.current_device())
        path = _kept(f"{said.name}|{said.total_memory}|{torch.version.cuda or torch.version.hip}")
        if path.is_file():
            return float(json.loads(path.read_text())["pinned"])
        if not measure:
            return None
        with unheard():
            found = _measured()
        files.write(path, json.dumps({"device": said.name, "pinned": found}).encode())
    except (RuntimeError, OSError, ValueError, KeyError):  # no memory is left, say
        return None
    return found


def _kept(what: str) -> Path:
    return files.cache_folder("pinned") / f"{hashlib.sha256(what.encode()).hexdigest()[:16]}.json"


def _measured() -> float:
    import torch

    with torch.cuda.stream(torch.cuda.Stream()):
        host = torch.empty(BYTES, dtype=torch.uint8, pin_memory=True)
        there = torch.empty(BYTES, dtype=torch.uint8, device="cuda")
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        times: list[float] = []
        for _ in range(ROUNDS):
            begin.record()
            there.copy_(host, non_blocking=True)
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end))  # ms
    return BYTES / min(times) / 1e6
