"""What a package offers to the steps of others: the public functions and methods of what its `__init__` files import.

A library calls few of its own parts in a step. Whoever installs it does, and what is offered waits in theirs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from syncscope.project.outline import ClassText, FunctionText, place


def for_others(unused: Collection[str], functions: Iterable[FunctionText]) -> Iterator[FunctionText]:
    """Of what a library does not use itself, "/path/of/file.py:name", what is public: it is there for others to call."""
    for each in functions:
        private = each.name.startswith("_") or each.cls.startswith("_")
        if not private and f"{each.path}:{each.cls or each.name}" in unused:
            yield each


def offered(
    functions: Iterable[FunctionText],
    classes: Iterable[ClassText],
    imports: Mapping[tuple[str, str], bool],
) -> Iterator[FunctionText]:
    """The public functions that a package offers, and the public methods of its classes; `imports` as `imported` gives them."""
    lent = {key for key, offers in imports.items() if offers}

    def is_lent(path: str, name: str) -> bool:
        at = place(path)
        return not name.startswith("_") and any((at, what) in lent for what in (name, "*", ""))

    for each in functions:
        if not each.cls and is_lent(each.path, each.name):
            yield each
    for cls in classes:
        if is_lent(cls.path, cls.name):
            yield from (method for name, method in cls.methods.items() if not name.startswith("_"))
