"""What was said already: of findings with a fix, the same statement elsewhere; and of what would mend them, the same terms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from syncscope.model.finding import BETWEEN, Finding, Fix, Safety
from syncscope.model.source import Span
from syncscope.model.words import visible

LONG = 80  # letters: shorter terms are said each time
MANY = 3  # findings that one fix mends: the first is shown, and of the others where they are


def with_twins(findings: Iterable[Finding], line_of: Callable[[Finding], str]) -> list[list[Finding]]:
    """The findings, each with its twins behind it: the same statement elsewhere in the file, as in two branches, of which
    nothing else is to be said; many of one rule that one fix mends; and what the fix of another mends, too, by the same edits.
    `line_of` is the text of a finding's line."""
    findings = [*findings]
    mended = Counter(map(_mended_alike, findings))
    wider = _wider(findings)
    found: dict[object, list[Finding]] = {}
    for finding in findings:
        key: object = id(finding)
        finding, own = wider.get(id(finding), finding), finding
        if finding.fix is not None and mended[_mended_alike(finding)] >= MANY:
            key = _mended_alike(finding)
        elif finding.fix is not None:
            line = line_of(finding)
            place = finding.column - 1 - (len(line) - len(line.lstrip()))
            key = (finding.source_name, finding.fingerprint, place, finding.message, finding.confidence, _said(finding))
        found.setdefault(key, []).append(own)
    return [sorted(same, key=lambda each: -len(each.fix.edits) if each.fix else 0) for same in found.values()]


def _wider(findings: Iterable[Finding]) -> dict[int, Finding]:
    """By the `id` of a finding another whose fix makes all of its edits, and more: who looks through that has seen this one."""
    alone = [(each, each.fix) for each in findings if each.fix is not None and each.fix.edits and not each.fix.also]
    at: dict[tuple[str, Span], list[tuple[Finding, Fix]]] = {}
    for finding, fix in alone:
        for edit in fix.edits:
            at.setdefault((finding.source_name, edit.span), []).append((finding, fix))
    found: dict[int, Finding] = {}
    for finding, fix in alone:
        for other, whole in at[finding.source_name, fix.edits[0].span]:
            if {*fix.edits} != {*whole.edits} and _makes(whole, fix):
                found[id(finding)] = other
    return found


def _makes(whole: Fix, fix: Fix) -> bool:
    """Whether a fix writes all that another does, where it does."""
    written = {edit.span: edit.text for edit in whole.edits}
    return all(edit.text in written.get(edit.span, "") for edit in fix.edits if edit.text) and all(
        edit.span in written for edit in fix.edits
    )


def _mended_alike(finding: Finding) -> tuple[object, ...]:
    """What those findings share that one fix mends, and of which nothing else is to be said than where they are."""
    return finding.source_name, finding.rule, finding.confidence, finding.heat, finding.fix


def _said(finding: Finding) -> tuple[object, ...]:
    fixes = [fix for fix in (finding.fix, finding.fix and finding.fix.also) if fix is not None]
    return finding.heat, *(
        (fix.title, fix.standing, fix.conditions, *(edit.text for edit in fix.edits)) for fix in fixes
    )


def like_it(twins: Sequence[Finding]) -> str:
    """`and 2 like it: lines 52, 61`."""
    lines = ", ".join(str(finding.place.line) for finding in twins)
    return f"and {len(twins)} like it: line{'s' * (len(twins) > 1)} {lines}"


class FixWords:
    """What would mend findings, in words. What many have to say is said at the first: terms, long parts of terms, and that a
    rule's page is what helps where no rewrite fits. Where each is to be read `alone`, as a patch is, terms are said each time.
    """

    def __init__(self, findings: Iterable[Finding] = (), alone: bool = False) -> None:
        self._alone = alone
        self._mended = {  # lines in which something has a fix: of what else waits there it is not said that none fits
            (each.source_name, line)
            for each in findings
            if each.fix is not None
            for line in range(each.place.line, each.end_line + 1)
        }
        self._told: dict[str, tuple[str, int, int]] = {}  # the file, line and column of what was said first

    def of(self, finding: Finding) -> list[str]:
        """The fix, and the other way if there is one: title, safety, what it changes; or what to read where none fits."""
        fixes = [(finding.fix, "fix"), (finding.fix and finding.fix.also, "or")]
        said = [offer(fix, what, self._terms(fix, finding)) for fix, what in fixes if fix is not None]
        if finding.fix is None and (by_hand := finding.advice) is not None:
            terms = self._terms(by_hand, finding)
            safety = "" if by_hand.safety is Safety.SUGGEST else f"{by_hand.safety.value}; "
            return [f"by hand ({safety}--all --diff shows it): {by_hand.title}{f': {terms}' if terms else ''}"]
        mended = (finding.source_name, finding.place.line) in self._mended
        if finding.fix is None and finding.hot and finding.severity != "error" and not mended:
            page = f"`syncscope explain {finding.rule}` shows what is written instead"
            again = self._again(page, finding)
            if finding.why_not:
                said.append(f"not rewritten: {finding.why_not}{'' if again else f'; {page}'}")
            else:
                said.append(f"no rewrite fits here, {again}" if again else f"no rewrite fits here: {page}")
        return said

    def _terms(self, fix: Fix, finding: Finding) -> str:
        """What a fix changes, without what was said already."""
        if self._alone or len(fix.words) <= LONG:
            return fix.words
        if again := self._again(fix.words, finding):
            return again
        known = {part: self._again(part, finding) if len(part) > LONG else "" for part in fix.conditions}
        fresh = [part for part, where in known.items() if not where]
        return BETWEEN.join([*fresh, *dict.fromkeys(f"and {where}" for where in known.values() if where)])

    def _again(self, words: str, finding: Finding) -> str:
        """Where these words were said before; "" where it is here."""
        here = finding.source_name, finding.place.line, finding.column
        name, line, _ = first = self._told.setdefault(words, here)
        if first == here:
            return ""
        if first[:2] == here[:2]:
            return "as above"
        return f"as at line {line}" if name == finding.source_name else f"as at {visible(name)}:{line}"


def offer(fix: Fix, what: str = "fix", terms: str | None = None) -> str:
    """A fix in words: its title, its safety, what it changes: in these words, if any are given."""
    flag = {Safety.SAFE: "--fix", Safety.UNSAFE: "--unsafe-fixes", Safety.SUGGEST: "--diff"}[fix.tier]
    terms = BETWEEN.join(filter(None, (fix.gains, fix.words if terms is None else terms)))
    return f"{what} ({fix.standing}, {flag}): {fix.title}{f': {terms}' if terms else ''}"
