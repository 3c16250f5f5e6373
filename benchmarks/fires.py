"""Which rewrites fire in real code, and how often: `python benchmarks/fires.py FOLDER ...`, sources of one package each.

    python benchmarks/fires.py ~/corpus/*/           what is shown without asking: hot, and sure enough
    python benchmarks/fires.py --all ~/corpus/*/     every finding, cold and unsure ones, too

Printed are, for each rewrite: its fixes by safety, a fix of several lines counted once, in how many of the folders it fires,
and the milliseconds that it took. Then which share of the findings has a fix, counted as `syncscope lint --statistics` does: a
finding counts once, as the safest that is offered for it. Rewrites that fire nowhere are listed last. Nothing is written.
`--json FILE` keeps every fix: path, line, rule, rewrite, safety.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from syncscope.cli._statistics import best, by_fix
from syncscope.linter.config import Configs
from syncscope.linter.gathering import gather
from syncscope.linter.pool import frugal
from syncscope.linter.run import Files
from syncscope.model.finding import Safety

BESIDE = {"tests", "test", "testing", "docs", "configs", ".mim"}  # folders of a package that train nothing


class Seen(NamedTuple):
    """One finding, and its fix."""

    folder: str
    path: str
    line: int
    rule: str
    rewrite: str  # "" where there is no fix
    safety: str
    first: bool  # of the findings that the fix mends


def look(folder: Path, everything: bool, asked: dict[str, float], kinds: Counter[Safety | None]) -> list[Seen]:
    """The findings of a folder; `asked` gets the seconds of each rewrite, `kinds` what each finding counts as."""
    paths = [str(p) for p in sorted(folder.rglob("*.py")) if not BESIDE & set(p.relative_to(folder).parts)]
    over: dict[str, object] = {"all": True, "min_confidence": "low"} if everything else {}
    with frugal():
        linted = gather(Files(paths or [str(folder)], over, Configs("", True)), cached=False)
    for one in linted.done:
        for name, (_, seconds) in one.checked.asked.items():
            asked[name] = asked.get(name, 0.0) + seconds
    kinds.update(best(finding) for _, finding in linted.found)
    found, known = [], set()
    for source, finding in linted.found:
        for fix in filter(None, (finding.fix, finding.fix and finding.fix.also)):
            key = (source.path, fix)
            place = (folder.name, str(Path(source.path).relative_to(folder)), finding.place.line, finding.rule)
            found.append(Seen(*place, fix.rewrite, fix.tier.value, key not in known))
            known.add(key)
        if finding.fix is None:
            found.append(Seen(folder.name, source.path, finding.place.line, finding.rule, "", "", True))
    return found


def table(found: list[Seen], asked: dict[str, float], kinds: Counter[Safety | None], names: list[str]) -> str:
    """What is printed."""
    fixes = Counter((s.rewrite, s.safety) for s in found if s.rewrite and s.first)
    where: dict[str, set[str]] = {name: set() for name in names}
    for s in found:
        if s.rewrite in where:
            where[s.rewrite].add(s.folder)
    lines = [f"{'safe':>6} {'unsafe':>6} {'suggest':>7} {'folders':>7} {'ms':>7}  rewrite"]
    count = {name: [fixes[name, safety.value] for safety in Safety] for name in names}
    for name in sorted(names, key=lambda n: (-sum(count[n]), n)):
        safe, unsafe, suggest = count[name]
        lines.append(
            f"{safe:>6} {unsafe:>6} {suggest:>7} {len(where[name]):>7} {asked.get(name, 0.0) * 1000:>7.0f}  {name}"
        )
    silent = [name for name in names if not sum(count[name])]
    lines += ["", by_fix(kinds)]
    lines += [f"{len(silent)} of {len(names)} rewrites fire nowhere: {', '.join(silent) or 'none'}"]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--all", action="store_true", help="cold and unsure findings, too")
    parser.add_argument("--json", type=Path, help="keep every finding here")
    given = parser.parse_args()
    import syncscope.rewrites

    names = sorted(p.stem for p in Path(syncscope.rewrites.__file__).parent.glob("[!_]*.py"))
    found: list[Seen] = []
    asked: dict[str, float] = {}
    kinds: Counter[Safety | None] = Counter()
    for folder in given.folders:
        found += look(folder, given.all, asked, kinds)
        print(f"{folder.name}: {len(found)} findings so far", flush=True)
    if given.json:
        given.json.write_text("\n".join(json.dumps(s._asdict()) for s in found))
    print(table(found, asked, kinds, names))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
