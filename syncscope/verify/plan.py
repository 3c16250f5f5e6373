"""Which fixes there are in a program, which of them need others, and its files with some of them made."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from syncscope.discover import did_you_mean
from syncscope.errors import UserError
from syncscope.files import regular
from syncscope.linter.config import Config
from syncscope.linter.engine import check_source
from syncscope.linter.fixing import compatible, edited, edits_of, key
from syncscope.linter.notebooks import source_of
from syncscope.linter.rulesets import ruleset
from syncscope.linter.run import Files
from syncscope.linter.source import SourceFile
from syncscope.model.finding import Finding, Fix, Safety
from syncscope.model.ops import Family
from syncscope.model.source import Place
from syncscope.rules import family
from syncscope.verify.lines import LineMap
from syncscope.verify.of_libraries import files_of

HEARD = (Family.SHAPE, Family.READ, Family.LIBRARY, Family.EXPLICIT, Family.TIMING)  # whose waits a run shows by line
MOST = 40  # fixes that are tried, and as many that are only listed
PASSES = 10  # of one file, until no further fix of those that are wanted appears
Seen = Callable[[str, range], bool]  # whether something was seen to happen at one of these lines of a file


@dataclass(frozen=True)
class Candidate:
    """A fix that can be tried. `line` to `end_line` are those of the file as it is.

    `needs` are the candidates that must be made before the linter offers this one: `finding` is of the file with them.
    `idle` is why it is not worth trying, and `remedy` what tries it all the same.
    """

    number: int
    path: str  # absolute, links resolved
    line: int
    end_line: int
    finding: Finding
    fix: Fix
    family: Family | None
    needs: frozenset[int] = frozenset()
    idle: str = ""
    remedy: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """By what the linter's offer is known again, wherever it stands by then."""
        return self.finding.rule, key(self.fix)


class Plan:
    """The candidates in some files, and versions of the files. `only` are places, `rules` names: none is all.

    Named places are tried whatever the linter thinks of them; else safe and unsafe fixes are, of lines that waited, or (copies
    to the device) of code that may run in a step, if it `ran` in these; and safe ones of lines of `libraries`. `unlisted` is
    how many fixes there are beside the candidates. Unless they `follow`, those are not asked for that others bring with them.

    Raises:
        UserError: a file cannot be read, or there is no rule of such a name.
    """

    def __init__(
        self,
        paths: Sequence[str],
        only: Collection[Place] = (),
        rules: Collection[str] = (),
        waited: Seen = lambda path, lines: True,
        ran: Seen = lambda path, lines: True,
        libraries: Collection[Place] = (),
        follow: bool = True,
    ) -> None:
        own, paths = set(paths), [*paths, *(path for path in files_of(libraries) if path not in paths)]
        self._files = Files([_shown(path) for path in paths], {"all": True, "min_confidence": "low", "baseline": ""})
        self.before: dict[str, bytes] = {}
        self._sources: dict[str, SourceFile] = {}
        for path in paths:
            try:
                self.before[path] = regular(path)
                self._sources[path] = source_of(_shown(path), self.before[path])
            except OSError as error:
                raise UserError(f"{path} cannot be read: {error.strerror}", "look at its permissions") from None
            except SyntaxError as error:
                raise UserError(f"{path}: {error}", "it must run before it can be verified") from None
        must_be_known(rules, [self._files.config(_shown(path)) for path in paths])
        allowed = set(Safety) if only else {Safety.SAFE, Safety.UNSAFE}
        self.candidates: list[Candidate] = []
        self.by_hand: list[Finding] = []  # suggestions that nobody asked for
        self.unmended: list[Finding] = []  # in code that runs in a step, and no rewrite of them is known
        self._known: set[tuple[str, str, str]] = set()
        self._words: dict[int, set[tuple[str, str]]] = {}  # other keys of a candidate: see `_is_another`
        self._versions: dict[frozenset[int], dict[str, bytes]] = {}
        self._allowed = {path: allowed if path in own else {Safety.SAFE} for path in paths}
        for path, source in self._sources.items():
            self._first(path, source, self._allowed[path], only if path in own else libraries, rules)
        self._named, self._waited, self._ran = bool(only), waited, ran
        self.libraries = {place for place in libraries if place.path not in own}
        self.unlisted = self._choose()
        firsts = [candidate for candidate in self.candidates if not candidate.idle]
        for candidate in firsts if follow else ():
            self._follow(frozenset({candidate.number}))
        if follow and len(firsts) > 1:
            self._follow(frozenset(c.number for c in firsts))

    def _first(
        self, path: str, source: SourceFile, allowed: set[Safety], only: Collection[Place], rules: Collection[str]
    ) -> None:
        seen = set()
        for finding in self._check(source):
            fix = finding.fix
            if fix is not None:
                self._known.add((path, finding.rule, key(fix)))
            named = not only or any(
                place.path == path and finding.place.line <= place.line <= max(finding.end_line, finding.place.line)
                for place in only
            )
            if not named or (rules and finding.rule not in rules):
                continue
            if fix is None:
                self.unmended += [finding] if finding.heat.whole else []
            elif fix.safety not in allowed:
                self.by_hand.append(finding)
            elif fix.edits in seen:  # one fix mends several lines
                for candidate in self.candidates:
                    if candidate.path == path and candidate.fix == fix:
                        last = max(candidate.end_line, finding.end_line)
                        self.candidates[candidate.number] = replace(candidate, end_line=last)
            else:
                seen.add(fix.edits)
                self._add(path, finding, finding.place.line, finding.end_line, frozenset())

    def _choose(self) -> int:
        """Keeps what can be tried, first that of lines that waited, and some that is not worth it; how many it drops."""

        def rank(candidate: Candidate) -> int:
            if candidate.idle:
                return 2
            return int(not self._waited(candidate.path, range(candidate.line, candidate.end_line + 1)))

        why = [self._idle(candidate) for candidate in self.candidates]
        judged = [replace(one, idle=idle, remedy=how) for one, (idle, how) in zip(self.candidates, why, strict=True)]
        in_order = sorted(judged, key=rank)
        tried = [candidate for candidate in in_order if not candidate.idle][:MOST]
        idle = [candidate for candidate in in_order if candidate.idle][: MOST - len(tried)]
        self.candidates = [replace(candidate, number=number) for number, candidate in enumerate((*tried, *idle))]
        return len(judged) - len(self.candidates)

    def _follow(self, base: frozenset[int]) -> None:
        """Adds what the linter offers once these are made, and what it offers then."""
        version = self.version(base)
        new = []
        for path, raw in version.items():
            for finding in self._check(source_of(_shown(path), raw)):
                fix = finding.fix
                if fix is None or fix.safety not in self._allowed[path] or len(self.candidates) >= MOST:
                    continue
                if (path, finding.rule, key(fix)) not in self._known:
                    lines = LineMap(self.before[path], raw)
                    first, last = lines.line_before(finding.place.line), lines.line_before(finding.end_line)
                    if not self._is_another(path, finding, first, base):
                        number = self._add(path, finding, first, max(first, last), base)
                        if any(self._idle(self.candidates[number])):
                            self.candidates.pop()
                        else:
                            new.append(number)
        for number in new:
            self._follow(base | {number})

    def _idle(self, candidate: Candidate) -> tuple[str, str]:
        """Why a fix that nobody named is not worth trying, and what tries it all the same."""
        lines = range(candidate.line, candidate.end_line + 1)
        if self._named:
            return "", ""
        if candidate.path in {place.path for place in self.libraries}:
            waited = any(place.path == candidate.path and place.line in lines for place in self.libraries)
            return "" if waited else "its line did not wait in these steps", ""
        if not self._ran(candidate.path, lines):
            return "it did not run in these steps", ""
        if candidate.family in HEARD:
            return "" if self._waited(candidate.path, lines) else "its line did not wait in these steps", ""
        if (heat := candidate.finding.heat).whole:
            return "", ""
        place = f"{os.path.relpath(candidate.path)}:{candidate.line}"
        return heat.words or "it is not in the training step", f"--line {place} tries it"

    def _is_another(self, path: str, finding: Finding, line: int, base: frozenset[int]) -> bool:
        """Whether this is a candidate that is offered in other words, since what stands beside it was mended."""
        assert finding.fix is not None
        for candidate in self.candidates:
            same = (candidate.path, candidate.finding.rule, candidate.line) == (path, finding.rule, line)
            if same and candidate.fix.rewrite == finding.fix.rewrite and candidate.number not in base:
                words = finding.rule, key(finding.fix)
                if not any(words in known for known in self._words.values()):
                    self._words.setdefault(candidate.number, set()).add(words)
                return True
        return False

    def _add(self, path: str, finding: Finding, line: int, end: int, needs: frozenset[int]) -> int:
        assert finding.fix is not None
        rule = ruleset(self._files.config(_shown(path)).rules).get(finding.rule)
        kind = family(rule) if rule else None
        made = Candidate(len(self.candidates), path, line, max(line, end), finding, finding.fix, kind, needs)
        self.candidates.append(made)
        self._known.add((path, *made.key))
        return made.number

    def _check(self, source: SourceFile) -> tuple[Finding, ...]:
        return check_source(source, self._files.config(source.path), apart=True).findings

    def untried(self, candidate: Candidate) -> str:
        """Why a candidate is not tried; "" where it is."""
        if candidate.idle:
            return candidate.idle
        if candidate.fix.redraws:
            return "it draws other random numbers, so that nothing can be compared"
        if not self.version(self.closed({candidate.number})):
            return "it cannot be made by itself"
        return ""

    def closed(self, numbers: Iterable[int]) -> frozenset[int]:
        """These candidates with all that they need."""
        chosen = set(numbers)
        for number in sorted(chosen):
            chosen |= self.candidates[number].needs
        return frozenset(chosen)

    def leaves(self, kept: Collection[int]) -> list[int]:
        """Those that no other of the set needs."""
        return sorted(number for number in kept if not any(number in self.candidates[other].needs for other in kept))

    def edited_meanwhile(self) -> dict[str, bytes]:
        """The files that somebody has changed since, as they were: they are tried as they were."""
        return {path: raw for path, raw in self.before.items() if content_of(path) != raw}

    def version(self, numbers: Iterable[int]) -> dict[str, bytes]:
        """The content of the files that change where these candidates, and what they need, are made."""
        chosen = self.closed(numbers)
        if chosen not in self._versions:
            by_path: dict[str, list[Candidate]] = {}
            for number in sorted(chosen):
                by_path.setdefault(self.candidates[number].path, []).append(self.candidates[number])
            made = {path: self._made(path, wanted) for path, wanted in by_path.items()}
            self._versions[chosen] = {path: raw for path, raw in made.items() if raw != self.before[path]}
        return self._versions[chosen]

    def _made(self, path: str, wanted: Sequence[Candidate]) -> bytes:
        """One file with these fixes made: those of the file as it is at once, then those that come up, as long as some do."""
        source = self._sources[path]
        taken = compatible(c.finding for c in wanted if not c.needs)
        left = [c for c in wanted if not any(c.finding is finding for finding in taken)]
        source = edited(source, edits_of(taken)) or source
        for _ in range(PASSES if left else 0):
            by_key = {words: c for c in left for words in (c.key, *self._words.get(c.number, ()))}
            offered = [f for f in self._check(source) if f.fix and (f.rule, key(f.fix)) in by_key]
            taken = compatible(offered)[:1]
            mended = edited(source, edits_of(taken)) if taken else None
            if mended is None:
                break
            source = mended
            left.remove(by_key[taken[0].rule, key(taken[0].fix)])
        return source.raw


def must_be_known(rules: Collection[str], configs: Iterable[Config]) -> None:
    """That there are rules of these names.

    Raises:
        UserError: there is none of such a name.
    """
    if unknown := set(rules) - (known := {name for config in configs for name in ruleset(config.rules)}):
        name = min(unknown)
        raise UserError(
            f"no rule is called {name!r}", did_you_mean(name, [*known], "`syncscope explain` lists them all")
        )


def content_of(path: str) -> bytes | None:
    """What a file holds by now; None where it cannot be read."""
    try:
        return regular(path)
    except OSError:
        return None


def _shown(path: str) -> str:
    """As the user would write it: below the working folder relative to it."""
    relative = os.path.relpath(path)
    return path if relative.startswith(os.pardir) else relative
