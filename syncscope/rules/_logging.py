"""What is written down on every pass of a loop: on some passes only, or as a tensor that the meter adds up."""

from __future__ import annotations

import ast

from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety
from syncscope.rules import Example
from syncscope.rules._enclosure import LOOPS
from syncscope.rules._function import Function
from syncscope.rules._reads import detached, tensor_read

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
OF_READS = (
    Example(
        """
        import torch

        def train(model, loader, optimizer, meter):
            for step, (x, y) in enumerate(loader):
                loss = torch.nn.functional.mse_loss(model(x), y)
                loss.backward()
                optimizer.step()
                meter.update(loss.item(), len(x))  # !
                print(
                    f"{step}: loss {loss.item():.4f}",  # !
                )
        """,
        """
        import torch

        def train(model, loader, optimizer, meter):
            for step, (x, y) in enumerate(loader):
                loss = torch.nn.functional.mse_loss(model(x), y)
                loss.backward()
                optimizer.step()
                meter.update(loss.detach(), len(x))
                if step % 50 == 0:
                    print(
                        f"{step}: loss {loss.item():.4f}",
                    )
        """,
        Safety.SUGGEST,
    ),
)


def logged_rarely(site: Site, function: Function) -> Fix | None:
    """`print(i, loss.item())` on every pass of `for i, x in enumerate(loader)`: on some passes only."""
    statement = function.statement(site.node)
    loop = function.loop(statement) if statement is not None else None
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(loop, ast.For) or once_an_epoch(loop):
        return None
    word = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if word not in LOGGING or statement is None or not function.alone(statement) or function.sometimes(statement, loop):
        return None
    step = loop.target.elts[0] if isinstance(loop.target, ast.Tuple) else None
    draft = function.draft()
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


def metered(site: Site, function: Function) -> Fix | None:
    """`meter.update(loss.item(), n)`: the meter adds up on the device."""
    tensor, call = tensor_read(site.node, function), function.parent(site.node)
    if (
        tensor is None
        or function.loop(site.node) is None
        or not isinstance(call, ast.Call)
        or not isinstance(call.func, ast.Attribute)
        or call.func.attr != "update"
        or site.node not in call.args
        or not isinstance(site.node, ast.expr)
    ):
        return None
    draft = function.draft()
    draft.replace(site.node, "{t}.detach()", t=detached(tensor, function))
    return draft.fix(
        "give the meter the tensor",
        Safety.SUGGEST,
        "the meter's sums are tensors, in the tensor's own dtype, and are read where it is written down",
    )
