"""Training steps over cogdl 0.6: an epoch of its Trainer, training and validation, of its models on random graphs.

Models, data and model wrappers and their settings are made by `cogdl.experiments.train`, as a call of `experiment`
makes them. Operators that it compiles for CUDA are not there; it then takes those that are written in PyTorch.
"""

import collections
import collections.abc
import contextlib
import os
import sys
import tempfile
from unittest import mock

import numpy as np
import torch

absent("wandb optuna gensim ogb tabulate sentencepiece geopy grave matplotlib transformers turtle")
collections.Iterable = collections.abc.Iterable  # as in the Python and the NumPy of its time
np.int, np.float = int, float
arguments, sys.argv = sys.argv, sys.argv[:1]

from cogdl import experiments  # noqa: E402
from cogdl.data import Graph, MultiGraphDataset  # noqa: E402
from cogdl.datasets import NodeDataset  # noqa: E402
from cogdl.options import get_default_args  # noqa: E402
from cogdl.utils import Accuracy, CrossEntropyLoss  # noqa: E402

sys.argv = arguments
FOLDER = tempfile.mkdtemp()


def graph():
    """A graph whose nodes have features and a class, and a part in training, validation or test."""
    part = torch.arange(60) % 3
    return Graph(
        x=torch.rand(60, 12),
        edge_index=torch.randint(0, 60, (2, 240)),
        y=torch.arange(60) % 4,
        train_mask=part == 0,
        val_mask=part == 1,
        test_mask=part == 2,
    )


def nodes():
    return NodeDataset(path=os.path.join(FOLDER, "nodes.pt"), data=graph())


class Graphs(MultiGraphDataset):
    """Small graphs of two classes."""

    def __init__(self):
        super().__init__(root=FOLDER)
        self.data = [
            Graph(x=torch.rand(8, 12), edge_index=torch.randint(0, 8, (2, 24)), y=torch.tensor([at % 2]))
            for at in range(24)
        ]

    def _download(self):
        pass

    def _process(self):
        pass

    def get_evaluator(self):
        return Accuracy()

    def get_loss_fn(self):
        return CrossEntropyLoss()


def epoch(model, dataset, **settings):
    """An epoch of the trainer that `experiment` makes for a model."""
    argv = sys.argv
    args = get_default_args("cora", model, **settings)
    sys.argv = argv
    args.dataset, args.model, args.devices, args.seed, args.split = dataset(), model, ["cuda:0"], 0, 0
    made = {}

    def keep(trainer, model_w, dataset_w):
        made.update(trainer=trainer, model=model_w, data=dataset_w)

    with mock.patch.object(experiments.Trainer, "run", keep), mock.patch.object(os, "makedirs"):
        experiments.train(args)
    trainer, model_w, data = made["trainer"], made["model"], made["data"]
    model_w.default_loss_fn, model_w.default_evaluator = data.get_default_loss_fn(), data.get_default_evaluator()
    model_w.set_evaluation_metric()
    model_w, _ = trainer.initialize(model_w, rank="cuda:0")
    trainer.data_controller.prepare_data_wrapper(data, "cuda:0")
    trainer.eval_data_back_to_cpu = data.data_back_to_cpu
    optimizers, schedulers = trainer.build_optimizer(model_w)
    with torch.no_grad():
        data.pre_stage(0, model_w.pre_stage(0, data))
        trainer.data_controller.training_proc_per_stage(data, "cuda:0")

    def go():
        data.train()
        trainer.train_step(model_w, data.on_train_wrapper(), optimizers, schedulers, "cuda:0", None)
        if data.on_val_wrapper() is not None:
            trainer.validate(model_w, data, "cuda:0")

    return go


def aside(model, dataset):
    """An epoch, made where a model may leave the files that it keeps."""
    with contextlib.chdir(FOLDER):
        return epoch(model, dataset)


NODES = """gcn gat gcnii grand grace mvgrl dgi graphsage unsup_graphsage mixhop ppnp pprgo sagn sgc drgat drgcn
    dropedge_gcn revgcn m3s""".split()
for name in NODES:
    STEPS[name] = lambda name=name: aside(name, nodes)  # noqa: F821
for name in "gin sortpool infograph".split():
    STEPS[name] = lambda name=name: aside(name, Graphs)  # noqa: F821
