"""What one command found: findings with their sources, counted, and written where they are to be written."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from syncscope.errors import UserError
from syncscope.files import regular
from syncscope.linter import baseline, engine, rulesets
from syncscope.linter.checked import Checked
from syncscope.linter.config import BUILT_IN
from syncscope.linter.fixing import edited, write
from syncscope.linter.joined_in_pass import apart_from, left_out
from syncscope.linter.known import Found
from syncscope.linter.known_before import InBaseline, SinceRevision
from syncscope.linter.line_length import line_length
from syncscope.linter.notebooks import presented, source_of
from syncscope.linter.run import Done, Files
from syncscope.linter.source import SourceFile
from syncscope.linter.suppressions import put_above
from syncscope.model.finding import Edit, Finding, all_told
from syncscope.model.words import all_visible, visible
from syncscope.model.worth import turn

if TYPE_CHECKING:
    from syncscope.model.report import Report


@dataclass
class Linted:
    """The findings of one command. `found` has them in bytes of `SourceFile.code`, `presented` as they are shown."""

    files: Files
    done: Sequence[Done]
    problems: list[str]
    notices: tuple[str, ...] = ()  # a line for each folder of rules, and for a cache, that was not trusted
    found: list[Found] = field(default_factory=list)
    presented: list[Found] = field(default_factory=list)
    also: list[Found] = field(default_factory=list)  # what waits in a step, too, told in a line each, and is no finding
    in_baseline: InBaseline = field(default_factory=InBaseline)
    since: SinceRevision | None = None  # where it was asked what is new since then
    tells_also: bool = True  # whether `also` is told: a baseline of the first form does not know which are new
    without_fix: int = 0  # findings that are left out for that
    beside: str = ""  # what is said of files that these import, and that were not named
    seconds: float = 0.0  # that it took, where files were linted
    is_stdin: bool = False
    in_files: bool = True

    @property
    def written(self) -> bytes:
        """The bytes of the only file, after its fixes."""
        one = self.done[0]
        return one.mended.raw if one.mended else one.before

    @property
    def linted(self) -> list[str]:
        """The files that could be linted."""
        return [one.checked.path for one in self.done if not one.checked.problem]

    @property
    def shown(self) -> tuple[Finding, ...]:
        """The findings with every word of them `visible`; for text and JSON, as a `Report` does it for the other formats."""
        return all_visible(tuple(finding for _, finding in self.presented), (Edit,))

    @property
    def shown_also(self) -> tuple[Finding, ...]:
        """What waits in a step, too, where it is told, with every word `visible`."""
        return all_visible(self._told_in_a_line, (Edit,))

    @property
    def _told_in_a_line(self) -> tuple[Finding, ...]:
        return tuple(presented(source, finding) for source, finding in self.also) if self.tells_also else ()

    @property
    def told(self) -> list[Finding]:
        """All that is told, what waits in a step, too, among it: as JSON has it."""
        return all_told([found for _, found in self.presented], self._told_in_a_line)

    def by_worth(self) -> None:
        """Put first what is to be looked at first, whichever file it is in."""
        order = sorted(range(len(self.found)), key=lambda n: turn(self.found[n][1]))
        self.found, self.presented = [self.found[n] for n in order], [self.presented[n] for n in order]
        self.also.sort(key=lambda each: turn(each[1]))

    def only_fixable(self) -> None:
        """Keep what can be mended, and no more."""
        self.without_fix = sum(finding.fix is None for _, finding in self.presented) + len(self.also)
        self.found = [(source, finding) for source, finding in self.found if finding.fix is not None]
        self.presented = [(source, finding) for source, finding in self.presented if finding.fix is not None]
        self.also = []

    @property
    def sources(self) -> dict[str, bytes]:
        """The text of every file (or cell) that has findings, by `Finding.source_name` as it is shown."""
        by_name = [source.texts() for source in dict.fromkeys(s for s, _ in self.found)]
        return {visible(name): text for texts in by_name for name, text in texts.items()}

    def report(self, quiet: bool = False) -> Report:
        """All that an exporter gets; `quiet`, the findings alone."""
        from syncscope.model.report import Report
        from syncscope.rules import hazard

        named = dict.fromkeys(f.rule for _, f in self.found)
        known = rulesets.ruleset(self.files.first.rules)
        rules = known if named.keys() <= known.keys() else rulesets.pages(self.files.first.rules)
        hazards = tuple(hazard(name, rules[name]) for name in named if name in rules)
        return Report(
            findings=self.shown,
            also=() if quiet else self.shown_also,
            sources=self.sources,
            notes=(*self.notices, *self.problems),
            hazards=hazards,
        )

    def fixes(self) -> Iterator[tuple[SourceFile, Finding, int]]:
        """Each fix once: where it belongs, its first finding, how many further findings it mends."""
        seen: dict[tuple[object, ...], list[Found]] = {}
        for source, finding in self.found:
            if finding.fix:
                seen.setdefault((source.path, finding.fix), []).append((source, finding))
        for same in seen.values():
            yield *same[0], len(same) - 1

    def patches(self) -> Iterator[tuple[str, bytes, bytes]]:
        """Name, text before and after of all that fixing changed."""
        for one in self.done:
            if one.mended and one.mended.raw != one.before:
                before = source_of(one.checked.path, one.before).texts()
                after = source_of(one.checked.path, one.mended.raw).texts()
                yield from ((name, text, after[name]) for name, text in before.items() if text != after[name])

    def write(self) -> None:
        """Write the fixed files. Of one that cannot be written it is told what is in it as it is."""
        as_it_is: dict[int, Done] = {}
        for number, one in enumerate(self.done):
            if one.mended and one.mended.raw != one.before:
                path = one.checked.path
                if not self._write(path, one.mended.raw, one.before):
                    as_it_is[number] = Done(engine.check(path, one.before, self.files.config(path)), None, one.before)
        if as_it_is:
            self.done = [as_it_is.get(number, one) for number, one in enumerate(self.done)]
            self.tell()

    def _write(self, path: str, raw: bytes, before: bytes) -> bool:
        try:
            write(path, raw, before)
        except UserError as error:
            self.problems.append("; ".join(filter(None, (error.message, error.hint))))
            return False
        return True

    def tell(self) -> None:
        """Take what is to be told from what was done: each finding with the source that it speaks of, without what is known."""
        self.found, self.also = [], []
        for one in self.done:
            collect(self, one.checked, one.mended.raw if one.mended else one.before or None)
        recall(self)

    def write_baseline(self, path: str) -> str:
        """Write the findings as a baseline, with what waits in a step, too, and with what it held of files that were not
        linted; how many they are."""
        kept = baseline.not_looked_at(path, self.linted, self.files.paths)
        held = [len(entries) for entries in kept.findings.values()]
        baseline.save(path, (*self.found, *self.also), kept)
        also = f" and {len(self.also)} more that {'waits' if len(self.also) == 1 else 'wait'} in a step"
        said = f"{plural(len(self.found), 'finding')}{also if self.also else ''} written to {path}"
        if held:
            said += f", beside {sum(held)} that it holds of {plural(len(held), 'file')} not linted now"
        return said

    def prune_baseline(self) -> int:
        """Take out of the baseline what is not found any more, how much that was, and write what moved under its new file."""
        held = self.in_baseline
        count = held.gone.total()
        if count or held.moved:
            baseline.prune(self.files.first.baseline, held.gone, held.moved)
            self.in_baseline = InBaseline(held.found)
        return count

    def add_allow(self, reason: str) -> int:
        """Write an `allow` to every finding that a comment can silence, and to what they had hidden; how many they are."""
        count = 0
        by_source: dict[SourceFile, list[Finding]] = {}
        for source, finding in self.found:
            if finding.rule not in BUILT_IN:
                by_source.setdefault(source, []).append(finding)
        first = {one.checked.path: one.checked.findings for one in self.done}
        for source, findings in by_source.items():
            new, number = self._allowed(source, findings, first[source.path], reason)
            if new is not None and (longest := line_length(source.path)) and not source.path.endswith(".ipynb"):
                new = edited(new, put_above(source, new, longest))
            if new is None:
                self.problems.append(f"{source.path}: its comments cannot be written")
            elif self._write(source.path, new.raw, source.raw):
                count += number
        return count

    def _allowed(
        self, source: SourceFile, findings: Sequence[Finding], before: Iterable[Finding], reason: str
    ) -> tuple[SourceFile | None, int]:
        """The file with an `allow` for each of these findings, and for what is told only once they are silent."""
        known, count = {_at(finding) for finding in before}, 0
        while findings:
            by_line: dict[int, list[str]] = {}
            for finding in findings:
                by_line.setdefault(finding.place.line, []).append(finding.rule)
            new = edited(source, engine.additions(source, by_line, reason))
            if new is None:
                return None, 0
            source, count = new, count + len(findings)
            known |= {_at(finding) for finding in findings}
            again = engine.check_source(source, self.files.config(source.path)).findings
            findings = [f for f in again if f.rule not in BUILT_IN and _at(f) not in known]
        return source, count


def _at(finding: Finding) -> tuple[str, int, int]:
    """What of a finding stays when comments are added to the ends of lines."""
    return finding.rule, finding.place.line, finding.column


def plural(number: int, one: str, more: str = "") -> str:
    """`1 file`, `2 files`."""
    return f"{number} {one if number == 1 else more or one + 's'}"


def collect(linted: Linted, checked: Checked, raw: bytes | None) -> None:
    """Add a file's findings, with the source they speak of: what was linted, or what is on disk."""
    if not (checked.findings or checked.also):
        return
    try:
        if raw is None:
            raw = regular(checked.path)
        source = source_of(checked.path, raw)
    except (OSError, SyntaxError):
        source = SourceFile(checked.path, raw or b"", (raw or b"").replace(b"\r\n", b"\n").replace(b"\r", b"\n"))
    linted.found += [(source, finding) for finding in checked.findings]
    linted.also += [(source, finding) for finding in checked.also]


def in_order(linted: Linted, found: Sequence[Found]) -> list[Found]:
    """Findings as their files were linted, and as they stand there."""
    at = {one.checked.path: number for number, one in enumerate(linted.done)}
    return sorted(found, key=lambda each: (at[each[0].path], each[1].span.start, each[1].rule))


def _is_asked(files: Files, path: str, rule: str) -> bool:
    """Whether a rule is on in a file: what one would find that is off nobody knows."""
    config = files.config(path)
    return config.asks(rule, path, lambda each: rulesets.family_slug(each, config.rules))


def recall(linted: Linted) -> None:
    """Leave out what the baseline holds, and what was there at the revision, and make the rest presentable: what waits in a
    step, too, is a finding where it is new."""
    before = [*linted.found, *linted.also]
    if path := linted.files.first.baseline:
        known = baseline.load(path)
        every = linted.found + linted.also if known.holds_also else linted.found
        recalled = known.recall(every)
        new, held = recalled.new, InBaseline(len(every) - len(recalled.new), moved=recalled.moved)
        linted.in_baseline, linted.tells_also = held, known.holds_also
        if known.holds_also:
            linted.also = []
        linted.found = in_order(linted, new) if known.holds_also else new
        if not linted.files.narrowed:
            gone = baseline.missing(path, recalled.left, linted.linted, linted.files.paths)
            asked = (
                entry for entry in gone if _is_asked(linted.files, os.path.join(known.folder, entry.path), entry.rule)
            )
            held.gone = Counter({entry: gone[entry] for entry in asked})
        root = linted.files.first.root
        if new and known.is_of_elsewhere(root):
            line = f"no file that {path} names is below {root}, so all is new: it is of another folder, or was moved"
            linted.notices = tuple(dict.fromkeys((*linted.notices, line)))
    if linted.since is not None and linted.since.then is not None:
        every = linted.found + linted.also
        new = linted.since.then.recall(every).new
        linted.since.found = len(every) - len(new)
        linted.found, linted.also, linted.tells_also = in_order(linted, new), [], True
    new_ones = [finding for _, finding in linted.found]
    held_back = left_out((finding for _, finding in before), new_ones)
    told = apart_from(held_back, new_ones)
    linted.found = [(source, finding) for (source, _), finding in zip(linted.found, told, strict=True)]
    linted.presented = [(source, presented(source, finding)) for source, finding in linted.found]
