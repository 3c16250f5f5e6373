"""Without torch or an OpenCL device there is nothing to test here; the counts of the sweep end up in pytest's summary."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("pyopencl")

PARTS = []  # what each process saw


def pytest_sessionfinish(session):
    """A worker hands its counts to the process that prints; the one that prints fails if an operator was never reached."""
    import sweep

    mine = sweep.COUNT.packed() if sweep.COUNT.sets else None
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["ocl"] = mine
        return
    if mine:
        PARTS.append(mine)
    if PARTS and sweep.unreached(PARTS):
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
