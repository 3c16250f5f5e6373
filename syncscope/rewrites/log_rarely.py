"""`print(i, loss.item())` on every pass of `for i, x in enumerate(loader)`: on some passes only."""

from __future__ import annotations

import ast
from functools import lru_cache

from syncscope.codemod.draft import Draft
from syncscope.codemod.enclosure import LOOPS
from syncscope.codemod.function import Function
from syncscope.codemod.pattern import seen
from syncscope.codemod.patterns.pinning import made_of
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety
from syncscope.project import conventions
from syncscope.project.syntax import name_of

LOGGING = frozenset(
    """
    print log info debug write add_scalar log_metric log_metrics set_postfix set_description set_description_str
    set_postfix_str add_scalars
    """.split()
)
EXAMPLES = (
    Example(
        """
        import torch

        def train(model, loader):
            for step, x in enumerate(loader):
                loss = model(x.cuda()).mean()
                print("loss", loss)  # !
        """,
        """
        import torch

        def train(model, loader):
            for step, x in enumerate(loader):
                loss = model(x.cuda()).mean()
                if step % 50 == 0:
                    print("loss", loss)
        """,
        Safety.SUGGEST,
        rule="formatted-tensor",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    statement = function.statement(site.node)
    loop = function.loop(statement) if statement is not None else None
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=word) | ast.Name(id=word)) as call) if word in LOGGING:
            pass
        case _:
            return None
    if not isinstance(loop, ast.For) or once_an_epoch(loop) or not over_steps(function, loop):
        return None
    if not function.alone(statement) or function.sometimes(statement, loop):
        return None
    draft = Draft(function)
    match seen(function, loop.iter, "enumerate(*_, **_)"), loop.target:
        case None, _:
            count = function.fresh("step")
            draft.replace(loop.target, f"{count}, {{each}}", each=loop.target)
            draft.replace(loop.iter, "enumerate({all})", all=loop.iter)
        case _, ast.Tuple(elts=[ast.Name(id=count), *_]):
            pass
        case _:
            return None
    indent = function.indent(statement)
    deeper = indent + ("\t" if "\t" in indent else "    ")
    draft.replace(statement, f"if {count} % 50 == 0:\n{deeper}{{call}}", call=draft.indented(call, deeper))
    return draft.fix("write it down every 50 passes", Safety.SUGGEST, "it is written down on some passes only")


def over_steps(function: Function, loop: ast.For) -> bool:
    """Whether the passes of a loop are steps: over a loader or a range, or going backward; not over names, say, or a dict."""
    source = made_of(function, loop.iter)
    source = source.func if isinstance(source, ast.Call) else source
    word = name_of(source)
    if word in ("range", "trange", "DataLoader") or conventions.is_loader(word or ""):
        return True
    return goes_backward(loop)


@lru_cache(maxsize=8)  # asked of each line in it
def goes_backward(loop: ast.For) -> bool:
    """Whether anything goes backward in a loop."""
    return any(isinstance(n, ast.Attribute) and n.attr in ("backward", "step") for n in ast.walk(loop))


@lru_cache(maxsize=8)
def once_an_epoch(loop: ast.For) -> bool:
    """Whether a loop holds another: what stands beside that one is written down once for all its passes."""
    return any(isinstance(n, LOOPS) and n is not loop for n in ast.walk(loop))
