"""A program that trains what it builds itself, as text: what its files hold, and what a word means in each of them."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Collection, Iterator

from syncscope.heat.asked_by_name import asking
from syncscope.heat.by_text import said_by_name
from syncscope.heat.imported import Imported
from syncscope.heat.tables import END, tables
from syncscope.model.heat import Reason
from syncscope.project import beside_training
from syncscope.project.definitions import Definitions
from syncscope.project.outline import FunctionText, Spoken, imported_by, outlined, place, plain, without_imports

_HEAD = re.compile(rb"^[ \t]*class \w+[ \t]*(?:\([^()]*(?:\([^()]*\)[^()]*)*\))?", re.MULTILINE)
_MAIN = re.compile(rb"^if[ \t(]+__name__\b", re.MULTILINE)
_EVALUATES = frozenset(
    (Reason.EVALUATION, Reason.INFERENCE, Reason.SAMPLES, Reason.DECODING, Reason.RESULT, Reason.METRIC, Reason.CHECK)
)


class TrainingProgram(Definitions):
    """The files of a program; its functions end where the top level of their file goes on."""

    def __init__(self, sources: dict[str, bytes]) -> None:
        super().__init__(sources)
        self.outside: dict[str, bytes] = {}  # by path what stands outside of all functions
        for path, source in sources.items():
            functions, classes, outside = outlined(path, source)
            for each in functions:
                end = END.search(source, each.begin, each.end)  # what follows it at the top level is not its own
                own = each if end is None else each._replace(end=end.end())
                self.add([own])
                outside += source[own.end : each.end]
            self.outside[path] = outside
            self.add((), classes)
        self.tables = tables(sources, {*self.defined, *(name.encode() for name in self.classes)})
        self.imported = Imported(self)
        self._below: dict[str, list[str]] = defaultdict(list)  # by a class those derived from it
        for name, same in self.classes.items():
            for base in {base for cls in same for base in cls.bases}:
                self._below[base].append(name)

    def spoken(self) -> Spoken:
        """What functions speak of, as they are and as they are here, without what follows them at the top level: each anew."""
        held = (word for name in self.tables for word in (name, b"." + name))
        return Spoken([*self.defined, *(name.encode() for name in self.classes), *held], asking(self.functions()))

    def derived(self, cls: str) -> list[str]:
        """A class, and those derived from it."""
        found = [cls]
        for name in found:  # grows while it is gone through
            found += [each for each in self._below[name] if each not in found]
        return found

    def classes_in(self, path: str) -> Iterator[str]:
        """The names of the classes that a file defines."""
        return (name for name, same in self.classes.items() if any(cls.path == path for cls in same))

    def at_top(self, path: str, as_program: bool) -> bytes:
        """What a file does where it is imported, or where it is run, too."""
        text = _HEAD.sub(b"", plain(without_imports(self.outside.get(path, b""))))
        main = None if as_program else _MAIN.search(text)
        return text if main is None else text[: main.start()]

    def evaluates(self, word: bytes) -> bool:
        """Whether a function of this name is there for what comes behind the training, or between two epochs of it."""
        same = self.defined.get(word) or self.defined.get(word.removeprefix(b".")) or ()
        return bool(same) and all(is_evaluation(each) or after_training(each.path) for each in same)

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

    def meant(self, path: str, word: bytes, text: bytes, cold: Collection[bytes] = ()) -> Iterator[FunctionText]:
        """The functions that a word of a text means in a file: `loss.total` one of a module of this name, if not `cold`."""
        name = word.removeprefix(b".")
        same = [each for each in self.defined.get(name, ()) if not each.cls]
        if not same:
            return
        if word[:1] != b".":
            known = self.imported.names(path)
            yield from self.imported.meant(name.decode(), path, same) if "*" not in known else same
            return
        aliases = self.imported.aliases(path)
        owners = {each.decode() for each in re.findall(rb"(\w+)\.%b\b" % re.escape(name), text)}
        owners -= {each for each in owners if each.encode() + word in cold}
        owners |= {aliases[each] for each in owners if each in aliases}
        for each in same:
            if not owners.isdisjoint(each.path.removesuffix(".py").split(os.sep)):
                yield each


def is_evaluation(function: FunctionText) -> bool:
    """Whether a function evaluates, by its name."""
    return said_by_name(function).reason in _EVALUATES


def after_training(path: str) -> bool:
    """Whether a file is called like what evaluates, exports or shows what has been trained."""
    stem, folder = os.path.basename(path).removesuffix(".py"), os.path.basename(os.path.dirname(path))
    return not beside_training.AFTER.isdisjoint((stem, folder)) or bool(beside_training.ASIDE_WORD.search(stem))
