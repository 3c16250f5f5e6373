"""How many of the lines of public packages that wait in every training step the linter shows, and how many others.

    python benchmarks/package_waits.py                   the figures, by package
    python benchmarks/package_waits.py mbrl --list       with each line that is missed, and each false alarm
    python benchmarks/package_waits.py --unpacked DIR    where the packages are unpacked, or shall be (build/packages)

`packages/` holds, for each package, training steps over it and what waited in every one of them, as `step_waits.py` recorded
it (which says how to record them anew, or more), with the figures of the first look: how many were shown, of how many, beside
how many others, when nobody had seen the package. Those are the ones to believe; what has none nobody has looked at. What is in
`learned_from` the linter was bettered on since; whoever looks at a list of `held_out` moves the package there. What is not
unpacked is fetched from PyPI.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import zipfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from shown import Finding, Score

PACKAGES = Path(__file__).parent / "packages"
UNPACKED = Path(__file__).parents[1] / "build" / "packages"


def sources(package: str, unpacked: Path) -> Path | None:
    """The folder of a package, `mbrl==0.2.0`, fetched where it is not there; None where there is no wheel: pip would run it."""
    folder = unpacked / package.replace("==", "-")
    if not folder.is_dir():
        with tempfile.TemporaryDirectory() as downloads:
            fetch = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
            if subprocess.run([*fetch, "-d", downloads, package], stderr=subprocess.DEVNULL).returncode:
                return None
            (wheel,) = Path(downloads).iterdir()
            zipfile.ZipFile(wheel).extractall(folder)
    return folder


def shown(folder: Path) -> dict[str, list[Finding]]:
    """What the linter shows of a package as hot, by file."""
    lint = [
        sys.executable,
        "-m",
        "syncscope",
        "lint",
        "--isolated",
        "--exit-zero",
        "--no-cache",
        "--all",
        "--format",
        "json",
    ]
    files = sorted(str(each.relative_to(folder)) for each in folder.rglob("*.py"))  # by name: git ignores build/
    found: list[Finding] = json.loads(
        subprocess.run([*lint, *files], cwd=folder, stdout=subprocess.PIPE, check=True).stdout
    )
    by: dict[str, list[Finding]] = defaultdict(list)
    for each in found:
        if each["hot"]:
            by[Path(each["path"]).as_posix()].append(each)
    return by


def score_of(truth: dict[str, Any], folder: Path) -> Score:
    """One package against what was recorded of its lines, each of which waited in all steps that it was recorded in."""
    score, found = Score(folder), shown(folder)
    for path, held in truth["files"].items():
        waits = {line: [1.0, word] for line, (_, word) in held["waits"].items()}
        score.add(path, {**held, "waits": waits}, found[path])
    return score


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of the names of packages")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--unpacked", type=Path, default=UNPACKED)
    asked = parser.parse_intermixed_args()
    for kind in ("learned_from", "held_out"):
        print(kind)
        for recorded in sorted((PACKAGES / kind).glob("*.json")):
            if asked.names and not any(part in recorded.stem for part in asked.names):
                continue
            truth = json.loads(recorded.read_text())
            folder = sources(truth["package"], asked.unpacked)
            if folder is None:
                print(f"  {recorded.stem:20} not fetched: unpack {truth['package']} below {asked.unpacked}", flush=True)
                continue
            score = score_of(truth, folder)
            first = truth.get("first_look")
            then = f"at first {first[0]} of {first[1]}, {first[2]} others" if first else "this is the first look"
            print(f"  {recorded.stem:20}", score, f"({then})", flush=True)
            if asked.list:
                print(*(f"    {each}" for each in score.told()), sep="\n")


if __name__ == "__main__":
    main()
