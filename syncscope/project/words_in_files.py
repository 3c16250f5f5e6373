"""In which files of a project the names of its definitions stand: each file is gone through once, whatever is asked."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from typing import NamedTuple

from syncscope.project.folders import content, of_texts, sources

_DEFINED = (  # apart, for each is then looked for as a word
    re.compile(rb"def[ \t]+([\w\x80-\xff]+)"),
    re.compile(rb"class[ \t]+([\w\x80-\xff]+)"),
)
_APART = bytes(c if chr(c).isalnum() or c == ord("_") or c > 127 else ord(" ") for c in range(256))
_OFFERS = re.compile(rb"^from[ \t]+\.|^from[ \t]+\w[^\n]*\bimport[ \t]+\*|^__all__\b", re.MULTILINE)
_DERIVED = (b"__subclasses__(", b"__init_subclass__", b"metaclass=")
"""What finds classes by those that they are derived from."""


class WordsInFiles(NamedTuple):
    """What is asked of all files of a project."""

    paths: dict[
        bytes, tuple[str, ...]
    ]  # by the name of a definition, or of a file, where it stands, in the order of the files
    offers: bool  # whether an `__init__` offers what others define
    deriving: frozenset[str]  # files that find classes by what these are derived from


@of_texts
def words_in_files(root: str) -> WordsInFiles:
    """The words of the project that begins in a folder."""
    texts = {path: content(path) for path in sources(root)}
    asked = {stem(path) for path in texts}
    asked.update(name for text in texts.values() for defined in _DEFINED for name in defined.findall(text))
    paths: dict[bytes, list[str]] = defaultdict(list)
    deriving, offers = set(), False
    for path, text in texts.items():
        for word in asked.intersection(text.translate(_APART).split()):
            paths[word].append(path)
        offers = offers or (os.path.basename(path) == "__init__.py" and _OFFERS.search(text) is not None)
        if any(word in text for word in _DERIVED):
            deriving.add(path)
    return WordsInFiles({word: tuple(where) for word, where in paths.items()}, offers, frozenset(deriving))


def stem(path: str) -> bytes:
    """What a file is imported as."""
    return os.path.basename(path).removesuffix(".py").encode()
