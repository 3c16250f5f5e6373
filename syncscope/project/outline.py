"""A file as text: its functions, its classes and what it imports, found without parsing it."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple

from syncscope.project import conventions
from syncscope.project.put_together import asked_for

_DEFINED = (  # apart, for each is then looked for as a word
    re.compile(rb"def (\w+)"),
    re.compile(rb"class (\w+)"),
)
_LAMBDA = re.compile(rb"(?<=\n)(\w+)[ \t]*=[ \t]*lambda\b")
_BASES = re.compile(rb"[ \t]*\(([^()]*(?:\([^()]*\)[^()]*)*)\)[ \t]*:")
_IMPORTED = re.compile(rb"\n(?:from|import)\b[^\n(]*(?:\([^)]*\))?")  # no `^`, which is tried everywhere
# bounded, as what is never closed is looked at again and again
_FROM = re.compile(rb"from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]{0,9999}\)|(?:[^\n\\]|\\\n)*)")
_WHOLE = re.compile(rb"import(?<!\w import)[ \t]+([\w., \t]+)")
_ALL = re.compile(rb"__all__(?<![^\n]__all__)\s*\+?=\s*[\[(][^\])=]*[\])]")  # no `^`, which is tried everywhere
_LEAST = 40  # bytes of a method that does something
_COMMENT = re.compile(rb"#[^\n]*")
_WORDS = bytes(c if chr(c).isalnum() or c in b"_." or c > 127 else ord(" ") for c in range(256))
# whose functions are none of a project's
_LIBRARIES = b" torch.", b" np.", b" os.", b" subprocess.", b" math.", b" shutil."
_NOBODYS = b" 0"  # before a name: a word that nothing is called


class FunctionText(NamedTuple):
    """A function as text; a project has tens of thousands."""

    name: str
    cls: str
    methods: set[str]  # of the class
    path: str
    source: bytes
    start: int  # of its line
    begin: int  # behind its name
    end: int

    @property
    def word(self) -> bytes:
        """What speaks of it: of a method an attribute of its name, of a function its name."""
        return b"." * bool(self.cls) + self.name.encode()

    @property
    def key(self) -> str:
        """What no other function of the project is called."""
        return f"{self.path}:{self.cls}.{self.name}"

    def is_decorated(self) -> bool:
        """Whether a decorator stands above it, which may keep it under another name."""
        return _is_decorated(self.source, self.start)

    def is_abstract(self) -> bool:
        """Whether it does too little to hold anything that waits."""
        text = self.text()
        return b"NotImplementedError" in text or len(plain(text)) < _LEAST

    def text(self) -> bytes:
        """Its body."""
        return self.source[self.begin : self.end]


@dataclass(frozen=True, slots=True, eq=False)
class ClassText:
    """A class as text: what it is derived from, by the last words, and its methods."""

    name: str
    bases: tuple[str, ...]
    decorated: bool
    path: str
    methods: dict[str, FunctionText]


def _is_decorated(source: bytes, start: int) -> bool:
    above = source[source.rfind(b"\n", 0, start) + 1 : start].strip()
    return above.startswith(b"@") or above == b")"


_TOLD = re.compile(rb'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|#[^\n]*')  # texts and comments
_PUT_IN = re.compile(rb"\{[^{}\"']*\}")


def _without_prose(text: bytes) -> bytes:
    """A text without comments; of its strings those without spaces may be names, of others what stands in braces is code."""
    code = b" ".join(text.replace(b"'''", b'"""').split(b'"""')[::2])
    return _TOLD.sub(_code_of, code)


def _code_of(told: re.Match[bytes]) -> bytes:
    said = told[0]
    if said.startswith(b"#"):
        return b""
    return b" ".join(_PUT_IN.findall(said)) if b" " in said else said


def words(text: bytes) -> set[bytes]:
    """What a text speaks of: names, and attributes with their point."""
    plain = b" ".join(text.split(b'"""')[::2])
    plain = plain.translate(_WORDS)
    for library in _LIBRARIES:
        plain = plain.replace(library, _NOBODYS)
    return set(plain.replace(b".", b" .").split())


class Spoken:
    """What functions speak of, among the words that others are meant by: each function is gone through once."""

    def __init__(self, defined: Iterable[bytes], asking: re.Pattern[bytes] | None = None) -> None:
        self._asking = asking  # finds functions that call what they are given the name of, and this name
        named = {word.removeprefix(b".") for word in defined}
        self.as_attribute = {b"." + word: word for word in named}  # `ops.sized` speaks of a function, too
        self._known = named | {b"." + word for word in named}
        self._words: dict[tuple[str, int], tuple[bytes, ...]] = {}
        self._aliases: dict[str, dict[bytes, bytes]] = {}

    def by(self, function: FunctionText) -> tuple[bytes, ...]:
        """The words of a function."""
        key = function.path, function.begin
        found = self._words.get(key)
        if found is None:
            text = _without_prose(function.text())
            said = words(text) | {b"." + name.encode() for _, name in self.asked(text)}
            said |= {b"." + word for word in asked_for(text, self.as_attribute.values())}
            said |= self.renamed(function.path, function.source, said)
            found = self._words[key] = tuple((said & self._known) - _beside_training(function.name, text))
        return found

    def renamed(self, path: str, source: bytes, said: set[bytes]) -> set[bytes]:
        """What the words of a file mean by which it calls what it imports under another name."""
        here = self._aliases.get(path)
        if here is None:
            here = {alias: name for alias, name in aliases(source).items() if name in self._known and name != alias}
            self._aliases[path] = here
        return {here[word] for word in here.keys() & said} if here else set()

    def asked(self, text: bytes) -> list[tuple[str, str]]:
        """The methods that a text has others call by their names, each behind who calls it: `call_hook("masking")`."""
        found = self._asking.findall(text) if self._asking is not None else ()
        return [(by.decode(), name.decode()) for by, name in found]


_LOOP = re.compile(rb"^([ \t]+)(?:async[ \t]+)?(?:for|while)\b", re.MULTILINE)
_ALONE = re.compile(rb"^[ \t]+self(\.\w+)\(", re.MULTILINE)  # a statement by itself: nobody asks what it gives
_ASKED = re.compile(rb"^[ \t]+([\w., \t]+?) = self(\.\w+)\(", re.MULTILINE)


def _beside_training(name: str, text: bytes) -> set[bytes]:
    """The methods that a function which holds a training loop calls for what they do before it alone, and that one which is
    called so calls for what they give there, for no loop to go through or to call: no step runs them.
    """
    loop = _LOOP.search(text) if name in conventions.LOOPS or b".backward(" in text else None
    if loop is None:
        return set()
    before, behind = text[: loop.start()], text[loop.start() :]
    called = set(_ALONE.findall(before))
    if name in conventions.LOOPS and b".backward(" in behind:
        called |= {each for names, each in _ASKED.findall(before) if not _is_gone_through(names, behind)}
    return {each for each in called if len(re.findall(rb"%b\b" % re.escape(each), text)) == 1}


def _is_gone_through(names: bytes, text: bytes) -> bool:
    """Whether a loop goes through what has one of these names, or it is called, or asked for its next."""
    words = b"|".join(re.escape(each.strip()) for each in names.split(b",") if each.strip())
    return (
        re.search(
            rb"(?<![\w.])(?:%b)\(|\bfor\b[^\n]*\bin\b[^\n]*(?<![\w.])(?:%b)\b|next\((?:%b)\b" % (words, words, words),
            text,
        )
        is not None
    )


def spoken(text: bytes) -> list[bytes]:
    """The words of what runs in a text, and of what it offers in `__all__`."""
    code = _COMMENT.sub(b"", b" ".join(_FROM.sub(b"", text).replace(b"'''", b'"""').split(b'"""')[::2]))
    return code.translate(_WORDS).replace(b".", b" ").split()


def without_imports(text: bytes) -> bytes:
    """A text without the imports at its top level."""
    return _IMPORTED.sub(b"", text)


def plain(text: bytes) -> bytes:
    """A text without comments, long strings, imports of names and `__all__`: what is left runs."""
    code = _FROM.sub(b"", text).replace(b"'''", b'"""')
    if b"__all__" in code:  # most have none, which is seen in a hundredth of the time
        code = _ALL.sub(b"", code)
    return _COMMENT.sub(b"", b" ".join(code.split(b'"""')[::2]))


Imported = frozenset[tuple[str, str]]
"""What is imported: a module, by the last two words, and a name, or "" for all of it."""


def imported(imports: Mapping[str, Imported]) -> dict[tuple[str, str], bool]:
    """What files import of one another, and whether it is offered by a package, whose `__init__` does."""
    found: dict[tuple[str, str], bool] = {}
    for path, here in imports.items():
        offers = os.path.basename(path) == "__init__.py"
        for each in here:
            found[each] = found.get(each, False) or offers
    return found


def imported_by(sources: Mapping[str, bytes]) -> dict[str, Imported]:
    """What each file imports of the others, anywhere in it. Of a module that is named by one word its folder is not known: it
    is "/word".
    """
    found: dict[str, Imported] = {}
    ours = {word for path in sources for word in place(path).split("/")}

    @cache
    def above(first: str, folder: str) -> list[str]:
        """The folder of what is imported by one word where it is the importing file's own, else ""."""
        beside = os.path.join(folder, first)
        own = f"{beside}.py" in sources or os.path.join(beside, "__init__.py") in sources
        return [os.path.basename(folder) if own else ""]

    for path, source in sources.items():
        folder = os.path.dirname(path)
        folders = folder.split(os.sep)
        here: set[tuple[str, str]] = set()
        for module, names in _FROM.findall(source):
            level = len(module) - len(module.lstrip(b"."))
            named = [*filter(None, module.decode().lstrip(".").split("."))]
            if named and named[-1] not in ours:
                continue  # it goes above all folders, or is a library
            package = [*folders[: len(folders) - level + 1], *named] if level else [*above(named[0], folder), *named]
            if package and package[-1] in ours:
                of = "/".join(package[-2:])
                for name in _first_words(names):
                    here.add((of, name))
                    here.add((f"{package[-1]}/{name}", ""))  # which may be a module
        for names in _WHOLE.findall(source):
            for name in _first_words(names):
                named = name.split(".")
                here.add(("/".join([*above(named[0], folder), *named][-2:]), ""))
        if here:
            found[path] = frozenset(here)
    return found


_AS = re.compile(rb" as[ \t]+(\w+)[ \t]*[,)\n#]")
_LETTERS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
_LONGEST = 80  # bytes of a name


def aliases(source: bytes) -> dict[bytes, bytes]:
    """What a file calls what it imports under another name: `boxes as box_ops`."""
    found: dict[bytes, bytes] = {}
    at = source.find(b" as ")  # by the pattern alone every space would be looked at
    while at >= 0:
        alias = _AS.match(source, at)
        near = source[max(at - _LONGEST, 0) : at].rstrip(b" \t")
        if alias is not None and (name := near[len(near.rstrip(_LETTERS)) :]):
            found[alias[1]] = name
        at = source.find(b" as ", at + 1)
    return found


def names_imported(source: bytes) -> Iterator[str]:
    """The names that a file imports from others, as they are defined there."""
    for _, name in names_of_modules(source):
        yield name


def names_of_modules(source: bytes) -> Iterator[tuple[str, str]]:
    """The modules that a file imports names from, as it names them, and these names."""
    for module, names in _FROM.findall(source):
        for name in _first_words(names):
            yield module.decode("utf-8", "replace"), name


def _first_words(names: bytes) -> Iterator[str]:
    """What is imported, without what it is called here: `a, b as c` is "a" and "b"."""
    if b"#" in names:
        names = _COMMENT.sub(b"", names)
    for each in names.strip(b"()").replace(b"\\", b" ").split(b","):
        words = each.split(maxsplit=1)
        if words:
            yield words[0].decode("utf-8", "replace")


def place(path: str) -> str:
    """What a file is imported as: the last two words."""
    return "/".join(path.removesuffix(".py").removesuffix(f"{os.sep}__init__").split(os.sep)[-2:])


def outlined(path: str, source: bytes) -> tuple[list[FunctionText], list[ClassText], bytes]:
    """The functions and methods of a file, without those inside of others, its classes, and the text outside of functions; of
    lambdas those that have a name at its top level.
    """
    found: list[tuple[int, int, str, str]] = []
    # what the line at hand stands in: indentation, whether in a function, name, and where that is
    open_: list[tuple[int, bool, str, int]] = []
    members: dict[str, set[str]] = defaultdict(set)
    heads: dict[str, tuple[tuple[str, ...], bool]] = {}
    ends: dict[int, int] = {}
    waiting: list[tuple[int, int]] = []  # indentation and index of functions whose end is not known
    known = aliases(source) if b"class " in source else {}
    defined = (each for what in _DEFINED for each in what.finditer(source))
    for match in sorted((*defined, *_lambdas(source)), key=re.Match.start):
        line = source.rfind(b"\n", 0, match.start())
        before = source[line + 1 : match.start()].removesuffix(b"async ").expandtabs()
        deep = len(before)
        if before.strip(b" "):
            continue  # within a line
        while waiting and waiting[-1][0] >= deep:
            ends.setdefault(waiting.pop()[1], line)
        while open_ and open_[-1][0] >= deep:
            open_.pop()
        if open_ and open_[-1][1]:
            around, inside, within, looked = open_[-1]
            block = _block_behind(around).search(source, looked, line + 1)
            open_[-1] = (
                around,
                inside,
                within,
                line,
            )  # what was looked through is not looked through for the next one again
            if block is not None:  # that function was over before: this stands in the block behind it
                deepest = len(block[1].expandtabs())
                while waiting and waiting[-1][0] >= deepest:
                    ends.setdefault(waiting.pop()[1], block.start())
                while open_ and open_[-1][0] >= deepest:
                    open_.pop()
        name = match[1].decode()
        if match.re is _LAMBDA:
            end = source.find(b"\n", match.end())
            ends[len(found)] = end if end >= 0 else len(source)
            found.append((line, match.end(), name, ""))
            continue
        _, inside, cls, _ = open_[-1] if open_ else (0, False, "", 0)
        function = match.re is _DEFINED[0]
        open_.append((deep, inside or function, name, match.end()))
        if function and not inside:
            waiting.append((deep, len(found)))
            members[cls].add(name)
            if deep and not cls:  # in a block of the top level, which may go on behind it
                behind = _behind(deep).search(source, match.end())
                ends[len(found)] = len(source) if behind is None else behind.start()
            found.append((line, match.end(), name, cls))
        elif not function and not inside:
            head = _BASES.match(source, match.end())
            named = head[1].split(b",") if head is not None else []
            bases = tuple(
                known.get(base := each.split(b"[")[0].strip(), base.rpartition(b".")[2]).decode() for each in named
            )
            heads[name] = bases, _is_decorated(source, line)
    outside, last, written = [], 0, []
    methods: dict[str, dict[str, FunctionText]] = defaultdict(dict)
    for index, (start, begin, name, cls) in enumerate(found):
        end = ends.get(index, len(source))
        outside.append(source[last:start])
        last = end
        written.append(FunctionText(name, cls, members[cls] if cls else set(), path, source, start, begin, end))
        methods[cls][name] = written[-1]
    outside.append(source[last:])
    classes = [ClassText(name, *head, path, methods.get(name, {})) for name, head in heads.items()]
    return written, classes, b"\n".join(outside)


@lru_cache(maxsize=64)
def _behind(deep: int) -> re.Pattern[bytes]:
    """The next statement that is no deeper, and so behind the block of a head that is so deep."""
    return re.compile(rb"\n[ \t]{0,%d}(?=[^\s#)\]}\"'])" % deep)


@lru_cache(maxsize=64)
def _block_behind(deep: int) -> re.Pattern[bytes]:
    """The same of the head of a block: prose of a docstring ends no line as these do."""
    return re.compile(
        rb"\n([ \t]{0,%d})(?:if|elif|else|for|while|with|try|except|finally|async|match)\b[^\n]*[:(,\\][ \t]*(?=#|\n)"
        % deep
    )


def _lambdas(source: bytes) -> Iterator[re.Match[bytes]]:
    """Where a lambda is given a name at the top level of a file: looked for by its word, as most lines begin with a name."""
    at = source.find(b"lambda")
    while at >= 0:
        match = _LAMBDA.match(source, source.rfind(b"\n", 0, at) + 1)
        if match is not None and match.end() == at + len(b"lambda"):
            yield match
        at = source.find(b"lambda", at + 1)
