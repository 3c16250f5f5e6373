"""Files in which nothing trains, and which nothing that trains imports: a search index, a server, a window on the screen.

What is called there like a step, a `train` that clusters or a `__call__`, is none.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from syncscope.heat.by_text import is_command, is_frozen
from syncscope.heat.makers import kin
from syncscope.project import conventions
from syncscope.project.definitions import Definitions
from syncscope.project.outline import ClassText, FunctionText, Imported, place

_BACKWARD = b".backward("
_TRAINS = (_BACKWARD, b".manual_backward(", b".step(", b"Trainer", b"autograd", b"torch.func")
_REGISTERED = re.compile(rb"\n@[^\n]*regist")  # what is looked up is imported by nobody
_TRAINED = conventions.MODULES | {"Module", "Function", "Optimizer", "Callback", "Metric"}
_OF_ANYTHING = conventions.LOOPS | {"__call__", "step"}  # names of steps, and of much else


def far_from_training(
    definitions: Definitions, idle: Collection[str], steps: Iterable[FunctionText], imports: Mapping[str, Imported]
) -> set[str]:
    """Those of the files of some definitions that offer nothing alone; none where no file trains. What `idle` files, beside the
    training, say does not count.
    """
    sources = {path: source for path, source in definitions.sources.items() if path not in idle}
    near = {path for path, source in sources.items() if _trains(source)}
    near |= {cls.path for cls in definitions.owners() if cls.decorated or _is_trained(cls, definitions)}
    near |= {each.path for each in definitions.functions() if each.path not in near and _is_found(each)}
    near &= sources.keys()
    near |= {each.path for each in steps if each.name not in _OF_ANYTHING}
    backward = {place(path) for path in near if _BACKWARD in definitions.sources[path]}
    near |= {path for path in sources if any(at in backward for at, _ in imports.get(path, ()))}
    if not near:
        return set()
    near = _with_imports(near, definitions.sources, imports)
    return {path for path in sources if path not in near and os.path.basename(path) != "__init__.py"}


def _trains(source: bytes) -> bool:
    """Whether a file speaks of what trains, or has something looked up by others."""
    return any(word in source for word in _TRAINS) or (b"regist" in source and _REGISTERED.search(source) is not None)


def _is_found(function: FunctionText) -> bool:
    """Whether a decorator may have a function looked up, or what trains calls a method by its name."""
    if function.cls:
        return function.name in conventions.HOOKS
    return function.is_decorated() and not (is_frozen(function) or is_command(function))


def _is_trained(cls: ClassText, definitions: Definitions) -> bool:
    """Whether a class is a module, an optimizer or the like, or may be one by a base that cannot be seen."""
    bases = {base for each in kin(cls, definitions.classes) for base in each.bases}
    unseen = (base for base in bases if base not in definitions.classes)
    return not _TRAINED.isdisjoint(bases) or any(base.endswith(conventions.MODULE_ENDINGS) for base in unseen)


def _with_imports(paths: Collection[str], sources: Collection[str], imports: Mapping[str, Imported]) -> set[str]:
    """These files, and all that they import, themselves or through others; of a package what is asked of it."""
    at: dict[str, list[str]] = defaultdict(list)
    for path in sources:
        module = place(path)
        at[module].append(path)
        around = os.path.dirname(path.removesuffix(f"{os.sep}__init__.py"))
        if os.path.join(around, "__init__.py") not in sources:  # what stands in no package is imported by one word
            at[f"/{module.rpartition('/')[2]}"].append(path)
    by_name: dict[str, dict[str, set[tuple[str, str]]]] = {}  # by a file what it imports, by what may be meant of it
    found, seen, todo = set(paths), set[tuple[str, str]](), [(path, "") for path in paths]
    while todo:
        path, asked = todo.pop()
        if (path, asked) in seen:
            continue
        seen.add((path, asked))
        if asked and path not in by_name:
            by_name[path] = _by_name(imports.get(path, ()))
        meant = (
            imports.get(path, ()) if not asked else {each for of in (asked, "*") for each in by_name[path].get(of, ())}
        )
        for module, name in meant:
            for other in at.get(module, ()):
                offers = os.path.basename(other) == "__init__.py"
                found.update([other] * (not offers))
                todo.append((other, name if offers else ""))
    return found


def _by_name(imported: Iterable[tuple[str, str]]) -> dict[str, set[tuple[str, str]]]:
    """What is imported, by its name and by the last word of its module."""
    found: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for each in imported:
        module, name = each
        _, inside, last = module.rpartition("/")
        found[name].add(each)
        if inside:
            found[last].add(each)
    return found
