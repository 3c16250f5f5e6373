"""Which files import a function that would wait if it were passed tensors and does not say what it takes, found as text."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

from syncscope.project.outline import FunctionText, Imported, place

_MOST = 8  # files that are asked what they pass
_PARAMETERS = re.compile(rb"\s*\(([^()]*(?:\([^()]*\)[^()]*)*)\)")
_NESTED = re.compile(rb"\([^()]*\)")
_ASKS = re.compile(
    rb"\n[ \t]*(?:if|elif|while|assert)\b([^\n]*)|float(?<!\wfloat)\((\w+)|int(?<!\wint)\((\w+)|bool(?<!\wbool)\((\w+)"
    rb"|a(?<!\wa)(?:ll|ny)\(([^\n]*)|m(?<!\wm)(?:in|ax)\(([^\n]*)"
)  # each begins with a letter of its own: what begins otherwise is passed over fast
# tensors have them, arrays some
_READS = re.compile(rb"\.(?:item|tolist|nonzero|numpy)\(\)|\.(?:masked_select|unique|repeat_interleave)\(")
_ARRAYS = re.compile(rb"\b(?:numpy|pandas|jax|tensorflow)\b")  # of which numbers are read as of tensors
_OWN = {b"self", b"cls"}
_WORD = re.compile(
    rb"(?<![\w.])(?<!len\()(?<!instance\()(?<!attr\()[A-Za-z_]\w*+(?!\s*(?:\.|\(|=[^=]|(?:is|in|not in)\b))"
)


def importers(
    functions: Iterable[FunctionText], imports: Mapping[str, Imported], speaking: Iterable[str]
) -> dict[str, dict[str, tuple[str, ...]]]:
    """The files that may call such a function, of those that speak of torch, by its file's path and what it is `called`."""
    by_module: dict[str, set[str]] = defaultdict(set)  # as a whole
    by_name: dict[str, set[str]] = defaultdict(set)  # through whatever file hands it on
    by_part: dict[str, set[str]] = defaultdict(set)  # by what else is imported of its file
    of_torch = {*speaking}
    for path in of_torch:
        for module, name in imports.get(path, ()):
            (by_name[name] if name else by_module[module]).add(path)
            by_part[module].add(path)
    found: dict[str, dict[str, tuple[str, ...]]] = defaultdict(dict)
    for each in functions:
        callers = by_name.get(each.cls or each.name, set()) | by_module.get(place(each.path), set())
        if not callers and each.path not in of_torch and _ARRAYS.search(each.source) is None:
            callers = by_part.get(place(each.path), set())  # who hands a meter on that others of its file hold
        callers = callers - {each.path}
        if callers and asks_of_parameters(each):
            found[each.path][called(each.cls, each.name)] = tuple(sorted(callers)[:_MOST])
    return found


def called(cls: str, name: str) -> str:
    """What a function, or a method of a class, is called among others of its file."""
    return f"{cls}.{name}" if cls else name


def brought(silent: Iterable[str], imports: Mapping[str, Imported], speaking: Iterable[str]) -> list[str]:
    """Of the files that do not name torch those that a file imports which does: it may pass tensors to them."""
    modules = {module for path in speaking for module, _ in imports.get(path, ())}
    return sorted(path for path in silent if place(path) in modules)


def asks_of_parameters(function: FunctionText) -> bool:
    """Whether a function asks Python of what it is passed, without saying what that is: `assert t0 <= t`, `float(t0)`.

    So does `(logits.argmax(1) == y).float().mean().item()`, of what it has made of that.
    """
    head = _PARAMETERS.match(function.source, function.begin, function.end)
    if head is None:
        return False
    untold = {*_untold(head[1])} - _OWN
    if not untold:
        return False
    if _READS.search(function.source, head.end(), function.end):
        return True
    asks = _ASKS.finditer(function.source, head.end(), function.end)
    return any(not untold.isdisjoint(_WORD.findall(each[each.lastindex or 0])) for each in asks)


def _untold(parameters: bytes) -> Iterable[bytes]:
    """The parameters of which neither an annotation nor a default says anything."""
    for each in _NESTED.sub(b"", parameters).split(b","):
        name, _, default = each.partition(b"=")
        if b":" not in name and b"*" not in name and default.strip() in (b"", b"None"):
            yield name.strip()
