"""How far recordings of one program are apart, and how often `syncscope diff` takes two of them for different.

python benchmarks/prediction.py --loops held_out --rounds 3 --keep kept
python benchmarks/prediction.py --loops held_out --rounds 3 --keep kept_too
python benchmarks/equal_recordings.py kept kept_too

Recordings of one folder are of one process; of several folders, those of each two are compared, too.
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
            loops[path.name.rsplit("-", 2)[0]].append((folder, kineto.read(path)))
    apart, different, by_own_spread, of_two = [], 0, 0, []
    for name, traces in loops.items():
        for (home, one), (away, other) in combinations(traces, 2):
            found = compare(one, other)
            if found.within_noise is None or not found.before.step or not found.after.step:
                continue
            apart.append(abs(found.after.step / found.before.step - 1))
            different += not found.within_noise
            by_own_spread += not replace(found, pace=1.0, drift=0.0).within_noise
            of_two += [not found.within_noise] * (home != away)
            print(f"{name:28} {apart[-1]:6.1%} apart, the host's pace {found.pace:.2f}")
    if apart:
        print(f"{len(apart)} pairs: {statistics.median(apart):.1%} apart in the median, {max(apart):.1%} at worst")
        print(f"taken for different: {different}; {by_own_spread} by the spread of their steps alone")
    if of_two:
        print(f"of two processes: {len(of_two)} pairs, taken for different: {sum(of_two)}")


if __name__ == "__main__":
    main()
