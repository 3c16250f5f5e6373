"""What `syncscope lint` says of OpenCL C: files, findings by rule and confidence, and its CPU time, also as a multiple of
what it takes only to parse the same files (tree-sitter for C and C++, `ast.parse` for Python).

python benchmarks/lint_opencl.py FOLDER...                       a line for each project, then a table of rules
python benchmarks/lint_opencl.py FOLDER --list divergent-barrier each finding of a rule, to be judged
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import random
import time
from collections import Counter
from pathlib import Path

from syncscope.linter.config import Config
from syncscope.linter.engine import check, is_silent
from syncscope.linter.source import C_SUFFIXES, OPENCL_SUFFIXES
from syncscope.model.finding import CONFIDENCE, Finding
from syncscope.opencl_c.rules import builtin
from syncscope.opencl_c.text import parse

SUFFIXES = (*C_SUFFIXES, ".py")


def parsed(path: Path, raw: bytes) -> None:
    """What any linter has to do first."""
    if path.suffix in OPENCL_SUFFIXES:
        parse(raw)
    elif path.suffix != ".py":
        parse(raw, cpp=True)
    else:
        with contextlib.suppress(SyntaxError, ValueError):
            ast.parse(raw)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--list", metavar="RULE", help="print the findings of this rule")
    parser.add_argument("--sample", type=int, default=0, help="as many of them, at random, always the same")
    said = parser.parse_args()
    names = [*builtin(), "syntax-error"]
    config = Config(select=tuple(names), min_confidence="low", all=True)
    every: list[Finding] = []
    print(f"{'project':20}  files  OpenCL      KB  CPU s  x parse  findings  not read")
    for folder in said.folders:
        files = [p for p in sorted(folder.rglob("*")) if p.suffix in SUFFIXES and p.is_file()]
        spoken = [(p, raw) for p in files if not is_silent(str(p), raw := p.read_bytes(), config)]
        began = time.process_time()
        found = [f for path, raw in spoken for f in check(str(path), raw, config).findings]
        took = time.process_time() - began
        began = time.process_time()
        for path, raw in spoken:
            parsed(path, raw)
        ratio = took / max(time.process_time() - began, 1e-3)
        every += found
        unread = sum(f.rule == "syntax-error" for f in found)
        size = sum(len(raw) for _, raw in spoken) // 1000
        counted = f"{len(files):6} {len(spoken):7} {size:7} {took:6.1f} {ratio:8.1f} {len(found) - unread:9} {unread:9}"
        print(f"{folder.name:20} {counted}")
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
