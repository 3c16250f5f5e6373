"""`for i in range(n): use(t[i].item())` reads `t.tolist()` before the loop, not one element in each pass."""

from __future__ import annotations

import ast
import itertools
from dataclasses import replace
from typing import cast

from syncscope.codemod.draft import Draft
from syncscope.codemod.enclosure import CONDITIONAL, SCOPES
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.asked import may_be_none
from syncscope.codemod.patterns.joined import plain
from syncscope.codemod.patterns.numbers import is_whole
from syncscope.codemod.patterns.passes import Loop, in_every_pass
from syncscope.codemod.patterns.reads import as_listed, converted, in_size
from syncscope.codemod.together import together
from syncscope.codemod.writes import disturbed, exposed
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety, Stays, Way
from syncscope.project.syntax import each_of, walk

STAYS = Stays.FIRST
WAY = Way.READS_BEFORE

Repeated = ast.For | ast.AsyncFor | ast.While | ast.ListComp | ast.SetComp | ast.DictComp
LEARN = {"step", "backward"}  # what an optimizer writes is read anew
EXAMPLES = (
    Example(
        """
        import torch

        def rows(x: torch.Tensor):
            found, kept = x.topk(3).indices, []
            for i in range(x.shape[0]):
                kept.append(sorted(found[i].tolist()))  # !
            return kept
        """,
        """
        import torch

        def rows(x: torch.Tensor):
            found, kept = x.topk(3).indices, []
            found_list = found.tolist()
            for i in range(x.shape[0]):
                kept.append(sorted(found_list[i]))
            return kept
        """,
        Safety.UNSAFE,
        "x: finite[3, 4]",
        rule="host-read",
    ),
    Example(
        """
        import torch

        def cut(x: torch.Tensor, lengths: torch.LongTensor):
            lengths = lengths.flatten()
            parts = []
            for i in range(len(lengths)):
                parts.append(x[: lengths[i].item()] * i)  # !
            return parts
        """,
        """
        import torch

        def cut(x: torch.Tensor, lengths: torch.LongTensor):
            lengths = lengths.flatten()
            parts = []
            lengths_list = lengths.tolist()
            for i in range(len(lengths)):
                parts.append(x[: lengths_list[i]] * i)
            return parts
        """,
        Safety.SAFE,
        "x: finite[n]; lengths: int[m]",
        rule="host-read",
    ),
    Example(
        """
        import torch

        def rolled(x: torch.Tensor, scores: torch.Tensor, k: int):
            _, index = torch.topk(scores.flatten(), k)
            return [torch.roll(x, -int(index[i]), -1) for i in range(k)]  # !
        """,
        """
        import torch

        def rolled(x: torch.Tensor, scores: torch.Tensor, k: int):
            _, index = torch.topk(scores.flatten(), k)
            index_list = index.tolist()
            return [torch.roll(x, -index_list[i], -1) for i in range(k)]
        """,
        Safety.UNSAFE,
        "x: finite[n]; scores: normal[m]; k: count",
        rule="host-read",
    ),
    Example(
        """
        import torch

        def aligned(x: torch.Tensor):
            first = x.abs().argmax(-1)
            return [torch.roll(x[i], -first[i].item(), -1) for i in range(len(x))]  # !
        """,
        """
        import torch

        def aligned(x: torch.Tensor):
            first = x.abs().argmax(-1)
            first_list = first.flatten().tolist()
            return [torch.roll(x[i], -first_list[i], -1) for i in range(len(x))]
        """,
        Safety.UNSAFE,
        "x: finite[4, 1, n]",
        rule="host-read",
    ),
    Example(
        """
        import torch

        def means(x: torch.Tensor, lengths: torch.LongTensor):
            lengths = lengths.abs() + 1
            return [x[i, : lengths[i]].mean() for i in range(len(lengths))]  # !
        """,
        """
        import torch

        def means(x: torch.Tensor, lengths: torch.LongTensor):
            lengths = lengths.abs() + 1
            lengths_list = lengths.flatten().tolist()
            return [x[i, : lengths_list[i]].mean() for i in range(len(lengths))]
        """,
        Safety.UNSAFE,
        "x: finite[4, n]; lengths: index[4] < n",
        rule="tensor-as-size",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    found = entry(function, site)
    loop = outermost(function, *found) if found is not None else None
    if found is None or loop is None:
        return None
    fixes = function.once("read before", loop, lambda: of_loop(function, loop))
    own = fixes.get(found[1].id)
    beside = {name: fix for name, fix in fixes.items() if own is not None and fix.safety is own.safety}
    if own is None or len(beside) < 2:
        return own
    title = f"read {', '.join(beside)} once, before the loop"  # each of them alone would wait as long
    key = f"read before, {own.safety.value}"
    return function.once(key, loop, lambda: replace(together(list(beside.values())), title=title))


def of_loop(function: Function, loop: Repeated) -> dict[str, Fix]:
    """What a loop reads element by element, by the tensor's name, and the fix for all reads of it."""
    reads: dict[str, dict[ast.AST, tuple[ast.Subscript, ast.Name]]] = {}
    for site in function.sites:
        found = entry(function, site)
        if found is not None and outermost(function, *found) is loop:
            node = found[0] if in_size(function, site) is found[0] else site.node
            reads.setdefault(found[1].id, {})[node] = found
    fixes = {name: of_tensor(function, loop, each) for name, each in reads.items()}
    return {name: fix for name, fix in fixes.items() if fix is not None}


def of_tensor(function: Function, loop: Repeated, reads: dict[ast.AST, tuple[ast.Subscript, ast.Name]]) -> Fix | None:
    """The fix for all that a loop reads of one tensor."""
    _, tensor = next(iter(reads.values()))
    statement = function.statement(loop)
    if statement is None or not takes_one_before(function, statement) or may_be_none(function, tensor, statement):
        return None
    depths = {len(each_of(each.slice)) for node, (each, _) in reads.items() if not is_row(node)}
    has_rank = function.fact(tensor).ndim is not None
    flat = not has_rank and depths == {1} and not any(map(is_row, reads))  # what is read of (n, 1) are its n numbers
    draft = Draft(function)
    name = function.fresh(f"{plain(tensor.id.rstrip('_'))}_list")
    draft.insert_before(statement, f"{name} = {{t}}{'.flatten()' if flat else ''}.tolist()", t=tensor)
    for node, (each, _) in reads.items():
        _, whole = (each, cast(ast.expr, node)) if is_row(node) else as_listed(function, node) or (each, each)
        places = {f"i{n}": part for n, part in enumerate(each_of(each.slice))}
        draft.replace(converted(function, whole), name + "".join(f"[{{{hole}}}]" for hole in places), **places)
    many = [f"{depth} dimensions" if depth > 1 else "one dimension" for depth in sorted(depths)]
    changes = [] if has_rank or flat else [f"{tensor.id} must have {each}" for each in many]
    changes += [f"a {tensor.id} of no dimensions raises no error"] * flat
    if any(map(is_row, reads)):
        changes.append(f"a row that is read again is the same list of {name}")
    if any(exposed(function, tensor.id, statement, node) for node in reads):
        changes.append(f"nothing may write what {tensor.id} holds in the loop")
    if not any(surely_made(function, node, loop, tensor) for node in reads):
        changes.append(f"it reads all of {tensor.id}, and waits once where no pass reads")
    in_arms = all(in_arm(function, node, loop) for node in reads)  # into which no pass may go
    safety = Safety.SUGGEST if in_arms else Safety.UNSAFE if changes else Safety.SAFE
    return draft.fix(f"read {tensor.id} once, before the loop", safety, *changes)


def in_arm(function: Function, read: ast.AST, loop: Repeated) -> bool:
    """Whether a read stands in an arm of an `if` of the loop."""
    child = read
    for outer in itertools.takewhile(lambda n: n is not loop, function.around(read)):
        if isinstance(outer, ast.If) and child is not outer.test:
            return True
        child = outer
    return False


def entry(function: Function, site: Site) -> tuple[ast.Subscript, ast.Name] | None:
    """The `t[i]` that is read as a number, or is a size, and t: a tensor that has a name, with a whole number for each of its
    dimensions; of `t[i].tolist()` for some of them.
    """
    read, row = as_listed(function, site.node), is_row(site.node)
    match row or (read[0] if read is not None else in_size(function, site)):
        case ast.Subscript(value=ast.Name() as tensor, slice=index) as taken:
            fact, parts = function.fact(tensor), each_of(index)
            own = function.binds(tensor.id) or tensor.id in function.parameters
            fits = row is not None or fact.ndim in (len(parts), None)
            if fact.is_tensor and fact.confidence >= 2 and fits and own:
                whole = all(is_whole(function, part) for part in parts)
                return (taken, tensor) if whole and not function.captured(tensor.id) else None
    return None


def is_row(read: ast.AST) -> ast.expr | None:
    """What `t[i].tolist()` reads."""
    match read:
        case ast.Call(func=ast.Attribute(value=ast.Subscript() as row, attr="tolist"), args=[], keywords=[]):
            return row
    return None


def outermost(function: Function, taken: ast.Subscript, tensor: ast.Name) -> Repeated | None:
    """The outermost loop around a read in which nothing changes the tensor."""
    found, child = None, cast(ast.AST, taken)
    for outer in function.around(taken):
        if isinstance(outer, SCOPES):
            break
        match outer:
            case ast.For() | ast.AsyncFor():
                again = child in outer.body
            case ast.While():
                again = child in outer.body or child is outer.test
            case ast.ListComp() | ast.SetComp() | ast.DictComp():
                again = not any(taken is n for n in walk(outer.generators[0].iter))
            case _:
                again = False
        if again:
            assert isinstance(outer, Repeated)
            if disturbed(function, tensor.id, outer, taken, within=True) or learns(outer):
                break
            found = outer
        child = outer
    return found


def learns(loop: ast.AST) -> bool:
    """Whether a loop trains: what it is given may be what it writes."""
    return any(
        isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in LEARN for n in walk(loop)
    )


def takes_one_before(function: Function, statement: ast.stmt) -> bool:
    """Whether a statement can be put before this one."""
    if isinstance(statement, ast.If) and function.is_elif(statement):
        return False
    return not function.indent(statement).strip()


def surely_made(function: Function, read: ast.AST, loop: Repeated, tensor: ast.Name) -> bool:
    """Whether a loop has a pass for each element of a tensor of one dimension, and each reads."""
    if not isinstance(loop, Loop) or not in_every_pass(function, read, loop):
        return False
    around = itertools.takewhile(lambda n: not isinstance(n, ast.stmt), function.around(loop))
    every = loop.iter if isinstance(loop, ast.For) else loop.generators[0].iter
    known = (
        f"range(len({tensor.id}))",
        f"range({tensor.id}.shape[0])",
        f"range({tensor.id}.size(0))",
        f"enumerate({tensor.id})",
    )
    return ast.unparse(every) in known and not any(isinstance(n, CONDITIONAL) for n in around)
