"""Without torch or an OpenCL device there is nothing to test here; the counts of the sweep end up in pytest's summary."""

import importlib.util
import sys

import pytest

if not all(map(importlib.util.find_spec, ("torch", "pyopencl"))):
    collect_ignore_glob = ["*"]

PARTS = []  # what each process saw


def _sweep():
    """The module of the sweep, if a test of this process imported it: its tables take seconds."""
    return sys.modules.get("sweep")


def pytest_sessionfinish(session):
    """A worker hands its counts to the process that prints; the one that prints fails if an operator was never reached."""
    sweep = _sweep()
    mine = sweep.COUNT.packed() if sweep and sweep.COUNT.sets else None
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["ocl"] = mine
        return
    if mine:
        PARTS.append(mine)
    if PARTS:
        import sweep

        if sweep.unreached(PARTS):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    part = getattr(node, "workeroutput", {}).get("ocl")
    if part:
        PARTS.append(part)


def pytest_terminal_summary(terminalreporter):
    if PARTS:
        import sweep

        terminalreporter.write_line("ocl: " + sweep.summary(PARTS))
        if missed := sweep.unreached(PARTS):
            terminalreporter.write_line(f"ocl: no sample reached {', '.join(missed)}", red=True)
