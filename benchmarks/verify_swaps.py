"""What cannot take turns inside of one process, and how often: of the fixes that `syncscope verify` would try, by their files.

    python benchmarks/verify_swaps.py FOLDER [FOLDER ...]

A folder is a checkout of a project; of its files those are read that make a step (`.step()`, `.backward()`), and of their
fixes those that are offered in code that runs in a step. Nothing is run: what a run finds later, such as a function that goes
on around the steps, or torch.compile, is in what `verify_programs.py` prints.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from syncscope.errors import UserError
from syncscope.verify.one_process import why_apart
from syncscope.verify.plan import Plan

STEPS = re.compile(rb"\.step\(\)|\.backward\(")
REASONS = (
    (r"is in the module, which runs once|is added to the module", "it stands outside of all functions and loops"),
    (r"the body of class", "it stands in the body of a class"),
    (r"runs once", "it stands in a function that is called once, around the loop"),
    (r"is compiled by what decorates it", "what decorates the function compiles it"),
    (r"is local in one version", "a name would be local in one version, and global in the other"),
    (r"is a generator in one version", "the function would be a generator in one version only"),
)


def reason(why: str) -> str:
    """Without the names in it."""
    return next((said for pattern, said in REASONS if re.search(pattern, why)), why.partition(": ")[2] or why)


def files(folder: Path) -> Iterator[Path]:
    """Those that make steps."""
    for path in sorted(folder.rglob("*.py")):
        if path.is_file() and STEPS.search(path.read_bytes()):
            yield path


def main() -> None:
    counts: Counter[str] = Counter()
    read = with_fixes = several = kept = 0
    for folder in map(Path, sys.argv[1:]):
        for path in files(folder):
            read += 1
            try:
                plan = Plan([str(path.resolve())])
            except UserError:
                continue
            tried = [one.number for one in plan.candidates if not plan.untried(one)]
            why = [why_apart(plan.before, plan.version(plan.closed({number}))) for number in tried]
            counts.update(reason(one) if one else "" for one in why)
            with_fixes += bool(tried)
            several += bool(tried) and any(why)
            kept += bool(tried) and any(why) and not all(why)
    tried_in_all = sum(counts.values())
    print(
        f"{read} files of {len(sys.argv) - 1} projects make steps, {with_fixes} of them have {tried_in_all} fixes to try"
    )
    print("| what | fixes | of all |\n| --- | --- | --- |")
    print(f"| takes turns in one process | {counts['']} | {counts[''] / max(1, tried_in_all):.1%} |")
    for said, count in counts.most_common():
        if said:
            print(f"| {said} | {count} | {count / tried_in_all:.1%} |")
    print(f"{several} files have one that does not; in {kept} of them it is set aside, and the others take turns")


if __name__ == "__main__":
    main()
