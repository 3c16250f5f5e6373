"""Training steps over pygda 1.2.1: graphs that models are carried over to, batches of the `fit` of each of its methods."""

import sys
import types

absent("cvxpy")

from torch_geometric.data import Data
from torch_geometric.utils import degree, scatter, to_undirected

NODES, WIDTH, CLASSES, BATCH = 64, 12, 3, 16


def sparse():
    """Names of compiled packages that the host's own sampling of neighbors, and sums by index, stand in for."""
    tensor = type("SparseTensor", (), {})
    refused = lambda *_, **__: (_ for _ in ()).throw(NotImplementedError("needs torch_sparse"))  # noqa: E731
    names = dict.fromkeys("spmm matmul fill_diag sum mul spspmm coalesce".split(), refused)
    of_sparse = types.ModuleType("torch_sparse")
    of_sparse.__dict__.update(names, SparseTensor=tensor)
    of_scatter = types.ModuleType("torch_scatter")
    of_scatter.scatter = lambda src, index, dim=0, out=None, dim_size=None, reduce="sum": scatter(
        src, index, dim, dim_size, reduce
    )
    of_scatter.scatter_add = lambda src, index, dim=0, out=None, dim_size=None: scatter(
        src, index, dim, dim_size, "sum"
    )
    of_cluster = types.ModuleType("torch_cluster")
    of_cluster.random_walk = refused
    sys.modules |= {"torch_sparse": of_sparse, "torch_scatter": of_scatter, "torch_cluster": of_cluster}


sparse()

import torch_geometric.loader


class Neighbors:
    """As PyG's loader that samples neighbors of the host's graph: some nodes, and the edges between these."""

    def __init__(self, data, num_neighbors, batch_size=1, shuffle=False, **_):
        self.data, self.size = data, batch_size

    def __len__(self):
        return -(-self.data.num_nodes // self.size)

    def __iter__(self):
        for at in torch.arange(self.data.num_nodes).split(self.size):
            part = self.data.subgraph(at)
            part.batch_size, part.n_id, part.input_id = len(at), at, at
            yield part


torch_geometric.loader.NeighborLoader = Neighbors

from pygda import models as M
from pygda.utils import mmd

mmd.MMD.__defaults__ = (32, 2)  # samples, and how often: of a thousand and five, for small graphs


def graph(nodes=NODES, classes=CLASSES, whole=False):
    edges = to_undirected(torch.randint(0, nodes, (2, 4 * nodes)))
    near = torch.arange(nodes)
    edges = to_undirected(torch.cat([edges, torch.stack([near, (near + 1) % nodes])], 1))
    x = torch.randn(nodes, WIDTH)
    return Data(x=x, edge_index=edges, y=torch.randint(0, classes, (1,) if whole else (nodes,)), num_nodes=nodes)


def graphs():
    return [graph(8, whole=True) for _ in range(64)]


def fitted(kind, *more, optimizers=1, before=0, data=graph, batch=BATCH, **given):
    """A step is a batch of `fit`, on a graph with labels and one without."""

    def make():
        held = {"device": D, "epoch": 6, "batch_size": batch, "verbose": 0, **given}
        model = kind(WIDTH, 8, *more, num_classes=CLASSES, **held)
        one, other = data(), data()
        return loop(lambda: model.fit(one, other), optimizers, before)

    return make


def of_graphs(kind, optimizers=1, **given):
    return fitted(kind, optimizers=optimizers, data=graphs, mode="graph", **given)


STEPS["gnn"] = fitted(M.GNN)
STEPS["gnn_sage"] = fitted(M.GNN, gnn="sage", dropout=0.3)
STEPS["grade"] = fitted(M.GRADE)
STEPS["grade_mmd"] = fitted(M.GRADE, disc="MMD")
STEPS["grade_of_graphs"] = of_graphs(M.GRADE)
STEPS["a2gnn"] = fitted(M.A2GNN, t_pnums=3)
STEPS["a2gnn_of_graphs"] = of_graphs(M.A2GNN, t_pnums=3)
STEPS["acdne"] = fitted(M.ACDNE)
STEPS["dane_of_graphs"] = of_graphs(M.DANE, 2, num_layers=2)
STEPS["adagcn_of_graphs"] = of_graphs(M.AdaGCN, 11)
STEPS["cwgcn"] = fitted(M.CWGCN)
STEPS["cwgcn_of_graphs"] = of_graphs(M.CWGCN)
STEPS["udagcn"] = fitted(M.UDAGCN, ppmi=False)
STEPS["udagcn_of_graphs"] = of_graphs(M.UDAGCN, ppmi=False)
STEPS["specreg"] = fitted(M.SpecReg, ppmi=False)
STEPS["dgsda"] = fitted(M.DGSDA, K=3)
STEPS["soga"] = fitted(M.SOGA)
STEPS["strurw_adversarial"] = fitted(M.StruRW, mode="adv")
STEPS["gnn_gat"] = fitted(M.GNN, gnn="gat")
STEPS["a2gnn_adversarial"] = fitted(M.A2GNN, t_pnums=3, adv=True)
STEPS["grade_conditional"] = fitted(M.GRADE, disc="C")
STEPS["adagcn"] = fitted(M.AdaGCN, optimizers=11)
STEPS["adagcn_ppmi"] = fitted(M.AdaGCN, gnn_type="ppmi", optimizers=11)
