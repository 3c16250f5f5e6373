"""The public functions: each puts the rooms together for one task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from syncscope.tracers.session import Session

T = TypeVar("T")


def trace(
    logdir: str | Path | None = None, wait: int = 0, warmup: int = 0, active: int | None = None, repeat: int = 1
) -> Session:
    """Records the steps of a training loop: every kernel, every copy, and every line at which the host waits.

        with syncscope.trace("runs", wait=1, warmup=1, active=5) as trace:
            for batch in loader:
                train(batch)
                trace.step()
        trace.report()

    Also a decorator. After `wait` and `warmup` steps, `active` steps are recorded, `repeat` times (0: until the end); without
    `active` everything up to the end. Each recording is written to `logdir`, for TensorBoard and `syncscope report`.
    Steps that nobody marks are found at `optimizer.step()`. The trace is written also where the block raises.

    Raises:
        UserError: another recording runs in this process, the numbers make no sense, or the folder cannot be written.
    """
    from syncscope.tracers.recording import Recording

    return Recording(_write, _report, logdir=logdir, wait=wait, warmup=warmup, active=active, repeat=repeat)


def steps(loader: Iterable[T]) -> Iterator[T]:
    """The batches of a loader, each of them a step of the recording that is running, if one is."""
    from syncscope.tracers.session import steps_of

    return steps_of(loader)


def _write(recorded: Any, path: Path) -> list[Path]:
    """A trace as one JSON file, or as a folder for TensorBoard."""
    if path.name.endswith((".json", ".json.gz")):
        from syncscope import kineto

        kineto.save(recorded, path)
        return [path]
    from syncscope.exporters import tensorboard

    return tensorboard.save(recorded, path)


def _report(recorded: Any, show: bool) -> Any:
    import syncscope

    result = syncscope.report(recorded)
    if show:
        from rich.console import Console

        from syncscope.exporters import terminal

        console = Console(highlight=False)
        console.print(terminal.render(result, console.width))
    return result
