"""By what code is known again in another version of its file: what it says, whatever its locals are called.

```python
total = torch.stack(rows).sum().item()        # both wait for the same: names of locals are numbers, and of what imports bind
return stack(lines).sum().item()              # only the last part counts
```

It is the syntax, with numbers and strings by their values. So nothing that a formatter writes otherwise (`1E5`, quotes,
brackets, lines that are joined) is in it, and no annotation. No version of Python says it in other words.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

NO_WORDS = {"ctx", "kind", "type_comment", "type_params", "annotation", "returns", "simple"}
"""Fields of Python's syntax that say nothing of what is computed."""

WHERE_FROM = {"module", "level"}  # of an import
BLOCKS = (ast.stmt, ast.ExceptHandler, ast.match_case)
COMPARED = {ast.Eq: "values", ast.NotEq: "values"} | dict.fromkeys((ast.Lt, ast.LtE, ast.Gt, ast.GtE), "order")
"""What comparisons say, whichever way they are written: `0 < x`, `x > 0`, and `not x <= 0`."""

FARTHEST = 16  # names that are followed to what they hold


@dataclass(frozen=True, slots=True)
class Names:
    """What names mean in a function: the last part of what is `imported`, and which are its `own`. With `held`, which gives
    what a name surely holds, they are followed, and keep what they are called."""

    imported: Mapping[str, str]
    own: Container[str] = ()
    held: Callable[[ast.expr], ast.expr] | None = None


def words(node: ast.AST, names: Names | None = None) -> bytes:
    """What an expression says, or a statement up to its body; without `names`, each name counts as it is written."""
    return _words([node], names, blocks=False)


def body_words(function: ast.FunctionDef | ast.AsyncFunctionDef, names: Names) -> bytes:
    """What a function does, without its name (also where it calls itself), its decorators and its documentation."""
    first = function.body[0]
    is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and type(first.value.value) is str
    return _words([function.args, *function.body[is_text:]], names, blocks=True, itself=function.name)


def imported_parts(statements: Iterable[ast.AST]) -> dict[str, str]:
    """The names that imports among some statements bind, and the last part of what each stands for."""
    found: dict[str, str] = {}
    for each in statements:
        if isinstance(each, (ast.Import, ast.ImportFrom)):
            for alias in each.names:
                first = alias.name.partition(".")[0] if isinstance(each, ast.Import) else alias.name
                found[alias.asname or first] = alias.name.rpartition(".")[2]
    return found


def own_names(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """The names that are bound among some nodes, parameters included."""
    found: set[str] = set()
    for each in nodes:  # all nodes of a function: an `isinstance` would cost twice as much
        if each.__class__ is ast.Name:
            if each.ctx.__class__ is not ast.Load:
                found.add(each.id)
        elif each.__class__ is ast.arg:
            found.add(each.arg)
    return frozenset(found)


def _words(nodes: list[Any], names: Names | None, *, blocks: bool, itself: str = "") -> bytes:
    said: list[str] = []
    numbers: dict[str, str] = {}
    left = FARTHEST if names is not None and names.held is not None else 0
    fields = _FIELDS if names is None else _FIELDS_WITH_NAMES
    todo = nodes[::-1]
    while todo:
        each = todo.pop()
        kind = each.__class__  # asked of thousands of nodes for each finding: an `isinstance` would cost twice as much
        if kind is str:
            said.append(each)
            continue
        if names is not None:
            if left and kind is ast.Name:
                held = names.held(each)  # type: ignore[misc]  # else none is left
                left -= held is not each
                each, kind = held, held.__class__
            if kind is ast.Name or kind is ast.arg:
                name = each.id if kind is ast.Name else each.arg
                said.append(f"Name {numbers.setdefault(name, str(len(numbers))) if names.held is None else name}")
                continue
            if kind is ast.Attribute and (known := _outside(each, names)) is not None:
                said.append(f"Name {known}")
                continue
            if kind is ast.Call and (called := _called(each.func, names)) is not None:
                said.append(f"Call {'' if called == itself else called} {len(each.args)}")
                todo += each.keywords[::-1]
                todo += each.args[::-1]
                continue
            if kind is ast.Compare and len(each.ops) == 1 and (compared := COMPARED.get(each.ops[0].__class__)):
                said.append(f"Compare {compared}")
                both = (each.left, each.comparators[0])
                todo += both if isinstance(each.left, ast.Constant) else reversed(both)  # a constant is written last
                continue
        announced = kind is ast.AnnAssign
        said.append("Assign" if announced else kind.__name__)
        inner: list[Any] = []
        for field in fields[kind]:
            value: Any = getattr(each, field, None)
            if value.__class__ is list:
                if not value or (not blocks and isinstance(value[0], BLOCKS)):
                    continue
                inner.append(f".{field} {len(value)}")
                inner += [one if isinstance(one, ast.AST) else _value(one) for one in value]
            elif value is not None:
                inner.append(".targets 1" if announced and field == "target" else f".{field} 1")
                if isinstance(value, ast.AST):
                    inner.append(value)
                else:
                    inner.append(_value("" if itself and field == "attr" and value == itself else value))
        inner.reverse()
        todo += inner
    return "\n".join(said).encode()


class _Fields(dict[type, tuple[str, ...]]):
    """The fields that say something, of each kind of node."""

    def __init__(self, silent: Container[str]) -> None:
        super().__init__()
        self.silent = silent

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        found = self[kind] = tuple(field for field in kind._fields if field not in self.silent)
        return found


_FIELDS, _FIELDS_WITH_NAMES = _Fields(NO_WORDS), _Fields(NO_WORDS | WHERE_FROM)


def _outside(node: ast.AST, names: Names) -> str | None:
    """The last part of a chain that begins with what is imported, `float32` of `torch.float32`; None for any other."""
    if not isinstance(node, ast.Attribute):
        return None
    at: Any = node
    while at.__class__ is ast.Attribute:
        at = at.value
    is_chain = at.__class__ is ast.Name and at.id in names.imported and at.id not in names.own
    return node.attr if is_chain else None


def _called(function: ast.expr, names: Names) -> str | None:
    """What a function is called that is no local's, wherever it is imported from; None for any other."""
    if isinstance(function, ast.Name) and function.id not in names.own:
        return names.imported.get(function.id, function.id)
    return _outside(function, names)


def _value(value: object) -> str:
    """A name or a constant, alike in all versions of Python."""
    return hex(value) if type(value) is int else ascii(value)  # of long integers Python writes no decimals
