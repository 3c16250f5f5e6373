"""What of torch_geometric waits, and what spares it: `# waits: op` marks each line that waits, and no other line does."""

import pytest
from tensors.marked import marks, waits

import syncscope

CASES = {
    "names that say how many dimensions there are": """
        import torch_geometric

        def merged(batch: torch.Tensor, edge_index: torch.Tensor, nodes: list[int], x: torch.Tensor):
            cluster, other = torch.empty_like(batch), torch.empty_like(edge_index)
            for number, node in enumerate(nodes):
                cluster[number] = 3  # waits: number_write
                other[0] = 3
            return cluster, other, x[: batch[-1]]  # waits: size

        def unpacked(edge_index: torch.Tensor, x: torch.Tensor, weight=None):
            edge_index, weight = kept(edge_index, weight)
            row, col = edge_index
            return x[row] + x[col]

        def kept(edge_index: torch.Tensor, weight=None):
            if weight is None:
                return edge_index.flip(0)
            return edge_index.flip(0), weight.flip(0)

        def linked(edge_type: torch.Tensor, x: torch.Tensor):
            return x[edge_type[0]], x[edge_type[1]]
    """,
    "numbers that nobody says are read": """
        from torch_geometric.utils import add_self_loops, degree, scatter, softmax, to_dense_batch

        def forward(x: torch.Tensor, edge_index: torch.LongTensor, batch: torch.LongTensor, n: int):
            first = degree(edge_index[0])  # waits: library_read
            first = degree(edge_index[0], n)
            each = softmax(x, batch)  # waits: library_read
            each = softmax(x, batch, num_nodes=n) + softmax(x, ptr=batch)
            whole = scatter(x, batch, reduce="sum")  # waits: library_read
            whole = scatter(x, batch, 0, n)
            edge_index, _ = add_self_loops(edge_index)  # waits: library_read
            edge_index, _ = add_self_loops(edge_index, num_nodes=x.size(0))
            dense, mask = to_dense_batch(x, batch)  # waits: library_read
            dense, mask = to_dense_batch(x, batch, batch_size=n)  # waits: library_read
            dense, mask = to_dense_batch(x, batch, max_num_nodes=9, batch_size=n)
            alone, mask = to_dense_batch(x)
            return dense[mask]  # waits: mask_read
    """,
    "edges are selected": """
        import torch_geometric
        from torch_geometric.utils import dropout_adj, dropout_edge, remove_self_loops, subgraph

        class Net(torch.nn.Module):
            def forward(self, x, edge_index, kept: torch.BoolTensor):
                edge_index, _ = remove_self_loops(edge_index)  # waits: library_read
                edge_index, _ = dropout_edge(edge_index, training=self.training)  # waits: library_read
                edge_index, _ = dropout_edge(edge_index, training=False)
                edge_index, _ = dropout_adj(edge_index, p=0.0)
                edges = torch_geometric.utils.subgraph(kept, edge_index)  # waits: library_read
                own = subgraph(kept.cpu(), edge_index)  # waits: cpu  # waits: library_read
                return self.conv(x, edge_index), edges, own
    """,
    "the masks of a split are masks": """
        from torch_geometric.datasets import Planetoid

        data = Planetoid("data", "Cora")[0].to("cuda")

        def train(model, optimizer):
            out = model(data.x, data.edge_index)
            loss = (out[data.train_mask] - data.y[data.train_mask]).sum()  # waits: mask_read
            loss.backward()  # waits: backward
            optimizer.step()
            return out[data.order]
    """,
    "other functions of these names are others": """
        from own.utils import degree, subgraph

        def forward(x: torch.Tensor, edge_index: torch.LongTensor):
            return degree(edge_index[0]), subgraph(x, edge_index)
    """,
}


@pytest.mark.parametrize("name", CASES)
def test_waits(name: str) -> None:
    assert waits(CASES[name]) == marks(CASES[name])


def test_only_a_pool_is_told_how_many_graphs_there_are() -> None:
    code = """
import torch
from torch_geometric.nn import global_add_pool
from torch_geometric.utils import to_dense_batch

def train(model, loader, optimizer):
    for data in loader:
        data = data.to("cuda", non_blocking=True)
        dense, mask = to_dense_batch(data.x, data.batch)
        loss = global_add_pool(data.x, data.batch).sum() + dense.sum()
        loss.backward()
        optimizer.step()
"""
    told = syncscope.lint(source=code, select=["hidden-read"])
    found = {each.place.line: (each.fix or each.advice) is not None for each in told}
    assert found == {9: False, 10: True}
