"""The fixes of a program's files, found as these are read, and woven into them so that any may run inside of its own run."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from syncscope.model.finding import Safety
from syncscope.tracers.places import USER, kind_of_file
from syncscope.turns.loops import around_a_loop, led, stepping
from syncscope.turns.weaving import CannotTakeTurnsError, Woven, weave
from syncscope.verify.plan import Candidate, Plan
from syncscope.verify.results import TriedFix, listed

ALL = 1  # the version with all fixes; each alone has a number above
COMPILED = re.compile(rb"torch\.compile|\.compile\(|jit\.(?:script|trace)")
NO_VERSIONS = "the program compiles some of itself, and what is compiled has no versions; `syncscope verify` tries it"


@dataclass
class Offer:
    """A fix, what is known of it, and the number of its version; 0 where it has none, and `fix.why` says why."""

    number: int
    plan: Plan
    candidate: Candidate
    fix: TriedFix
    passages: frozenset[int] = frozenset()  # in which its version differs
    refused: bool = False  # because it is unsafe, or one that it needs

    @property
    def members(self) -> frozenset[int]:
        """It, and what it needs."""
        return self.plan.closed({self.candidate.number})


class Offers:
    """All of one program, whose files are at these paths, as far as they are known beforehand. `notes` say which files are run
    as they are, and why. Unsafe fixes are not tried: `unless` says with what they are, "" where they are.

    With `leads`, loops that may make steps are woven so that they can be led.
    """

    def __init__(self, paths: Sequence[str], unless: str, leads: bool = True) -> None:
        self._unsafe, self._leads = f"it is unsafe; {unless} tries it" if unless else "", leads
        self.found: list[Offer] = []
        self.notes: list[str] = []
        self._together: list[tuple[Plan, frozenset[int]]] = []  # of each file, what has all fixes
        self._passages = 0
        self._foreseen: dict[str, ast.Module | None] = {}  # trees of files that are yet to be imported
        raws = [raw for path in paths if (raw := _content(path)) is not None]
        self.names = stepping([tree for raw in raws if (tree := _parsed(raw)) is not None])
        self._compiles = any(COMPILED.search(raw) for raw in raws)

    @property
    def tried(self) -> list[Offer]:
        """Those that have a version."""
        return [offer for offer in self.found if offer.number]

    def why_none(self) -> str:
        """Why there is nothing to try."""
        if not self.found:
            return "the linter has no fix for what runs in a step"
        first = next((offer for offer in self.found if offer.refused), self.found[0]).fix
        more = f" (and {len(self.found) - 1} more)" * (len(self.found) > 1)
        return f"{first.path}:{first.line}, {first.finding.rule}: {first.why}{more}"

    def files(self, offer: Offer | None) -> tuple[dict[str, bytes], dict[str, bytes]]:
        """The files as written, and with a fix; None: with all."""
        before: dict[str, bytes] = {}
        after: dict[str, bytes] = {}
        for plan, chosen in [(offer.plan, offer.members)] if offer else self._together:
            before |= plan.before
            after |= plan.version(chosen)
        return before, after

    def foresee(self, paths: Sequence[str]) -> None:
        """Finds all there is in these files now, and not as each is imported."""
        self._foreseen |= {os.path.realpath(path): self.tree(path) for path in paths}

    def tree(self, path: str) -> ast.Module | None:
        """What is run in place of a file that is about to be; None for the file as it is."""
        real = os.path.realpath(path)
        if real in self._foreseen:
            return self._foreseen[real]
        if not path.endswith(".py") or kind_of_file(real) != USER or (raw := _content(real)) is None:
            return None
        if (tree := _parsed(raw)) is None:
            return None
        try:
            names = self.names | stepping([tree])
            return self._woven(real, raw, names).tree
        except Exception as error:  # whatever it is, the program is to run
            self.notes.append(f"{os.path.relpath(real)} is run as it is: {error}")
            return None

    def _woven(self, path: str, raw: bytes, names: set[str]) -> Woven:
        hear = partial(led, names=names if self._leads else ())
        plan = Plan([path])
        offers = [Offer(0, plan, candidate, listed(plan, candidate)) for candidate in plan.candidates]
        self.found += offers
        good: list[Offer] = []
        for offer in offers:
            offer.fix.why = offer.fix.why or self._why_not(offer, raw, names)
            if not offer.fix.why:
                try:
                    alone = weave(path, plan.before[path], {ALL: plan.version(offer.members)[path]})
                    offer.fix.why = _around(alone, ast.parse(raw))
                except CannotTakeTurnsError as why:
                    offer.fix.why = f"it cannot be changed as the program runs: {why}; `syncscope verify` tries it"
            if not offer.fix.why:
                good.append(offer)
        if not good:
            return Woven(hear(ast.parse(raw)))
        together = plan.closed(offer.candidate.number for offer in good)
        first = ALL + 1 + len(self.tried)
        versions = {ALL: plan.version(together)[path]}
        versions |= {first + at: plan.version(offer.members)[path] for at, offer in enumerate(good)}
        woven = weave(path, plan.before[path], versions, self._passages, hear)
        for at, offer in enumerate(good):
            offer.number = first + at
            offer.passages = _of_version(woven, offer.number)
        self._passages = max(self._passages, woven.next)
        self._together.append((plan, together))
        return woven

    def _why_not(self, offer: Offer, raw: bytes, names: set[str]) -> str:
        """Why a fix that could be made is not tried in the run."""
        members = [offer.plan.candidates[number] for number in offer.members]
        if self._unsafe and any(one.fix.safety is not Safety.SAFE for one in members):
            offer.refused = True
            return self._unsafe
        if self._compiles and not _steps(ast.parse(raw), offer.candidate.line, names):
            return NO_VERSIONS
        return ""


def _of_version(woven: Woven, number: int) -> frozenset[int]:
    return frozenset(passage for passage, (_, _, versions) in woven.passages.items() if number in versions)


def _around(woven: Woven, tree: ast.Module) -> str:
    """Why a version is not reached in steps: it differs in what goes on around the loop that makes them."""
    names = stepping([tree], {"step"})
    for name, line, _ in woven.passages.values():
        if around_a_loop(tree, line, names):
            return f"it changes {name} (line {line}) around the loop that makes the steps; `syncscope verify` tries it"
    return ""


def _steps(tree: ast.Module, line: int, names: set[str]) -> bool:
    """Whether the innermost function around a line makes steps, as no function does that is compiled; so, outside of any."""
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return not around or max(around, key=lambda node: node.lineno).name in names


def _content(path: str) -> bytes | None:
    try:
        return Path(path).read_bytes()
    except OSError:
        return None


def _parsed(raw: bytes) -> ast.Module | None:
    try:
        return ast.parse(raw)
    except (SyntaxError, ValueError, RecursionError):  # Python will say what is wrong
        return None
