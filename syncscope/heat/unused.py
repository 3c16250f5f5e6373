"""What nobody uses: functions and classes of a file that no other imports, and of which nothing speaks that is used."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from syncscope.model.heat import Role
from syncscope.project.outline import ClassText, FunctionText, place, spoken
from syncscope.project.top_level import top_level

_LONGEST = 80  # bytes of a name
_SELDOM = (
    4  # times at most that a file has the letters of a name of which nothing but its definition and a text may speak
)
_BY_NAME = (b"globals()", b"sys.modules", b"def __getattr__")  # what finds a name of its own file that nobody writes


def unused(
    functions: Iterable[FunctionText],
    classes: Iterable[ClassText],
    imports: Mapping[tuple[str, str], bool],
    sources: Mapping[str, bytes],
) -> dict[str, Role]:
    """The functions and the classes that nobody uses: "/path/of/file.py:name". Public functions of a file of a library from
    which the library itself imports nothing are for whoever installs it, who imports them from there.

    Classes are looked up by what they are derived from, and files of them by their names: here they are plain modules, in files
    from which others import something, and no package offers anything.
    """
    taken = _taken(imports)
    inner = taken.keys() - {at for (at, _), offered in imports.items() if offered}
    named: dict[str, set[str]] = defaultdict(set)
    for each in functions:
        if not (each.cls or each.is_decorated()):
            named[each.path].add(each.name)
    made: dict[str, set[str]] = defaultdict(set)
    for cls in classes:
        if not cls.decorated and cls.bases == ("Module",) and place(cls.path) in inner:
            made[cls.path].add(cls.name)
    found: dict[str, Role] = {}
    kinds: dict[str, Role] = {}  # classes, which may be looked up by what they are called
    for path in named.keys() | made.keys():
        source, names = sources[path], _imported_from(path, taken, sources)
        free = (named[path] | made[path]) - names if names.isdisjoint(("*", "")) else ()
        if not free or any(word in source for word in _BY_NAME):
            continue
        at = place(path)
        for name in _dead(source, free):
            for_outsiders = name[0] != "_" and at not in taken and is_part_of_library(path, source, imports, sources)
            (kinds if name in made[path] else found)[f"{path}:{name}"] = Role.PUBLIC if for_outsiders else Role.UNUSED
    quoted = _quoted(sources.values()) if kinds else b""
    return found | {key: role for key, role in kinds.items() if key.rpartition(":")[2].encode() + b'"' not in quoted}


def _taken(imports: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    """By a module what others import of it."""
    taken: dict[str, set[str]] = defaultdict(set)
    for at, what in imports:
        taken[at].add(what)
    return taken


def _imported_from(path: str, taken: Mapping[str, set[str]], sources: Mapping[str, bytes]) -> set[str]:
    """What others import of a file."""
    at = place(path)
    names = taken.get(at, set())
    if os.path.join(os.path.dirname(path), "__init__.py") not in sources:
        names = names | taken.get(f"/{at.rpartition('/')[2]}", set())  # outside of packages imported by one word
    return names


def is_part_of_library(
    path: str, source: bytes, imports: Mapping[tuple[str, str], bool], sources: Mapping[str, bytes]
) -> bool:
    """Whether a file is no program, in a package, and the project's `__init__` files offer something."""
    inside = os.path.join(os.path.dirname(path), "__init__.py") in sources
    return inside and b"__main__" not in source and any(imports.values())


def copies(
    classes: Mapping[str, Sequence[ClassText]], imports: Iterable[tuple[str, str]], sources: Mapping[str, bytes]
) -> dict[str, Role]:
    """The classes of a file from which nobody imports anything, where another file has them, too, and one is imported there."""
    taken = _taken(imports)

    def alone(path: str) -> bool:
        at = place(path)
        return at not in taken and f"/{at.rpartition('/')[2]}" not in taken and b"__main__" not in sources[path]

    pairs: dict[tuple[str, str], set[str]] = defaultdict(set)  # a file, and its copy: the classes that both have
    kept: set[str] = set()  # files from which such a class is imported
    for name, same in classes.items():
        if len(same) < 2 or any(cls.decorated for cls in same):
            continue
        copied = [cls.path for cls in same if alone(cls.path)]
        for cls in same if copied else ():
            if cls.path not in copied:
                kept |= {cls.path} if {name, "*", ""} & taken[place(cls.path)] else set()
                for path in copied:
                    pairs[cls.path, path].add(name)
    return {f"{path}:{name}": Role.UNUSED for (of, path), names in pairs.items() if of in kept for name in names}


def programs(
    sources: Mapping[str, bytes], trains: Collection[str], imports: Iterable[tuple[str, str]]
) -> Iterator[str]:
    """Files that are run by themselves, of which no other imports anything, and that hold no step: tools."""
    taken = {at for at, _ in imports}
    for path, source in sources.items():
        if path not in trains and b"__main__" in source and b"backward(" not in source:
            at = place(path)
            if at not in taken and f"/{at.rpartition('/')[2]}" not in taken:
                yield path


def _dead(source: bytes, free: Collection[str]) -> Iterator[str]:
    """Those of these names that nothing speaks of, but for themselves and others that are dead."""
    words = {name.encode(): name for name in free}
    seldom = [word for word in words if source.count(word) <= _SELDOM]
    said = spoken(source) if seldom else []
    if not any(said.count(word) == 1 for word in seldom):
        return
    parts: dict[bytes, list[bytes]] = defaultdict(list)
    for each in top_level(source).definitions:
        if each.name in words:
            parts[each.name] += spoken(each.text)
    times = {word: said.count(word) for word in parts}
    while dead := [word for word in times if times[word] == parts[word].count(word)]:
        for word in dead:
            del times[word]
            for other in times:
                times[other] -= parts[word].count(other)
            yield words[word]


def _quoted(sources: Iterable[bytes]) -> bytes:
    """What stands before quotes, each followed by one, as far back as a name is long: there names stand as text."""
    found: set[bytes] = set()
    for source in sources:
        found.update([part[-_LONGEST:] for part in source.replace(b"'", b'"').split(b'"')[:-1]])
    return b'"'.join((*found, b""))
