"""What `syncscope lint --statistics` prints: findings by rule, and what mends them; which share has a fix; how long it took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from syncscope.model.finding import Finding, Safety

if TYPE_CHECKING:
    from syncscope.linter.session import Linted

SLOW = 1.0  # s of processors in search of fixes: from here on it is said where they went
HEADS = {Safety.SAFE: "safe", Safety.UNSAFE: "unsafe", Safety.SUGGEST: "by hand", None: "none"}


def statistics(linted: Linted) -> str:
    """A row for each rule, what comments let stand, the share that has a fix, and the time."""
    told = [by_fix(Counter(map(best, (finding for _, finding in linted.presented))))] if linted.presented else []
    told += time(linted)
    return f"{by_rule(linted)}{by_comment(linted)}" + ("\n" + "".join(f"{line}\n" for line in told) if told else "")


def best(finding: Finding) -> Safety | None:
    """What a finding counts as: by the safest that is offered for it; None where nothing is."""
    fixes = [fix for fix in (finding.fix, finding.fix and finding.fix.also) if fix is not None]
    return min((fix.tier for fix in fixes), key=list(Safety).index, default=None)


def by_fix(kinds: Counter[Safety | None]) -> str:
    """Which share has a fix: each finding once, whatever else its fix mends."""
    total, command = kinds.total(), kinds[Safety.SAFE] + kinds[Safety.UNSAFE]
    code = command + kinds[Safety.SUGGEST]
    return (
        f"findings with a fix by command: {command} of {total}, {100 * command / (total or 1):.1f} % "
        f"({kinds[Safety.SAFE]} safe, {kinds[Safety.UNSAFE]} unsafe); with code for it, suggestions included: {code}, "
        f"{100 * code / (total or 1):.1f} %"
    )


def time(linted: Linted) -> Iterator[str]:
    """How long it took; and where the search for fixes is what took it, in which rewrite most."""
    if linted.seconds and linted.presented:
        yield f"time: {linted.seconds:.1f} s for {len(linted.done)} file{'s' * (len(linted.done) != 1)}"
    spent: dict[str, float] = {}  # s in each rewrite
    for one in linted.done:
        for name, (_, seconds) in one.checked.asked.items():
            spent[name] = spent.get(name, 0.0) + seconds
    if (whole := sum(spent.values())) >= SLOW:
        most, name = max((seconds, name) for name, seconds in spent.items())
        yield f"in search of fixes: {whole:.1f} s of processors, when each file was linted; most in `{name}`, {most:.1f} s"


def by_comment(linted: Linted) -> str:
    """Where a comment lets a finding stand, and of which rule."""
    silenced = sorted({(f.place.path, f.place.line, f.rule) for one in linted.done for f in one.checked.silenced})
    lines = [f"{path}:{line}: {rule}" for path, line, rule in silenced]
    return "\nallowed by comments:\n" + "".join(line + "\n" for line in lines) if lines else ""


def by_rule(linted: Linted) -> str:
    """How many findings there are of each rule, of how many a fix is safe, unsafe or for people, and what waits beside them."""
    rows: dict[str, Counter[Safety | None]] = {}
    for _, finding in linted.presented:
        rows.setdefault(finding.rule, Counter())[best(finding)] += 1
    also = Counter(finding.rule for _, finding in linted.also)
    heads = f"{'count':>6} {' '.join(f'{head:>7}' for head in HEADS.values())} {'also':>6}  rule\n"
    lines = [
        f"{kinds.total():>6} {' '.join(f'{kinds[safety]:>7}' for safety in HEADS)} {also[name]:>6}  {name}\n"
        for name, kinds in sorted(
            (rows | {name: Counter[Safety | None]() for name in also if name not in rows}).items(),
            key=lambda row: (-row[1].total(), row[0]),
        )
    ]
    return heads + "".join(lines) if lines else ""
