"""Autograd's anomaly detection left on.

Why it waits
------------
It asks every gradient for NaN, and reads each answer: the host waits once for every operation of the backward pass. It is
meant for the search of a fault.

Fix safety
----------
Unsafe without it, because a gradient that is NaN no longer raises an error that names the operation.
"""

from __future__ import annotations

import ast

from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety
from syncscope.rules import Example, Family, Function, Severity, View

FAMILY = Family.LIBRARY
SEVERITY = Severity.WARNING
OPS = ("anomaly",)
SEEN_AS = ("aten::is_nonzero", "aten::item", "aten::_local_scalar_dense")
EXAMPLES = (
    Example(
        """
        import torch

        def train(model, loader, optimizer):
            torch.autograd.set_detect_anomaly(True)  # !
            for x in loader:
                model(x).mean().backward()
                optimizer.step()
        """,
        """
        import torch

        def train(model, loader, optimizer):
            torch.autograd.set_detect_anomaly(False)
            for x in loader:
                model(x).mean().backward()
                optimizer.step()
        """,
        Safety.UNSAFE,
    ),
)


def message(site: Site, view: View) -> str | None:
    return f"{view.quote(site.node)} asks every gradient for NaN, and waits for each answer"


def rewrite(site: Site, function: Function) -> Fix | None:
    call = site.node
    if not isinstance(call, ast.Call) or len(call.args) != 1 or call.keywords:
        return None
    if not isinstance(call.args[0], ast.Constant) or call.args[0].value is not True:
        return None
    draft = function.draft()
    draft.replace(call.args[0], "False")
    return draft.fix(
        "switch it off", Safety.UNSAFE, "a gradient that is NaN no longer raises an error that names the operation"
    )
