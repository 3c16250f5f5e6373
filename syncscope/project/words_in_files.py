"""In which files of a project the names of its definitions stand: each file is gone through once, whatever is asked."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from typing import NamedTuple

from syncscope.project.folders import content, of_texts, sources

_DEFINED = re.compile(rb"(?:def|class)[ \t]+([\w\x80-\xff]+)")
_APART = bytes(c if chr(c).isalnum() or c == ord("_") or c > 127 else ord(" ") for c in range(256))
_OFFERS = re.compile(rb"^from[ \t]+\.|^from[ \t]+\w[^\n]*\bimport[ \t]+\*|^__all__\b", re.MULTILINE)
_DERIVED = re.compile(rb"\b(?:__subclasses__\(|__init_subclass__\b|metaclass=)")
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
    files = sources(root)
    asked = {stem(each) for each in files} | {name for each in files for name in _DEFINED.findall(content(each))}
    paths: dict[bytes, list[str]] = defaultdict(list)
    deriving, offers = set(), False
    for each in files:
        text = content(each)
        for word in asked & {*text.translate(_APART).split()}:
            paths[word].append(each)
        offers = offers or (os.path.basename(each) == "__init__.py" and _OFFERS.search(text) is not None)
        if _DERIVED.search(text):
            deriving.add(each)
    return WordsInFiles({word: tuple(where) for word, where in paths.items()}, offers, frozenset(deriving))


def stem(path: str) -> bytes:
    """What a file is imported as."""
    return os.path.basename(path).removesuffix(".py").encode()
