"""What training loops build and call, followed from word to word through the text of their program."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable

from syncscope.heat.spoken_in_steps import SpokenInSteps
from syncscope.heat.training_loops import PASS
from syncscope.heat.training_program import TrainingProgram
from syncscope.project import conventions
from syncscope.project.outline import FunctionText, Spoken, names_imported, words
from syncscope.project.rare import Rare

_PARAMETERS = re.compile(rb"[ \t]*\(([^()]*(?:\([^()]*\)[^()]*)*)\)")
_PARAMETER = re.compile(rb"(?:^|,)\s*\**(\w+)")
_INSTANCE = re.compile(rb"isinstance\([^()]*(?:\([^()]*\)[^()]*)*\)")
_AT_TOP = re.compile(rb"^(?:from|import)\b[^\n(]*(?:\([^)]*\))?", re.MULTILINE)
_BY_TEXT = Rare(  # a name of the file's own
    (b"eval(", b"exec(", b"vars()", b"globals()", b"locals()"),
    rb"(?<![.\w])(?:(?:eval|exec)\(|(?:vars|globals|locals)\(\)[\[.])",
)
_BY_NAME = re.compile(rb"getattr\(\s*(\w+)\s*,\s*(?![\"'])")  # one of a module
_ANYWHERE = Rare(
    (b"import_module(", b"__import__(", b"subclass", b"hydra", b"instantiate", b"pydoc.locate", b"importlib"),
    rb"import_module\(|__import__\(|__subclasses__|__init_subclass__|\bhydra\b|\binstantiate\w*\(|pydoc\.locate|importlib",
)
"""What makes objects of classes that a configuration names."""
_ENTRANCES = frozenset(("forward", "__call__", *conventions.HOOKS))


class Built:
    """The functions and the classes of a program that its training loops build and call."""

    def __init__(self, program: TrainingProgram, said: Spoken) -> None:
        self._program, self._said, self._in_steps = program, said, SpokenInSteps(said)
        self.functions: set[str] = set()  # by their keys
        self.classes: set[str] = set()  # by their names
        self.files: set[str] = set()  # in which they are, or which hold or start a training loop
        self.unknown = False  # whether classes are found by names that stand elsewhere
        self._visited: set[str] = set()  # files whose top level was gone through
        self._attributes: set[bytes] = set()  # that are spoken of
        self._opened: set[bytes] = set()  # words whose tables were looked into
        self._todo: list[FunctionText] = []

    def follow(self, roots: Collection[FunctionText], files: Collection[str]) -> None:
        """Go from training loops and their callers, and from files that hold or start one, to all that they build and call."""
        around = {each.key for each in roots}
        self.files.update(files, (each.path for each in roots))
        for path in files:
            text = self._program.at_top(path, as_program=True)
            self._take(path, text, [word for word in self._words_at(path, text) if not self._program.evaluates(word)])
        self._add(roots)
        while self._todo:
            each = self._todo.pop()
            self._visit(each.path)
            text = each.text()
            self._look_up(each.path, text)
            hidden = _parameters(text) | _only_asked(text)
            said = [word for word in self._words(each, each.key in around) if word.decode() not in hidden]
            cold = self._in_steps.cold(each) if each.key in around and PASS.search(text) else ()
            self._take(each.path, text, said, cold)

    def _words(self, function: FunctionText, around: bool) -> Collection[bytes]:
        """What is said in a function; around a training loop, of what evaluates only what is asked in its steps."""
        every = self._said.by(function)
        if not around:
            return every
        evaluates = self._program.evaluates
        text = function.text()
        if PASS.search(text) is None:  # what evaluates may be handed over, and called in the steps
            return [word for word in every if not evaluates(word) or _is_handed(word, text)]
        cold = self._in_steps.cold(function)
        return [word for word in every if not (word in cold and (not cold[word] or evaluates(word)))]

    def _visit(self, path: str) -> None:
        """Go through what a file does where it is imported."""
        self.files.add(path)
        if path not in self._visited:
            self._visited.add(path)
            text = self._program.at_top(path, as_program=False)
            self._look_up(path, text)
            self._take(path, text, self._words_at(path, text))

    def _words_at(self, path: str, text: bytes) -> set[bytes]:
        """What a text speaks of that stands in no function."""
        said = words(text)
        return said | self._said.renamed(path, self._program.sources[path], said)

    def _look_up(self, path: str, text: bytes) -> None:
        """Take what a text may find by a name that it makes: all that its file speaks of, or all of a module."""
        program = self._program
        if _ANYWHERE.search(text) is not None:
            self.unknown = True
        if _BY_TEXT.search(text) is not None:
            source = program.sources[path]
            names = {*names_imported(b"\n".join(_AT_TOP.findall(source))), *program.classes_in(path)}
            for name in names - _only_asked(source):
                self._build(name)
        for owner in _BY_NAME.findall(text) if b"getattr(" in text else ():
            name = program.imported.aliases(path).get(owner.decode(), owner.decode())
            for other, source in program.sources.items():
                if name in (os.path.basename(other).removesuffix(".py"), os.path.basename(os.path.dirname(other))):
                    self._take(other, source, words(source))

    def _take(self, path: str, text: bytes, said: Iterable[bytes], cold: Collection[bytes] = ()) -> None:
        """Take what a text speaks of in a file: classes by their names, methods of those that are built, functions as they are
        imported."""
        program = self._program
        for word in said:
            name = word.removeprefix(b".").decode("utf-8", "replace")
            if name in program.classes:
                self._build(name)
            if word[:1] == b"." and word not in self._attributes:
                self._attributes.add(word)
                self._add(each for each in program.defined.get(word, ()) if each.cls in self.classes)
            self._add(program.meant(path, word, text, cold))
            table = word.removeprefix(b".")
            new = () if table in self._opened else program.tables.get(table, ())
            self._opened.add(table)
            for other, statement in new:
                self.files.add(other)
                self._take(other, statement, self._words_at(other, statement))

    def _build(self, name: str) -> None:
        """Take a class, and what it is derived from: what Python or the base class calls, and what is asked of objects."""
        todo = [name]
        for each in todo:  # grows while it is gone through
            if each in self.classes or each not in self._program.classes:
                continue
            self.classes.add(each)
            for cls in self._program.classes[each]:
                todo += cls.bases
                self._visit(cls.path)
                self._add(
                    method
                    for name, method in cls.methods.items()
                    if name.startswith("__") or name in _ENTRANCES or b"." + name.encode() in self._attributes
                )

    def _add(self, functions: Iterable[FunctionText]) -> None:
        for each in functions:
            if each.key not in self.functions:
                self.functions.add(each.key)
                self._todo.append(each)
                if each.cls:
                    self._build(each.cls)


def _is_handed(word: bytes, text: bytes) -> bool:
    """Whether a text speaks of a function, of no method, without calling it: `Trainer(model, metrics=[accuracy])`."""
    return word[:1] != b"." and re.search(rb"(?<![\w.\"'])%b\b(?![\"'(=]| =)" % re.escape(word), text) is not None


def _only_asked(text: bytes) -> set[str]:
    """The classes of which a text asks whether an object is one, and of which it says no more."""
    asked = b" ".join(_INSTANCE.findall(text)) if b"isinstance(" in text else b""
    return {each.decode() for each in words(asked) - words(_INSTANCE.sub(b"", text))} if asked else set()


def _parameters(text: bytes) -> set[str]:
    """The parameters of a function, which hide what else is called so; `text` begins with them."""
    head = _PARAMETERS.match(text)
    return {each.decode() for each in _PARAMETER.findall(head[1])} if head is not None else set()
