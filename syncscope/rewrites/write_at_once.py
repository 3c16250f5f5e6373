"""`for i in range(n): if done[i]: h[i] = 0` as `h[done] = 0`: one write by the mask, where each element was asked for.

So are `for i, d in enumerate(done): if d: ...` and loops over positions, `for i in done.nonzero(): h[i] = 0`.
"""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import NamedTuple

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.pattern import seen
from syncscope.codemod.proofs import is_mask, one_value
from syncscope.codemod.templates import Part
from syncscope.model.example import Example
from syncscope.model.fact import Site, Value
from syncscope.model.finding import Fix, Safety
from syncscope.project.syntax import each_of

TRUTHS = ("{e}", "{e}.item()", "bool({e})")
TESTS = {  # how an element is asked for, and the mask of that
    "{e}.item()": "{m}.bool()",
    "bool({e})": "{m}.bool()",
    "not {e}": "{m} == 0",
    "{e} == 1": "{m} == 1",
    "{e} == 0": "{m} == 0",
    "{e} > 0": "{m} > 0",
}
ELEMENT = ("{m}[{i:name}]", "{m}[{t}, {i:name}]")
SIZES = ("len({m})", "{m}.shape[0]", "{m}.size(0)", "{m}.size(dim=0)", "{m}.numel()")
ROW_SIZES = ("len({m}[0])", "{m}.shape[1]", "{m}.size(1)", "{m}.shape[-1]", "{m}.size(-1)")
POSITIONS = (
    "{m}.nonzero()", "torch.where({m})[0]", "{m}.nonzero(as_tuple=True)[0]", "{m}.nonzero(as_tuple=False)", "{m}.argwhere()",
)  # fmt: skip
SAME = (
    "{p}.squeeze(*_, **_)",
    "{p}.flatten()",
    "{p}.view(-1)",
    "{p}.reshape(-1)",
    "{p}.tolist()",
    "{p}.cpu()",
    "{p}.numpy()",
)
ZEROS = ("torch.zeros(*_, **_)", "torch.zeros_like(*_, **_)", "{x}.new_zeros(*_, **_)")
COMPILES = True
EXAMPLES = (
    Example(
        """
        import torch

        def rollout(cell, z: torch.Tensor, done: torch.BoolTensor, h: torch.Tensor, c: torch.Tensor):
            h, c = h.clone(), c.clone()
            for t in range(len(done)):
                for i in range(done.shape[1]):
                    if done[t, i]:  # !
                        h[i] = 0
                        c[i] = 0
                h, c = h + z[t], c - z[t]
            return h, c
        """,
        """
        import torch

        def rollout(cell, z: torch.Tensor, done: torch.BoolTensor, h: torch.Tensor, c: torch.Tensor):
            h, c = h.clone(), c.clone()
            for t in range(len(done)):
                h[done[t]] = 0
                c[done[t]] = 0
                h, c = h + z[t], c - z[t]
            return h, c
        """,
        Safety.UNSAFE,
        "cell: bar; z: finite[t, n, m]; done: bool[t, n]; h: finite[n, m]; c: finite[n, m]",
        rule="tensor-in-condition",
    ),
    Example(
        """
        import torch

        def reset(hidden: torch.Tensor, done: torch.Tensor):
            hidden = hidden.clone()
            for env, finished in enumerate(done):
                if finished:  # !
                    hidden[:, env].zero_()
            return hidden
        """,
        """
        import torch

        def reset(hidden: torch.Tensor, done: torch.Tensor):
            hidden = hidden.clone()
            hidden[:, done.bool()] = 0
            return hidden
        """,
        Safety.UNSAFE,
        "hidden: finite[1, n, m]; done: label[n] < 2",
        rule="tensor-in-condition",
    ),
    Example(
        """
        import torch

        def reset(h: torch.Tensor, done: torch.BoolTensor):
            h = h.clone()
            for i in done.nonzero().squeeze(-1):  # !
                h[i] = 0.5
            return h
        """,
        """
        import torch

        def reset(h: torch.Tensor, done: torch.BoolTensor):
            h = h.clone()
            h[done] = 0.5
            return h
        """,
        Safety.UNSAFE,
        "h: finite[n, m]; done: bool[n]",
        rule="nonzero",
    ),
)


class Through(NamedTuple):
    """What a loop goes through: positions at which a mask is true, one by one, and what it does there."""

    name: str  # of the position
    mask: Part
    asked: ast.expr  # the tensor that the mask is made of
    body: list[ast.stmt]
    words: list[str]

    @property
    def names(self) -> set[str]:
        """The names that the mask is made of."""
        return {n.id for n in ast.walk(self.asked) if isinstance(n, ast.Name)}


def rewrite(site: Site, function: Function) -> Fix | None:
    statement = function.statement(site.node)
    loop = statement if isinstance(statement, ast.For) else function.loop(site.node)
    if not isinstance(loop, ast.For) or loop.orelse:
        return None
    return function.once("written at once", loop, lambda: at_once(function, loop))


def at_once(function: Function, loop: ast.For) -> Fix | None:
    """The fix of a loop that does nothing but write where a mask is true."""
    draft = Draft(function)
    found = of_positions(draft, loop) or of_elements(draft, loop)
    if found is None or read_elsewhere(function, loop):
        return None
    words = [*found.words, f"what is written must have as many elements there as {function.file.text(found.asked)}"]
    for statement in found.body:
        write = write_of(function, statement, found.name, found.names)
        if write is None:
            return None
        target, value = write
        if function.fact(target.value).kind is Value.UNKNOWN:
            words.append(f"{function.file.text(target.value)} must be a tensor")
        (own,) = (part for part in each_of(target.slice) if isinstance(part, ast.Name))
        put = draft.replace if statement is found.body[-1] else draft.insert_before
        put(loop, "{x} = {v}", x=draft.swapped(target, {own: found.mask}), v=value)
    return draft.fix("write at once, by the mask", Safety.UNSAFE, "; ".join(dict.fromkeys(words)))


def of_positions(draft: Draft, loop: ast.For) -> Through | None:
    """What a loop over the positions goes through at which a mask is true: `for i in done.nonzero():`."""
    function, held = draft.function, draft.function.value(loop.iter)
    while (outer := seen(function, held, *SAME)) is not None:
        held = function.value(outer["p"])
    found = seen(function, held, *POSITIONS)
    if found is None or not isinstance(loop.target, ast.Name) or not function.pure(found["m"]):
        return None
    if function.value(loop.iter) is not loop.iter:  # what was looked for before may have other uses
        return None
    mask, fact, called = found["m"], function.fact(found["m"]), function.file.text(found["m"])
    words = [] if fact.ndim == 1 else [f"{called} must have one dimension"]
    return Through(loop.target.id, as_mask(draft, mask, is_mask(fact)), mask, loop.body, words)


def of_elements(draft: Draft, loop: ast.For) -> Through | None:
    """What a loop goes through that asks each element of a mask: `for i in range(n): if done[i]:`."""
    function = draft.function
    if len(loop.body) != 1 or not isinstance(asked := loop.body[0], ast.If) or asked.orelse:
        return None
    form = next((form for form in TESTS if seen(function, asked.test, form) is not None), "{e}")
    element = (seen(function, asked.test, form) or {"e": asked.test})["e"]
    each, words, row = seen(function, loop.iter, "enumerate({m})", "range({n})"), list[str](), None
    match each, loop.target:
        case {"m": mask}, ast.Tuple(elts=[ast.Name(id=index), ast.Name() as one]) if function.same_name(element, one):
            pass
        case {"n": end}, ast.Name(id=index):
            found = seen(function, element, *ELEMENT)
            if found is None or not function.same_name(found["i"], loop.target):
                return None
            mask, row = found["m"], found.get("t")
            size = seen(function, function.value(end), *(SIZES if row is None else ROW_SIZES))
            if size is None or not function.same(size["m"], mask):
                words = [f"{function.file.text(end)} must be the length of {function.file.text(mask)}"]
        case _:
            return None
    if not function.fact(element).is_tensor or not function.pure(mask) or not (row is None or function.pure(row)):
        return None
    part: Part = mask if row is None else draft.part("{m}[{t}]", m=mask, t=row)
    truths = as_mask(draft, part, is_mask(function.fact(mask))) if form in TRUTHS else draft.part(TESTS[form], m=part)
    return Through(index, truths, mask, asked.body, words)


def as_mask(draft: Draft, part: Part, is_bool: bool) -> Part:
    """A mask of a tensor that is asked for its truth."""
    return part if is_bool else draft.part("{m}.bool()", m=part)


def write_of(
    function: Function, statement: ast.stmt, index: str, masked: Collection[str]
) -> tuple[ast.Subscript, Part] | None:
    """Where one number is written, `h[i] = 0`, `h[:, i] = 0`, `h[i].zero_()`, `h[i] = torch.zeros(n)`, and which."""
    value: Part
    match statement:
        case ast.Assign(targets=[ast.Subscript() as target], value=given):
            value = "0" if seen(function, given, *ZEROS) is not None else given
            if value is given and (uses(given, index) or not one_value(function, function.fact(given), given)):
                return None
        case ast.Expr(value=call) if (found := seen(function, call, "{x}.zero_()", "{x}.fill_({v})")) is not None:
            if not isinstance(written := found["x"], ast.Subscript):
                return None
            target, value = written, found.get("v", "0")
            if isinstance(value, ast.expr) and function.constant(value) is None:
                return None
        case _:
            return None
    parts = [part for part in each_of(target.slice) if not isinstance(part, (ast.Slice, ast.Constant))]
    own = len(parts) == 1 and isinstance(parts[0], ast.Name) and parts[0].id == index
    base = function.fact(target.value)
    if not own or not function.pure(target.value) or any(uses(target.value, name) for name in (index, *masked)):
        return None
    several = isinstance(target.slice, ast.Tuple)  # no list is indexed so
    return (target, value) if base.is_tensor or (several and base.kind is Value.UNKNOWN) else None


def uses(node: ast.AST, name: str) -> bool:
    """Whether a name stands in code."""
    return any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(node))


def read_elsewhere(function: Function, loop: ast.For) -> bool:
    """Whether what a loop binds may be read outside of it: then it must be bound as it was."""
    names = {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}
    for name in names:
        for use in function.reads(name):
            others = (n for n in function.around(use) if isinstance(n, ast.For))
            if not any(uses(other.target, name) for other in others):
                return True
    return False
