"""A mask that no step changes, `out[data.train_mask]`: its true elements are looked for once, before the first step."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from syncscope.codemod.draft import Draft
from syncscope.codemod.enclosure import LOOPS, SCOPES
from syncscope.codemod.function import Function
from syncscope.codemod.masks import INDEX, mask_of
from syncscope.codemod.patterns.asked import may_be_none
from syncscope.codemod.proofs import is_mask, taken_for_mask
from syncscope.codemod.writes import disturbed
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Edit, Fix, Safety, Way
from syncscope.project.syntax import each_of, name_of, walk

WRITING = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr)
DEFINED = (ast.FunctionDef, ast.ClassDef)
Mask = ast.Name | ast.Attribute
SELECTS_APART = True
WAY = Way.LOOKS_BEFORE
EXAMPLES = (
    Example(
        """
        import torch
        import torch.nn.functional as F

        data = load().to("cuda")
        model = torch.nn.Linear(16, 4).to("cuda")

        def train():
            out = model(data.x)
            loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask])  # !
            loss.backward()
            return loss
        """,
        """
        import torch
        import torch.nn.functional as F

        data = load().to("cuda")
        train_index = data.train_mask.nonzero(as_tuple=True)
        model = torch.nn.Linear(16, 4).to("cuda")

        def train():
            out = model(data.x)
            loss = F.cross_entropy(out[train_index], data.y[train_index])
            loss.backward()
            return loss
        """,
        Safety.UNSAFE,
    ),
    Example(
        """
        import torch

        def fit(x: torch.Tensor, y: torch.Tensor, train_mask: torch.Tensor, steps: int):
            total = 0
            for _ in range(steps):
                guess = x.cos()
                total = total + (guess[train_mask] - y[train_mask]).abs().cumsum(0).mean()  # !
            return total
        """,
        """
        import torch

        def fit(x: torch.Tensor, y: torch.Tensor, train_mask: torch.Tensor, steps: int):
            total = 0
            train_index = train_mask.nonzero(as_tuple=True)
            for _ in range(steps):
                guess = x.cos()
                total = total + (guess[train_index] - y[train_index]).abs().cumsum(0).mean()
            return total
        """,
        Safety.UNSAFE,
        "x: finite[n]; y: finite[n]; train_mask: bool[n]; steps: count",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    mask = mask_of(site)
    if not isinstance(mask, (ast.Name, ast.Attribute)) or not isinstance(site.node, ast.Subscript):
        return None
    root, fact = root_of(mask), site.fact_of(mask)
    if (
        root is None
        or site.node.slice is not mask
        or fact.ndim == 0
        or not (is_mask(fact) or taken_for_mask(mask, fact))
    ):
        return None
    if isinstance(function.scope, ast.Module):
        return None
    if root.id in function.parameters or function.binds(root.id):
        return before_loop(site, function, mask, root)
    return after_binding(site, function, mask, root)


def before_loop(site: Site, function: Function, mask: Mask, root: ast.Name) -> Fix | None:
    """The fix before the outermost loop in which nothing gives the mask another value."""
    found: ast.stmt | None = None
    child = site.node
    for outer in function.around(site.node):
        child, inner = outer, child
        if not isinstance(outer, LOOPS) or inner not in outer.body:
            continue
        if isinstance(outer, ast.While):  # which may have no pass
            break
        inside = {id(n) for n in walk(outer)}
        again = any(id(n) in inside for n in function.binds(root.id)) or stored(function, mask, inside)
        if again or function.captured(root.id) or function.indent(outer).strip():
            break
        if isinstance(mask, ast.Name) and disturbed(function, mask.id, outer, site.node, within=True):
            break
        found = outer
    if found is None or not surely_held(function, root, found):
        return None
    loop, inside = found, {id(n) for n in walk(found)}
    if any(id(use) in inside and among_others(use, mask) for use in function.every(ast.Subscript)):
        return None  # `x[:, mask]` looks for them all the same
    draft = Draft(function)
    index = index_name(function, mask)
    draft.insert_before(loop, f"{index} = {{m}}.nonzero(as_tuple=True)", m=mask)
    for use in selections(function, function.every(ast.Subscript), mask):
        if id(use) in inside:
            draft.replace(use.slice, index)
    return fixed(draft, site, mask, "before the loop", "in the loop")


def among_others(use: ast.Subscript, mask: Mask) -> bool:
    """Whether a mask is one of several parts of an index."""
    parts = each_of(use.slice)
    return len(parts) > 1 and any(ast.dump(part) == ast.dump(mask) for part in parts)


def surely_held(function: Function, root: ast.Name, loop: ast.stmt) -> bool:
    """Whether a name surely holds something where a loop begins, and no None that the loop asks for."""
    if may_be_none(function, root, loop):
        return False
    bound = [n for n in function.binds(root.id) if n.lineno < loop.lineno]
    around = [loop, *function.around(loop)]
    for name in bound[-1:]:
        statement = function.statement(name)
        if statement is None:
            return False
        if isinstance(statement, ast.For):  # whose body the loop is in
            return statement in around
        return function.beside(statement, loop) is not None
    return root.id in function.parameters


def after_binding(site: Site, function: Function, mask: Mask, root: ast.Name) -> Fix | None:
    """The fix at the level of the module, after the last statement there that gives the mask a value; for all its functions."""
    file, tree = function.file, function.file.tree
    module = file.once("module", lambda: Function(file, tree, ()))
    own = file.once("outside", lambda: {id(n) for s in tree.body if not isinstance(s, DEFINED) for n in walk(s)})
    bound = file.bound.get(root.id, [])
    if function.shared(root.id) or not bound or any(id(n) not in own for n in bound):
        return None
    given = [s for s in map(module.statement, bound) if s is not None]
    writing = (s for s in file.statements if isinstance(s, WRITING) and gives(s, mask, root))
    given += file.once(f"gives {ast.dump(mask)}", lambda: list(writing))
    if not all(isinstance(s, WRITING) and id(s) in own for s in given):
        return None
    last = at_the_top(module, function, max(given, key=lambda s: s.lineno))
    if last is None or module.loop(last) is not None or called_before(module, function, last):
        return None
    selected = (s for s in selections(module, walk(tree), mask) if id(s) not in own)
    uses = file.once(f"selections by {ast.dump(mask)}", lambda: list(selected))
    scopes = (n for n in walk(tree) if isinstance(n, SCOPES) and rebinds(n, root.id))
    others = file.once(f"other {root.id}", lambda: {id(n) for scope in scopes for n in walk(scope)})
    if any(id(use) in others for use in uses):
        return None
    draft = Draft(module)
    index = index_name(function, mask)
    draft.insert_after(last, f"{index} = {file.text(mask)}.nonzero(as_tuple=True)")
    draft.edits += [Edit(file.span(use.slice), index) for use in uses]
    return fixed(draft, site, mask, "before the first step", f"after line {last.end_lineno}")


def at_the_top(module: Function, function: Function, last: ast.stmt) -> ast.stmt | None:
    """The statement of the module after which the mask surely has its last value: that of an `if` is not left out in between.

    Where the function is called in the block that gives the value, `if __name__ == "__main__":`, it is that statement itself.
    """
    calls = module.reads(getattr(function.scope, "name", ""))
    while (block := module.block(last)) is not module.file.tree.body:
        outer = module.parent(last)
        if not isinstance(outer, ast.stmt) or not block:
            return None
        inside = [c for c in calls if outer in module.around(c)]
        if inside:  # all of them must come after it, in its block
            after = block[block.index(last) + 1 :]
            return (
                last
                if len(inside) == len(calls) and all(any(s in module.around(c) for s in after) for c in calls)
                else None
            )
        last = outer
    return last


def fixed(draft: Draft, site: Site, mask: Mask, where: str, after: str) -> Fix:
    text = draft.file.text(mask)
    said = "" if is_mask(site.fact_of(mask)) else f"{text} must be a mask, no positions"
    return draft.fix(
        f"look for the true elements of {text} once, {where}", Safety.UNSAFE, said, f"{text} must not change {after}"
    )


def selections(function: Function, nodes: Iterable[ast.AST], mask: Mask) -> list[ast.Subscript]:
    """What the mask selects from tensors, wherever it stands among some nodes; and where it writes what it selects."""
    same = [n for n in nodes if isinstance(n, ast.Subscript) and ast.dump(n.slice) == ast.dump(mask)]
    read = [n for n in same if isinstance(n.ctx, ast.Load)]
    inside = {id(n): n for n in read}
    written = [n for n in same if isinstance(n.ctx, ast.Store)]
    stored = (n for n in written if any(id(part) in inside for part in walk(function.statement(n) or n)))
    return [*read, *stored]


def root_of(mask: ast.expr) -> ast.Name | None:
    """The name that holds a mask, or what holds it: `data` of `data["paper"].train_mask`."""
    held: ast.AST = mask
    while isinstance(held, (ast.Attribute, ast.Subscript)):
        if isinstance(held, ast.Subscript) and not isinstance(held.slice, ast.Constant):
            return None
        held = held.value
    return held if isinstance(held, ast.Name) and held.id != "self" else None


def index_name(function: Function, mask: Mask) -> str:
    """`train_index` of `data.train_mask`, or `train_mask_index` where there is one already; of `kept_idx` `kept_positions`."""
    word = name_of(mask)
    if INDEX.search(word):
        return function.fresh(f"{word.rpartition('_')[0]}_positions".lstrip("_"), everywhere=True)
    wish = f"{word.removesuffix('_mask').removesuffix('_index')}_index"
    name = function.fresh(wish, everywhere=True)
    return name if name == wish else function.fresh(f"{word}_index", everywhere=True)


def stored(function: Function, mask: Mask, inside: set[int]) -> bool:
    """Whether a loop gives the attribute another value."""
    kept = (n for n in function.every(ast.Attribute) if not isinstance(n.ctx, ast.Load) and id(n) in inside)
    return any(n.attr == name_of(mask) for n in kept)


def gives(statement: ast.stmt, mask: Mask, root: ast.Name) -> bool:
    """Whether a statement may give the mask other elements: `data.train_mask = ...`, `mask[i] = True`, `data.to(device)`."""
    if isinstance(statement, ast.Expr):
        called = statement.value
        given = [*called.args, *(k.value for k in called.keywords)] if isinstance(called, ast.Call) else []
        func = called.func if isinstance(called, ast.Call) else None
        held = root_of(func.value) if isinstance(func, ast.Attribute) else None
        return any(
            root_of(each) is not None and ast.dump(each) in (ast.dump(root), ast.dump(mask)) for each in given
        ) or (held is not None and held.id == root.id)
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return any(writes_mask(n, mask) for t in targets if t is not None for n in walk(t))


def writes_mask(target: ast.AST, mask: Mask) -> bool:
    """Whether an assignment to this changes the mask: it is the attribute, or a place in the mask."""
    if isinstance(target, ast.Attribute):
        return target.attr == name_of(mask)
    return isinstance(target, ast.Subscript) and ast.unparse(target.value) == ast.unparse(mask)


def called_before(module: Function, function: Function, last: ast.stmt) -> bool:
    """Whether the function is called at the level of the module before the mask has its last value."""
    name = getattr(function.scope, "name", "")
    return any(n.lineno < last.lineno and module.loop(n) is None for n in module.reads(name))


def rebinds(scope: ast.AST, name: str) -> bool:
    """Whether a function has another value under the name."""
    own = list(walk(scope))
    names = (n for n in own if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load))
    return any(n.id == name for n in names) or any(isinstance(n, ast.arg) and n.arg == name for n in own)
