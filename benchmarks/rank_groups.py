"""How often the groups of ranks that no recording names are found, and whether the late rank is the one that is blamed.

    python benchmarks/rank_groups.py --seeds 10

Jobs of 4 to 16 ranks are drawn (`grid_of` of the tests): rows and columns meet in collectives that are called alike, one
rank computes for 0.15 ms more each time, kernels vary by 0.2 ms, and on two of three jobs clocks are up to 0.2 s apart. Each is
analysed as it is, and with the names and ranks of its groups in it, which is the truth.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

from syncscope.analysis.job import JobReport, job

TESTS = Path(__file__).parents[1] / "tests" / "analysis"
LATE = 150_000  # ns
SHAPES = ((2, 4), (2, 8), (4, 8), (4, 16))  # ranks of a row, and of all
LOOPS = ((6, 4), (2, 3), (1, 3), (20, 2))  # collectives of a row in a step, and steps


def groups(found: JobReport) -> set[str]:
    """The ranks of the groups whose collectives were matched."""
    return {meet.key.group.rpartition(" ")[2] for meet in found.meets}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=10, help="jobs of each kind")
    sys.path.insert(0, str(TESTS))
    grid_of = importlib.import_module("drawn_ranks").grid_of
    counts = Counter[str]()
    for seed, (width, world), (count, steps) in product(range(parser.parse_args().seeds), SHAPES, LOOPS):
        late = [LATE if rank == 3 else 0 for rank in range(world)]
        clock = [(-1) ** rank * rank * 7_000_000 * (seed % 3) for rank in range(world)]
        drawn: dict[str, Any] = {"width": width, "seed": seed, "count": count, "steps": steps, "clock": clock}
        truth, found = job(grid_of(*late, named=True, **drawn)), job(grid_of(*late, **drawn))
        counts["jobs"] += 1
        counts["all groups found"] += groups(found) == groups(truth)
        counts["some groups found"] += bool(groups(found))
        counts["a group that is none"] += bool(groups(found) - groups(truth))
        counts["the late rank blamed most"] += max(found.ranks, key=lambda rank: rank.imposed).number == 3
    for name, number in counts.items():
        print(f"{name:<28}{number:>5}")


if __name__ == "__main__":
    main()
