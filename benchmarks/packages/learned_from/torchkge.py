"""Training steps over torchkge 0.17.7: batches of its trainer and of its docs' loops, of each of its models, losses and samplers."""

import pandas as pd
import torchkge.models as models
from torchkge import KnowledgeGraph
from torchkge.sampling import (
    BernoulliNegativeSampler,
    BernoulliRelationNegativeSampler,
    PositionalNegativeSampler,
    UniformNegativeSampler,
)
from torchkge.utils import (
    BinaryCrossEntropyLoss,
    DataLoader,
    LogisticLoss,
    MarginLoss,
)
from torchkge.utils.training import TrainDataLoader, Trainer

ENTITIES, RELATIONS, FACTS, BATCH, WIDE = 30, 4, 200, 16, 12


def graph():
    facts = pd.DataFrame({
        "from": [f"e{n}" for n in np.random.randint(0, ENTITIES, FACTS)], "to": [f"e{n}" for n in np.random.randint(0, ENTITIES, FACTS)],
        "rel": [f"r{n}" for n in np.random.randint(0, RELATIONS, FACTS)],
    })  # fmt: skip
    return KnowledgeGraph(df=facts)


def of(name, *more, both=False):
    wide = (WIDE, WIDE) if both else (WIDE,)
    return lambda kg: getattr(models, name)(*wide, *more[:1] * (name == "ConvKBModel"), kg.n_ent, kg.n_rel, *more[(name == "ConvKBModel"):])  # fmt: skip


MODELS = {
    "transe": of("TransEModel"), "transe_l1": of("TransEModel", "L1"), "transh": of("TransHModel"), "transr": of("TransRModel", both=True),
    "transd": of("TransDModel", both=True), "toruse": of("TorusEModel", "torus_L2"), "toruse_l1": of("TorusEModel", "torus_L1"),
    "toruse_complex": of("TorusEModel", "torus_eL2"), "rescal": of("RESCALModel"), "distmult": of("DistMultModel"),
    "hole": of("HolEModel"), "complex": of("ComplExModel"), "analogy": of("AnalogyModel"), "convkb": of("ConvKBModel", 3),
}  # fmt: skip


def trained(model, loss=lambda: MarginLoss(0.5), sampled="bern", where="all", optimizer=torch.optim.Adam):
    """A step is a batch of the trainer's."""

    def make():
        kg = graph()
        net = model(kg)
        held = Trainer(net, loss(), kg, 2, BATCH, optimizer(net.parameters(), lr=4e-4), sampled, where)
        net.cuda(), held.criterion.cuda()
        batches, losses = iter(TrainDataLoader(kg, BATCH, sampled, where)), []  # `run` fails before its first batch

        def go():
            losses.append(held.process_batch(next(batches)))

        return go

    return make


for name, model in MODELS.items():
    STEPS[f"trained_{name}"] = trained(model)
STEPS["trained_by_logistic"] = trained(MODELS["complex"], LogisticLoss)
STEPS["trained_by_cross_entropy"] = trained(MODELS["distmult"], BinaryCrossEntropyLoss)
STEPS["trained_uniformly"] = trained(MODELS["transe"], sampled="unif")
STEPS["trained_of_moved_batches"] = trained(MODELS["transe"], where="batch")
STEPS["trained_uniformly_of_moved_batches"] = trained(MODELS["transh"], sampled="unif", where="batch")
STEPS["trained_by_sgd"] = trained(MODELS["transd"], optimizer=torch.optim.SGD)


def looped(model, sampler=BernoulliNegativeSampler, loss=lambda: MarginLoss(0.5), where="all", many=1):
    """A step is a batch of the docs' shortest loop, where facts are corrupted in each."""

    def make():
        kg = graph()
        net, criterion = model(kg).cuda(), loss().cuda()
        optimizer = torch.optim.Adam(net.parameters(), lr=4e-4, weight_decay=1e-5)
        sample = sampler(kg, n_neg=many) if many > 1 else sampler(kg)
        batches = DataLoader(kg, batch_size=BATCH, use_cuda=where)
        shown = {"sum": 0.0}
        sight = iter(list(batches))

        def go():
            heads, tails, relations = next(sight)
            corrupted = sample.corrupt_batch(heads, tails, relations)
            if where is None:  # what the sampler keeps stays on the host
                heads, tails, relations = heads.to(D), tails.to(D), relations.to(D)
                corrupted = [each.to(D) for each in corrupted]
            optimizer.zero_grad()
            positive, negative = net(heads, tails, relations, corrupted[0], corrupted[1], *corrupted[2:])
            value = criterion(positive, negative)
            value.backward()
            optimizer.step()
            shown["sum"] += value.item()

        return go

    return make


for name in ("transe", "transh", "distmult", "complex", "convkb"):
    STEPS[f"looped_{name}"] = looped(MODELS[name])
STEPS["looped_uniformly"] = looped(MODELS["transe"], UniformNegativeSampler)
STEPS["looped_positionally"] = looped(MODELS["transe"], PositionalNegativeSampler, where=None)
STEPS["looped_of_moved_batches"] = looped(MODELS["transe"], where="batch")
STEPS["looped_by_logistic"] = looped(MODELS["complex"], loss=LogisticLoss)
STEPS["looped_by_cross_entropy"] = looped(MODELS["rescal"], loss=BinaryCrossEntropyLoss)
STEPS["looped_of_many"] = looped(MODELS["transe"], many=3)
STEPS["looped_of_many_uniformly"] = looped(MODELS["transe"], UniformNegativeSampler, many=3)
STEPS["looped_of_other_relations"] = looped(MODELS["transe"], BernoulliRelationNegativeSampler, where=None)
