"""Training steps over opengsl 0.0.55: epochs of its solvers, each of which learns a graph with the network that reads it."""

import argparse
from pathlib import Path

absent("dgl torch_sparse torch_scatter nni deeprobust")

import opengsl.config
from opengsl.module import solver
from ruamel.yaml import YAML

NODES, WIDTH, CLASSES = 60, 12, 4


class Communities:
    """A graph of four communities, as the package's datasets are laid."""

    def __init__(self, classes=CLASSES):
        self.name, self.device = "cora", torch.device(D)
        labels = torch.arange(NODES) % classes
        likely = torch.where(labels[:, None] == labels, 0.3, 0.03)
        upper = (torch.rand(NODES, NODES) < likely).triu(1)
        edges = (upper | upper.T).nonzero().T
        self.adj = torch.sparse_coo_tensor(edges, torch.ones(edges.shape[1]), (NODES, NODES)).to(D).coalesce()
        self.feats = (torch.rand(NODES, WIDTH) + torch.nn.functional.one_hot(labels, WIDTH)).to(D)
        self.labels = (labels.float() if classes == 2 else labels).to(D)
        self.n_nodes, self.dim_feats, self.n_edges, self.n_classes = NODES, WIDTH, edges.shape[1] / 2, classes
        self.num_targets = 1 if classes == 2 else classes
        at = np.arange(NODES)
        self.train_masks, self.val_masks, self.test_masks = [at[:32]], [at[32:46]], [at[46:]]


def configured(method, changes):
    """The package's own settings for cora, with small networks."""
    folder = Path(opengsl.config.__file__).parent / method
    path = next(each for each in (folder / f"{method}_cora.yaml", folder / f"{method}.yaml") if each.exists())
    held = YAML(typ="safe").load(path.read_text())
    for part in held.values():
        if isinstance(part, dict):
            for name in part:
                if name in ("n_hidden", "n_hidden_1", "n_hidden_2", "hidden_size"):
                    part[name] = WIDTH  # what is added to its input is as wide
                if name in changes:
                    part[name] = changes[name]
    for name in changes:
        if name in held and not isinstance(held[name], dict):
            held[name] = changes[name]
    return argparse.Namespace(**held)


def learned(kind, method, optimizers=1, before=0, classes=CLASSES, told=False, **changes):
    """A step is an epoch of `learn`: the network and the graph are bettered, then looked at."""

    def make():
        given = {"n_epochs": 30, "max_epochs": 30, "patience": 100, "norm": None, **changes}
        held = kind(configured(method, given), Communities(classes))
        return loop(lambda: held.run_exp(split=0, debug=told), optimizers, before)

    return make


for name, kind in {"gcn": solver.GCNSolver, "link": solver.LINKSolver, "gin": solver.GINSolver}.items():
    STEPS[name] = learned(kind, name)
    STEPS[f"{name}_told"] = learned(kind, name, told=True)
STEPS["gcn_of_two"] = learned(solver.GCNSolver, "gcn", classes=2)
STEPS["gcn_dense"] = learned(solver.GCNSolver, "gcn", sparse=False)
STEPS["wsgnn"] = learned(solver.WSGNNSolver, "wsgnn")
STEPS["grcn"] = learned(solver.GRCNSolver, "grcn", 2, K=5)
STEPS["grcn_told"] = learned(solver.GRCNSolver, "grcn", 2, K=5, told=True)
STEPS["prognn"] = learned(solver.PROGNNSolver, "prognn", 5)
STEPS["prognn_symmetric"] = learned(solver.PROGNNSolver, "prognn", 5, symmetric=True)
STEPS["prognn_told"] = learned(solver.PROGNNSolver, "prognn", 5, told=True)
STEPS["idgl"] = learned(solver.IDGLSolver, "idgl")
STEPS["slaps"] = learned(solver.SLAPSSolver, "slaps")
STEPS["gen"] = learned(solver.GENSolver, "gen")
STEPS["stable_first"] = learned(solver.STABLESolver, "stable")
STEPS["stable"] = learned(solver.STABLESolver, "stable", 1, 30)
STEPS["bmgcn_first"] = learned(solver.BMGCNSolver, "bmgcn", n_epochs_mlp=10)
STEPS["bmgcn"] = learned(solver.BMGCNSolver, "bmgcn", 1, 4, n_epochs_mlp=4)
