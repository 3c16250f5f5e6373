"""What `syncscope lint` says of OpenCL C: files, findings by rule and confidence, and the time of each part.

python benchmarks/lint_opencl.py FOLDER...                       a line for each project, then a table of rules
python benchmarks/lint_opencl.py FOLDER --list divergent-barrier each finding of a rule, to be judged
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from pathlib import Path

from syncscope.linter.config import Config
from syncscope.linter.engine import check, is_silent
from syncscope.linter.source import C_SUFFIXES
from syncscope.model.finding import CONFIDENCE, Finding
from syncscope.opencl_c.rules import builtin

SUFFIXES = (*C_SUFFIXES, ".py")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--list", metavar="RULE", help="print the findings of this rule")
    parser.add_argument("--sample", type=int, default=0, help="as many of them, at random, always the same")
    said = parser.parse_args()
    names = [*builtin(), "syntax-error"]
    config = Config(select=tuple(names), min_confidence="low", all=True)
    every: list[Finding] = []
    print(f"{'project':20} {'files':>6} {'with OpenCL':>11} {'KB':>7} {'CPU s':>6} {'findings':>8} {'not read':>8}")
    for folder in said.folders:
        files = [p for p in sorted(folder.rglob("*")) if p.suffix in SUFFIXES and p.is_file()]
        spoken = [(p, raw) for p in files if not is_silent(str(p), raw := p.read_bytes())]
        began = time.process_time()
        found = [f for path, raw in spoken for f in check(str(path), raw, config).findings]
        took = time.process_time() - began
        every += found
        unread = sum(f.rule == "syntax-error" for f in found)
        size = sum(len(raw) for _, raw in spoken) // 1000
        print(
            f"{folder.name:20} {len(files):6} {len(spoken):11} {size:7} {took:6.1f} {len(found) - unread:8} {unread:8}"
        )
    counts = Counter((f.rule, CONFIDENCE[f.confidence]) for f in every)
    print(f"\n{'rule':28} {'high':>6} {'medium':>6} {'low':>6}")
    for name in names:
        print(f"{name:28} " + " ".join(f"{counts[name, sure]:6}" for sure in ("high", "medium", "low")))
    chosen = [f for f in every if f.rule == said.list]
    if said.sample and len(chosen) > said.sample:
        chosen = random.Random(0).sample(chosen, said.sample)
    for finding in chosen:
        row = Path(finding.place.path).read_bytes().split(b"\n")[finding.place.line - 1].decode("utf-8", "replace")
        print(f"\n{finding.place} ({CONFIDENCE[finding.confidence]}) {finding.message}\n    {row.strip()}")


if __name__ == "__main__":
    main()
