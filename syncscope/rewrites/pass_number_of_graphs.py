"""`global_add_pool(x, data.batch)` with `size=data.num_graphs`; a model is given the number, as it is given `data.batch`."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.masks import bound_once
from syncscope.codemod.text import Text
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Edit, Fix, Safety
from syncscope.model.ops import Op
from syncscope.model.source import Span
from syncscope.project.syntax import parents

OWN = ("batch_size", "num_graphs")  # what such a number is called where there is one
EXAMPLES = (
    Example(
        """
        import torch
        from torch_geometric.nn import GINConv, global_add_pool

        class Net(torch.nn.Module):
            def forward(self, data):
                x = self.conv(data.x, data.edge_index)
                return self.head(global_add_pool(x, data.batch))  # !
        """,
        """
        import torch
        from torch_geometric.nn import GINConv, global_add_pool

        class Net(torch.nn.Module):
            def forward(self, data):
                x = self.conv(data.x, data.edge_index)
                return self.head(global_add_pool(x, data.batch, size=data.num_graphs))
        """,
        Safety.UNSAFE,
    ),
    Example(
        """
        import torch
        from torch_geometric.nn import global_mean_pool

        class Net(torch.nn.Module):
            def forward(self, x, edge_index, batch):
                x = self.conv(x, edge_index)
                return self.head(global_mean_pool(x, batch))  # !

        model = Net().to("cuda")

        def train(loader, optimizer):
            for data in loader:
                optimizer.zero_grad()
                out = model(data.x, data.edge_index, data.batch)
                torch.nn.functional.cross_entropy(out, data.y).backward()
                optimizer.step()
        """,
        """
        import torch
        from torch_geometric.nn import global_mean_pool

        class Net(torch.nn.Module):
            def forward(self, x, edge_index, batch, batch_size=None):
                x = self.conv(x, edge_index)
                return self.head(global_mean_pool(x, batch, size=batch_size))

        model = Net().to("cuda")

        def train(loader, optimizer):
            for data in loader:
                optimizer.zero_grad()
                out = model(data.x, data.edge_index, data.batch, batch_size=data.num_graphs)
                torch.nn.functional.cross_entropy(out, data.y).backward()
                optimizer.step()
        """,
        Safety.UNSAFE,
    ),
)
MUST = "must be a batch of torch_geometric's loader"
MORE_ROWS = "graphs without nodes at its end get a row, too"


def rewrite(site: Site, function: Function) -> Fix | None:
    call, batch = site.node, site.operand
    if (
        not isinstance(call, ast.Call)
        or not pools(function, call)
        or any(k.arg in ("size", None) for k in call.keywords)
    ):
        return None
    if len(call.args) > 2 or batch is None or function.file.project.own_graphs():
        return None
    given = batch if isinstance(batch, ast.Attribute) else beside(function, batch)
    draft, title = Draft(function), "say how many graphs there are"
    if given is not None:
        if given.attr != "batch" or not isinstance(given.value, ast.Name):
            return None
        of = given.value.id
        draft.replace(call, "{call}", call=draft.call(call, {}, size=f"{of}.num_graphs"))
        return draft.fix(title, Safety.UNSAFE, f"{of} {MUST}", MORE_ROWS)
    if not isinstance(batch, ast.Name) or batch.id not in function.parameters:
        return None
    if (own := next((name for name in OWN if name in function.parameters), None)) is not None:
        draft.replace(call, "{call}", call=draft.call(call, {}, size=own))
        return draft.fix(title, Safety.UNSAFE, f"{own} must be how many graphs there are, or None")
    return function.once(f"graphs of {batch.id}", function.scope, lambda: by_the_caller(function, batch.id))


def pools(function: Function, call: ast.Call) -> bool:
    """Whether a call is a pool over graphs, the only function of torch_geometric that takes their number as `size`."""
    name = function.dotted(call.func) or ""
    return name.startswith("torch_geometric.") and name.endswith("_pool")


def beside(function: Function, batch: ast.expr) -> ast.Attribute | None:
    """What a name stands for, alone or among others: `x, batch = data.x, data.batch`."""
    bound = bound_once(function, batch)
    match bound:
        case ast.Assign(targets=[ast.Name()], value=ast.Attribute() as value):
            return value
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)) if len(names) == len(values):
            found = [v for n, v in zip(names, values, strict=True) if function.same_name(n, batch)]
            return found[0] if len(found) == 1 and isinstance(found[0], ast.Attribute) else None
    return None


def by_the_caller(function: Function, batch: str) -> Fix | None:
    """A parameter more of `forward`, and the number from the loops of the file that give the model `data.batch`."""
    scope, file = function.scope, function.file
    if not isinstance(scope, ast.FunctionDef) or scope.name != "forward" or function.binds(batch):
        return None
    listed = scope.args
    names = [a.arg for a in listed.args]
    if listed.posonlyargs or listed.kwonlyargs or listed.vararg or listed.kwarg or batch not in names:
        return None
    owner = file.class_around(scope)
    if owner is None or b"torch.jit" in file.code or "batch_size" in {n.id for n in function.every(ast.Name)}:
        return None
    calls = [(c, of) for c in calls_of(file, owner.name) if (of := graphs(c, names.index(batch) - 1, batch))]
    if not calls:
        return None
    draft, size = Draft(function), "batch_size"
    for each in function.sites:
        call = each.node
        pooled = each.op is Op.LIBRARY_READ and isinstance(call, ast.Call) and pools(function, call)
        if pooled and isinstance(each.operand, ast.Name) and each.operand.id == batch:
            assert isinstance(call, ast.Call)
            draft.replace(call, "{call}", call=draft.call(call, {}, size=size))
    last = listed.defaults[-1] if listed.defaults else listed.args[-1]
    begin = file.code[file.starts[listed.args[-1].lineno - 1] : file.span(listed.args[-1]).start].decode()
    gap = f"\n{begin}" if begin.isspace() else " "  # one parameter a line
    ends = [(file.span(last).end, f",{gap}{size}=None")]
    for call, of in calls:
        behind = call.keywords[-1].value if call.keywords else call.args[-1]
        ends.append((file.span(behind).end, f", {size}={of}.num_graphs"))
    draft.edits += [Edit(Span(end, end), text) for end, text in ends]
    data = ", ".join(dict.fromkeys(of for _, of in calls))
    return draft.fix("give the model how many graphs there are", Safety.UNSAFE, f"{data} {MUST}", MORE_ROWS)


def calls_of(file: Text, name: str) -> list[ast.Call]:
    """The calls of what is made of a class in this file, where it is made once and has a name: `model = Net().to(device)`."""
    made = [n for n in file.calls.get(name, ()) if isinstance(n.func, ast.Name)]
    if len(made) != 1:
        return []
    around = parents(file.tree)
    bound: ast.AST | None = made[0]
    while bound is not None and not isinstance(bound, ast.stmt):
        bound = around.get(bound)
    if not isinstance(bound, ast.Assign) or not isinstance(bound.targets[0], ast.Name):
        return []
    return [n for n in file.calls.get(bound.targets[0].id, ()) if isinstance(n.func, ast.Name)]


def graphs(call: ast.Call, position: int, name: str) -> str | None:
    """What a call is given the batch of, `data` of `data.batch`."""
    if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg in (None, "batch_size") for k in call.keywords):
        return None
    named = next((k.value for k in call.keywords if k.arg == name), None)
    match call.args[position] if len(call.args) > position else named:
        case ast.Attribute(value=ast.Name(id=of), attr="batch"):
            return of
    return None
