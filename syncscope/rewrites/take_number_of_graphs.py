"""`int(batch.max()) + 1` as `data.num_graphs`, or as a parameter more that the caller may give, who knows it."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.pattern import seen
from syncscope.codemod.patterns.reads import number_read
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Edit, Fix, Safety
from syncscope.model.heat import Reason
from syncscope.model.source import Span
from syncscope.rewrites.pass_number_of_graphs import MORE_ROWS, MUST

TITLE = "take the number from the caller"
KNOWN = {"num_graphs", "batch_size", "dim_size", "size", "num_nodes", "num_segments", "num_batches", "B", "num_groups"}
EXAMPLES = (
    Example(
        """
        import torch
        from torch_geometric.utils import scatter

        class Net(torch.nn.Module):
            def forward(self, data):
                x = self.conv(data.x, data.edge_index)
                return scatter(x, data.batch, 0, int(data.batch.max()) + 1)  # !
        """,
        """
        import torch
        from torch_geometric.utils import scatter

        class Net(torch.nn.Module):
            def forward(self, data):
                x = self.conv(data.x, data.edge_index)
                return scatter(x, data.batch, 0, data.num_graphs)
        """,
        Safety.UNSAFE,
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor, batch: torch.LongTensor):
            total = x.new_zeros(batch.max().item() + 1, x.shape[1])  # !
            return total.index_add_(0, batch, x)
        """,
        """
        import torch

        def forward(x: torch.Tensor, batch: torch.LongTensor, num_graphs=None):
            if num_graphs is None:
                num_graphs = batch.max().item() + 1
            total = x.new_zeros(num_graphs, x.shape[1])
            return total.index_add_(0, batch, x)
        """,
        Safety.SUGGEST,
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    counted = one_more(function, site.node) if isinstance(site.node, ast.expr) else None
    if counted is None:
        return None
    whole, index = counted
    draft = Draft(function)
    match index:
        case ast.Attribute(value=ast.Name(id=of), attr="batch"):
            draft.replace(whole, f"{of}.num_graphs")
            known = b"torch_geometric" in function.file.code
            return draft.fix(TITLE, Safety.UNSAFE if known else Safety.SUGGEST, f"{of} {MUST}", MORE_ROWS)
        case ast.Name(id=name) if name in function.parameters and not function.binds(name):
            if site.heat.reason in (Reason.MAYBE, Reason.CALLED):  # a size that is needed, and asked for by who calls
                return None
            return with_parameter(function, draft, whole, name)
    return None


def one_more(function: Function, read: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """The `int(b.max()) + 1` that a read is a part of, and b."""
    tensor = number_read(function, read)
    found = seen(function, tensor, "{b}.max()", "{b}[-1]")
    whole: ast.expr = read
    added = False
    for outer in function.around(read):
        match outer:
            case ast.BinOp(op=ast.Add(), left=left, right=right) if (
                not added and function.constant(right if left is whole else left) == 1
            ):
                whole, added = outer, True
            case ast.Call(args=[given], keywords=[]) if given is whole and function.dotted(outer.func) == "int":
                whole = outer
            case _:
                break
    return (whole, found["b"]) if found is not None and added else None


def with_parameter(function: Function, draft: Draft, whole: ast.expr, name: str) -> Fix | None:
    """A parameter more at the end, that is asked first."""
    scope = function.scope
    if not isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)) or function.parameters & KNOWN:
        return None
    listed = scope.args
    if listed.kwonlyargs or listed.vararg or listed.kwarg or not listed.args or function.file.code.count(b"jit.script"):
        return None
    statement = function.statement(whole)
    if statement is None or statement not in scope.body or not function.pure(whole):
        return None
    count = function.fresh("num_graphs" if name.startswith("batch") else "num_segments")
    last = listed.defaults[-1] if listed.defaults else listed.args[-1].annotation or listed.args[-1]
    end = function.file.span(last).end
    draft.insert_before(statement, f"if {count} is None:\n{function.indent(statement)}    {count} = {{n}}", n=whole)
    draft.replace(whole, count)
    draft.edits.append(Edit(Span(end, end), f", {count}=None"))
    return draft.fix(
        TITLE, Safety.SUGGEST, f"it waits as before where the caller does not give {count}, which its loader knows"
    )
