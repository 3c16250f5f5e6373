"""What the training loops of a program build and call, as text: what none of them speaks of runs in none of their steps.

A `forward` runs in steps, whatever class it is of, only where others may build that class: in a library. A program that holds
the loops which train it builds all of what it trains itself.
"""

from __future__ import annotations

import ast
import os
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from syncscope.heat.asked_by_name import asking
from syncscope.heat.by_text import goes_on, is_frozen, said_by_name
from syncscope.heat.flags import off
from syncscope.heat.imported import Imported
from syncscope.heat.rollouts import rollouts
from syncscope.heat.said_seldom import SpokenInSteps
from syncscope.model.heat import Reason, Role
from syncscope.project import beside_training, cold_names, conventions
from syncscope.project.folders import is_library
from syncscope.project.outline import (
    ClassText,
    FunctionText,
    Spoken,
    imported_by,
    names_imported,
    outlined,
    place,
    plain,
    without_imports,
    words,
)

_PASS = re.compile(rb"\.(?:manual_)?backward\(")
# Of others, who call back what they are given.
_TRAINER = re.compile(rb"Trainer\(|[tT]rainer\.(?:fit|train)\(|\btune\.(?:run|Tuner)\(")
_END = re.compile(rb"^(?=[^\s#)\]}\"'])", re.MULTILINE)
_PARAMETERS = re.compile(rb"[ \t]*\(([^()]*(?:\([^()]*\)[^()]*)*)\)")
_INSTANCE = re.compile(rb"isinstance\([^()]*(?:\([^()]*\)[^()]*)*\)")
_PARAMETER = re.compile(rb"(?:^|,)\s*\**(\w+)")
_AT_TOP = re.compile(rb"^(?:from|import)\b[^\n(]*(?:\([^)]*\))?", re.MULTILINE)
_HEAD = re.compile(rb"^[ \t]*class \w+[ \t]*(?:\([^()]*(?:\([^()]*\)[^()]*)*\))?", re.MULTILINE)
_MAIN = re.compile(rb"^if[ \t(]+__name__\b", re.MULTILINE)
_BY_TEXT = re.compile(rb"(?<![.\w])(?:(?:eval|exec)\(|(?:vars|globals|locals)\(\)[\[.])")  # a name of the file's own
_BY_NAME = re.compile(rb"getattr\(\s*(\w+)\s*,\s*(?![\"'])")  # one of a module
_ANYWHERE = re.compile(
    rb"import_module\(|__import__\(|__subclasses__|__init_subclass__|\bhydra\b|\binstantiate\w*\(|pydoc\.locate|importlib"
)
"""What makes objects of classes that a configuration names."""
_OFFERS = rb"^(?:from[ \t]+(?:\.|%b\b)|__all__\b)"
_EVALUATES = frozenset(
    (Reason.EVALUATION, Reason.INFERENCE, Reason.SAMPLES, Reason.DECODING, Reason.RESULT, Reason.METRIC, Reason.CHECK)
)
_ENTRANCES = frozenset(("forward", "__call__", *conventions.HOOKS))


class Training:
    """The files of a program, and the functions and the classes that its training loops build and call."""

    def __init__(self, sources: Mapping[str, bytes]) -> None:
        self.sources = sources
        self.outside: dict[str, bytes] = {}
        self.defined: dict[bytes, list[FunctionText]] = defaultdict(list)
        self.classes: dict[str, list[ClassText]] = defaultdict(list)
        for path, source in sources.items():
            written, owners, outside = outlined(path, source)
            for each in written:
                end = _END.search(source, each.begin, each.end)  # what follows it at the top level is not its own
                own = each if end is None else each._replace(end=end.start())
                self.defined[each.word].append(own)
                outside += source[own.end : each.end]
            self.outside[path] = outside
            for owner in owners:
                self.classes[owner.name].append(owner)
        self.every = [each for same in self.defined.values() for each in same]
        self.said = self.spoken()
        self.in_steps = SpokenInSteps(self.said)
        self.imported = Imported(sources, self.defined)
        self.functions: set[str] = set()  # by their keys, what is built or called
        self.names: set[str] = set()  # of classes
        self.unknown = False  # whether classes are found by names that stand elsewhere
        self._below: dict[str, list[str]] = defaultdict(list)  # by a class those derived from it
        for name, same in self.classes.items():
            for base in {base for cls in same for base in cls.bases}:
                self._below[base].append(name)
        self.starting: set[str] = set()
        self.files: set[str] = set()
        self._spoken: set[bytes] = set()  # attributes
        self._todo: list[FunctionText] = []

    def around(
        self, roots: Sequence[FunctionText], every: Iterable[FunctionText]
    ) -> tuple[list[FunctionText], set[str]]:
        """The functions that train, and those that call what does, and the files that do so where they are run."""
        found = {each.key: each for each in roots}
        left = {each.key: each for each in every if each.key not in found}
        starting: set[str] = set()
        new = [*roots]
        while new:
            called = {point + each.name.encode() for each in new for point in (b"", b".")}
            keys = {each.key for each in new}
            starting |= {
                path
                for path, text in self.outside.items()
                if self._calls_one(path, called.intersection(words(text)), text, keys)
            }
            new = [
                each
                for each in left.values()
                if self._calls_one(each.path, called.intersection(self.said.by(each)), each.text(), keys)
            ]
            for each in new:
                found[each.key] = left.pop(each.key)
        return [*found.values()], starting

    def _calls_one(self, path: str, said: Collection[bytes], text: bytes, keys: Collection[str]) -> bool:
        """Whether one of these words means one of these functions in a file; a method where it speaks of the class, too."""
        for word in said:
            name = word.removeprefix(b".").decode()
            if any(each.key in keys for each in self._meant(path, word, name, text)):
                return True
            for each in self.defined.get(word, ()) if word[:1] == b"." else ():
                if each.key in keys and (each.path == path or self._speaks_of(path, each.cls)):
                    return True
        return False

    def _speaks_of(self, path: str, cls: str) -> bool:
        """Whether a file names a class, or one derived from it."""
        return any(name.encode() in self.sources[path] for name in self._derived(cls))

    def _derived(self, cls: str) -> list[str]:
        found = [cls]
        for name in found:  # grows while it is gone through
            found += [each for each in self._below[name] if each not in found]
        return found

    def follow(self, roots: Collection[FunctionText], files: Collection[str]) -> None:
        """Go from training loops, and from files that hold or start one, to all that they build and call."""
        around = {each.key for each in roots}
        self.starting = {*files, *(each.path for each in roots)}
        for path in files:
            self._speak(path, self._top(path, True), True)
        self._add(roots)
        while self._todo:
            each = self._todo.pop()
            self._visit(each.path)
            text = each.text()
            self._look_up(each.path, text)
            given = _given(text)
            given |= _only_asked(text)
            words_here = [word for word in self._words(each, each.key in around) if word.decode() not in given]
            cold = self.in_steps.cold(each) if each.key in around and _PASS.search(text) else ()
            self._speak(each.path, words_here, each.key in around, text, cold)

    def spoken(self) -> Spoken:
        """What functions speak of, as they are and as they are here, without what follows them at the top level: each anew."""
        return Spoken([*self.defined, *(name.encode() for name in self.classes)], asking(self.every))

    def used(self) -> set[str]:
        """The files that others import, that are run by themselves, or that speak of what comes behind the training: who else
        uses what is in one of the rest is not known."""
        taken = {at for here in imported_by(self.sources).values() for at, _ in here}
        return {
            path
            for path, source in self.sources.items()
            if b"__main__" in source
            or after_training(path)
            or not taken.isdisjoint((at := place(path), f"/{at.rpartition('/')[2]}"))
        }

    def off(self, files: Collection[str]) -> set[str]:
        """The flags that nothing turns on that trains, of what these files hold."""
        functions = [
            each for each in self.every if each.key in self.functions and said_by_name(each).reason not in _EVALUATES
        ]
        known = {word.removeprefix(b".").decode() for word in self.defined} | self.classes.keys()
        derived = {name: self._derived(name) for name in self.names}
        trees = ((path, tree) for path in files if (tree := _tree(self.sources[path])) is not None)
        return off(functions, trees, known, derived)

    def _top(self, path: str, starts: bool) -> bytes:
        """What a file does where it is imported; of one that starts a training loop, what it does as a program, too."""
        text = _HEAD.sub(b"", plain(without_imports(self.outside.get(path, b""))))
        main = None if starts else _MAIN.search(text)
        return text if main is None else text[: main.start()]

    def _words(self, function: FunctionText, around: bool) -> Collection[bytes]:
        """What is said in a function; around a training loop, of what evaluates only what is asked in its steps."""
        every = self.said.by(function)
        if not around:
            return every
        if _PASS.search(function.text()) is None:
            return [word for word in every if not self._evaluates(word)]
        cold = self.in_steps.cold(function)
        return [word for word in every if not (word in cold and (not cold[word] or self._evaluates(word)))]

    def _evaluates(self, word: bytes) -> bool:
        """Whether a function of this name is there for what comes behind the training, or between two epochs of it."""
        same = self.defined.get(word) or self.defined.get(word.removeprefix(b".")) or ()
        return bool(same) and all(said_by_name(each).reason in _EVALUATES or after_training(each.path) for each in same)

    def _visit(self, path: str) -> None:
        if path not in self.files:
            self.files.add(path)
            top = self._top(path, False)
            self._look_up(path, top)
            self._speak(path, top, False)

    def _look_up(self, path: str, text: bytes) -> None:
        """Take what a text may find by a name that it makes: all that its file speaks of, or all of a module."""
        if _ANYWHERE.search(text) is not None:
            self.unknown = True
        if _BY_TEXT.search(text) is not None:
            for name in {
                *names_imported(b"\n".join(_AT_TOP.findall(self.sources[path]))),
                *self._defined_in(path),
            } - _only_asked(self.sources[path]):
                self._build(name)
        for owner in _BY_NAME.findall(text) if b"getattr(" in text else ():
            name = self.imported.aliases(path).get(owner.decode(), owner.decode())
            for other in self.sources:
                if name in (os.path.basename(other).removesuffix(".py"), os.path.basename(os.path.dirname(other))):
                    self._speak(other, self.sources[other], False)

    def _defined_in(self, path: str) -> Iterator[str]:
        return (name for name, same in self.classes.items() if any(cls.path == path for cls in same))

    def _speak(
        self, path: str, said: bytes | Collection[bytes], around: bool, text: bytes = b"", cold: Collection[bytes] = ()
    ) -> None:
        """Take what is spoken of in a file: classes by their names, methods of those that are built, functions as they are
        imported."""
        if isinstance(said, bytes):
            text, said = said, words(said)
            if around:
                said = [word for word in said if not self._evaluates(word)]
        for word in said:
            name = word.removeprefix(b".").decode("utf-8", "replace")
            if name in self.classes:
                self._build(name)
            if word[:1] == b"." and word not in self._spoken:
                self._spoken.add(word)
                self._add(each for each in self.defined.get(word, ()) if each.cls in self.names)
            self._add(self._meant(path, word, name, text, cold))

    def _meant(
        self, path: str, word: bytes, name: str, text: bytes, cold: Collection[bytes] = ()
    ) -> Iterator[FunctionText]:
        """The functions that a word means in a file: `loss.total` one of a module of this name."""
        same = [each for each in self.defined.get(name.encode(), ()) if not each.cls]
        if not same:
            return
        if word[:1] != b".":
            known = self.imported.names(path)
            yield from self.imported.meant(name, path, same) if "*" not in known else same
            return
        aliases = self.imported.aliases(path)
        owners = {each.decode() for each in re.findall(rb"(\w+)\.%b\b" % re.escape(name.encode()), text)}
        owners -= {each for each in owners if each.encode() + word in cold}
        owners |= {aliases[each] for each in owners if each in aliases}
        for each in same:
            if not owners.isdisjoint(each.path.removesuffix(".py").split(os.sep)):
                yield each

    def _build(self, name: str) -> None:
        """Take a class, and what it is derived from: what Python or the base class calls, and what is asked of objects."""
        todo = [name]
        for each in todo:  # grows while it is gone through
            if each in self.names or each not in self.classes:
                continue
            self.names.add(each)
            for cls in self.classes[each]:
                todo += cls.bases
                self._visit(cls.path)
                self._add(
                    method
                    for name, method in cls.methods.items()
                    if name.startswith("__") or name in _ENTRANCES or b"." + name.encode() in self._spoken
                )

    def _add(self, functions: Iterable[FunctionText]) -> None:
        for each in functions:
            if each.key not in self.functions:
                self.functions.add(each.key)
                self._todo.append(each)
                if each.cls:
                    self._build(each.cls)


def _tree(source: bytes) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def after_training(path: str) -> bool:
    """Whether a file is called like what evaluates, exports or shows what has been trained."""
    stem, folder = os.path.basename(path).removesuffix(".py"), os.path.basename(os.path.dirname(path))
    return not beside_training.AFTER.isdisjoint((stem, folder)) or bool(beside_training.ASIDE_WORD.search(stem))


class Trained(NamedTuple):
    """What the training loops of a program tell of it."""

    roles: dict[str, Role]  # of what they neither build nor call: "/path/of/file.py:name" of functions and classes
    files: Collection[str]  # in which that is what they do
    said: Spoken  # what functions speak of where they run in steps


def untrained(root: Path, sources: Mapping[str, bytes], aside: Collection[str]) -> Trained | None:
    """What the training loops of a program build and call; None of a library, of what trains nothing itself, and where objects
    are made of classes that a configuration names. `aside` are files beside the training.
    """
    if not any(beside_training.TRAINS.search(source) for source in sources.values()) or offers(root, sources):
        return None
    program = Training(sources)
    every = [each for each in program.every if not (each.path in aside or after_training(each.path))]
    driving = {each.key for each in rollouts(every)}
    roots = [each for each in every if each.key in driving or _trains(each)]
    tops = {path for path, text in program.outside.items() if path not in aside and _trains_at_top(text)}
    if not (tops or any(_PASS.search(each.text()) for each in roots)):
        return None
    around, starting = program.around(roots, every)
    if not (tops or starting):
        return None
    program.follow(around, tops | starting)
    if program.unknown:
        return None
    used = program.used()
    roles = {
        f"{each.path}:{each.name}": Role.UNTRAINED
        for each in program.every
        if not each.cls and each.key not in program.functions and each.path in used
        if not each.is_decorated() or is_frozen(each)
    }
    for name, same in program.classes.items():
        if name not in program.names and not any(cls.decorated for cls in same):
            roles |= {f"{cls.path}:{name}": Role.UNTRAINED for cls in same if cls.path in used}
    files = program.files | program.starting
    switched_off = program.off(files)
    return Trained(roles | dict.fromkeys(switched_off, Role.OFF), files, SpokenInSteps(program.spoken(), switched_off))


def offers(root: Path, sources: Mapping[str, bytes]) -> bool:
    """Whether this is a library: it is to be installed, and the outermost of its packages offer what others may build."""
    if not is_library(root):
        return False
    outermost = (
        (os.path.basename(folder), sources[path])
        for path in sources
        if (folder := os.path.dirname(path)) and os.path.basename(path) == "__init__.py"
        if os.path.join(os.path.dirname(folder), "__init__.py") not in sources
    )
    return any(re.search(_OFFERS % name.encode(), source, re.MULTILINE) for name, source in outermost)


def _trains(function: FunctionText) -> bool:
    """Whether a function holds a backward pass, is a step or a training loop by its name, or starts one of others."""
    if cold_names.MEASURES.match(function.name):
        return False
    text = function.text()
    if _PASS.search(text) or _TRAINER.search(text):
        return True
    return conventions.HOT.get(function.name, Reason.SILENT()).reason in (Reason.STEP, Reason.LOOP) and goes_on(
        function
    )


def _trains_at_top(text: bytes) -> bool:
    return _PASS.search(text) is not None or _TRAINER.search(text) is not None


def _only_asked(text: bytes) -> set[str]:
    """The classes of which a text asks whether an object is one, and of which it says no more."""
    asked = b" ".join(_INSTANCE.findall(text)) if b"isinstance(" in text else b""
    return {each.decode() for each in words(asked) - words(_INSTANCE.sub(b"", text))} if asked else set()


def _given(text: bytes) -> set[str]:
    """The parameters of a function, which hide what else is called so; `text` begins with them."""
    head = _PARAMETERS.match(text)
    return {each.decode() for each in _PARAMETER.findall(head[1])} if head is not None else set()
