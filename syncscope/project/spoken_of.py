"""Whether anything in a project speaks of what a file of it defines, so that somebody may run it.

Told by texts, as nothing of it runs: a name stands for everything of that name. What a package offers, `from .losses import *`,
what its pages and settings name and what may be looked up by its name is spoken of. What is named by nobody, by an import that
nothing follows, or by others of which this is true, is dead, or there for somebody who is not seen.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from syncscope.project.folders import MOST_SOURCES, content, located, of_texts, pages, project_around, sources
from syncscope.project.outline import aliases, spoken
from syncscope.project.rare import Rare
from syncscope.project.top_level import top_level
from syncscope.project.words_in_files import stem, words_in_files

_IMPORTS = re.compile(rb"\n[ \t]*(?:from|import)\b[^\n(]*(?:\([^)]*\))?")  # no `^`, which is tried everywhere
_LOOKS_UP = Rare(
    (b"globals()", b"locals()", b"vars()", b"sys.modules", b"import_module(", b"__import__(", b"_modules(", b"_packages(",
     b"getmembers(", b"eval(", b"def __getattr__("),
    rb"\b(?:globals|locals|vars)\(\)|\bsys\.modules\b|\bimport_module\(|\b__import__\(|\b(?:iter|walk)_(?:modules|packages)\("
    rb"|\bgetmembers\(|\beval\(|^def __getattr__\(",
    re.MULTILINE,
)  # fmt: skip
"""What finds a name of a file, or of the files beside an `__init__`, that nobody writes."""
_LOOK_INTO = (
    b"getattr(",
    b"vars(",
    b"dir(",
    b"getmembers(",
)  # few files hold one, which is seen in a tenth of the time
_OF_TORCH = re.compile(rb"@(?:torch\.|nn\.|dataclass|no_grad|contextmanager|typing|overload|final)")
_FARTHEST = 6  # definitions that speak of one another


def is_spoken_of(path: str, name: str) -> bool:
    """Whether anything in the project around a file speaks of a function or class at its top, or of a `Class.method`."""
    path = located(path)
    if not os.path.isfile(path):
        return True
    root = project_around(path)
    owner, _, method = name.partition(".")
    return _is_named(root, path, owner, 0) and (not method or _is_called(root, path, method))


@of_texts
def _is_named(root: str, path: str, name: str, depth: int) -> bool:
    """Whether something that may run, or a page, names what stands at the top of a file."""
    files, word, own = sources(root), name.encode(), content(path)
    if depth > _FARTHEST or len(files) < 2 or len(files) >= MOST_SOURCES or _is_found(own, word, path):
        return True
    if any(_has(word, text) for text in pages(root)):
        return True
    if any(_is_run(root, path, speaker, depth) for speaker in _speakers(own, word) if speaker != word):
        return True
    words = words_in_files(root)
    if not _is_imported(root, path):
        return not name.startswith("_") and not words.offers
    if not name.startswith("_") and _is_offered_whole(root, path):
        return True
    if words.deriving - {path} and re.search(rb"^class %b\b" % word, own, re.MULTILINE):
        return True
    return any(_speaks(root, each, content(each), word, depth) for each in words.paths.get(word, ()) if each != path)


def _is_run(root: str, path: str, speaker: bytes, depth: int) -> bool:
    """Whether what speaks of something runs: a file as a whole, or a definition at its top."""
    return not speaker or _is_named(root, path, speaker.decode(), depth + 1)


def _speaks(root: str, path: str, text: bytes, word: bytes, depth: int) -> bool:
    """Whether something that may run in another file names what is not its own; an `__init__` offers what it imports."""
    taken = any(_has(word, statement) for statement in _IMPORTS.findall(b"\n" + text))
    if not taken and word in top_level(text).names:
        return False
    if taken and (os.path.basename(path) == "__init__.py" or word in aliases(text).values()):
        return True
    return any(_is_run(root, path, speaker, depth) for speaker in _speakers(text, word))


@of_texts
def _is_called(root: str, path: str, name: str) -> bool:
    """Whether anything speaks of a method, but where it is defined."""
    word = name.encode()
    defined = re.compile(rb"\bdef[ \t]+%b\b" % word)
    texts = [text for each in {*words_in_files(root).paths.get(word, ()), path} if word in (text := content(each))]
    if any(spoken(text).count(word) > len(defined.findall(text)) for text in texts):
        return True
    return any(_has(word, text) for text in pages(root))


def _speakers(text: bytes, word: bytes) -> Iterator[bytes]:
    """The definitions at the top of a file that name something; b"" where the file does so itself."""
    definitions, between = top_level(text)
    yield from (each.name for each in definitions if word in each.text and word in spoken(each.text))
    if word in between and word in spoken(between):
        yield b""


def _is_found(source: bytes, word: bytes, path: str) -> bool:
    """Whether a file hands on what is called so by a decorator, or what looks at its names finds it."""
    if _looks_up(path) or _looks_up(os.path.join(os.path.dirname(path), "__init__.py")):
        return True
    for each in top_level(source).definitions:
        if each.name == word:
            above = source[: each.start].rstrip(b" \t").split(b"\n")[-2:-1]
            return any(line.startswith((b"@", b")")) and not _OF_TORCH.match(line) for line in above)
    return False


@of_texts
def _is_imported(root: str, path: str) -> bool:
    """Whether another file imports anything of a file, by its name."""
    word = stem(path)
    if word == b"__init__":
        return True
    return any(_has(word, each) for text in _others_with(root, path, word) for each in _IMPORTS.findall(b"\n" + text))


@of_texts
def _is_offered_whole(root: str, path: str) -> bool:
    """Whether an `__init__` imports all of a file, or the file as a module; or something has `getattr(losses, name)`."""
    word = stem(path)
    looked_into = re.compile(rb"\b(?:%b)\s*(?:\w+\.)*%b\b" % (b"|".join(map(re.escape, _LOOK_INTO)), word))
    others = (text for text in _others_with(root, path, word) if any(each in text for each in _LOOK_INTO))
    if any(map(looked_into.search, others)):
        return True
    whole = re.compile(rb"\b%b[ \t]+import[ \t]+\*|import\b[^\n]*?(?<!\w)%b\b" % (word, word))
    offering = _others_with(root, path, word, "__init__.py")
    return any(whole.search(each.replace(b"\n", b" ")) for text in offering for each in _IMPORTS.findall(b"\n" + text))


def _others_with(root: str, path: str, word: bytes, name: str = "") -> Iterator[bytes]:
    """The other files, of a name where one is said, in which a word stands."""
    for each in words_in_files(root).paths.get(word, ()):
        if each != path and name in ("", os.path.basename(each)):
            yield content(each)


@of_texts
def _looks_up(path: str) -> bool:
    return _LOOKS_UP.search(content(path)) is not None


def _has(word: bytes, text: bytes) -> bool:
    return word in text and re.search(rb"\b%b\b" % re.escape(word), text) is not None
