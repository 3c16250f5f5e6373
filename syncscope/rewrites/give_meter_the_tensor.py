"""`meter.update(loss.item(), n)`: the meter adds up on the device."""

from __future__ import annotations

import ast
import itertools

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.reads import detached, tensor_read
from syncscope.codemod.text import CannotRewrite
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

ROUNDS = True
EXAMPLES = (
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
    Example(
        """
        import torch

        def train(model, loader, optimizer, meters, bar):
            for x, y in loader:
                loss = torch.nn.functional.mse_loss(model(x), y)
                loss.backward()
                optimizer.step()
                meters["loss"].update(loss.mean().item(), len(x))  # !
                bar.suffix = f"{meters['loss'].avg:.4f}"
        """
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    tensor, read = tensor_read(function, site.node), site.node
    match function.parent(read):
        case ast.Call(func=ast.Attribute(attr="update", value=meter), args=given) if read in given:
            pass
        case _:
            return None
    loop = function.loop(read)
    if tensor is None or loop is None:
        return None
    if _shown_in_each_pass(function, loop, meter):
        raise CannotRewrite("what the meter holds is asked for in each pass of the loop, which would wait then")
    draft = Draft(function)
    draft.replace(read, "{t}.detach()", t=detached(function, tensor))
    return draft.fix(
        "give the meter the tensor",
        Safety.SUGGEST,
        "the meter's sums are tensors, in the tensor's own dtype, and are read where it is written down",
    )


def _shown_in_each_pass(function: Function, loop: ast.AST, meter: ast.expr) -> bool:
    """Whether a meter is asked for what it holds, `meter.avg`, in the loop that updates it, and under no `if` of that loop."""
    asked = (
        node
        for node in ast.walk(loop)
        if isinstance(node, ast.Attribute) and node.attr != "update" and ast.dump(node.value) == ast.dump(meter)
    )
    return any(
        not any(
            isinstance(outer, ast.If) for outer in itertools.takewhile(lambda n: n is not loop, function.around(node))
        )
        for node in asked
    )
