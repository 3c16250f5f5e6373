"""Lints and fixes all of the standard library and of what is installed: `python benchmarks/lint_everything.py [folders]`.

Nothing is written. A file that mentions torch is linted where it stands, so that its imports are followed; any other as if it
did, so that every stage sees it. Printed are the files that raised something, that a fix left unparsable, or that a second
fixing changed again.
"""

from __future__ import annotations

import ast
import sys
import sysconfig
import time
import traceback
import warnings
from pathlib import Path

from syncscope.linter import engine, notebooks, run
from syncscope.linter.config import Config
from syncscope.linter.pool import frugal
from syncscope.model.finding import Safety

EVERYTHING = Config(root="/", all=True, min_confidence="low", backend="ocl")
FIXES = frozenset({Safety.SAFE, Safety.UNSAFE})


def look(path: Path) -> tuple[int, int, int]:
    """Lines, findings and fixes of one file; raises where something does not hold."""
    raw, name = path.read_bytes(), str(path)
    if not engine.is_silent(name, raw, EVERYTHING):
        job = run.Job(name, EVERYTHING, FIXES)
    else:
        raw, job = raw + b"\n# torch\n", run.Job("alone.py", EVERYTHING, FIXES)
    found = engine.check(job.path, raw, job.config)
    done = run.mended(job, raw)
    if done.mended is None:
        return raw.count(b"\n"), len(found.findings), 0
    assert not done.mended.refused, done.mended.refused
    ast.parse(notebooks.source_of(name, done.mended.raw).code)
    again = run.mended(job, done.mended.raw)
    assert again.mended is None or again.mended.raw == done.mended.raw, "a second fixing changes it again"
    return raw.count(b"\n"), len(found.findings), len(done.mended.applied)


def main() -> int:
    warnings.simplefilter("ignore")
    roots = [Path(p) for p in sys.argv[1:]] or [Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib")]
    paths = sorted({path for root in roots for path in root.rglob("*.py") if path.is_file()})
    total, bad, start = [0, 0, 0], 0, time.process_time()
    with frugal():
        for number, path in enumerate(paths, 1):
            try:
                total = [a + b for a, b in zip(total, look(path), strict=True)]
            except Exception as error:
                bad += 1
                print(f"{path}: {''.join(traceback.format_exception(error)[-3:])}", flush=True)
            if number % 1000 == 0:
                print(f"{number} of {len(paths)} files", file=sys.stderr, flush=True)
    print(
        f"{len(paths)} files, {total[0]:,} lines: {total[1]} findings, {total[2]} fixes made, {bad} failures; "
        f"{time.process_time() - start:.0f} CPU s"
    )
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
