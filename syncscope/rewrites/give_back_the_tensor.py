"""`return float(loss)` of a function that a loop calls, as a suggestion: the caller waits where it prints."""

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
        from torch import nn

        def train(model: nn.Module, criterion: nn.Module, optimizer, x: torch.Tensor, y: torch.Tensor):
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            return float(loss)  # !

        def fit(model: nn.Module, criterion: nn.Module, optimizer, x: torch.Tensor, y: torch.Tensor):
            seen = []
            for epoch in range(3):
                loss = train(model, criterion, optimizer, x, y)
                seen.append(loss)
            return seen
        """,
        """
        import torch
        from torch import nn

        def train(model: nn.Module, criterion: nn.Module, optimizer, x: torch.Tensor, y: torch.Tensor):
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            return loss.detach()

        def fit(model: nn.Module, criterion: nn.Module, optimizer, x: torch.Tensor, y: torch.Tensor):
            seen = []
            for epoch in range(3):
                loss = train(model, criterion, optimizer, x, y)
                seen.append(loss)
            return seen
        """,
        Safety.SUGGEST,
    ),
)
CHANGES = (
    "its callers get a tensor, and wait where they compare or print it, with more enqueued by then",
    "without a format it is printed as `tensor(...)`, and what is kept of it keeps its memory",
)


def rewrite(site: Site, function: Function) -> Fix | None:
    read, scope = site.node, function.scope
    tensor, statement = tensor_read(function, read), function.parent(read)
    if tensor is None or not isinstance(read, ast.Call) or not isinstance(statement, ast.Return):
        return None
    if not isinstance(scope, ast.FunctionDef):
        return None
    if (
        not site.whole
        or scope.returns is not None
        or statement is not scope.body[-1]
        or scope.name not in function.file.kept_in_loops
    ):
        return None
    draft = Draft(function)
    draft.replace(read, "{t}.detach()", t=detached(function, tensor))
    return draft.fix("give back the tensor", Safety.SUGGEST, *CHANGES)
