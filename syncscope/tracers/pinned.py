"""How fast the GPU fetches from pinned memory, measured once on a machine: what uploads from pageable memory could be."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from syncscope import files

BYTES = 16 << 20
ROUNDS = 5


def of_uploads(names: Iterable[str]) -> dict[str, float]:
    """What belongs into the meta of a recording with these events: what its uploads could be, where none of them tells."""
    copies = [name for name in names if name.endswith("-> Device)")]
    if not any("Pageable" in name for name in copies) or any("Pinned" in name for name in copies):
        return {}
    found = pinned_bandwidth()
    return {"pinned": found} if found else {}


def pinned_bandwidth(again: bool = False) -> float | None:
    """Bytes a ns (GB/s) of copies to the current CUDA or ROCm device, kept for it unless `again`; None where that fails.

    Takes some ms, on a stream of its own.
    """
    import torch

    try:
        said = torch.cuda.get_device_properties(torch.cuda.current_device())
        path = _kept(f"{said.name}|{said.total_memory}|{torch.version.cuda or torch.version.hip}")
        if not again and path.is_file():
            return float(json.loads(path.read_text())["pinned"])
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
