"""Gathers what the sweep saw in each of pytest's processes, says it in the summary, and fails if an operator was never reached.

A plugin, not a part of this folder's conftest.py: pytest-xdist's controller, which prints, does not read that.
"""

import sys
from typing import Any

import pytest

PARTS: list[dict[str, Any]] = []  # what each process saw


def unreached(parts: list[dict[str, Any]]) -> list[str]:
    """Native operators that no sample ran, if all sets ran; with only some of them there is nothing to say."""
    if sum(p["sets"] for p in parts) < parts[0]["all_sets"]:
        return []
    return sorted(set(parts[0]["reachable"]) - {n for p in parts for n in p["native"]})


def summary(parts: list[dict[str, Any]]) -> str:
    """The counts in one line."""
    sets, samples, gradients = (sum(p[key] for p in parts) for key in ("sets", "samples", "gradients"))
    there = parts[0]
    return (
        f"{there['operators']} native operators ({there['overloads']} overloads); of PyTorch's samples {samples} in {sets} "
        f"sets agree with the CPU, and {gradients} gradients; {there['gaps']} declared gaps"
    )


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker hands its counts to the process that prints; the one that prints fails if an operator was never reached."""
    sweep = sys.modules.get("sweep")  # if a test of this process imported it: its tables take seconds
    mine = sweep.COUNT.packed() if sweep and sweep.COUNT.sets else None
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["ocl"] = mine
        return
    if mine:
        PARTS.append(mine)
    if PARTS and unreached(PARTS):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    part = getattr(node, "workeroutput", {}).get("ocl")
    if part:
        PARTS.append(part)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if PARTS:
        terminalreporter.write_line("ocl: " + summary(PARTS))
        if missed := unreached(PARTS):
            terminalreporter.write_line(f"ocl: no sample reached {', '.join(missed)}", red=True)
