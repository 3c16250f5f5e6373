"""Training steps over DHG 0.9.7: its networks of graphs and hypergraphs, in its tasks' epochs and in plain loops."""

import tempfile

absent("optuna")

from dhg import Graph, Hypergraph, BiGraph
from dhg.experiments import HypergraphVertexClassificationTask, GraphVertexClassificationTask, UserItemRecommenderTask
from dhg.metrics import (
    GraphVertexClassificationEvaluator,
    HypergraphVertexClassificationEvaluator,
    UserItemRecommenderEvaluator,
)
from dhg.models import BGNN_Adv, DHCF, GAT, GCN, GIN, HGNN, HGNNP, HNHN, NGCF, GraphSAGE, HyperGCN, LightGCN
from dhg.models import UniGAT, UniGCN, UniGIN, UniSAGE
from dhg.nn import BPRLoss, EmbeddingRegularization
from torch import nn

VERTICES, WIDTH, CLASSES, USERS, ITEMS = 30, 8, 3, 12, 16


def edges(count=60, vertices=VERTICES, size=2):
    return [tuple(int(x) for x in np.random.choice(vertices, size, replace=False)) for _ in range(count)]


def vertices():
    return {
        "features": torch.randn(VERTICES, WIDTH, device=D),
        "labels": torch.randint(0, CLASSES, (VERTICES,), device=D),
        "train_mask": (torch.arange(VERTICES) < 20).to(D),
        "val_mask": (torch.arange(VERTICES) >= 20).to(D),
    }


def graph():
    return Graph(VERTICES, edges(), device=torch.device(D))


def hypergraph():
    return Hypergraph(VERTICES, edges(20, size=4), device=torch.device(D))


def task(kind, structure, evaluator, model, validated=False):
    """A step is an epoch of the task, as `experiment` goes through it."""

    def make():
        data = {**vertices(), "structure": structure()}
        judge = evaluator(["accuracy", {"f1_score": {"average": "macro"}}])
        runs = kind(tempfile.mkdtemp(), data, None, None, judge, torch.device(D))
        net = model().to(D)
        optimizer = torch.optim.Adam(net.parameters(), 0.01)

        def go():
            runs.train(data, net, optimizer, nn.CrossEntropyLoss())
            if validated:
                runs.validate(data, net)

        return go

    return make


def of_graph(model, **more):
    return task(GraphVertexClassificationTask, graph, GraphVertexClassificationEvaluator, model, **more)


def of_hypergraph(model, **more):
    return task(HypergraphVertexClassificationTask, hypergraph, HypergraphVertexClassificationEvaluator, model, **more)


STEPS["gcn"] = of_graph(lambda: GCN(WIDTH, 8, CLASSES, use_bn=True))
STEPS["gcn_validated"] = of_graph(lambda: GCN(WIDTH, 8, CLASSES), validated=True)
STEPS["gat"] = of_graph(lambda: GAT(WIDTH, 4, CLASSES, 2))
STEPS["gin"] = of_graph(lambda: GIN(WIDTH, 8, CLASSES, 2, train_eps=True))
STEPS["sage"] = of_graph(lambda: GraphSAGE(WIDTH, 8, CLASSES))
STEPS["hgnn"] = of_hypergraph(lambda: HGNN(WIDTH, 8, CLASSES, use_bn=True))
STEPS["hgnn_validated"] = of_hypergraph(lambda: HGNN(WIDTH, 8, CLASSES), validated=True)
STEPS["hgnnp"] = of_hypergraph(lambda: HGNNP(WIDTH, 8, CLASSES))
STEPS["hnhn"] = of_hypergraph(lambda: HNHN(WIDTH, 8, CLASSES))
STEPS["hypergcn"] = of_hypergraph(lambda: HyperGCN(WIDTH, 8, CLASSES))
STEPS["hypergcn_of_each_step"] = of_hypergraph(lambda: HyperGCN(WIDTH, 8, CLASSES, use_mediator=True, fast=False))
STEPS["unigcn"] = of_hypergraph(lambda: UniGCN(WIDTH, 8, CLASSES))
STEPS["unigat"] = of_hypergraph(lambda: UniGAT(WIDTH, 4, CLASSES, 2))
STEPS["unisage"] = of_hypergraph(lambda: UniSAGE(WIDTH, 8, CLASSES))
STEPS["unigin"] = of_hypergraph(lambda: UniGIN(WIDTH, 8, CLASSES, train_eps=True))


def dropped():
    """Edges are dropped anew in each step."""
    data, whole, net = vertices(), hypergraph(), HGNN(WIDTH, 8, CLASSES)

    def loss(net):
        out = net(data["features"], whole.drop_hyperedges(0.3))
        return nn.functional.cross_entropy(out[data["train_mask"]], data["labels"][data["train_mask"]])

    return train(net, loss)


STEPS["hgnn_dropped"] = dropped


@step
def gcn_dropped():
    data, whole, net = vertices(), graph(), GCN(WIDTH, 8, CLASSES)

    def loss(net):
        out = net(data["features"], whole.drop_edges(0.3))
        return nn.functional.cross_entropy(out[data["train_mask"]], data["labels"][data["train_mask"]])

    return train(net, loss)


@step
def hgnn_of_neighbours():
    """The hypergraph is built of the nearest features in each step, as dynamic networks do."""
    data, net = vertices(), HGNN(WIDTH, 8, CLASSES)

    def loss(net):
        built = Hypergraph.from_feature_kNN(data["features"], k=3, device=torch.device(D))
        return nn.functional.cross_entropy(net(data["features"], built), data["labels"])

    return train(net, loss)


class Criterion(nn.Module):
    """What its examples train recommenders with."""

    def __init__(self, **more):
        super().__init__()
        self.bpr, self.reg = BPRLoss(**more), EmbeddingRegularization(p=2, weight_decay=1e-4)

    def forward(self, users, items, user, good, bad, model):
        loss = self.bpr((users[user] * items[good]).sum(1), (users[user] * items[bad]).sum(1))
        raw_users, raw_items = model.u_embedding.weight, model.i_embedding.weight
        return loss + self.reg(raw_users[user], raw_items[good], raw_items[bad])


def recommended(model, validated=False, **more):
    """A step is an epoch of its recommender's task, of two batches."""

    def make():
        pairs = [(int(u), int(i)) for u in range(USERS) for i in np.random.choice(ITEMS, 3, replace=False)]
        bigraph = BiGraph(USERS, ITEMS, pairs, device=torch.device(D))
        rows = torch.utils.data.TensorDataset(
            torch.randint(0, USERS, (16,)), torch.randint(0, ITEMS, (16,)), torch.randint(0, ITEMS, (16,))
        )
        held = torch.utils.data.TensorDataset(
            torch.arange(USERS), torch.zeros(USERS, ITEMS), (torch.rand(USERS, ITEMS) > 0.7).float()
        )
        data = {
            "structure": bigraph,
            "train_loader": torch.utils.data.DataLoader(rows, batch_size=8),
            "test_loader": torch.utils.data.DataLoader(held, batch_size=6),
        }
        judge = UserItemRecommenderEvaluator([{"ndcg": {"k": 4}}, {"recall": {"k": 4}}])
        runs = UserItemRecommenderTask(tempfile.mkdtemp(), data, None, None, judge, torch.device(D))
        net = model().to(D)
        optimizer, criterion = torch.optim.Adam(net.parameters(), 0.01), Criterion(**more)

        def go():
            runs.train(data, net, optimizer, criterion)
            if validated:
                runs.validate(data, net)

        return go

    return make


STEPS["light_gcn"] = recommended(lambda: LightGCN(USERS, ITEMS, 8))
STEPS["light_gcn_dropped"] = recommended(lambda: LightGCN(USERS, ITEMS, 8, drop_rate=0.2), activation="softplus")
STEPS["ngcf"] = recommended(lambda: NGCF(USERS, ITEMS, 8), validated=True)


@step
def bgnn():
    """Its own training of a layer after the other."""
    pairs = [(int(u), int(i)) for u in range(USERS) for i in np.random.choice(ITEMS, 3, replace=False)]
    bigraph = BiGraph(USERS, ITEMS, pairs, device=torch.device(D))
    net = BGNN_Adv(WIDTH, WIDTH, 2)
    users, items = torch.randn(USERS, WIDTH, device=D), torch.randn(ITEMS, WIDTH, device=D)
    return lambda: net.train_with_cascaded(users, items, bigraph, 1e-3, 0.0, 2, device=D)


@step
def dhcf():
    pairs = [(int(u), int(i)) for u in range(USERS) for i in np.random.choice(ITEMS, 3, replace=False)]
    bigraph = BiGraph(USERS, ITEMS, pairs)
    net = DHCF(USERS, ITEMS, 8)
    by_user = Hypergraph.from_bigraph(bigraph, True).to(torch.device(D))
    by_item = Hypergraph.from_bigraph(bigraph, False).to(torch.device(D))
    user, good, bad = (torch.randint(0, n, (8,), device=D) for n in (USERS, ITEMS, ITEMS))
    bpr = BPRLoss()

    def loss(net):
        users, items = net(by_user, by_item)
        return bpr((users[user] * items[good]).sum(1), (users[user] * items[bad]).sum(1))

    return train(net, loss)
