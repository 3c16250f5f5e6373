"""The loaders whose batches are copied, and what has them pin their memory."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from syncscope.codemod.draft import Draft
from syncscope.codemod.enclosure import SCOPES
from syncscope.codemod.function import Function
from syncscope.codemod.names_and_calls import COMPREHENSIONS
from syncscope.codemod.text import Text
from syncscope.model.fact import Device
from syncscope.project.bindings import FunctionNode
from syncscope.project.syntax import name_of, parents, walk


def of_tensors(function: Function, loader: ast.Call) -> bool:
    """Whether a loader's dataset is made of tensors, perhaps of the device: `TensorDataset(x)`, `Own(td)` of a `td.device`."""
    named = [k.value for k in loader.keywords if k.arg == "dataset"]
    made = next((function.value(d) for d in (*loader.args[:1], *named)), None)
    if not isinstance(made, ast.Call):
        return False
    asked = {ast.unparse(n.value) for n in function.every(ast.Attribute) if n.attr in ("device", "is_cuda")}
    facts = [function.fact(a) for a in made.args]
    if any(f.is_tensor and f.device is not Device.HOST for f in facts) or any(
        ast.unparse(a) in asked for a in made.args
    ):
        return True
    return name_of(made.func) == "TensorDataset" and not all(f.device is Device.HOST for f in facts)


COLLATES = re.compile(rb"\bcollate_fn[\"']?\s*[:=]\s*(?:(lambda\b[^\n]*)|(\w+))")
MOVED = re.compile(rb"\.(?:to|cuda)\(")


def moved_by_collate(file: Text) -> bool:
    """Whether what puts batches together in this file, `collate_fn=`, sends them somewhere, too."""
    found = [each.groups() for each in COLLATES.finditer(file.code)]
    names = {name.decode() for _, name in found if name}
    made = [s for s in file.statements if isinstance(s, ast.FunctionDef) and s.name in names]
    return any(MOVED.search(given) for given, _ in found if given) or any(
        MOVED.search(file.text(each).encode()) for each in made
    )


def pin(draft: Draft, function: Function, loader: ast.Call, anywhere: bool) -> None:
    """Have a loader pin what it gives, whichever function makes it. What runs `anywhere` asks for a GPU first: without one
    torch warns of `True`, each time.
    """
    asked = "torch.cuda.is_available()" if anywhere else "True"
    if function.statement(loader) is not None:
        draft.replace(loader, "{call}", call=draft.call(loader, {}, pin_memory=draft.part(asked)))
        return
    scope = next(
        (n for n in walk(function.file.tree) if isinstance(n, SCOPES) and loader in walk(n)), function.file.tree
    )
    other = Draft(Function(function.file, scope, ()))
    other.replace(loader, "{call}", call=other.call(loader, {}, pin_memory=other.part(asked)))
    draft.take(other)


def loader_of_file(function: Function, statement: ast.stmt) -> ast.Call | None:
    """The call that makes the loader over which a loop around a statement runs, by its name, in whatever function it is."""
    loop = function.loop(statement)
    source = made_of(function, loop.iter) if isinstance(loop, (ast.For, ast.AsyncFor)) else None
    name = name_of(source)
    calls = function.file.once("kept calls", lambda: _kept(function)).get(name, []) if name else []
    loaders = [c for c in calls if name_of(c.func) == "DataLoader"]
    return loaders[0] if len(loaders) == len(calls) == 1 else None


def _kept(function: Function) -> dict[str, list[ast.Call]]:
    """The calls whose result is given a name in this file, or an attribute of this name."""
    found: dict[str, list[ast.Call]] = {}
    for each in function.file.statements:
        if isinstance(each, ast.Assign) and isinstance(each.value, ast.Call):
            for word in {name_of(target) for target in each.targets}:
                found.setdefault(word, []).append(each.value)
    return found


def loader_around(function: Function, node: ast.AST) -> ast.Call | None:
    """The call that made the loader over which a loop around this node runs, if it stands in this function."""
    loop = function.loop(node)
    while loop is not None:
        made = made_of(function, loop.iter) if isinstance(loop, (ast.For, ast.AsyncFor)) else None
        if isinstance(made, ast.Call) and (function.dotted(made.func) or "").endswith(".DataLoader"):
            return made
        loop = function.loop(loop)
    return None


def made_of(function: Function, source: ast.expr) -> ast.expr:
    """What a loop runs over, without the names, counters and progress bars around it."""
    for _ in range(8):
        source = function.value(source)
        if not isinstance(source, ast.Call) or not source.args:
            break
        if (function.dotted(source.func) or "").rpartition(".")[2] not in ("enumerate", "tqdm", "track"):
            break
        source = source.args[0]
    return source


def loaders_of_callers(function: Function, moved: Sequence[ast.expr]) -> list[ast.Call]:
    """The loaders over which the loops of this file run that hand a function what it moves: `inputs = self.place(batch)`.

    None where another loop, or anything else, calls it, too.
    """
    scope = function.scope
    given = {_parameter(function, each) for each in moved}
    name = given.pop() if len(given) == 1 else None
    if name in (None, "self") or not isinstance(scope, ast.FunctionDef):
        return []
    names = [a.arg for a in (*scope.args.posonlyargs, *scope.args.args)]
    method = names[:1] == ["self"]
    position = names.index(name) - method if name in names else len(names)
    found: list[ast.Call] = []
    calls = [c for c in function.file.calls.get(scope.name, ()) if _calls(c, scope.name, method)]
    for outer, inside in _by_function(function, calls):
        caller = Function(function.file, outer, ())
        for call in inside:
            named = next((k.value for k in call.keywords if k.arg == name), None)
            batch = call.args[position] if len(call.args) > position else named
            loop = caller.loop(call)
            bound = isinstance(loop, ast.For) and isinstance(batch, ast.Name) and loop in _binders(caller, batch)
            statement = caller.statement(call)
            loader = (loader_around(caller, call) or loader_of_file(caller, statement)) if bound and statement else None
            if loader is None:
                return []
            found.append(loader)
    return list(dict.fromkeys(found))


def _by_function(function: Function, calls: list[ast.Call]) -> list[tuple[FunctionNode, list[ast.Call]]]:
    """Some calls of the file by the function that each stands in, and in no other scope within that."""
    around, found = parents(function.file.tree), dict[FunctionNode, list[ast.Call]]()
    for call in calls:
        outer: ast.AST | None = around.get(call)
        while outer is not None and not isinstance(outer, SCOPES):
            outer = around.get(outer)
        if isinstance(outer, FunctionNode):
            found.setdefault(outer, []).append(call)
    numbers = function.file.once("numbered", lambda: {each: n for n, each in enumerate(function.file.statements)})
    return sorted(found.items(), key=lambda each: numbers[each[0]])


def _parameter(function: Function, node: ast.expr) -> str | None:
    """The parameter that an expression is a part of: `batch` of `batch["x"]`, of `t` in `for t in batch.values()`."""
    for _ in range(8):
        match node:
            case (
                ast.Subscript(value=inner)
                | ast.Attribute(value=inner)
                | ast.Call(func=ast.Attribute(value=inner), args=[])
            ):
                node = inner
            case ast.Name(id=name) if name in function.parameters:
                return name
            case ast.Name(id=name):
                comprehensions = (n for n in function.around(node) if isinstance(n, COMPREHENSIONS))
                clauses = (g for n in comprehensions for g in n.generators)
                own = next((g for g in clauses if any(getattr(t, "id", "") == name for t in walk(g.target))), None)
                if own is None:
                    return None
                node = own.iter
            case _:
                return None
    return None


def _calls(call: ast.Call, name: str, method: bool) -> bool:
    """Whether a call is of a function of this name, or of the method of the same object."""
    if not method:
        return isinstance(call.func, ast.Name) and call.func.id == name
    match call.func:
        case ast.Attribute(value=ast.Name(id="self"), attr=word):
            return word == name
    return False


def _binders(function: Function, name: ast.Name) -> list[ast.AST]:
    """The loops that give a name its values, in a function that gives it no other."""
    return [loop for bound in function.binds(name.id) for loop in function.around(bound) if isinstance(loop, ast.For)]
