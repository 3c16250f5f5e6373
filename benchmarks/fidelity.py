"""How well recordings are reproduced by a replay that changes nothing, and what is priced in them.

python benchmarks/fidelity.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

from syncscope import kineto
from syncscope.analysis.summary import summarize


def main() -> None:
    files = sorted(p for p in Path(sys.argv[1]).rglob("*") if p.name.endswith((".json", ".json.gz")))
    print(f"{'file':56} {'error':>8} {'step ms':>9} {'blocked':>8} {'saving':>7} {'without the profiler':>21}")
    errors = []
    for file in files:
        report = summarize(kineto.read(file))
        errors.append(report.fidelity)
        blocked = sum(line.blocked for line in report.lines) / 1e6
        error = "no work" if report.fidelity is None else f"{report.fidelity:.3%}"
        step, saving = (report.step or 0) / 1e6, (report.saving or 0) / 1e6
        lean = (
            ""
            if report.lean_saving is None
            else f"{report.lean_saving / 1e6:.2f} of {(report.lean_step or 0) / 1e6:.1f}"
        )
        print(
            f"{str(file.relative_to(sys.argv[1]))[:56]:56} {error:>8} {step:9.2f} {blocked:8.2f} {saving:7.2f} {lean:>21}"
        )
    known = [e for e in errors if e is not None]
    within = {limit: sum(e <= limit for e in known) for limit in (0.01, 0.03, 0.05)}
    print(f"\n{len(known)} with device work; " + ", ".join(f"{n} within {limit:.0%}" for limit, n in within.items()))


if __name__ == "__main__":
    main()
