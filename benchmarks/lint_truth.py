"""How often the linter is right: `python benchmarks/lint_truth.py [--sources FOLDER] [--list]`.

Lints the sources of lint-truth (twelve public packages; nothing of them is run) as a user would, scores the findings against
what was seen when those packages ran, and prints precision and recall at default and at low confidence, by family and by
rule. The material lies beside the checkout in ../shared/lint-truth, or where SYNCSCOPE_SHARED says; the sources are unpacked
into build/lint_truth by its own script the first time.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
TRUTH = Path(os.environ.get("SYNCSCOPE_SHARED", ROOT.parent / "shared")) / "lint-truth"
UNSEEN = {"number-at-positions"}  # a copy that CUDA makes and waits for; the device that was pretended makes none
WORDS = {0: "low", 1: "low", 2: "medium", 3: "high"}  # the scorer orders words, the linter numbers


def files(sources: Path) -> list[str]:
    """The files of which some statement was seen to run."""
    with gzip.open(TRUTH / "executed.jsonl.gz", "rt") as rows:
        return sorted({str(sources / json.loads(row)["file"]) for row in rows})


def lint(sources: Path, confidence: str) -> list[dict[str, object]]:
    """The findings of `syncscope lint --all`, as the scorer takes them."""
    command = [sys.executable, "-m", "syncscope", "lint", "--isolated", "--exit-zero", "--no-cache", "--all"]
    command += ["--min-confidence", confidence, "--format", "json", *files(sources)]
    printed = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    found = json.loads(printed)
    rows = found["findings"] if isinstance(found, dict) else found
    rows = [row for row in rows if row["rule"] not in UNSEEN]
    return [{**row, "confidence": WORDS.get(row["confidence"], row["confidence"])} for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--sources", type=Path, default=ROOT / "build" / "lint_truth", help="where the packages are unpacked"
    )
    parser.add_argument("--list", action="store_true", help="every miss and every false alarm")
    asked = parser.parse_args()
    if not TRUTH.is_dir():
        sys.exit(f"no material at {TRUTH}: set SYNCSCOPE_SHARED to the folder that holds lint-truth/")
    if not asked.sources.is_dir():
        subprocess.run(["sh", str(TRUTH / "get_sources.sh"), str(asked.sources)], check=True)
    for confidence in ("medium", "low"):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(lint(asked.sources, confidence), file)
            file.flush()
            print(f"\n== syncscope lint --all --min-confidence {confidence}", flush=True)
            subprocess.run(
                [sys.executable, str(TRUTH / "score.py"), file.name, *(["--list"] if asked.list else [])], check=True
            )


if __name__ == "__main__":
    main()
