"""Recordings of a simulated machine, written as torch.profiler writes them, and what the machine does without the waits.

One host thread, in-order queues on one device, every delay drawn anew for each call and the same in both runs. The
simulation knows nothing of the analysis: it shares no code with it and speaks to it through a file.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from random import Random
from typing import Any

from syncscope import kineto
from syncscope.model.trace import Trace

US = 1_000
PAGEABLE, PINNED = 6.0, 12.0  # bytes a ns
Op = tuple[Any, ...]
Program = list[list[Op]]  # steps
DOES = {
    "work": "_work",
    "launch": "_launch",
    "graph": "_graph",
    "pinned": "_pinned",
    "wait": "_wait",
    "item": "_item",
    "stream": "_stream",
    "event": "_event_sync",
    "upload": "_upload",
    "device": "_device",
}


@dataclass
class Machine:
    """Runs a program of these: what the host does, in ns, queues by number.

    ```text
    ("work", ns)  ("launch", queue, ns)  ("graph", queue, ns, ...)       its own work, kernels, a graph of kernels
    ("item", queue)                                                      fetches a value: `copies` says by which calls
    ("stream", queue)  ("event", queue)  ("device",)                     waits without a copy
    ("upload", queue, bytes)                                             from pageable memory; from pinned without waits
    ("pinned", queue)                                                    a copy that nobody waits for
    ("wait", queue, other)                                               cudaStreamWaitEvent for what `other` has by now
    ```
    """

    seed: int = 0
    copies: str = "async"  # cudaMemcpyAsync and cudaStreamSynchronize; "hip": hipMemcpyWithStream; "plain": cudaMemcpy
    clock: int = 0  # ns by which the device's clock is ahead of the host's
    jitter: int = 0  # ns by which a time of the device may be off besides
    records: float = 1.0  # the part of waits of which CUPTI left a record
    origins: bool = True  # whether such a record says which cudaEventRecord it was about
    events: list[dict[str, Any]] = field(default_factory=list)

    def run(self, program: Program, waits: bool = True) -> list[float]:
        """When each step had ended, on the host and on the device, ns; the recording is in `events`."""
        self.events = []
        self._host, self._free, self._number = 0.0, {}, 0
        self._gates: dict[int, float] = {}
        ends = []
        for step, ops in enumerate(program):
            begin = self._host
            for position, (what, *rest) in enumerate(ops):
                self._random = Random(f"{self.seed} {step} {position}")
                if waits or what in ("work", "launch", "graph", "pinned", "wait"):
                    getattr(self, DOES[what])(*rest)
                elif what == "upload":
                    self._upload_pinned(*rest)
                elif what != "item":
                    self._host += 2 * US  # its call, which waits for nothing
            self._event("user_annotation", f"ProfilerStep#{step}", begin, self._host)
            ends.append(max(self._host, *self._free.values()) if self._free else self._host)
        return ends

    def trace(self) -> Trace:
        """The recording, read from a file of torch.profiler's."""
        text = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "simulated"}], "traceEvents": self.events}
        return kineto.read(json.dumps(text).encode())

    def _work(self, time: int) -> None:
        self._host += time

    def _launch(self, queue: int, *times: int) -> None:
        begin = self._host
        self._host += self._between(2.5, 4)
        ready = begin + self._between(5, 7)
        self._call("hipLaunchKernel" if self.copies == "hip" else "cudaLaunchKernel", begin)
        for time in times:
            self._do("kernel", f"k{queue}", queue, ready, time)

    def _graph(self, queue: int, *times: int) -> None:
        begin = self._host
        self._host += self._between(6, 9)
        ready = begin + self._between(8, 11)
        self._call("cudaGraphLaunch", begin)
        for time in times:
            self._do("kernel", f"g{queue}", queue, ready, time)

    def _item(self, queue: int) -> None:
        begin = self._host
        self._host += self._between(2, 3)
        call = self._host
        ready = call + self._between(4, 6)
        name = {"async": "cudaMemcpyAsync", "hip": "hipMemcpyWithStream", "plain": "cudaMemcpy"}[self.copies]
        self._number += 1
        number = self._number
        done = self._do("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", queue, ready, self._between(1, 1.5))
        self._host = max(self._host, done) + self._between(0.5, 4)
        self._event("cuda_runtime", name, call, self._host, correlation=number)
        if self.copies == "async":
            self._host += self._between(0.5, 1)
            self._synchronize("cudaStreamSynchronize", "Stream Sync", done, queue)
        self._host += self._between(0.5, 1)
        self._event("cpu_op", "aten::item", begin, self._host)

    def _upload(self, queue: int, size: int) -> None:
        """Piece by piece through the driver's buffer: the call lasts as long, and for what the queue has to do before."""
        begin, call = self._host, self._host + self._between(2, 3)
        self._number += 1
        number = self._number
        done = self._do(
            "gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", queue, call + 5 * US, size / PAGEABLE, bytes=size
        )
        self._host = done + self._between(0.5, 1.5)
        self._event("cuda_runtime", "cudaMemcpyAsync", call, self._host, correlation=number)
        self._synchronize("cudaStreamSynchronize", "Stream Sync", done, queue)
        self._host += self._between(0.5, 1)
        self._event("cpu_op", "aten::copy_", begin, self._host)

    def _upload_pinned(self, queue: int, size: int) -> None:
        begin = self._host
        self._host += self._between(8, 9)  # the operator and its call
        self._do("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", queue, begin + 7 * US, size / PINNED, bytes=size)

    def _stream(self, queue: int) -> None:
        self._synchronize("cudaStreamSynchronize", "Stream Sync", self._free.get(queue, 0.0), queue)

    def _device(self) -> None:
        self._synchronize("cudaDeviceSynchronize", "Context Sync", max(self._free.values(), default=0.0), -1)

    def _event_sync(self, queue: int) -> None:
        self._record()
        about = {"wait_on_stream": 7 + queue, "wait_on_cuda_event_record_corr_id": self._number if self.origins else -1}
        self._synchronize("cudaEventSynchronize", "Event Sync", self._free.get(queue, 0.0), -1, **about)

    def _pinned(self, queue: int) -> None:
        begin = self._host
        self._host += self._between(3, 5)
        self._call("cudaMemcpyAsync", begin)
        ready = begin + self._between(5, 7)
        self._do("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", queue, ready, self._between(1, 1.5))

    def _wait(self, queue: int, other: int) -> None:
        self._record()
        recorded, begin = self._number, self._host
        self._gates[queue] = max(self._gates.get(queue, 0.0), self._free.get(other, 0.0) + self._between(1, 1.8))
        self._host += self._between(0.8, 1.2)
        self._call("cudaStreamWaitEvent", begin)
        about = {"wait_on_stream": 7 + other}
        if self.origins:
            about["wait_on_cuda_event_record_corr_id"] = recorded
        self._told("Stream Wait Event", begin, 7 + queue, **about)

    def _record(self) -> None:
        begin = self._host
        self._host += self._between(0.8, 1.2)
        self._call("cudaEventRecord", begin)

    def _synchronize(self, name: str, kind: str, done: float, queue: int, **about: Any) -> None:
        begin = self._host
        self._host = max(self._host + 1 * US, done + self._between(1, 3))
        self._call(name, begin)
        self._told(kind, begin, -1 if queue < 0 else 7 + queue, **about)

    def _told(self, kind: str, begin: float, stream: int, **about: Any) -> None:
        if self._random.random() < self.records:
            args = {"cuda_sync_kind": kind, "stream": stream, "correlation": self._number, "device": 0, "context": 1}
            self._event("cuda_sync", kind, begin, self._host, 0, stream, **args, **about)

    def _do(self, category: str, name: str, queue: int, ready: float, time: float, **more: Any) -> float:
        start = max(ready, self._free.get(queue, -1e9) + self._between(0.8, 1.2), self._gates.pop(queue, 0.0))
        self._free[queue] = end = start + time
        off = self.clock + self._random.uniform(-self.jitter, self.jitter)
        args = {"device": 0, "stream": 7 + queue, "correlation": self._number, **more}
        self._event(category, name, start + off, end + off, 0, 7 + queue, **args)
        return end

    def _call(self, name: str, begin: float) -> None:
        self._number += 1
        self._event("cuda_runtime", name, begin, self._host, correlation=self._number)

    def _event(
        self, category: str, name: str, start: float, end: float, pid: int = 1000, tid: int = 1000, **args: Any
    ) -> None:
        times = {"ts": round(start) / US, "dur": (round(end) - round(start)) / US}
        self.events.append({"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, **times, "args": args})

    def _between(self, low: float, high: float) -> float:
        return self._random.uniform(low, high) * US


def random_program(seed: int, waits: tuple[str, ...], queues: int = 1, edges: str = "", steps: int = 8) -> Program:
    """A loop whose steps are alike but not the same: kernels, host work and waits of these kinds in random order.

    With `edges` queues wait for each other: "used" at once, as torch and NCCL do it, or also long before, "apart".
    """
    random = Random(seed)
    pace = random.choice([20, 100, 400])  # us: a loop of small kernels, or of large ones

    def kernel(queue: int) -> Op:
        return ("launch", queue, random.randint(4, 2 * pace) * US)

    def wait(queue: int) -> Op:
        kind = random.choice([kind for kind in waits if kind != "upload"])
        return (kind,) if kind == "device" else (kind, queue)

    parts: list[Op] = []
    for _ in range(random.randint(6, 20)):
        queue, what = random.randrange(queues), random.random()
        if what < 0.4:
            parts.append(kernel(queue))
        elif what < 0.45:
            parts.append(("graph", queue, *(random.randint(4, pace) * US for _ in range(3))))
        elif what < 0.7:
            parts.append(("work", random.randint(2, 2 * pace) * US))
        elif what < 0.8 and edges:
            parts.append(("wait", queue, 1 - queue))
            if edges == "used" or random.random() < 0.5:
                parts.append(kernel(queue))
        elif what < 0.85 and "upload" in waits:
            parts.append(("upload", queue, random.randint(1, 12 * pace) * 6_000))
        elif what < 0.85:
            parts.append(("pinned", queue))
        else:
            parts.append(wait(queue))
    if edges:
        parts.append(("wait", 0, 1))
    parts += [("launch", 0, pace * US), wait(0), ("work", random.randint(10, 8 * pace) * US)]

    def alike(op: Op) -> Op:
        times = {"work": 1, "launch": 2, "graph": 2}.get(op[0], len(op))
        return (*op[:times], *(round(time * random.uniform(0.9, 1.1)) for time in op[times:]))

    return [[alike(op) for op in parts] for _ in range(steps)]
