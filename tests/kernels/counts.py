"""Gathers what the sweep saw in each of pytest's processes, says it in the summary, and fails if an operator was never reached.

A plugin, not a part of this folder's conftest.py: pytest-xdist's controller, which prints, does not read that.
"""

import importlib
import sys
from pathlib import Path

import pytest

PARTS = []  # what each process saw


def _counts():
    """The sweep, in the process that prints: it may not have run a test itself."""
    sys.path.insert(0, str(Path(__file__).parent))
    return importlib.import_module("sweep")


def pytest_sessionfinish(session):
    """A worker hands its counts to the process that prints; the one that prints fails if an operator was never reached."""
    sweep = sys.modules.get("sweep")  # if a test of this process imported it: its tables take seconds
    mine = sweep.COUNT.packed() if sweep and sweep.COUNT.sets else None
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["ocl"] = mine
        return
    if mine:
        PARTS.append(mine)
    if PARTS and _counts().unreached(PARTS):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    part = getattr(node, "workeroutput", {}).get("ocl")
    if part:
        PARTS.append(part)


def pytest_terminal_summary(terminalreporter):
    if PARTS:
        sweep = _counts()
        terminalreporter.write_line("ocl: " + sweep.summary(PARTS))
        if missed := sweep.unreached(PARTS):
            terminalreporter.write_line(f"ocl: no sample reached {', '.join(missed)}", red=True)
