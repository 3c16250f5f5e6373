"""A pytest plugin: `@pytest.mark.max_syncs(2)` and the fixture `sync_trace`. A test that fails prints the lines that read, each
with what `ADVISE` has to say of it.

Where there is no device, tensors of the CPU that come from modules and batches count as a device's (dry mode). What a test
sends itself is followed, and what its fixtures send.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from syncscope.tracers.guard import Advise
    from syncscope.tracers.watch import Watch, WatchedLine

NOTHING = (
    "max_syncs checked nothing: without a device a tensor counts as one of a device if it is a module's parameter or buffer, "
    "needs a gradient, is part of a DataLoader's batch, was sent there by the test or a fixture or was computed from one of "
    "these, and none here is"
)
TELLING = (
    "/_pytest/assertion/",
    "/_pytest/_io/",
    "/_pytest/_code/",
)  # what pytest reads to tell of a test that has failed
MOST = 8  # lines that are named in the command of a hint
ADVISE = pytest.StashKey["Advise"]()
"""In the stash of the configuration, whom to ask how a wait is avoided."""
_WATCH = pytest.StashKey["Watch"]()
_FIXTURES = pytest.StashKey[frozenset[str]]()
"""In the stash of the session, the names of the fixtures of tests that count."""


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
        found.leave_out(TELLING)
        found.take_all()
        request.node.stash[_WATCH] = found
        yield found


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """What a fixture has sent counts until all tests have run: one of a module is made for the first of its tests."""
    counting = [item for item in session.items if item.get_closest_marker("max_syncs") or "sync_trace" in _names(item)]
    session.stash[_FIXTURES] = frozenset(name for item in counting for name in _names(item))
    if not counting:
        return (yield)
    from syncscope.tracers import dry_run

    with dry_run.kept():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Follows what the fixtures of such tests send; the modes that one leaves behind are its own."""
    if fixturedef.argname not in request.session.stash.get(_FIXTURES, ()) or fixturedef.argname == "sync_trace":
        return (yield)
    from syncscope.tracers.guard import dry_if

    with dry_if(None):
        return (yield)


def _names(item: pytest.Item) -> list[str]:
    return item.fixturenames if isinstance(item, pytest.Function) else []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Counts around the test's own code, and fails it where it read too often: on whatever thread or task, as one test at a
    time runs in a process. Around whatever test: one of `unittest` is called by its case, with `setUp` and `tearDown`."""
    mark = item.get_closest_marker("max_syncs")
    if mark is None:
        return (yield)
    if mark.kwargs or len(mark.args) != 1 or type(mark.args[0]) is not int or mark.args[0] < 0:
        wanted = "max_syncs takes one number, 0 or more: @pytest.mark.max_syncs(2)"
        pytest.fail(f"{item.nodeid}: {wanted}", pytrace=False)
    from syncscope.tracers import dry_run, guard
    from syncscope.tracers.watch import watch

    dry, before = not guard.has_device(), dry_run.counted()
    with watch(dry=None) as found:
        found.leave_out(TELLING)
        found.take_all()
        result = yield
    if getattr(item, "_excinfo", None):  # where pytest keeps what a case of `unittest` failed or was skipped by
        return result
    if dry and dry_run.counted() == before:
        item.warn(pytest.PytestWarning(NOTHING))
    if found.count > mark.args[0]:
        places = (line.place for line in found.lines if line.place)
        named = [*dict.fromkeys(f"{os.path.relpath(place.path)}:{place.line}" for place in places)][:MOST]
        lines = " ".join(map(shlex.quote, named))  # a line, as a baseline or what is cold may hide it from its file
        hint = (
            f"\nhint: syncscope lint --explain-finding {lines}    shows these lines, and a rewrite where one fits"
            if named
            else ""
        )
        most = f"at most {mark.args[0]} {'is' if mark.args[0] == 1 else 'are'} allowed"
        said = f"{_syncs(found.count)}, {most}:\n{_told(found, item.config)}{hint}"
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
