"""Training steps over pygod 1.1.0: batches of a graph by each of its detectors, and epochs of those that know no batches."""

import pygod.detector as detectors
import pygod.detector.base
import torch_geometric.nn as N
from torch_geometric.data import Data
from torch_geometric.utils import coalesce, k_hop_subgraph

NODES, WIDTH, BATCH = 72, 12, 8


class Neighbors:
    """What PyG's loader of neighbours gives, which samples by a library that has no wheel here: all neighbours, so many hops."""

    def __init__(self, data, num_neighbors, batch_size):
        self.data, self.hops, self.size = data, len(num_neighbors), batch_size

    def __iter__(self):
        for first in range(0, self.data.num_nodes, self.size):
            seeds = torch.arange(first, min(first + self.size, self.data.num_nodes))
            reached, edges, _, _ = k_hop_subgraph(seeds, self.hops, self.data.edge_index)
            others = reached[~torch.isin(reached, seeds)]
            n_id = torch.cat([seeds, others])
            at = torch.full((self.data.num_nodes,), -1)
            at[n_id] = torch.arange(len(n_id))
            inside = (at[self.data.edge_index] >= 0).all(0)
            batch = Data(x=self.data.x[n_id], edge_index=at[self.data.edge_index[:, inside]])
            if "s" in self.data:
                batch.s = self.data.s[n_id]
            batch.batch_size, batch.n_id, batch.input_id = len(seeds), n_id, seeds
            yield batch


pygod.detector.base.NeighborLoader = Neighbors


def graph():
    """A ring with chords."""
    at = torch.arange(NODES)
    edges = torch.stack([torch.cat([at, at, at]), torch.cat([(at + 1) % NODES, (at + 2) % NODES, (7 * at) % NODES])])
    edges = edges[:, edges[0] != edges[1]]
    return Data(x=torch.rand(NODES, WIDTH), edge_index=coalesce(torch.cat([edges, edges.flip(0)], 1)))


def found(name, optimizers=1, before=0, **more):
    """A step is a batch of `fit`."""

    def make():
        held = getattr(detectors, name)(hid_dim=16, epoch=12, gpu=0, batch_size=BATCH, **more)
        return loop(lambda: held.fit(graph()), optimizers, before)

    return make


PLAIN = "AdONE AnomalyDAE CoLA CONAD DOMINANT DONE GAE OCGNN"
for name in PLAIN.split():
    STEPS[name] = found(name)
STEPS["GAAN"] = found("GAAN", 2)
for name in ("CoLA", "DOMINANT", "DONE", "OCGNN"):
    STEPS[f"{name}_kept"] = found(name, save_emb=True)
for name in ("DOMINANT", "OCGNN", "GAE", "CONAD"):
    STEPS[f"{name}_of_gat"] = found(name, backbone=N.GAT)
STEPS["DOMINANT_of_sage"] = found("DOMINANT", backbone=N.GraphSAGE)
STEPS["DOMINANT_of_gin"] = found("DOMINANT", backbone=N.GIN)
STEPS["DOMINANT_of_odds"] = found("DOMINANT", sigmoid_s=True)
STEPS["DOMINANT_dropped"] = found("DOMINANT", dropout=0.3, weight_decay=1e-4)
STEPS["CONAD_of_odds"] = found("CONAD", sigmoid_s=True)
STEPS["GAE_of_structure"] = found("GAE", recon_s=True)
STEPS["AnomalyDAE_weighed"] = found("AnomalyDAE", alpha=0.8, theta=10.0, eta=5.0)
STEPS["OCGNN_warm"] = found("OCGNN", warmup=0)


def at_once(name, **more):
    """A step is an epoch, of a detector that knows no batches."""

    def make():
        held = getattr(detectors, name)(epoch=12, gpu=0, **more)
        return loop(lambda: held.fit(graph()))

    return make


for name in ("Radar", "ANOMALOUS"):
    STEPS[name] = at_once(name)
STEPS["ONE"] = at_once("ONE", hid_a=8, hid_s=8)


@step
def GUIDE():
    held = detectors.GUIDE(hid_a=16, hid_s=4, epoch=12, gpu=0, batch_size=BATCH)
    return loop(lambda: held.fit(graph()))
