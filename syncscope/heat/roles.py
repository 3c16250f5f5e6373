"""What else than a step a function is for, as the text of its project tells: what prepares data, what nothing ever runs."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from syncscope.heat.brackets import up_to_closing
from syncscope.heat.by_text import goes_on
from syncscope.heat.places import places
from syncscope.model.heat import Role
from syncscope.project.outline import ClassText, FunctionText, place, plain

_COMPOSED = re.compile(rb"Compose\(\s*\[")
_NAMED = re.compile(rb"(?<![\w.])(?:\w+\.)*(\w+)\(")
_GIVEN = tuple(
    re.compile(rb"%b(?<!\w%b)\s*=\s*(?:\w+\.)*(\w+)" % (each, each)) for each in (b"collate_fn", b"transform")
)
_LONGEST = 3000  # bytes of a list of transforms that is gone through
_HEAD = re.compile(rb"class \w+[ \t]*(?:\([^()]*(?:\([^()]*\)[^()]*)*\))?")


def preparing(sources: Iterable[bytes], classes: Mapping[str, Sequence[ClassText]]) -> dict[str, Role]:
    """The `__call__` of classes whose objects stand among transforms, `Compose([Normal(), ...])`, or make batches."""
    called = {
        name.encode()
        for name, each in classes.items()
        if all("__call__" in cls.methods and "forward" not in cls.methods for cls in each)
    }
    names: set[bytes] = set()
    for source in sources if called else ():
        for match in _COMPOSED.finditer(source):
            names.update(_NAMED.findall(up_to_closing(source, match.end(), _LONGEST)))
        for given in _GIVEN:
            names.update(given.findall(source))
    return {f"{name.decode()}.__call__": Role.PREPARES for name in called & names}


def overridden(
    sources: Iterable[bytes], classes: Mapping[str, Sequence[ClassText]], imports: Mapping[tuple[str, str], bool]
) -> dict[str, Role]:
    """Methods of a class that is there to be derived from, where each class that does has its own, and asks for no other.

    What a package offers is for everybody to use.
    """
    below: dict[str, list[ClassText]] = defaultdict(list)
    for each in classes.values():
        for cls in each:
            for base in cls.bases:
                below[base].append(cls)
    found: dict[str, list[str]] = {}
    for name in below.keys() & classes.keys():
        cls, *others = classes[name]
        offered = any(imports.get((place(cls.path), what)) for what in (name, "*"))
        if not (others or cls.decorated or offered):
            own = [m for m, how in cls.methods.items() if goes_on(how) and not how.is_abstract()]
            found[name] = [m for m in own if all(_overrides(derived, m) for derived in below[name])]
    idle = _not_used({name for name, methods in found.items() if methods}, sources)
    return {f"{name}.{method}": Role.OVERRIDDEN for name in idle for method in found[name]}


def _overrides(cls: ClassText, name: str) -> bool:
    """Whether a class has a method of its own, of which the inherited one is no part."""
    return name in cls.methods and b"super(" not in cls.methods[name].text()


def _not_used(names: Collection[str], sources: Iterable[bytes]) -> set[str]:
    """The classes of which no file says more than that it imports them and derives others from them."""
    left = {name.encode() for name in names}
    for source in sources:
        here = [name for name in left if name in source]
        if here:
            text = _HEAD.sub(b"", plain(source))
            left.difference_update([name for name in here if _speaks_of(name, text)])
    return {name.decode() for name in left}


def _speaks_of(word: bytes, text: bytes) -> int:
    """How often a word stands in a text by itself."""
    return sum(1 for _ in places(word, text))


def unused_namesakes(
    functions: Iterable[Sequence[FunctionText]], imports: Collection[tuple[str, str]], paths: Collection[str]
) -> dict[str, Role]:
    """Functions of a name that others have as well, in files from which nobody imports it, and that do not speak of it."""
    found: dict[str, Role] = {}
    texts: dict[str, bytes] = {}  # of files, without comments and imports
    for same in functions:
        files = {each.path: each for each in same}
        for each in files.values() if len(files) > 1 else ():
            places = [where := place(each.path)]
            if os.path.join(os.path.dirname(each.path), "__init__.py") not in paths:
                places.append(f"/{where.rpartition('/')[2]}")  # what stands in no package is imported by one word
            taken = {(at, what) for at in places for what in (each.name, "*", "")}
            if each.is_decorated() or any(one in imports for one in taken):
                continue
            if each.path not in texts:
                texts[each.path] = plain(each.source)
            if _speaks_of(each.name.encode(), texts[each.path]) == 1:
                found[f"{each.path}:{each.name}"] = Role.NAMESAKE
    return found
