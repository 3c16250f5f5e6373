"""The tables of docs/measured.md, and a figure of README.md, that follow from data in this repository: makes them in place.

python benchmarks/measured_page.py            writes both
python benchmarks/measured_page.py --check    exit code 1 where one is not of this data
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import statistics
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import calibrate
import held_out
import networks as losses
from prediction import HELD_OUT, LEARNED_FROM

ROOT = Path(__file__).parents[1]
PAGE, README = ROOT / "docs" / "measured.md", ROOT / "README.md"
OUTSIDE = re.compile(r"one in \w+(?= lies outside of its interval)")
BLOCK = re.compile(r"(?<=<!-- made of data: )(\w+)( -->\n).*?(?=<!-- end -->)", re.DOTALL)


def intervals() -> Iterator[str]:
    """What `calibrate.py score` prints, and of which runs."""
    runs = json.loads(calibrate.MEASURED.read_text())["runs"]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        calibrate.score(Namespace())
    yield "`python benchmarks/calibrate.py score`, each loop told by the others:\n"
    yield "| | loops | recordings | covered | width | off | worst |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    ends, decisions, beside = printed.getvalue().split("\n\n")
    for line in ends.splitlines()[2:]:
        name, *cells = re.split(r"\s{2,}|(?<=\w)\s+(?=\d)", line.strip())
        yield f"| {' | '.join([name, *cells])} |"
    yield "\n| | 5 % surely saved: fix or try | fix | under 3 % surely: leave | nothing saved: fix |"
    yield "| --- | --- | --- | --- | --- |"
    for line in decisions.splitlines()[2:]:
        name, *cells = re.split(r"\s{2,}", line.strip())
        yield f"| {' | '.join([name, *cells])} |"
    yield ""
    yield from (f"- {line}" for line in beside.splitlines())
    learned_from, held_out = (len(calibrate.names(folder)) for folder in (LEARNED_FROM, HELD_OUT))
    yield f"\nWidth, off and worst are points of a step. {learned_from} loops are in `loops/learned_from`,"
    yield f"{held_out} in `loops/held_out`. The runs:\n"
    yield from (f"- {one}" for one in dict.fromkeys(runs.values()))


def another_hand() -> Iterator[str]:
    """The answers beside the truth, on loops by others who had not read the model."""
    yield "`python benchmarks/held_out.py`, whose text says what the columns mean. Loops of `another_hand` were not learned"
    yield "from when these runs were made. They are since; `third_hand`, `fourth_hand` and `fifth_hand` are held out.\n"
    for run in _answered():
        yield from held_out.table(run)
        yield ""


def outside() -> Iterator[str]:
    """How many intervals hold the truth, of all answers on loops that nothing was learned from."""
    yield "`python benchmarks/held_out.py --show benchmarks/held_out.json` adds up all runs below of loops that nothing was"
    yield "learned from:\n"
    yield "| on | answers with an interval | hold the truth | outside | |\n| --- | --- | --- | --- | --- |"
    for what, answers, hold in held_out.intervals(_answered()):
        yield f"| {what} | {answers} | {hold} | {1 - hold / answers:.0%} | {held_out.one_in(answers, hold)} |"


def _answered() -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = json.loads((ROOT / "benchmarks" / "held_out.json").read_text())
    return runs


def readme(text: str) -> str:
    """The README with the share of intervals that do not hold, as the page has it."""
    *_, (_, answers, hold) = held_out.intervals(_answered())
    return OUTSIDE.sub(held_out.one_in(answers, hold), text)


def networks() -> Iterator[str]:
    """The last table of each GPU that `network_speed.py --keep` left, and what it comes to in the mean."""
    yield "`python benchmarks/network_speed.py --devices ocl,cuda --batch 64`, ms a training step, with quartiles:\n"
    yield "| GPU | network, batch | `ocl` | CUDA | speed of `ocl` |\n| --- | --- | --- | --- | --- |"
    shares: dict[tuple[str, str], list[float]] = {}
    for gpu, devices in json.loads((ROOT / "benchmarks" / "network_speed.json").read_text()).items():
        for name, ours in devices["ocl"].items():
            theirs = devices.get("cuda", {}).get(name)
            cells = [f"{one['ms']} ({one['low']} to {one['high']})" if one else "" for one in (ours, theirs)]
            share = f"{theirs['ms'] / ours['ms']:.0%}" if theirs else ""
            yield f"| {gpu} | {name} | {' | '.join(cells)} | {share} |"
            if theirs:
                shares.setdefault((gpu, name.partition(" ")[2]), []).append(theirs["ms"] / ours["ms"])
    yield "\n| GPU | batch | networks | mean | geometric mean | least |\n| --- | --- | --- | --- | --- | --- |"
    for (gpu, how), of in shares.items():
        means = f"{statistics.mean(of):.0%} | {statistics.geometric_mean(of):.0%}"
        yield f"| {gpu} | {how} | {len(of)} | {means} | {min(of):.0%} |"


def deviations() -> Iterator[str]:
    """How far losses are from float64, as `networks.py --keep` left it."""
    yield "`python benchmarks/networks.py`: the largest relative deviation of a loss from the same in float64.\n"
    yield from losses.table(json.loads(losses.KEPT.read_text()))


def waits() -> Iterator[str]:
    """Which expressions wait on CUDA, by count."""
    title, rows = _listed("cuda_waits.txt")
    waiting = sum(row.split("|")[0].strip() != "0" for row in rows)
    yield f"{title} Of {len(rows)} expressions {waiting} wait. `python tests/on_cuda/waits.py` prints the list,"
    yield "and `tests/rules/test_cuda_waits.py` holds the linter to every row."


def fixes() -> Iterator[str]:
    """How often the rewrites' examples wait before and after."""
    title, rows = _listed("cuda_fixes.txt")
    cells = [[cell.strip() for cell in row.split("|")] for row in rows]
    known = [(int(a), int(b), safety) for a, b, safety, *_ in cells if a.isdigit() and b.isdigit()]
    yield f"{title} `python tests/on_cuda/fixes.py` prints it.\n"
    yield "| | examples | waits before | after | fewer | as many | more |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for safety in dict.fromkeys(safety for _, _, safety in known):
        some = [(a, b) for a, b, which in known if which == safety]
        counts = [len(some), sum(a for a, _ in some), sum(b for _, b in some)]
        counts += [sum(b < a for a, b in some), sum(b == a for a, b in some), sum(b > a for a, b in some)]
        yield f"| {safety} | {' | '.join(map(str, counts))} |"


def first_looks() -> Iterator[str]:
    """What the linter showed of each package when nobody who works on it had seen the package."""
    yield "| package | steps | wait in every step | shown | recall | others shown | precision |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    every = []
    for path in sorted((ROOT / "benchmarks" / "packages").glob("*/*.json"), key=lambda path: path.stem.lower()):
        held = json.loads(path.read_text())
        if "first_look" not in held:  # it is sealed: nobody has looked yet
            continue
        every.append(held["first_look"])
        yield _looked(held["package"].replace("==", " "), str(len(held["steps"])), *held["first_look"])
    yield _looked("all", "", *(sum(column) for column in zip(*every, strict=True)))


def _looked(what: str, steps: str, shown: int, of: int, others: int) -> str:
    right = f"{shown / (shown + others):.0%}" if shown + others else ""
    return f"| {what} | {steps} | {of} | {shown} | {shown / of:.0%} | {others} | {right} |"


def _listed(name: str) -> tuple[str, list[str]]:
    """The first comment of a list, which says on what it was measured, and its rows."""
    lines = (ROOT / "tests" / "rules" / name).read_text().splitlines()
    return lines[0].removeprefix("# "), [line for line in lines if line.strip() and not line.startswith("#")]


MADE: dict[str, Callable[[], Iterator[str]]] = {
    "intervals": intervals, "another_hand": another_hand, "networks": networks, "deviations": deviations,
    "waits": waits, "outside": outside, "fixes": fixes, "first_looks": first_looks,
}  # fmt: skip


def page(text: str) -> str:
    """The page with its tables made anew."""
    return BLOCK.sub(lambda found: f"{found[1]}{found[2]}\n{chr(10).join(MADE[found[1]]())}\n\n", text)


def main() -> None:
    made = {PAGE: page, README: readme}
    before = {path: path.read_text() for path in made}
    after = {path: anew(before[path]) for path, anew in made.items()}
    if "--check" in sys.argv[1:]:
        sys.exit(before != after)
    for path, text in after.items():
        path.write_text(text)


if __name__ == "__main__":
    main()
