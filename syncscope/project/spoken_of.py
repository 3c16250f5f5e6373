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

_HEAD = re.compile(rb"^(?:(?:async[ \t]+)?def|class)[ \t]+(\w+)", re.MULTILINE)
_END = re.compile(rb"^(?=[^\s#)\]}])", re.MULTILINE)
_IMPORTS = re.compile(rb"^[ \t]*(?:from|import)\b[^\n(]*(?:\([^)]*\))?", re.MULTILINE)
_OFFERS = re.compile(rb"^from[ \t]+\.|^from[ \t]+\w[^\n]*\bimport[ \t]+\*|^__all__\b", re.MULTILINE)
_LOOKS_UP = re.compile(
    rb"\b(?:globals|locals|vars)\(\)|\bsys\.modules\b|\bimport_module\(|\b__import__\(|\b(?:iter|walk)_(?:modules|packages)\("
    rb"|\bgetmembers\(|\beval\(|^def __getattr__\(",
    re.MULTILINE,
)
"""What finds a name of a file, or of the files beside an `__init__`, that nobody writes."""
_DERIVED = re.compile(rb"\b(?:__subclasses__\(|__init_subclass__\b|metaclass=)")
"""What finds classes by those that they are derived from."""
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
    texts = {each: text for each in files if each != path and (text := content(each))}
    if not _is_imported(path, texts):
        return not name.startswith("_") and not any(map(_offers, texts, texts.values()))
    if not name.startswith("_") and any(_offers_all_of(path, each, text) for each, text in texts.items()):
        return True
    if any(_DERIVED.search(text) for text in texts.values()) and re.search(rb"^class %b\b" % word, own, re.MULTILINE):
        return True
    return any(_speaks(root, each, text, word, depth) for each, text in texts.items() if word in text)


def _is_run(root: str, path: str, speaker: bytes, depth: int) -> bool:
    """Whether what speaks of something runs: a file as a whole, or a definition at its top."""
    return not speaker or _is_named(root, path, speaker.decode(), depth + 1)


def _speaks(root: str, path: str, text: bytes, word: bytes, depth: int) -> bool:
    """Whether something that may run in another file names what is not its own; an `__init__` offers what it imports."""
    taken = any(_has(word, statement) for statement in _IMPORTS.findall(text))
    if not taken and any(head[1] == word for head in _HEAD.finditer(text)):
        return False
    if taken and (os.path.basename(path) == "__init__.py" or word in aliases(text).values()):
        return True
    return any(_is_run(root, path, speaker, depth) for speaker in _speakers(text, word))


@of_texts
def _is_called(root: str, path: str, name: str) -> bool:
    """Whether anything speaks of a method, but where it is defined."""
    word = name.encode()
    defined = re.compile(rb"\bdef[ \t]+%b\b" % word)
    texts = [text for each in {*sources(root), path} if word in (text := content(each))]
    if any(spoken(text).count(word) > len(defined.findall(text)) for text in texts):
        return True
    return any(_has(word, text) for text in pages(root))


def _speakers(text: bytes, word: bytes) -> Iterator[bytes]:
    """The definitions at the top of a file that name something; b"" where the file does so itself."""
    last, outside = 0, []
    for head in _HEAD.finditer(text):
        end = _END.search(text, head.end())
        stop = end.start() if end is not None else len(text)
        outside.append(text[last : head.start()])
        inside = text[head.start() : stop]
        if word in inside and word in spoken(inside):
            yield head[1]
        last = stop
    if word in spoken(b"\n".join([*outside, text[last:]])):
        yield b""


def _is_found(source: bytes, word: bytes, path: str) -> bool:
    """Whether a file hands on what is called so by a decorator, or what looks at its names finds it."""
    beside = content(os.path.join(os.path.dirname(path), "__init__.py"))
    if _LOOKS_UP.search(source) or _LOOKS_UP.search(beside):
        return True
    for head in _HEAD.finditer(source):
        if head[1] == word:
            above = source[: head.start()].rstrip(b" \t").split(b"\n")[-2:-1]
            return any(line.startswith((b"@", b")")) and not _OF_TORCH.match(line) for line in above)
    return False


def _is_imported(path: str, texts: dict[str, bytes]) -> bool:
    """Whether another file imports anything of a file, by its name."""
    stem = os.path.basename(path).removesuffix(".py")
    if stem == "__init__":
        return True
    word = stem.encode()
    return any(_has(word, each) for text in texts.values() if word in text for each in _IMPORTS.findall(text))


def _offers(path: str, text: bytes) -> bool:
    return os.path.basename(path) == "__init__.py" and _OFFERS.search(text) is not None


def _offers_all_of(path: str, other: str, text: bytes) -> bool:
    """Whether an `__init__` imports all of a file, or the file as a module; or something has `getattr(losses, name)`."""
    stem = os.path.basename(path).removesuffix(".py").encode()
    if stem not in text:
        return False
    if re.search(rb"\b(?:getattr|vars|dir|getmembers)\(\s*(?:\w+\.)*%b\b" % stem, text):
        return True
    if os.path.basename(other) != "__init__.py":
        return False
    whole = re.compile(rb"\b%b[ \t]+import[ \t]+\*|import\b[^\n]*?(?<!\w)%b\b" % (stem, stem))
    return any(whole.search(each.replace(b"\n", b" ")) for each in _IMPORTS.findall(text))


def _has(word: bytes, text: bytes) -> bool:
    return word in text and re.search(rb"\b%b\b" % re.escape(word), text) is not None
