"""`torch.cuda.synchronize()` taken out, where no clock is read."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety
from syncscope.rewrites.take_out_empty_cache import ends_phase

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
    Example(
        """
        import torch

        def train(trainer, batches):
            for batch in batches:
                trainer.fit(batch)
                torch.cuda.empty_cache()
                torch.cuda.synchronize()  # !
        """
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    statement = function.parent(site.node)
    if not isinstance(statement, ast.Expr):
        return None
    if any(isinstance(n, ast.Call) and function.dotted(n.func) in CLOCKS for n in ast.walk(function.scope)):
        return None
    if not function.alone(statement) or ends_phase(function, statement):
        return None
    draft = Draft(function)
    draft.remove(statement)
    return draft.fix(
        "take it out", Safety.SUGGEST, "a clock that is read afterwards then measures the launch, not the work"
    )
