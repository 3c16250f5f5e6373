"""A tensor copied from the device to the host: `.cpu()`, `.to("cpu")`.

Why it waits
------------
The copy is complete when the call returns: the host waits until the device has computed the tensor and everything before it.

What to do
----------
- Keep predictions on the device until the loop is over, and copy them together.
- Copy while the device goes on: `y.to("cpu", non_blocking=True)` waits for nothing, but what it gives must not be read before
  an event or `synchronize` says that it is there.
- Metrics of a step: compute them on the device, and copy the few numbers, not the tensors.

Fix safety
----------
Tensors that a loop only collects can stay on the device until it is over, and be copied together. Unsafe, because they all take
the device's memory until then.
"""

from __future__ import annotations

import ast

from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety
from syncscope.rules import Example, Family, Function, Severity, View

FAMILY = Family.READ
SEVERITY = Severity.WARNING
OPS = ("cpu",)
SEEN_AS = ("to", "aten::_to_copy", "aten::copy_", "read_buffer", "read_image", "map", "svm_memcpy")
EXAMPLES = (
    Example(
        """
        import torch

        def predict(model, loader):
            found = []
            for x in loader:
                y = model(x.cuda()).softmax(dim=1)
                found.append(y.detach().cpu())  # !
            return torch.cat(found)
        """,
        """
        import torch

        def predict(model, loader):
            found = []
            for x in loader:
                y = model(x.cuda()).softmax(dim=1)
                found.append(y.detach())
            return torch.cat(found).cpu()
        """,
        Safety.UNSAFE,
    ),
)


def message(site: Site, view: View) -> str | None:
    function = view.function(site)
    around = function.parent(site.node)
    taker = function.dotted(around.func) if isinstance(around, ast.Call) else None
    if taker is not None and taker.endswith(".pack_padded_sequence"):
        return f"{view.quote(site.node)} waits for the lengths: let the loader count them, and leave those on the host"
    return f"{view.quote(site.node)} waits until the device has computed it, and copies it to the host"


def rewrite(site: Site, function: Function) -> Fix | None:
    call, append, loop = site.node, function.parent(site.node), function.loop(site.node)
    if (
        loop is None
        or not isinstance(call, ast.Call)
        or not isinstance(call.func, ast.Attribute)
        or call.func.attr != "cpu"
        or not isinstance(append, ast.Call)
        or not isinstance(append.func, ast.Attribute)
        or append.func.attr != "append"
        or not isinstance(append.func.value, ast.Name)
    ):
        return None
    name = append.func.value.id
    other = [n for n in function.reads(name) if n is not append.func.value]
    if len(function.binds(name)) != 1 or len(other) != 1 or any(n is other[0] for n in ast.walk(loop)):
        return None
    joined = function.parent(other[0])
    if not isinstance(joined, ast.Call) or function.dotted(joined.func) not in ("torch.cat", "torch.stack"):
        return None
    draft = function.draft()
    draft.replace(call, "{t}", t=call.func.value)
    draft.replace(joined, "{all}.cpu()", all=joined)
    return draft.fix(
        "collect on the device, copy once after the loop",
        Safety.UNSAFE,
        f"all of {name} stays in the device's memory until the loop is over",
    )
