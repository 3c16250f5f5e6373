"""Where a program trains: the functions and the files that hold a training loop, and those that call what does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from syncscope.heat.by_text import goes_on
from syncscope.heat.training_program import TrainingProgram
from syncscope.model.heat import Reason
from syncscope.project import cold_names, conventions
from syncscope.project.outline import FunctionText, Spoken, words
from syncscope.project.rare import Rare

PASS = Rare((b"backward(",), rb"\.(?:manual_)?backward\(")
# Of others, who call back what they are given.
_TRAINER = Rare((b"rainer", b"tune."), rb"Trainer\(|[tT]rainer\.(?:fit|train)\(|\btune\.(?:run|Tuner)\(")


def trains(function: FunctionText) -> bool:
    """Whether a function holds a backward pass, is a step or a training loop by its name, or starts one of others."""
    if cold_names.MEASURES.match(function.name):
        return False
    if trains_at_top(function.text()):
        return True
    reason = conventions.HOT.get(function.name, Reason.SILENT()).reason
    return reason in (Reason.STEP, Reason.LOOP) and goes_on(function)


def trains_at_top(text: bytes) -> bool:
    """Whether a text holds a backward pass, or starts a training loop of others."""
    return PASS.search(text) is not None or _TRAINER.search(text) is not None


def around(
    program: TrainingProgram, said: Spoken, roots: Sequence[FunctionText], every: Iterable[FunctionText]
) -> tuple[list[FunctionText], set[str]]:
    """The functions that train, and those of `every` that call what does, and the files that do so where they are run."""
    found = {each.key: each for each in roots}
    left = {each.key: each for each in every if each.key not in found}
    starting: set[str] = set()
    new = [*roots]
    while new:
        called = {point + each.name.encode() for each in new for point in (b"", b".")}
        keys = {each.key for each in new}
        methods = defaultdict[bytes, list[FunctionText]](list)
        for each in new:
            methods[each.word].append(each)
        starting |= {
            path
            for path, text in program.outside.items()
            if _calls_one(program, path, called.intersection(_said_at(program, path, text, said)), text, keys, methods)
        }
        new = [
            each
            for each in left.values()
            if _calls_one(program, each.path, called.intersection(said.by(each)), each.text(), keys, methods)
        ]
        for each in new:
            found[each.key] = left.pop(each.key)
    return [*found.values()], starting


def _said_at(program: TrainingProgram, path: str, text: bytes, said: Spoken) -> set[bytes]:
    """What a text speaks of that stands in no function."""
    every = words(text)
    return every | said.renamed(path, program.sources[path], every)


def _calls_one(
    program: TrainingProgram,
    path: str,
    said: Iterable[bytes],
    text: bytes,
    keys: Collection[str],
    methods: Mapping[bytes, Sequence[FunctionText]],
) -> bool:
    """Whether one of these words of a text means one of these functions in a file; a method where that speaks of the class."""
    for word in said:
        if any(each.key in keys for each in program.meant(path, word, text)):
            return True
        for each in methods.get(word, ()) if word[:1] == b"." else ():
            if each.path == path or _speaks_of(program, path, each.cls):
                return True
    return False


def _speaks_of(program: TrainingProgram, path: str, cls: str) -> bool:
    """Whether a file names a class, or one derived from it."""
    return any(name.encode() in program.sources[path] for name in program.derived(cls))
