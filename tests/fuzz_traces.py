"""Recordings by a grammar of their own format, read and reported: nothing but a `UserError`, in bounded time and memory.

    python tests/fuzz_traces.py --seconds 300 --seed 1

Each input is a recording as Kineto writes it, of steps, operators, calls, kernels and frames that belong together, in which
some values are then replaced by odd ones, and whose text may be cut, repeated, spoilt or packed. An input that breaks a promise
is written into the working folder and its seed said. A process has 4 GiB of memory and each input 10 seconds.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import random
import resource
import signal
import time
import traceback
from pathlib import Path
from typing import Any

import syncscope
from syncscope.errors import UserError
from syncscope.exporters import html, terminal
from syncscope.exporters import json as as_json

MEMORY, SECONDS = 4 << 30, 10
ODD: list[Any] = [
    *(
        None,
        True,
        -1,
        0,
        2**31,
        2**63,
        2**64,
        10**30,
        1e308,
        1e-320,
        -0.0,
        "",
        "NaN",
        "1e999",
        "9" * 5000,
        "\x1b[2J\n::error::",
    ),
    *([], {}, [[]], {"a": {}}, "x(1): f", "a.py(99999999999): f;b.py(2): g", "ProfilerStep#" + "7" * 30, "\ud800", "²"),
]
KEYS = ("ph", "cat", "name", "pid", "tid", "ts", "dur", "args")


def recording(r: random.Random) -> dict[str, Any]:
    """One that is whole."""
    events: list[dict[str, Any]] = []
    at, number = r.choice([0, 1, 1e15]), 1
    for step in range(r.randint(0, 6)):
        begin = at
        for _ in range(r.randint(0, 8)):
            length, number = r.choice([0, 0.5, 3, 50]), number + 1
            host = {"ph": "X", "pid": 1, "tid": r.choice([1, 2])}
            name = r.choice(["aten::mm", "aten::item", "aten::nonzero", "aten::_local_scalar_dense", "nccl:all_reduce"])
            call = r.choice(["cudaLaunchKernel", "cudaStreamSynchronize", "cudaMemcpyAsync", "cudaEventSynchronize"])
            stack = {"Call stack": "train.py(7): f;torch/x.py(3): g", "External id": number, "Input Dims": [[2, 3]]}
            events.append({**host, "cat": "cpu_op", "name": name, "ts": at, "dur": length + 2, "args": stack})
            launch = {"correlation": number, "External id": number}
            events.append({**host, "cat": "cuda_runtime", "name": call, "ts": at + 0.5, "dur": length, "args": launch})
            on = {**launch, "device": 0, "stream": r.choice([7, 20]), "bytes": 4}
            kind = r.choice(["kernel", "gpu_memcpy", "gpu_memset", "cuda_sync", "mtia_ccp_events"])
            work = r.choice(["k", "Memcpy DtoH (Device -> Pageable)", "ncclDevKernel_AllReduce", "Stream Sync"])
            events.append(
                {"ph": "X", "cat": kind, "name": work, "pid": 0, "tid": 7, "ts": at + 1, "dur": length, "args": on}
            )
            if r.random() < 0.3:
                events.append(
                    {**host, "cat": "python_function", "name": "train.py(7): f", "ts": at, "dur": 1, "args": {}}
                )
            at += length + r.choice([0, 2, 5])
        args: dict[str, Any] = {}
        mark = {
            "cat": "user_annotation",
            "name": f"ProfilerStep#{step}",
            "ts": begin,
            "dur": at - begin + 1,
            "args": args,
        }
        events.append({"ph": "X", "pid": 1, "tid": 1, **mark})
    head = {"deviceProperties": [{"id": 0, "name": "GPU"}], "distributedInfo": {"rank": 0, "world_size": 2}}
    if r.random() < 0.3:
        lanes = [[1, 1, 1, 1, -1, "python"], [0, 7, 1, 7, 0, "queue"]]
        head |= {"syncscope": {"version": 1, "lanes": lanes, "meta": {"notes": ["n"], "devices": [], "origin_ns": 5}}}  # type: ignore[dict-item]
    return {**head, "traceEvents": events}


def spoil(r: random.Random, value: Any, rate: float) -> Any:
    """The same with odd values in places."""
    if r.random() < rate:
        return r.choice(ODD)
    if isinstance(value, dict):
        return {key: spoil(r, inner, rate) for key, inner in value.items()}
    if isinstance(value, list):
        return [spoil(r, inner, rate) for inner in value]
    return value


def text(seed: int) -> bytes:
    """The input of a seed."""
    r = random.Random(seed)
    told = recording(r)
    content = json.dumps(spoil(r, told, r.choice([0, 0.002, 0.02, 0.2]))).encode()
    for _ in range(r.choice([0, 0, 1, 3])):
        at, end = sorted(r.randrange(len(content) + 1) for _ in range(2))
        part = content[at:end][:2000]
        noise = r.choice([b"", b"}", b"]", b'"', b"\\", b"\xff", b"nan", b"[" * 2000, b"},{", part * r.randint(1, 50)])
        content = content[:at] + noise + content[r.choice([at, end]) :]
    if r.random() < 0.1:
        content = gzip.compress(content)[: r.choice([None, -9, 200])]
    return content


def main() -> None:
    """Try inputs until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(TimeoutError()))
    end, seed, refused, broken = time.monotonic() + given.seconds, given.seed, 0, set[str]()
    while time.monotonic() < end:
        content = text(seed)
        signal.alarm(SECONDS)
        try:
            report = syncscope.report(io.BytesIO(content))
            for shown in (as_json.export(report), html.export(report), terminal.export(report)):
                assert "\x1b" not in shown
        except UserError:
            refused += 1
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            where = traceback.extract_tb(error.__traceback__)[-1]
            known = f"{type(error).__name__} {where.filename}:{where.lineno}"
            if known not in broken:
                broken.add(known)
                Path(f"broken-{seed}.json").write_bytes(content)
                print(f"seed {seed}: {known}: {str(error)[:200]}", flush=True)
        finally:
            signal.alarm(0)
        seed += 1
    print(f"{seed - given.seed} inputs, {refused} refused as no recordings, {len(broken)} ways to break")
    raise SystemExit(bool(broken))


if __name__ == "__main__":
    main()
