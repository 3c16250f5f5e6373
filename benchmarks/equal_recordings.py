"""How far recordings of one program are apart, and how often `syncscope diff` takes two of them for different.

python benchmarks/prediction.py --loops held_out_7 --rounds 3 --keep kept
python benchmarks/equal_recordings.py kept
"""

from __future__ import annotations

import argparse
import statistics
from collections import defaultdict
from dataclasses import replace
from itertools import combinations
from pathlib import Path

from syncscope import kineto
from syncscope.analysis.compare import compare


def main() -> None:
    """Prints it for every loop, and for all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="+", type=Path, help="what `prediction.py --keep` left")
    loops = defaultdict(list)
    for folder in parser.parse_args().folder:
        for path in sorted(folder.glob("*-written.json.gz")):
            loops[path.parent, path.name.rsplit("-", 2)[0]].append(kineto.read(path))
    apart, different, by_own_spread = [], 0, 0
    for (_, name), traces in loops.items():
        for one, other in combinations(traces, 2):
            found = compare(one, other)
            if found.within_noise is None or not found.before.step or not found.after.step:
                continue
            apart.append(abs(found.after.step / found.before.step - 1))
            different += not found.within_noise
            by_own_spread += not replace(found, pace=1.0).within_noise
            print(f"{name:28} {apart[-1]:6.1%} apart, the host's pace {found.pace:.2f}")
    if apart:
        print(f"{len(apart)} pairs: {statistics.median(apart):.1%} apart in the median, {max(apart):.1%} at worst")
        print(f"taken for different: {different}; {by_own_spread} by the spread of their steps alone")


if __name__ == "__main__":
    main()
