"""What fixes do to the tests that others wrote: `python benchmarks/test_suites.py PROJECT --package SOURCES --tests TESTS`.

    python benchmarks/test_suites.py ~/src/kornia --package kornia --tests tests/geometry --python ~/kornia/.venv/bin/python

PROJECT is copied; its tests are run there as it is, with all safe fixes in SOURCES, and with all unsafe ones on top, those
of findings that are cold or unsure included. A test that fails after fixes and not before is run once more on all three, so
that one that fails now and then is not held against them. Printed are a row of a table and, of each new failure, its error;
a fix that no test runs is not shown to be right, so beside the number of fixes stands how many changed places ran, and those
that did not are listed. With --keep FOLDER the fixed copies and what was seen stay there, and a later call with other tests
adds to the row: so that a large suite can be run in parts. The exit code is 1 where a safe fix broke a test.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

ALL = ("--all", "--min-confidence", "low", "--no-cache", "--isolated")
SKIPPED = shutil.ignore_patterns(".git", ".venv", "build", "*.egg-info", "__pycache__")
BESIDE = ("docs",)  # of the project itself: tests may have folders that are called so. Examples say what runs in a step
WORST = ("failed", "error")
TREES = ("before", "safe", "unsafe")
Places = dict[str, list[tuple[int, int]]]  # of a file: the first line of each changed place, and the one after its last


@dataclass
class Seen:
    """What the tests of one copy did."""

    tests: dict[str, tuple[str, str]] = field(default_factory=dict)  # passed, failed, error or skipped, and the message
    ran: set[str] = field(default_factory=set)  # which of the changed places: `losses/triplet.py:31`


# a plug-in of pytest: which of the lines in CHANGED_LINES ran, into REACHED_LINES
PLUGIN = """
import json, os, sys, threading
wanted = {path: set(lines) for path, lines in json.loads(os.environ["CHANGED_LINES"]).items()}
ran, codes = set(), {}

def line(frame, event, arg):
    if event == "line" and frame.f_lineno in wanted[frame.f_code.co_filename]:
        ran.add((frame.f_code.co_filename, frame.f_lineno))
    return line

def call(frame, event, arg):
    code = frame.f_code
    if code.co_filename not in wanted:
        return None
    if code not in codes:
        codes[code] = not wanted[code.co_filename].isdisjoint(number for _, _, number in code.co_lines())
    return line if codes[code] else None

def pytest_sessionfinish():
    with open(os.environ["REACHED_LINES"], "w") as file:
        json.dump(sorted(ran), file)

threading.settrace(call)
sys.settrace(call)
"""


def outcomes(project: Path, python: str, tests: list[str], more: list[str], seconds: float, changed: Places) -> Seen:
    """Run the tests.

    Raises:
        SystemExit: pytest told of no test at all.
    """
    report = project / "outcomes.xml"
    report.unlink(missing_ok=True)
    plugin, reached = project.parent / "changed_lines_that_run.py", project.parent / "reached.json"
    plugin.write_text(PLUGIN)
    reached.write_text("[]")
    lines = {str(project / path): [n for a, b in places for n in range(a, b)] for path, places in changed.items()}
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--continue-on-collection-errors"]
    command += [f"--junitxml={report}", *more, *tests, *(["-p", plugin.stem] if changed else [])]
    path = os.pathsep.join(str(p) for p in (project, project / "src", project.parent) if p.is_dir())
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}
    environment |= {"CHANGED_LINES": json.dumps(lines), "REACHED_LINES": str(reached)}
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
    ran = {(path, number) for path, number in json.loads(reached.read_text())}
    return Seen(
        found,
        {
            f"{p}:{a}"
            for p, ps in changed.items()
            for a, b in ps
            if any((str(project / p), n) in ran for n in range(a, b))
        },
    )


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


def changed_files(before: Path, after: Path, sources: list[str]) -> dict[str, tuple[list[str], list[str]]]:
    """The lines before and after of each file that differs."""
    found = {}
    for path in sorted(
        p for s in sources for p in ([after / s] if (after / s).is_file() else (after / s).rglob("*.py"))
    ):
        name = str(path.relative_to(after))
        old, new = (before / name).read_text().splitlines(True), path.read_text().splitlines(True)
        if old != new:
            found[name] = (old, new)
    return found


def changed_places(before: Path, after: Path, sources: list[str]) -> Places:
    """Where code was changed: not where lines went away, or where there is a new import and nothing else."""
    found: Places = {}
    for name, (old, new) in changed_files(before, after, sources).items():
        for tag, _, _, start, stop in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if tag != "equal" and any(re.match(r"(?!import |from |#)\S", line.strip()) for line in new[start:stop]):
                found.setdefault(name, []).append((start + 1, stop + 1))
    return found


def broken(before: dict[str, tuple[str, str]], after: dict[str, tuple[str, str]]) -> dict[str, str]:
    """The tests that passed, or were skipped, and do not any more."""
    lost = {
        name: "it is no longer there" for name, (state, _) in before.items() if state == "passed" and name not in after
    }
    worse = {n: f"{s}: {m}" for n, (s, m) in after.items() if s in WORST and before.get(n, ("", ""))[0] not in WORST}
    return {**lost, **worse}


def fixed(project: Path, folder: Path, sources: list[str]) -> tuple[dict[str, Path], dict[str, int]]:
    """The copies of the project in that folder, made where they are not there yet, and the number of fixes in each."""
    trees = {word: folder / word / project.name for word in TREES}
    note = folder / "fixes.json"
    if not note.exists():
        beside = [name for name in BESIDE if (project / name).is_dir()]
        shutil.copytree(
            project,
            trees["before"],
            ignore=lambda at, names: {*SKIPPED(at, names), *(beside if Path(at) == project else ())},
        )
        counts = {}
        for base, word in (("before", "safe"), ("safe", "unsafe")):
            shutil.copytree(trees[base], trees[word])
            counts[word] = fix(trees[word], sources, unsafe=word == "unsafe")
        note.write_text(json.dumps(counts))
    return trees, json.loads(note.read_text())


def earlier(folder: Path) -> dict[str, Seen]:
    """What calls before this one saw of the copies in that folder."""
    note = folder / "seen.json"
    kept = json.loads(note.read_text()) if note.exists() else {}
    return {
        word: Seen({name: (state, message) for name, (state, message) in seen["tests"].items()}, set(seen["ran"]))
        for word, seen in kept.items()
    }


def row(name: str, counts: dict[str, int], seen: dict[str, Seen], places: dict[str, Places]) -> str:
    """The table, the error of each new failure, and the places that no test ran."""
    before = [state for state, _ in seen["before"].tests.values()]
    cells: list[object] = [name, before.count("passed"), sum(before.count(word) for word in WORST)]
    heads, below = ["project", "tests that pass", "fail"], []
    for word, count in counts.items():
        new = broken(seen["before"].tests, seen[word].tests)
        every = {f"{path}:{start}" for path, spans in places[word].items() for start, _ in spans}
        heads += [f"{word} fixes", "places that ran", "new failures"]
        cells += [count, f"{len(seen[word].ran)} of {len(every)}", len(new)]
        below += [f"{word}: {test}\n    {message}" for test, message in list(new.items())[:20]]
        below += [f"{word}, not run: {place}" for place in sorted(every - seen[word].ran)]
    table = (heads, ["---"] * len(heads), cells)
    return "\n".join([*(f"| {' | '.join(map(str, line))} |" for line in table), *below])


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
    parser.add_argument("--keep", type=Path, help="the folder of the fixed copies: what was seen before counts, too")
    parser.add_argument("--diff", type=Path, help="write what the fixes changed there")
    given = parser.parse_args()
    project, python = given.project.resolve(), os.path.abspath(given.python)
    with nullcontext(given.keep) if given.keep else tempfile.TemporaryDirectory() as kept:
        folder = Path(kept).resolve()
        trees, counts = fixed(project, folder, given.package)
        places: dict[str, Places] = {
            "before": {},
            "safe": changed_places(trees["before"], trees["safe"], given.package),
            "unsafe": changed_places(trees["safe"], trees["unsafe"], given.package),
        }
        if given.diff:
            changed = changed_files(trees["before"], trees["unsafe"], given.package)
            pieces = (difflib.unified_diff(old, new, name, name, n=1) for name, (old, new) in changed.items())
            given.diff.write_text("".join(line for piece in pieces for line in piece))

        def run() -> dict[str, Seen]:
            found: dict[str, Seen] = {}
            for base, word in zip((None, *TREES), TREES, strict=False):
                if base and not counts[word]:  # nothing was changed: nothing to run again
                    found[word] = Seen(found[base].tests)
                else:
                    more = given.pytest.split()
                    found[word] = outcomes(trees[word], python, given.tests, more, given.seconds, places[word])
            return found

        now = run()
        if any(broken(now["before"].tests, now[word].tests) for word in counts):  # once more, whether it was the fix
            again = run()
            for word in counts:
                still = broken(again["before"].tests, again[word].tests)
                for test in broken(now["before"].tests, now[word].tests).keys() - still.keys():
                    now[word].tests[test] = now["before"].tests.get(test, ("passed", ""))
        seen = earlier(folder)
        for word in TREES:
            old = seen.get(word, Seen())
            seen[word] = Seen({**old.tests, **now[word].tests}, old.ran | now[word].ran)
        kept_as = {word: {"tests": each.tests, "ran": sorted(each.ran)} for word, each in seen.items()}
        (folder / "seen.json").write_text(json.dumps(kept_as))
        print(row(project.name, counts, seen, places), flush=True)
    return 1 if broken(seen["before"].tests, seen["safe"].tests) else 0


if __name__ == "__main__":
    raise SystemExit(main())
