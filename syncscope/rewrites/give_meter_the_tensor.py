"""`meter.update(loss.item(), n)`: the meter adds up on the device."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.reads import detached, tensor_read
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

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
)


def rewrite(site: Site, function: Function) -> Fix | None:
    tensor, read = tensor_read(function, site.node), site.node
    match function.parent(read):
        case ast.Call(func=ast.Attribute(attr="update"), args=given) if read in given:
            pass
        case _:
            return None
    if tensor is None or function.loop(read) is None:
        return None
    draft = Draft(function)
    draft.replace(read, "{t}.detach()", t=detached(function, tensor))
    return draft.fix(
        "give the meter the tensor",
        Safety.SUGGEST,
        "the meter's sums are tensors, in the tensor's own dtype, and are read where it is written down",
    )
