"""How well recordings are reproduced by a replay that changes nothing, and what is priced in them.

    python benchmarks/fidelity.py FOLDER

*kept* is the error of a replay in which what began late for no recorded reason is as late again: it shows wrong clocks and
misread queues only. *error* is that of the worse of it and one in which nothing is late for no recorded reason; the report
prints it as its fidelity. *unexplained* is the share of the steps in which the device stood still for no recorded reason.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from syncscope import kineto
from syncscope.analysis.event_graph import event_graph_of
from syncscope.analysis.fidelity import error
from syncscope.analysis.replay import replay
from syncscope.analysis.summary import summarize


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where traces are, in folders too")
    folder = parser.parse_args().folder
    files = sorted(p for p in folder.rglob("*") if p.name.endswith((".json", ".json.gz")))
    head = f"{'kept':>8} {'error':>8} {'unexplained':>12} {'step ms':>9} {'blocked':>8} {'saving':>7}"
    print(f"{'file':56} {head} {'without the profiler':>21}")
    errors = []
    for file in files:
        trace = kineto.read(file)
        report = summarize(trace)
        errors.append(report.fidelity)
        blocked = sum(line.blocked for line in report.lines) / 1e6
        step, saving = (
            (report.saving_step or report.step or 0) / 1e6,
            "none" if report.saving is None else f"{report.saving / 1e6:.2f}",
        )
        figures = "no work"
        if report.fidelity is not None:
            graph = event_graph_of(trace).graph()
            figures = f"{error(graph, replay(graph)):8.3%} {report.fidelity:8.3%} {report.unexplained or 0.0:12.3%}"
        lean = (
            ""
            if report.lean_saving is None
            else f"{report.lean_saving / 1e6:.2f} of {(report.lean_step or 0) / 1e6:.1f}"
        )
        name = str(file.relative_to(folder))[:56]
        print(f"{name:56} {figures:>30} {step:9.2f} {blocked:8.2f} {saving:>7} {lean:>21}")
    known = [e for e in errors if e is not None]
    within = {limit: sum(e <= limit for e in known) for limit in (0.01, 0.03, 0.05)}
    print(f"\n{len(known)} with device work; " + ", ".join(f"{n} within {limit:.0%}" for limit, n in within.items()))


if __name__ == "__main__":
    main()
