"""Which fixes stay: those that change no value beyond their text, and without which the step would be longer."""

from __future__ import annotations

import os
from collections.abc import Sequence

from syncscope.errors import UserError
from syncscope.model.finding import Finding, Safety
from syncscope.model.trace import Trace
from syncscope.tracers.places import LIBRARY, kind_of_file
from syncscope.verify.foretold import foretold, lines_without_rows
from syncscope.verify.nothing import nothing_to_try
from syncscope.verify.of_libraries import waited_in
from syncscope.verify.one_process import why_apart
from syncscope.verify.plan import Plan
from syncscope.verify.results import CHANGED, EQUAL, WITHIN, TriedFix, by_hand, listed
from syncscope.verify.search import Search
from syncscope.verify.set_aside import SetAsideError, set_aside
from syncscope.verify.spent import READING
from syncscope.verify.timing import FEWEST
from syncscope.verify.values import Difference
from syncscope.verify.versions import Set
from syncscope.verify.why_kept import NEXT, is_timed, why_it_is_left, why_it_stays

SLIGHT = 0.01  # of a step: a fix that gives less is not needed
PART = 1 / 3  # of the gain: what may give so much is not left out undecided
FIRST = 0.6  # of what is left as turns begin: all together are timed by themselves so long, as long as they are open
EACH, ALL = 0.6, 0.85  # the same until which each fix by itself, and sets of them, are timed
LONG = 0.1  # of what is left of the budget, that a run takes before its first step has ended
COMPARING = 0.5  # of the budget: from then on what is equal is timed before others are compared
NONE: Set = frozenset()


class Fixes:
    """The fixes of one search, tried."""

    def __init__(self, search: Search) -> None:
        self.search = search
        self.runs, self.compared, self.found = search.runs, search.compared, search.found
        self.tried: dict[int, TriedFix] = {}
        self._equal: Set = NONE  # all together, where these change no bit
        self._beside = False  # whether that is known of the same steps in one process, and not of a whole run

    def run(self, recording: Trace | None) -> None:
        """Tries all there is; `search.found` grows meanwhile.

        Raises:
            UserError: the program cannot be run, or there is nothing to try.
        """
        search = self.search
        self.runs.in_one = not self.runs.settings.apart
        self.compared.libraries |= waited_in(recording) if not self.runs.settings.only else set()
        files = search.begin(twice=not self.runs.in_one)
        named = {place.path for place in self.runs.settings.only}
        if missing := sorted(path for path in named - set(files) if kind_of_file(path) != LIBRARY):
            raise UserError(
                f"{os.path.relpath(missing[0])} is no source that {self.runs.program} imports",
                "name one of its own files, as it stands in the project",
            )
        only, rules = self.runs.settings.only, self.runs.settings.rules
        libraries = self.compared.libraries
        with self.runs.processes.spent.on(READING):
            self.plan = self.runs.plan = Plan(
                sorted(named) or files, only, rules, self.compared.read_at, self.compared.ran_at, libraries
            )
            self._offer()
            self._set_aside()
        search.turned = self._refresh
        search.told = self._cut_short
        self._foresee(self._open())
        recording = recording or self.runs.recording()  # before versions take turns, so that these go on in one process
        self.runs.aside = self._set_aside_what_is_not_begun
        while True:
            try:
                if good := self._good():
                    self._note_values(self.plan.closed(good))
                    self.choose(good, recording)
                break
            except SetAsideError:
                self._foresee(self._open())
        self._tell()

    def choose(self, good: Sequence[int], recording: Trace | None) -> None:
        """Which of the fixes that compute what the program does are to stay."""
        search = self.search
        search.best = together = self.plan.closed(good)
        self._foretell(recording, together)
        self._time(together, good)
        kept = self._harmless(self._needed(together, good))
        search.best = kept or together
        if not kept:
            self._note_values(together)
        self._keep(kept)
        self._foretell(recording, search.best)
        if len(good) > 1 and kept:
            self._once_more(kept)
        if self.found.files:
            search.until_narrow([kept])
        self._untimed(good)

    # what there is

    def _offer(self) -> None:
        """Every fix is listed from the beginning on, with the reason why it is not tried, if there is one.

        Raises:
            UserError: there is none.
        """
        for candidate in self.plan.candidates:
            fix = listed(self.plan, candidate)
            self.tried[candidate.number] = fix
            self.found.fixes.append(fix)
        if self.plan.unlisted:
            self.found.notes.append(
                f"{self.plan.unlisted} more fixes are not listed: --rule and --line try those of one rule or line"
            )
        self.found.fixes += [by_hand(finding) for finding in self.plan.by_hand if self._waits(finding)]
        self.search.budget.least += sum(not fix.why for fix in self.tried.values())
        if not any(not fix.why for fix in self.tried.values()):
            raise UserError(*nothing_to_try(self.compared, self.plan.before))

    def _set_aside(self) -> None:
        """What changes a line that runs once would have each version begin in a process of its own, the others, too."""
        if not self.runs.in_one:
            return
        before = self.plan.before
        set_aside(self.tried, self.plan.closed, lambda alone: why_apart(before, self.plan.version(alone)))

    def _set_aside_what_is_not_begun(self) -> None:
        """The same of what changes a function that goes on around the steps, which is known once these are made.

        Raises:
            SetAsideError: there are others.
        """
        if set_aside(self.tried, self.plan.closed, self.runs.one_process().once):
            raise SetAsideError

    def _open(self) -> list[int]:
        return [number for number, fix in self.tried.items() if not fix.why]

    def _waits(self, finding: Finding) -> bool:
        path, lines = os.path.realpath(finding.place.path), range(finding.place.line, finding.end_line + 1)
        in_library = any(place.path == path and place.line in lines for place in self.plan.libraries)
        return in_library or self.compared.read_at(path, lines)

    # what they compute

    def _good(self) -> list[int]:
        """The fixes that compute what the program does."""
        good: list[int] = []
        if equal := self._equal_together():
            return equal
        self.compared.compare([self.plan.closed({number}) for number in self._open()])
        known = {n for n in self._open() if self.plan.closed({n}) in self.compared.equal_beside}
        known = {n for n in known if self.plan.closed({n}) <= known}  # which takes no more time
        for candidate in sorted(self.plan.candidates, key=lambda candidate: candidate.number not in known):
            fix = self.tried[candidate.number]
            if fix.why:
                continue
            if good and candidate.number not in known and self.search.budget.spent() > COMPARING:
                fix.why = "it was not compared: what was left of the budget went to the time that others take"
                continue
            if not all(need in good for need in candidate.needs):
                fix.why = "what it needs was left out"
                continue
            chosen = self.plan.closed({candidate.number})
            self.runs.tell(f"what {fix.finding.rule} of {fix.path}:{fix.line} computes")
            fix.values, why, fix.difference = EQUAL, "", self.compared.beside.get(chosen)
            if not self.compared.is_equal_beside(chosen):
                fix.values, why, fix.difference = self._judge(chosen)
            if fix.values == CHANGED:
                fix.why = why
                self.found.refused = True
            else:
                good.append(candidate.number)
        return good

    def _equal_together(self) -> list[int]:
        """All fixes, where with all of them at once every bit is the same: one run instead of one for each. What stays of them
        in the end is compared again by itself, in one process if that can be.

        None, where that is not so: then each is asked for by itself.
        """
        open_ = self._open()
        together = self.plan.closed(open_)
        made = self.plan.version(together)
        if not open_ or any(self.plan.version(together - {n}) == made for n in self.plan.leaves(together)):
            return []  # one of them may not be made beside the others
        self.runs.tell("what all fixes together compute")
        is_part = together < self._equal
        self._beside = (is_part or self._begins_long()) and self.compared.is_equal_beside(together)
        if not self._beside and not self.compared.is_equal(together):
            return []
        apart = self.compared.beside[together] if self._beside else self._judge(together)[2]
        self._equal = together
        for number in open_:
            self.tried[number].values, self.tried[number].difference = EQUAL, apart
        return open_

    def _begins_long(self) -> bool:
        """Whether another run would take much of what is left before its first step has ended: then values are compared in the
        process in which versions take turns, which is begun anyway, and not in a whole run first."""
        starting = self.runs.processes.starting  # of the one run there was so far
        return self.runs.in_one and starting > LONG * self.runs.processes.left()

    def _judge(self, chosen: Set) -> tuple[str, str, Difference | None]:
        members = [self.plan.candidates[number] for number in chosen]
        safe = all(candidate.fix.safety is Safety.SAFE for candidate in members)
        return self.compared.judge(chosen, any(candidate.fix.rounds for candidate in members), safe)

    def _note_values(self, chosen: Set) -> None:
        """What these compute is said from now on, unless it is why they will not stay."""
        self.runs.tell("what all good fixes together compute")
        if self._is_equal_beside(chosen):
            return
        values, _, apart = self._judge(chosen)
        if values != CHANGED:
            self.found.values, self.found.difference = values, apart

    def _harmless(self, kept: Set) -> Set:
        """The set without those that together change what each alone does not."""
        if self._is_equal_beside(kept):
            return kept
        while kept:
            values, why, apart = self._judge(kept)
            self.found.values, self.found.difference = values, apart
            if values != CHANGED:
                return kept
            leaves = self.plan.leaves(kept)
            worst = max(leaves, key=lambda number: self.tried[number].apart)
            self.tried[worst].why = f"together with the others, {why}"
            self.found.refused = True
            kept = kept - {worst}
        self.found.values = self.found.difference = None
        return kept

    def _is_equal_beside(self, chosen: Set) -> bool:
        """Whether that is said of a part of what is equal together, by the same steps of one process."""
        is_part = chosen < self._equal or (self._beside and chosen == self._equal)  # else it has had a whole run
        if not (is_part and chosen and self.compared.is_equal_beside(chosen)):
            return False
        self.found.values, self.found.difference = EQUAL, self.compared.beside[chosen]
        self.found.compared_steps = self.compared.alongside[chosen][0].steps
        return True

    # what they save

    def _foresee(self, numbers: Sequence[int]) -> list[Set]:
        """Says which versions may be timed; of these each fix by itself."""
        together = self.plan.closed(numbers)
        alone = [self.plan.closed({number}) for number in numbers]
        self.runs.foreseen = [together, *alone, *(together - {number} for number in self.plan.leaves(together))]
        return alone

    def _time(self, together: Set, good: Sequence[int]) -> None:
        """All together, and each by itself."""
        search, budget = self.search, self.search.budget
        budget.begin_turns()
        different = [chosen for chosen in self._foresee(good) if chosen != together]
        if not self.runs.in_one:  # those first whose lines wait most; what is left goes to what is without each
            held = max(0, int(budget.runs_left(budget.part(EACH)) / FEWEST) - 3)
            different = sorted(
                different, key=lambda each: -sum(self.compared.waits_at(*self.tried[n].lines) for n in each)
            )[:held]
        for _ in range(search.most_turns):
            open_ = [c for c in different if c not in self.runs.failed and not search.is_known(c)]
            whole = [together] if not search.is_known(together) else []
            gains = self.found.is_gain(search.ratio(together))
            if not (open_ or whole) or budget.spent() > budget.part((EACH if len(good) > 1 else ALL) if gains else 1.0):
                return
            is_first = whole and budget.spent() < budget.part(FIRST)  # whether there is anything to be had at all
            search.turn(whole if is_first else [*whole, *open_])
            told = search.ratio(together)
            if whole and open_ and search.is_known(together) and self.found.is_gain(told):
                self.runs.processes.warn(f"decided: all {len(good)} fixes together gain, {told} {NEXT}")

    def _needed(self, together: Set, good: Sequence[int]) -> Set:
        """The smallest set whose step is as short as that of all; none where nothing gains."""
        search = self.search
        alone = {number: search.ratio(self.plan.closed({number})) for number in good}
        sure = [n for n, ratio in alone.items() if ratio is not None and self.found.is_gain(ratio.one_of(len(alone)))]
        gaining = self.plan.closed(sure)
        start = kept = self._best_of(together, gaining)
        leaves = sorted(self.plan.leaves(kept), key=lambda n: -ratio.ratio if (ratio := alone.get(n)) else -1.0)
        for at, number in enumerate(leaves):
            rest = kept - {number}
            if not rest:
                break
            if self.plan.version(rest) == self.plan.version(kept):  # it is another way of mending the same lines
                self.tried[number].why = "another fix of the same lines is made"
                kept = rest
                continue
            spent = search.budget.spent()
            short = self._as_short(rest, start, spent + (search.budget.part(ALL) - spent) / (len(leaves) - at))
            gains = self.found.is_gain(search.ratio(rest))  # else what all give together would be given away
            if short is None and gains and alone[number] is not None and not self.found.is_gain(alone[number]):
                self.tried[number].why = "no gain of it is known, neither by itself nor beside the others"
                kept = rest
            elif short:
                self.tried[number].why = "the step is as short without it"
                kept = rest
            self.tried[number].without = search.ratio(rest, start)
        return kept

    def _as_short(self, less: Set, more: Set, part: float = 0.0) -> bool | None:
        """Whether the step with fewer fixes is not longer, or not by what matters; None where that was not decided."""
        beside = self.search.side_by_side(less, more, part or self.search.budget.part(ALL))
        one, other = (self.search.ratio(chosen) for chosen in (less, more))
        if beside is None or beside.turns < FEWEST or one is None or other is None:
            return None
        if beside.low > 1.0:
            return one.ratio - other.ratio <= SLIGHT
        slight = max(2 * self.runs.settings.precision, PART * (1 - other.ratio))
        return True if beside.high <= 1 + slight else None

    def _best_of(self, together: Set, gaining: Set) -> Set:
        """All of them, or those that gain by themselves where that is as much; none where neither gains."""
        whole = self.search.ratio(together)
        fewer = bool(gaining) and gaining != together
        if fewer and (not self.found.is_gain(whole) or self._as_short(gaining, together) is not False):
            return gaining
        return together if self.found.is_gain(whole) else NONE

    def _once_more(self, kept: Set) -> None:
        """Of several, those that stay were chosen by turns that may have been kind to them: they must gain in others."""
        chosen_by = len(self.search.turns)
        for turn in range(self.search.most_turns):
            if turn >= FEWEST and self.search.is_known(kept, since=chosen_by):
                break
            self.search.turn([kept])
        again = self.search.ratio(kept, since=chosen_by)
        if again is None or again.ratio >= 1:
            self._keep(NONE)

    # what is said

    def _refresh(self) -> None:
        """The ratios that are known by now."""
        for number, fix in self.tried.items():
            fix.ratio = self.search.ratio(self.plan.closed({number}))

    def _keep(self, kept: Set) -> None:
        """These stay, as far as is known by now."""
        for number, fix in self.tried.items():
            if number in kept:
                fix.kept = True
                fix.why = "the step is shorter with it" if len(kept) == 1 else why_it_stays(fix.without)
            elif fix.kept:
                fix.kept, fix.why = False, "what seemed a gain was lost in noise in later turns"
        self.found.files = self._changed(kept)

    def _changed(self, kept: Set) -> dict[str, tuple[bytes, bytes]]:
        made = self.plan.version(kept) if kept else {}
        return {path: (self.plan.before[path], raw) for path, raw in made.items()}

    def _untimed(self, good: Sequence[int]) -> None:
        """Says which of several fixes were neither timed by themselves nor left out of the others."""
        open_ = [self.tried[n] for n in good if not (is_timed(self.tried[n].ratio) or is_timed(self.tried[n].without))]
        if open_ and len(good) > 1:
            named = ", ".join(f"{fix.finding.rule} of {fix.path}:{fix.line}" for fix in open_)
            each = self.search.budget.least + 3 * FEWEST * len(open_)
            self.found.notes.append(
                f"not timed by themselves: {named}; --budget {self.search.budget.minutes(each)}m may hold that"
            )

    def _cut_short(self) -> None:
        """What is known where the budget is spent, or somebody interrupts. All together stay if they gain: it would be a gain
        without a patch that gives it."""
        best, found = self.search.best, self.found
        known = best is not None and found.values in (EQUAL, WITHIN) and found.is_gain(self.search.ratio(best))
        if best is not None and known and not found.files and not found.interrupted:
            self._refresh()
            self._keep(best)
            self._untimed(sorted(best))
        self._tell()

    def _tell(self) -> None:
        """The ratios that are known by now, and why the others do not stay."""
        self._refresh()
        whole = self.search.ratio(self.search.best) if self.search.best else None
        gains = self.found.is_gain(whole)
        for number, fix in self.tried.items():
            if not fix.kept and not fix.why:
                failed = self.runs.failed.get(self.plan.closed({number}))
                fix.why = why_it_is_left(fix.ratio, fix.values, failed, whole, gains)
        if self.search.best is not None:
            self.search.note(self.search.best)
            if self.found.ratio is not None and not self.found.gains:
                self._keep(NONE)
            if not self.found.files:
                self.found.open_files = self._changed(self.search.best)
                for number, fix in self.tried.items():
                    fix.good = number in self.search.best

    def _foretell(self, recording: Trace | None, chosen: Set) -> None:
        if recording is None or (chosen not in self.compared.values and chosen not in self.compared.alongside):
            return
        plain = lines_without_rows(self.plan.candidates[number] for number in chosen)
        self.found.promise(foretold(recording, *self.compared.both(chosen), plain))
