"""`print(i, loss.item())` on every pass of `for i, x in enumerate(loader)`: on some passes only."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.enclosure import LOOPS
from syncscope.codemod.function import Function
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

LOGGING = {
    "print",
    "log",
    "info",
    "debug",
    "write",
    "add_scalar",
    "log_metric",
    "log_metrics",
    "set_postfix",
    "set_description",
    "set_description_str",
    "set_postfix_str",
    "add_scalars",
}
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
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(loop, ast.For) or once_an_epoch(loop):
        return None
    word = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if word not in LOGGING or statement is None or not function.alone(statement) or function.sometimes(statement, loop):
        return None
    step = loop.target.elts[0] if isinstance(loop.target, ast.Tuple) else None
    draft = Draft(function)
    if function.dotted(loop.iter.func) == "enumerate" if isinstance(loop.iter, ast.Call) else False:
        if not isinstance(step, ast.Name):
            return None
        count = step.id
    else:
        count = function.fresh("step")
        draft.replace(loop.target, f"{count}, {{each}}", each=loop.target)
        draft.replace(loop.iter, "enumerate({all})", all=loop.iter)
    indent = function.indent(statement)
    deeper = indent + ("\t" if "\t" in indent else "    ")
    draft.replace(statement, f"if {count} % 50 == 0:\n{deeper}{{call}}", call=draft.indented(call, deeper))
    return draft.fix("write it down every 50 passes", Safety.SUGGEST, "it is written down on some passes only")


def once_an_epoch(loop: ast.For) -> bool:
    """Whether a loop holds another: what stands beside that one is written down once for all its passes."""
    return any(isinstance(n, LOOPS) and n is not loop for n in ast.walk(loop))
