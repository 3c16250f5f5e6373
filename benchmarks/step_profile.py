"""Where a training step's time goes: the host's by operator, the device's by kernel, on `ocl` or on CUDA.

    python benchmarks/step_profile.py --device ocl vit_b_16:1 resnet50:64:float16 lstm:64

Prints of each case a step's time, the host's part of it, the launches and, on `ocl`, a captured step; then the operators by
the host's own time in them; on `ocl` those whose launches pass through Python, where the others are followed in C; and the
kernels by the device's own clock, each launched alone there, so that gaps between them do not count.
"""

from __future__ import annotations

import argparse
import collections
import statistics
import sys
from collections.abc import Callable
from typing import Any

import torch

from syncscope.bench import measure, networks

Table = dict[str, list[float]]  # name -> times, seconds in all


def host(step: Callable[[], Any], steps: int, synchronize: Callable[[], None], cuda: bool) -> tuple[Table, Table]:
    """Operators by the host's own time in them, and CUDA's kernels by the device's."""
    from torch.profiler import ProfilerActivity, profile

    activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * cuda
    with profile(activities=activities) as recorded:
        for _ in range(steps):
            step()
            synchronize()
    operators: Table = {}
    kernels: Table = {}
    for event in recorded.key_averages():
        if event.self_cpu_time_total and event.device_type == torch.autograd.DeviceType.CPU:
            operators[event.key] = [event.count / steps, event.self_cpu_time_total / steps / 1e6]
        elif event.device_type != torch.autograd.DeviceType.CPU:
            kernels[event.key] = [event.count / steps, event.self_device_time_total / steps / 1e6]
    return operators, kernels


def through_python(step: Callable[[], Any], steps: int) -> Table:
    """What an operator enqueues that C does not: commands, by operator and kind."""
    from syncscope.kernels import operators, queue

    found: Table = collections.defaultdict(lambda: [0.0, 0.0])

    def counted(name: str) -> Callable[..., Any]:
        plain = getattr(queue, name)

        def run(*args: Any) -> Any:
            frame, label = sys._getframe(1), "?"
            while frame is not None:
                if frame.f_code is operators.RUNNING:
                    label = frame.f_locals["label"]
                frame = frame.f_back  # type: ignore[assignment]
            of = getattr(args[0], "function_name", "")
            if name != "launch_again" or args[0]:
                found[f"{label} {name} {of}"][0] += 1 / steps
            return plain(*args)

        return run

    names = ("launch", "launch_again", "copy", "fill", "write")
    before = {name: getattr(queue, name) for name in names}
    for name in names:
        setattr(queue, name, counted(name))
    try:
        for _ in range(steps):
            step()
    finally:
        for name, function in before.items():
            setattr(queue, name, function)
    return found


def device(step: Callable[[], Any], steps: int) -> Table:
    """Kernels of a step, by operator, name and work-items, each timed by the device."""
    import pyopencl as cl

    from syncscope.kernels import queue
    from syncscope.kernels.capture import recorded
    from syncscope.kernels.device import context
    from syncscope.kernels.generator import Draw

    commands, labels, _kept = recorded(step)
    queue.finish()
    timed = cl.CommandQueue(context, properties=cl.command_queue_properties.PROFILING_ENABLE)
    found: Table = {}
    for turn in range(steps):
        events = []
        for (enqueue, args), label in zip(commands, labels, strict=True):
            where = label.split(" (captured")[0]
            if enqueue is queue.launch:
                kernel, size, group, *values = args
                given = [x.generator.draw(x.ahead) if isinstance(x, Draw) else x for x in values]
                event = kernel(timed, size, group, *given)
                name = f"{where} {kernel.function_name} {'x'.join(map(str, size))}/{group[0]}"
            elif enqueue is queue.copy:
                source, source_at, target, target_at, count = args
                event = cl.enqueue_copy(
                    timed, target, source, src_offset=source_at, dst_offset=target_at, byte_count=count
                )
                name = f"{where} copy"
            elif enqueue is queue.fill:
                event = cl.enqueue_fill_buffer(timed, *args)
                name = f"{where} fill"
            else:
                continue
            events.append((name, event))
        timed.finish()
        for name, event in events if turn else ():
            row = found.setdefault(name, [0.0, 0.0])
            row[0] += 1 / (steps - 1)
            row[1] += (event.profile.end - event.profile.start) / 1e9 / (steps - 1)
    return found


def shown(title: str, table: Table, rows: int, by_time: bool = True) -> None:
    whole = sum(seconds for _, seconds in table.values())
    print(f"  {title}: {len(table)} kinds, {sum(n for n, _ in table.values()):.0f} in a step, {1e3 * whole:.2f} ms")
    for name, (count, seconds) in sorted(table.items(), key=lambda row: -row[1][1 if by_time else 0])[:rows]:
        print(
            f"    {1e6 * seconds:9.0f} us {count:6.1f} x  {name[:150]}"
            if by_time
            else f"    {count:6.1f} x  {name[:150]}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="+", metavar="NETWORK:BATCH[:TYPE]")
    parser.add_argument("--device", default="ocl")
    parser.add_argument("--rows", type=int, default=25)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.6)
    parser.add_argument("--pixels", type=int, default=224)
    options = parser.parse_args()
    synchronize, _ = measure.prepare(options.device)
    for text in options.cases:
        name, batch, *types = text.split(":")
        half = getattr(torch, types[0]) if types else None
        task = networks.task(name, options.device, int(batch), options.pixels, half=half)
        for _ in range(3):
            task.step()
        synchronize()
        whole, alone = measure.timed(lambda: task.step, synchronize, options.seconds)  # noqa: B023 - called here
        before = measure._counts(options.device)
        task.step()
        counts = {key: after - before[key] for key, after in measure._counts(options.device).items()}
        print(
            f"== {text} on {options.device}: {statistics.median(whole):.2f} ms, host {statistics.median(alone):.2f}, {counts}",
            flush=True,
        )
        cuda = options.device == "cuda"
        if not cuda and not half:
            try:
                replay = torch.ocl.capture(task.step).replay
                whole, alone = measure.timed(lambda: replay, synchronize, options.seconds)  # noqa: B023
                print(f"  captured {statistics.median(whole):.2f} ms, host {statistics.median(alone):.2f}")
            except Exception as error:
                print(f"  not captured: {error}")
        if options.device == "ocl":
            synchronize()
            shown("through Python", through_python(task.step, 2), options.rows, by_time=False)
            synchronize()
        operators, kernels = host(task.step, options.steps, synchronize, cuda)
        shown("host", operators, options.rows)
        if options.device == "ocl":
            # A scaler reads: its passes are left out.
            kernels = device((lambda: task.backward(task.forward())) if half else task.step, 3)  # noqa: B023
        shown("kernels", kernels, options.rows)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
