"""What `syncscope lint --statistics` prints: findings by rule, fixes by rewrite, and which share of the findings has one."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from syncscope.model.finding import CONFIDENCE, Finding, Safety

if TYPE_CHECKING:
    from syncscope.linter.session import Linted


def statistics(linted: Linted) -> str:
    """A count for each rule, by confidence, and how many have a fix; what each rewrite did, and its time; then their share."""
    told = by_fix(Counter(map(best, (finding for _, finding in linted.presented))))
    return f"{by_rule(linted)}{by_rewrite(linted)}{by_comment(linted)}" + (f"\n{told}\n" if linted.presented else "")


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


def by_rewrite(linted: Linted) -> str:
    """For each rewrite that was asked: of how many findings, how many have its fix, by safety, and its milliseconds."""
    asked: dict[str, tuple[int, float]] = {}
    for one in linted.done:
        for name, (count, seconds) in one.checked.asked.items():
            before = asked.get(name, (0, 0.0))
            asked[name] = before[0] + count, before[1] + seconds
    fixes = [fix for _, f in linted.presented for fix in (f.fix, f.fix and f.fix.also) if fix is not None]
    made = Counter((fix.rewrite, fix.tier) for fix in fixes)
    rows = [(name, [made[name, safety] for safety in Safety], *asked[name]) for name in asked]
    lines = [f"\n{'asked':>6} {'safe':>6} {'unsafe':>6} {'suggest':>7} {'ms':>7}  rewrite"] if rows else []
    for name, counts, count, seconds in sorted(rows, key=lambda row: (-sum(row[1]), row[0])):
        safe, unsafe, suggest = counts
        lines.append(f"{count:>6} {safe:>6} {unsafe:>6} {suggest:>7} {seconds * 1000:>7.1f}  {name}")
    return "".join(line + "\n" for line in lines)


def by_comment(linted: Linted) -> str:
    """Where a comment lets a finding stand, and of which rule."""
    silenced = sorted({(f.place.path, f.place.line, f.rule) for one in linted.done for f in one.checked.silenced})
    lines = [f"{path}:{line}: {rule}" for path, line, rule in silenced]
    return "\nallowed by comments:\n" + "".join(line + "\n" for line in lines) if lines else ""


def by_rule(linted: Linted) -> str:
    """A count for each rule, by confidence, and how many have a fix."""
    rows: dict[str, list[int]] = {}
    for _, finding in linted.also:
        rows.setdefault(finding.rule, [0, 0, 0, 0, 0, 0])[5] += 1
    for _, finding in linted.presented:
        row = rows.setdefault(finding.rule, [0, 0, 0, 0, 0, 0])
        row[0] += 1
        row[("high", "medium", "low").index(CONFIDENCE[finding.confidence]) + 1] += 1
        row[4] += finding.fix is not None
    wide = max(map(len, rows), default=0)
    lines = [f"{'count':>6} {'high':>6} {'medium':>6} {'low':>6} {'fixable':>7} {'also':>6}  rule"] if rows else []
    for name, row in sorted(rows.items(), key=lambda item: (-item[1][0], item[0])):
        lines.append(
            f"{row[0]:>6} {row[1]:>6} {row[2]:>6} {row[3]:>6} {row[4]:>7} {row[5]:>6}  {name:<{wide}}".rstrip()
        )
    return "".join(line + "\n" for line in lines)
