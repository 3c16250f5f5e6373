"""Training steps over DICE Embeddings 0.3.3: embeddings of knowledge graphs, a batch each, as its own trainer of PyTorch runs it."""

import types

absent("rdflib gradio pykeen dask zstandard swifter tiktoken igraph")

import dicee.models as M
from dicee.dataset_classes import KvsAll, OnevsAllDataset, OnevsSample, TriplePredictionDataset
from dicee.trainer.torch_trainer import TorchTrainer

ENTITIES, RELATIONS, WIDTH = 30, 4, 16
INDICES = {
    "entity_idxs": {f"e{i}": i for i in range(ENTITIES)},
    "relation_idxs": {f"r{i}": i for i in range(RELATIONS)},
}


def triples(count=120):
    return np.stack([np.random.randint(0, most, count) for most in (ENTITIES, RELATIONS, ENTITIES)], 1)


def datasets(kind):
    found = triples()
    return {
        "NegSample": lambda: TriplePredictionDataset(found, ENTITIES, RELATIONS, neg_sample_ratio=2),
        "KvsAll": lambda: KvsAll(found, **INDICES, form="EntityPrediction", label_smoothing_rate=0.1),
        "1vsAll": lambda: OnevsAllDataset(found, INDICES["entity_idxs"]),
        "1vsSample": lambda: OnevsSample(found, ENTITIES, RELATIONS, neg_sample_ratio=3),
    }[kind]()


def run(kind, scoring="NegSample", accumulated=1, width=WIDTH, **more):
    """A step is a batch of the trainer: brought to the device, scored, and its loss read."""

    def make():
        args = {
            "model": kind.__name__,
            "embedding_dim": width,
            "num_entities": ENTITIES,
            "num_relations": RELATIONS,
            "scoring_technique": scoring,
            "learning_rate": 0.01,
            "optim": "Adam",
            **more,
        }
        model = kind(args)
        trainer = TorchTrainer(
            types.SimpleNamespace(random_seed=0, gpus=None, gradient_accumulation_steps=accumulated, max_epochs=1), []
        )
        trainer.device, trainer.model = torch.device(D), model.to(D).train()
        trainer.loss_function, trainer.training_step = model.loss_function, model.training_step
        trainer.optimizer = model.configure_optimizers()
        data = datasets(scoring)
        loader = torch.utils.data.DataLoader(data, 16, shuffle=True, collate_fn=data.collate_fn)

        def batches():
            while True:
                yield from loader

        each = enumerate(batches())

        def go():
            i, batch = next(each)
            x, y = trainer.extract_input_outputs_set_device(batch)
            return trainer._run_batch(i, x, y)

        return go

    return make


STEPS["keci"] = run(M.Keci, p=0, q=1)
STEPS["keci_k_vs_all"] = run(M.Keci, "KvsAll", p=1, q=2)
STEPS["ckeci"] = run(M.CKeci, "KvsAll", p=1, q=2)
STEPS["decal"] = run(M.DeCaL, p=1, q=1, r=1)
STEPS["decal_k_vs_all"] = run(M.DeCaL, "KvsAll", p=1, q=1, r=1)
STEPS["complex"] = run(M.ComplEx, "1vsAll")
STEPS["complex_accumulated"] = run(M.ComplEx, "KvsAll", accumulated=2)
STEPS["conex"] = run(M.ConEx, "KvsAll", normalization="BatchNorm1d")
STEPS["aconex"] = run(M.AConEx, normalization="LayerNorm")
STEPS["rotate"] = run(M.RotatE, "KvsAll")
STEPS["distmult"] = run(M.DistMult, "1vsSample")
STEPS["distmult_adopt"] = run(M.DistMult, optim="Adopt", input_dropout_rate=0.1)
STEPS["transe"] = run(M.TransE)
STEPS["transh"] = run(M.TransH)
STEPS["mure"] = run(M.MuRE, "KvsAll")
STEPS["pyke"] = run(M.Pyke)
STEPS["qmult"] = run(M.QMult, "KvsAll", normalization="LayerNorm")
STEPS["convq"] = run(M.ConvQ, "KvsAll", normalization="LayerNorm")
STEPS["omult"] = run(M.OMult, "KvsAll", normalization="BatchNorm1d")
STEPS["aconvo"] = run(M.AConvO, normalization="LayerNorm")
STEPS["duale"] = run(M.DualE, "KvsAll", optim="AdamW")
STEPS["lfmult"] = run(M.LFMult, degree=1, x_range=3)
