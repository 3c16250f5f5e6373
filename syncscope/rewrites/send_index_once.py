"""A list or an array that is the index of several tensors, `x[rows] + y[rows]`: it is copied to the device once."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.masks import before_all, bound_by, index_of
from syncscope.codemod.writes import bound_between, disturbed, exposed
from syncscope.model.example import Example
from syncscope.model.fact import Site, Value
from syncscope.model.finding import Fix, Safety, Stays
from syncscope.tensors.facts import Items, Listed

STAYS = Stays.FIRST
EXAMPLES = (
    Example(
        """
        import numpy as np
        import torch

        def update(x: torch.Tensor, y: torch.Tensor):
            x, y = x.cuda(), y.cuda()
            rows = np.random.permutation(64)
            return x[rows] - y[rows]  # !
        """,
        """
        import numpy as np
        import torch

        def update(x: torch.Tensor, y: torch.Tensor):
            x, y = x.cuda(), y.cuda()
            rows = np.random.permutation(64)
            rows_index = torch.as_tensor(rows, device=x.device)
            return x[rows_index] - y[rows_index]
        """,
        Safety.UNSAFE,
    ),
    Example(
        """
        import numpy as np
        import torch

        def shuffled(x: torch.Tensor, y: torch.Tensor, args, agent):
            flat = np.arange(args.rows).reshape(args.rows, args.columns)
            rows = flat[:, args.first : args.last].ravel()
            score = agent.score(x[rows])  # !
            return score - y[rows]  # !
        """,
        """
        import numpy as np
        import torch

        def shuffled(x: torch.Tensor, y: torch.Tensor, args, agent):
            flat = np.arange(args.rows).reshape(args.rows, args.columns)
            rows = flat[:, args.first : args.last].ravel()
            rows_index = torch.as_tensor(rows, device=x.device)
            score = agent.score(x[rows_index])
            return score - y[rows_index]
        """,
        Safety.UNSAFE,
    ),
    Example(
        """
        import numpy as np
        import torch

        def update(agent, x: torch.Tensor, y: torch.Tensor, size: int):
            x, y = x.cuda(), y.cuda()
            order, total = np.arange(64), 0.0
            for epoch in range(4):
                np.random.shuffle(order)
                for start in range(0, 64, size):
                    rows = order[start : start + size]
                    score = agent.score(x[rows])  # !
                    total = total + (score - y[rows]).sum()  # !
            return total
        """,
        """
        import numpy as np
        import torch

        def update(agent, x: torch.Tensor, y: torch.Tensor, size: int):
            x, y = x.cuda(), y.cuda()
            order, total = np.arange(64), 0.0
            for epoch in range(4):
                np.random.shuffle(order)
                for start in range(0, 64, size):
                    rows = order[start : start + size]
                    rows_index = torch.as_tensor(rows, device=x.device)
                    score = agent.score(x[rows_index])
                    total = total + (score - y[rows_index]).sum()
            return total
        """,
        Safety.UNSAFE,
    ),
    Example(
        """
        import numpy as np
        import torch

        def trained(model, x: torch.Tensor, y: torch.Tensor, rows: np.ndarray):
            y, total = y.cuda(), 0.0
            idx = np.where(rows > 0)[0]
            for _ in range(3):
                out = model(x.cuda()).cuda()
                total = total + (out[idx] - y[idx])  # !
            return total
        """,
        """
        import numpy as np
        import torch

        def trained(model, x: torch.Tensor, y: torch.Tensor, rows: np.ndarray):
            y, total = y.cuda(), 0.0
            idx = np.where(rows > 0)[0]
            idx_tensor = torch.as_tensor(idx, device=y.device)
            for _ in range(3):
                out = model(x.cuda()).cuda()
                total = total + (out[idx_tensor] - y[idx_tensor])
            return total
        """,
        Safety.UNSAFE,
    ),
    Example(
        """
        import numpy as np
        import torch

        def fitted(x: torch.Tensor, y: torch.Tensor, rows: np.ndarray):
            x, y = x.cuda(), y.cuda()
            kept = np.where(rows > 0)
            return x[kept] - y[kept]  # !
        """,
        """
        import numpy as np
        import torch

        def fitted(x: torch.Tensor, y: torch.Tensor, rows: np.ndarray):
            x, y = x.cuda(), y.cuda()
            kept = np.where(rows > 0)
            kept_index = tuple(torch.as_tensor(each, device=x.device) for each in kept)
            return x[kept_index] - y[kept_index]
        """,
        Safety.UNSAFE,
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    match site.node:
        case ast.Subscript(slice=ast.Name() as index):
            return function.once(f"send {index.id}", function.scope, lambda: of_index(function, site, index))
    return None


def of_index(function: Function, site: Site, index: ast.Name) -> Fix | None:
    """The fix for all tensors that are indexed with what a name holds."""
    definition = function.reaching_definition(index)
    uses = [
        s.node
        for s in function.sites
        if s.op is site.op
        and isinstance(s.node, ast.Subscript)
        and function.same_name(s.node.slice, index)
        and function.reaching_definition(s.node.slice) is definition
    ]
    home = function.block(definition) if definition is not None else bound_by(function, index)
    first = before_all(function, home, uses) if home is not None and len(uses) > 1 else None
    if (
        first is None
        or disturbed(function, index.id, definition or first, uses[-1], within=definition is None)
        or exposed(function, index.id, first, uses[-1])
    ):
        return None
    tensors = (use.value for use in uses if isinstance(use.value, ast.Name) and function.fact(use.value).is_tensor)
    base = next((each for each in tensors if not bound_between(function, each.id, first, each)), None)
    if base is None:
        return None
    if (sent := _sent(function, index)) is None:
        return None
    draft = Draft(function)
    name = index_of(function, index.id)
    draft.insert_before(first, f"{name} = {sent}", x=base)
    for use in uses:
        draft.replace(use.slice, name)
    changes = f"all must live on the device of {function.file.text(base)}, and {index.id} hold numbers of one kind"
    return draft.fix(f"copy {index.id} to the device once, not {len(uses)} times", Safety.UNSAFE, changes)


def _sent(function: Function, index: ast.Name) -> str | None:
    """An index on the device of `{x}`: a list or an array as a tensor, of arrays for each dimension, `np.where(...)`, each."""
    fact = function.fact(index)
    if fact.kind is Value.ARRAY or isinstance(fact.ref, Listed):
        return f"torch.as_tensor({index.id}, device={{x}}.device)"
    if isinstance(fact.ref, Items) and fact.ref.each.kind is Value.ARRAY:
        return f"tuple(torch.as_tensor(each, device={{x}}.device) for each in {index.id})"
    return None
