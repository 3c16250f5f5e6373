"""What a command of `lint` says at its end: what was found, what mends it, what is hidden and how to see it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from syncscope.linter.behind_all import behind_all
from syncscope.linter.checked import Hidden
from syncscope.linter.fixing import Mended, changed_lines, lines_now
from syncscope.linter.next_step import next_step
from syncscope.linter.session import Linted, plural
from syncscope.model.finding import Finding, Safety

_HOW = {Safety.SAFE: "with --fix", Safety.UNSAFE: "with --fix --unsafe-fixes", Safety.SUGGEST: "to be made by hand"}


def summary(linted: Linted, *, fixed: bool, unsafe: bool, dry: bool) -> Iterator[str]:
    """The lines, one by one; `fixed`: fixes were made, `unsafe`: those too, `dry`: they are shown alone."""
    command = _Command(linted, fixed, unsafe, dry)
    yield from command.made()
    yield command.found()
    yield from command.unread()
    yield from command.linked()
    yield from command.also()
    fixes = [(finding.fix.tier, more) for _, finding, more in linted.fixes() if finding.fix]
    offered = Counter(safety for safety, _ in fixes)
    yield from command.fixes(offered, len(fixes) + sum(more for _, more in fixes))
    behind = command.behind()
    if behind:
        yield f"fixes that --diff --all shows: {', '.join(f'{behind[s]} {words}' for s, words in _HOW.items() if behind[s])}"
    yield from command.hidden()
    yield from command.gone()
    if linted.beside:
        yield linted.beside
    if command.findings and not fixed and linted.in_files:
        since = linted.since.revision.said if linted.since else ""
        more = not offered and bool(behind)
        yield f"next: {next_step(linted.files, command.findings, offered, dry=dry, since=since, more=more)}"


@dataclass(frozen=True)
class _Command:
    """What was linted, and what was asked of its fixes."""

    linted: Linted
    fixed: bool
    unsafe: bool
    dry: bool

    @property
    def findings(self) -> list[Finding]:
        """Those that are shown."""
        return [finding for _, finding in self.linted.presented]

    def made(self) -> Iterator[str]:
        """The fixes that were made, or would be."""
        if not self.fixed:
            return
        done = [(one.before, one.mended) for one in self.linted.done if one.mended]
        if not self.dry:
            written = ((one.checked.path, one.before, one.mended) for one in self.linted.done if one.mended)
            yield from (_written(*each) for each in written if each[2].applied)
        count = sum(len(mended.applied) for _, mended in done)
        lines = sum(changed_lines(before, mended.raw) for before, mended in done)
        where = f" in {plural(lines, 'line')}" if lines != count else ""
        behind = self._behind_all()
        further = behind[Safety.SAFE] + (behind[Safety.UNSAFE] if self.unsafe else 0)
        more = f"; {further} more in steps with --all" if further else ""
        yield f"{'would make' if self.dry else 'made'} {plural(count, 'fix', 'fixes')}{where}{more}"
        for _, mended in done:
            yield from mended.refused

    def found(self) -> str:
        """How many findings there are, of which kinds, in how many files."""
        linted, findings = self.linted, self.findings
        reached = linted.since.reached if linted.since else 0
        files = sum(not one.checked.problem for one in linted.done) - reached
        where = f" that changed since {linted.since.revision.name}" if linted.since else ""
        if reached:
            where += f" and {reached} more that steps may reach more of"
        if not findings:
            some = files or reached
            return f"no findings in {plural(files, 'file')}{where}" if some else f"no files to lint{where}"
        count = Counter(f.severity for f in findings)
        kinds = ", ".join(plural(count[s], s) for s in ("error", "warning", "note") if count[s])
        kinds = f" ({kinds})" if len(count) > 1 else ""
        of = f"{len({f.place.path for f in findings})} of {plural(files, 'file')}{where}"
        return f"{plural(len(findings), 'finding')}{' left' if self.fixed else ''}{kinds} in {of}"

    def unread(self) -> Iterator[str]:
        """How many files speak of nothing that waits."""
        if unread := sum(one.checked.unread for one in self.linted.done):
            yield f"not read: {plural(unread, 'file')} that name{'s' * (unread == 1)} neither torch nor OpenCL"

    def linked(self) -> Iterator[str]:
        """Which links to folders were not followed."""
        if linked := self.linted.files.linked:
            more = (
                f" and {len(linked) - 1} more, which are links to folders"
                if len(linked) > 1
                else ", a link to a folder"
            )
            yield f"not followed: {linked[0]}{more}; name it to lint it, or `exclude` it"

    def also(self) -> Iterator[str]:
        """How much more waits in a step, which no fix is worth."""
        linted = self.linted
        if not linted.also:
            return
        one = len(linted.also) == 1
        told = f"told in a line{'' if one else ' each'}"
        if not linted.tells_also:
            told = "and the baseline is from before it held such: where it is written anew, new ones are told and fail"
        elif not linted.files.first.all:
            told += f"; --all tells {'it' if one else 'them'} whole; --trace RECORDING says what each costs"
        yield f"{len(linted.also)} more {'waits' if one else 'wait'} in a step, {told}"

    def fixes(self, offered: Counter[Safety], mended: int) -> Iterator[str]:
        """How the fixes that are offered are made, and how many findings they mend."""
        least = "at least " if self._may_be_more() else ""
        said = []
        if offered[Safety.SAFE] and not (self.fixed and not self.dry):
            said.append(f"{least}{offered[Safety.SAFE]} with --fix")
        if offered[Safety.UNSAFE] and not (self.fixed and self.unsafe):
            how = "with --fix" if self.unsafe or self.dry else "hidden behind"
            said.append(f"{least}{offered[Safety.UNSAFE]} {how} --unsafe-fixes")
        if offered[Safety.SUGGEST]:
            said.append(f"{offered[Safety.SUGGEST]} to be made by hand")
        if said and self.linted.in_files:
            of = f", of {plural(mended, 'finding')}" if mended > offered.total() else ""
            yield f"fixes: {', '.join(said)}{of}" + ("" if self.dry else "; --diff shows them")
        if left := len({fix for f in self.findings if f.hot and (fix := f.fix or f.advice) and fix.why_by_hand}):
            yield f"left to people: {left}, as a step likely gains little; `syncscope verify` measures what it can try"

    def _may_be_more(self) -> bool:
        """Whether a fix that can be made stands in a function with one to be made by hand: that may be made then, too."""
        made: set[tuple[str, str]] = set()
        by_hand: set[tuple[str, str]] = set()
        for source, finding in self.linted.found:
            if finding.fix:
                (by_hand if finding.fix.tier is Safety.SUGGEST else made).add((source.path, finding.function))
        return not made.isdisjoint(by_hand)

    def behind(self) -> Counter[Safety]:
        """The fixes that are only shown where all findings are asked for, where these are looked at."""
        return self._behind_all() if self.dry and not self.fixed else Counter()

    def _behind_all(self) -> Counter[Safety]:
        linted = self.linted
        if not linted.in_files or linted.files.first.all:
            return Counter()
        return behind_all(linted.files, linted.found, linted.also)

    def hidden(self) -> Iterator[str]:
        """What is not shown, and why, each with what shows it."""
        linted = self.linted
        hidden = sum((one.checked.hidden for one in linted.done), Hidden())
        then = linted.since
        either = ", new or old" if then else ""  # these are not compared with what was there
        reasons = [
            (hidden.cold, f"in cold code{either} (--all){self._by_file(hidden.by_file)}"),
            (hidden.medium, f"less sure{either} (--min-confidence medium)"),
            (hidden.unsure, f"{'still ' if hidden.medium else ''}less sure{either} (--min-confidence low)"),
            (hidden.allowed, "allowed by comments (--statistics lists them)"),
            (linted.in_baseline.found, f"known to the baseline{self._moved()}"),
            (then.found, f"there before, at {then.revision.name}") if then else (0, ""),
            (linted.without_fix, "without a fix"),
        ]
        if any(number for number, _ in reasons):
            yield "not shown: " + ", ".join(f"{number} {why}" for number, why in reasons if number)

    def _by_file(self, number: int) -> str:
        """How much of what is cold is so by what its file or folder is called; "" where nothing is."""
        paths = [one.checked.path for one in self.linted.done if one.checked.hidden.by_file]
        if not paths:
            return ""
        more = f" and of {plural(len(paths) - 1, 'more file')}" if len(paths) > 1 else ""
        return f", {number} of them for the name of {paths[0]} or its folder{more}"

    def _moved(self) -> str:
        """` (2 moved, from vq.py to seeds.py)`; "" where none has."""
        every = [(entry.path, now.path) for entry, now, _ in self.linted.in_baseline.moved if entry.path != now.path]
        pairs = list(dict.fromkeys(every))
        more = f", and {plural(len(pairs) - 1, 'such pair')} of files" if len(pairs) > 1 else ""
        return f" ({len(every)} moved, from {pairs[0][0]} to {pairs[0][1]}{more})" if pairs else ""

    def gone(self) -> Iterator[str]:
        """What the baseline holds, and is found no more."""
        if lost := self.linted.in_baseline.gone.total():
            taken = f"--prune-baseline takes {'it' if lost == 1 else 'them'} out of the baseline"
            yield f"{lost} known {'is' if lost == 1 else 'are'} gone: {taken}"


def _written(path: str, before: bytes, mended: Mended) -> str:
    """Which fixes a file was given, and which of its lines are by them otherwise."""
    titles = Counter(finding.fix.title for finding in mended.applied if finding.fix)
    said = ", ".join(f"{title} ({count})" if count > 1 else title for title, count in titles.items())
    return f"{path}:{', '.join(lines_now(before, mended.raw))}: {said}"
