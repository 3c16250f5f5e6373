"""`logger.debug(f"loss {loss}")` asks first whether anybody listens: only then is the text made, and the tensor read."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety
from syncscope.project.syntax import walk

EXAMPLES = (
    Example(
        """
        import logging

        import torch

        logger = logging.getLogger(__name__)

        def train(model, loader):
            for step, x in enumerate(loader):
                loss = model(x).mean()
                loss.backward()
                logger.debug(f"step {step}: {loss}")  # !
        """,
        """
        import logging

        import torch

        logger = logging.getLogger(__name__)

        def train(model, loader):
            for step, x in enumerate(loader):
                loss = model(x).mean()
                loss.backward()
                if logger.isEnabledFor(logging.DEBUG):
                    logger.debug(f"step {step}: {loss}")
        """,
        Safety.UNSAFE,
        rule="formatted-tensor",
    ),
    Example(
        """
        import logging

        import torch

        logger = logging.getLogger(__name__)

        def train(model, loader):
            for step, x in enumerate(loader):
                loss = model(x).mean()
                loss.backward()
                logger.debug("step %d: %.3f", step, loss.item())  # !
        """,
        """
        import logging

        import torch

        logger = logging.getLogger(__name__)

        def train(model, loader):
            for step, x in enumerate(loader):
                loss = model(x).mean()
                loss.backward()
                if logger.isEnabledFor(logging.DEBUG):
                    logger.debug("step %d: %.3f", step, loss.item())
        """,
        Safety.UNSAFE,
        rule="host-read",
    ),
    Example(
        """
        import logging

        import torch

        logger = logging.getLogger(__name__)

        def act(x: torch.Tensor):
            if logger.isEnabledFor(logging.DEBUG):
                logger.debug(f"mean {x.mean()}")  # !
        """,
        rule="formatted-tensor",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    statement = function.statement(site.node)
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="debug")) as call):
            module = logging_of(function, name)
        case _:
            return None
    asked = (n.test for n in function.around(statement) if isinstance(n, ast.If))
    if module is None or any(isinstance(n, ast.Attribute) and n.attr == "isEnabledFor" for t in asked for n in walk(t)):
        return None
    if not function.alone(statement) or not all(map(function.pure, [*call.args, *(k.value for k in call.keywords)])):
        return None
    draft = Draft(function)
    indent = function.indent(statement)
    deeper = indent + ("\t" if "\t" in indent else "    ")
    head = f"if {name}.isEnabledFor({module}.DEBUG):"
    draft.replace(statement, f"{head}\n{deeper}{{call}}", call=draft.indented(call, deeper))
    changes = "at the level DEBUG it waits as before; at any other the text is not made, nor an error of it raised"
    return draft.fix("ask first whether it is written down", Safety.UNSAFE, changes)


def logging_of(function: Function, logger: str) -> str | None:
    """How a file calls `logging`, of which it has a logger of this name: another's may not know `isEnabledFor`."""
    if function.binds(logger):
        return None
    given = [
        s.value
        for s in function.file.tree.body
        if isinstance(s, ast.Assign) and any(isinstance(t, ast.Name) and t.id == logger for t in s.targets)
    ]
    match given:
        case [ast.Call(func=ast.Attribute(value=ast.Name(id=module)) as called)]:
            return module if function.dotted(called) == "logging.getLogger" else None
    return None
