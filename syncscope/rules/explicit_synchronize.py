"""`torch.cuda.synchronize()` in the step.

Why it waits
------------
The host waits until the device has done everything that was asked for, and asks for nothing more meanwhile. It belongs before
a clock is read, and nowhere else: results are ordered on the device without it.

Fix safety
----------
Taking it out is suggested, not applied, because a clock may be read after it; where one is read in the same function, there is
no fix.
"""

from __future__ import annotations

import ast

from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety
from syncscope.rules import Example, Family, Function, Severity, View

FAMILY = Family.EXPLICIT
SEVERITY = Severity.WARNING
OPS = ("synchronize",)
SEEN_AS = ("cudaDeviceSynchronize", "cudaStreamSynchronize", "hipDeviceSynchronize", "clFinish")
CLOCKS = {
    "time.time",
    "time.perf_counter",
    "time.monotonic",
    "time.perf_counter_ns",
    "time.time_ns",
    "time.monotonic_ns",
}
EXAMPLES = (
    Example(
        """
        import torch

        def train(model, loader, optimizer):
            for x in loader:
                model(x).mean().backward()
                torch.cuda.synchronize()  # !
                optimizer.step()
        """,
        """
        import torch

        def train(model, loader, optimizer):
            for x in loader:
                model(x).mean().backward()
                optimizer.step()
        """,
        Safety.SUGGEST,
    ),
)


def message(site: Site, view: View) -> str | None:
    return f"{view.quote(site.node)} waits until the device has done everything"


def rewrite(site: Site, function: Function) -> Fix | None:
    statement = function.parent(site.node)
    if not isinstance(statement, ast.Expr):
        return None
    if any(isinstance(n, ast.Call) and function.dotted(n.func) in CLOCKS for n in ast.walk(function.scope)):
        return None
    if not function.alone(statement):
        return None
    draft = function.draft()
    draft.remove(statement)
    return draft.fix(
        "take it out", Safety.SUGGEST, "a clock that is read afterwards then measures the launch, not the work"
    )
