"""What fixes do to the tests that others wrote: `python benchmarks/test_suites.py PROJECT --package SOURCES --tests TESTS`.

    python benchmarks/test_suites.py ~/src/kornia --package kornia --tests tests/geometry --python ~/kornia/.venv/bin/python

PROJECT is copied; its tests are run there as it is, with all safe fixes in SOURCES, and with all unsafe ones on top, those
of findings that are cold or unsure included. A test that fails after fixes and not before is run once more on all three, so
that one that fails now and then is not held against them. Printed are a row of a table and, of each new failure, its error.
The exit code is 1 where a safe fix broke a test.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

ALL = ("--all", "--min-confidence", "low", "--no-cache", "--isolated")
SKIPPED = shutil.ignore_patterns(".git", ".venv", "build", "*.egg-info", "__pycache__", "docs", "examples")
WORST = ("failed", "error")


def outcomes(
    project: Path, python: str, tests: list[str], more: list[str], seconds: float
) -> dict[str, tuple[str, str]]:
    """Of each test that ran: passed, failed, error or skipped, and the message.

    Raises:
        SystemExit: pytest told of no test at all.
    """
    report = project / "outcomes.xml"
    report.unlink(missing_ok=True)
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *more, *tests]
    path = os.pathsep.join(str(p) for p in (project, project / "src") if p.is_dir())
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}
    try:
        done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise SystemExit(f"{project.name}: the tests took more than {seconds:.0f} s") from None
    if not report.exists():
        raise SystemExit(f"{project.name}: pytest told of nothing\n{done.stdout[-2000:]}{done.stderr[-1000:]}")
    found = {}
    for case in ET.parse(report).getroot().iter("testcase"):
        state, message = "passed", ""
        for child in case:
            if child.tag in ("failure", "error", "skipped"):
                state = {"failure": "failed"}.get(child.tag, child.tag)
                message = " ".join((child.get("message") or "").split())[:200]
        found[f"{case.get('classname')}::{case.get('name')}"] = (state, message)
    if not found:
        raise SystemExit(f"{project.name}: no tests\n{done.stdout[-2000:]}")
    return found


def fix(project: Path, sources: list[str], unsafe: bool) -> int:
    """Make the fixes; how many there were."""
    command = [
        sys.executable,
        "-m",
        "syncscope",
        "lint",
        *ALL,
        "--fix",
        *(["--unsafe-fixes"] if unsafe else []),
        *sources,
    ]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{project.name}: syncscope lint failed\n{done.stderr[-2000:]}")
    made = re.search(r"made (\d[\d,]*) fix", done.stdout + done.stderr)
    return int(made[1].replace(",", "")) if made else 0


def changed_lines(before: Path, after: Path, sources: list[str]) -> str:
    """The diff of all files that differ."""
    pieces: list[str] = []
    for path in sorted(
        p for s in sources for p in ([after / s] if (after / s).is_file() else (after / s).rglob("*.py"))
    ):
        old, new = (before / path.relative_to(after)).read_text(), path.read_text()
        name = str(path.relative_to(after))
        pieces += difflib.unified_diff(old.splitlines(True), new.splitlines(True), name, name, n=1)
    return "".join(pieces)


def broken(before: dict[str, tuple[str, str]], after: dict[str, tuple[str, str]]) -> dict[str, str]:
    """The tests that passed, or were skipped, and do not any more."""
    lost = {
        name: "it is no longer there" for name, (state, _) in before.items() if state == "passed" and name not in after
    }
    worse = {n: f"{s}: {m}" for n, (s, m) in after.items() if s in WORST and before.get(n, ("", ""))[0] not in WORST}
    return {**lost, **worse}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("project", type=Path)
    parser.add_argument("--package", nargs="+", required=True, help="what is fixed, relative to PROJECT")
    parser.add_argument("--tests", nargs="+", required=True, help="what pytest is given, relative to PROJECT")
    parser.add_argument(
        "--python", default=sys.executable, help="an interpreter that can import the project's requirements"
    )
    parser.add_argument("--pytest", default="", help='more for pytest: "-k cpu -x"')
    parser.add_argument("--seconds", type=float, default=900, help="of one run of the tests")
    parser.add_argument("--diff", type=Path, help="write what the fixes changed there")
    given = parser.parse_args()
    more, name = given.pytest.split(), given.project.resolve().name
    with tempfile.TemporaryDirectory() as folder:
        trees = {word: Path(folder, word, name) for word in ("before", "safe", "unsafe")}
        shutil.copytree(given.project, trees["before"], ignore=SKIPPED)
        shutil.copytree(trees["before"], trees["safe"])
        counts = {"safe": fix(trees["safe"], given.package, unsafe=False)}
        shutil.copytree(trees["safe"], trees["unsafe"])
        counts["unsafe"] = fix(trees["unsafe"], given.package, unsafe=True)
        results = {word: outcomes(tree, given.python, given.tests, more, given.seconds) for word, tree in trees.items()}
        passed = sum(state == "passed" for state, _ in results["before"].values())
        failed = sum(state in WORST for state, _ in results["before"].values())
        new = {word: broken(results["before"], results[word]) for word in ("safe", "unsafe")}
        if any(new.values()):  # once more, whether it was the fix
            again = {
                word: outcomes(tree, given.python, given.tests, more, given.seconds) for word, tree in trees.items()
            }
            for word, tests in new.items():
                still = broken(again["before"], again[word])
                new[word] = {test: message for test, message in tests.items() if test in still}
        if given.diff:
            given.diff.write_text(changed_lines(trees["before"], trees["unsafe"], given.package))
        print("| project | tests that pass | fail | safe fixes | new failures | unsafe fixes | new failures |")
        print("| --- | --- | --- | --- | --- | --- | --- |")
        row = (name, passed, failed, counts["safe"], len(new["safe"]), counts["unsafe"], len(new["unsafe"]))
        print(f"| {' | '.join(map(str, row))} |", flush=True)
        for word, tests in new.items():
            for test, message in list(tests.items())[:20]:
                print(f"{word}: {test}\n    {message}")
    return 1 if new["safe"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
