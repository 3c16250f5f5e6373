"""A pytest plugin: `@pytest.mark.max_syncs(2)` and the fixture `sync_trace`. A test that fails prints the lines that read, each
with what `ADVISE` has to say of it.

Where there is no device, tensors of the CPU that come from parameters and batches count as a device's (dry mode).
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from syncscope.tracers.guard import Advise
    from syncscope.tracers.watch import Watch, WatchedLine

NOTHING = (
    "max_syncs checked nothing: without a device a tensor counts as one of a device if it is a parameter, needs a gradient, "
    "is part of a DataLoader's batch, was sent there inside of the test or was computed from one of these, and none here is"
)
ADVISE = pytest.StashKey["Advise"]()
"""In the stash of the configuration, whom to ask how a wait is avoided."""
_WATCH = pytest.StashKey["Watch"]()


def pytest_configure(config: pytest.Config) -> None:
    """Makes the mark known."""
    config.addinivalue_line(
        "markers", "max_syncs(count): fails if the test makes the host wait for a device more often"
    )


@pytest.fixture
def sync_trace(request: pytest.FixtureRequest) -> Iterator[Watch]:
    """Counts the reads of the test by line: `.count`, `.lines`; printed if the test fails."""
    from syncscope.tracers.watch import watch

    with watch(dry=None) as found:
        request.node.stash[_WATCH] = found
        yield found


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Counts around the test's own code, and fails it where it read too often."""
    mark = pyfuncitem.get_closest_marker("max_syncs")
    if mark is None:
        return (yield)
    if len(mark.args) != 1 or not isinstance(mark.args[0], int):
        pytest.fail(f"{pyfuncitem.nodeid}: max_syncs takes one number: @pytest.mark.max_syncs(2)", pytrace=False)
    from syncscope.tracers import dry_run, guard
    from syncscope.tracers.watch import watch

    dry, before = not guard.has_device(), dry_run.counted()
    with watch(dry=None) as found:
        result = yield
    if dry and dry_run.counted() == before:
        pyfuncitem.warn(pytest.PytestWarning(NOTHING))
    if found.count > mark.args[0]:
        files = dict.fromkeys(os.path.relpath(line.place.path) for line in found.lines if line.place)
        hint = f"\nhint: syncscope lint {' '.join(files)}    shows what to write instead" if files else ""
        most = f"at most {mark.args[0]} {'is' if mark.args[0] == 1 else 'are'} allowed"
        said = f"{_syncs(found.count)}, {most}:\n{_told(found, pyfuncitem.config)}{hint}"
        pytest.fail(said, pytrace=False)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds the lines to the report of a failed test that has the fixture."""
    report = yield
    found = item.stash.get(_WATCH, None)
    if report.failed and found is not None:
        report.sections.append(("lines that made the host wait", _told(found, item.config)))
    return report


def _syncs(count: int) -> str:
    return "1 sync" if count == 1 else f"{count} syncs"


def _told(found: Watch, config: pytest.Config) -> str:
    """The lines, and below each how it is avoided."""
    advise = config.stash.get(ADVISE, None)
    lines = found.lines
    return "\n".join(_line(line, advise) for line in lines) if lines else str(found)


def _line(line: WatchedLine, advise: Advise | None) -> str:
    advice = advise(line.op, line.place) if advise is not None and line.place is not None else ""
    return f"{line}\n  {advice}" if advice else str(line)
