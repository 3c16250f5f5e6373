"""What is reached through what functions speak of: a word stands for all functions, or all methods, that have it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from syncscope.heat.by_text import goes_on
from syncscope.heat.called_in_steps import Calls
from syncscope.project.definitions import Definitions
from syncscope.project.outline import FunctionText, Spoken

_NONE: Mapping[bytes, set[bytes]] = {}


class Closure:
    """The words that are reached from others in a project.

    `apart` are the keys of functions that a word does not reach, a call does; `idle` the files in which none runs in steps;
    `kinds` what is registered with a function, of other types.
    """

    def __init__(
        self,
        definitions: Definitions,
        said: Spoken,
        apart: Collection[str],
        idle: Collection[str] = (),
        kinds: Mapping[bytes, set[bytes]] = _NONE,
    ) -> None:
        self._defined, self._said = definitions.defined, said
        self._apart, self._idle, self._kinds = apart, idle, kinds

    def of(
        self, reached: Iterable[bytes], functions: Collection[FunctionText] = (), spoken: Iterable[bytes] = ()
    ) -> set[bytes]:
        """What is reached, with what is from functions, and from what else is spoken of."""
        reached, spoken = set(reached), set(spoken)
        waiting = self._defined.keys() - reached
        as_attribute = self._said.as_attribute
        while functions or spoken:
            for each in functions:
                spoken.update(self._said.by(each))
            new = (spoken | {as_attribute[word] for word in as_attribute.keys() & spoken}) & waiting
            functions = [each for word in new for each in self._defined[word] if goes_on(each)]
            reached |= new
            waiting -= new
            spoken = set()
        return reached

    def with_kinds(self, reached: set[bytes]) -> set[bytes]:
        """What is reached, and what is registered with it: `@permuted.register def of_tensor(x)` runs where `permuted` does."""
        kinds = self._kinds
        while more := {each for word in kinds.keys() & reached for each in kinds[word]} & (
            self._defined.keys() - reached
        ):
            reached = self.of(reached, spoken=more)
        return reached

    def with_calls(self, reached: set[bytes], new: Collection[FunctionText], calls: Calls) -> set[bytes]:
        """What is reached, and what is through the functions that these, or what they call, call all the same."""
        while new:
            called = calls.of(new)
            more = self.of(reached, called) - reached
            reached = reached | more
            new = [*called, *self.running(more)]
        return reached

    def running(self, words: Iterable[bytes]) -> list[FunctionText]:
        """The functions that run in steps, of those that are reached, but for what a call would have to say it of."""
        # In order: who is asked first decides which calls are sure, and a set has another order in each process.
        every = (each for word in sorted(words) for each in self._defined[word])
        return [each for each in every if each.path not in self._idle and each.key not in self._apart and goes_on(each)]
