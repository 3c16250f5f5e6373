"""Training steps over synthcity 0.2.12: epochs of its generative and predictive models, on random tables and series.

A step runs the training loop of a model for two epochs, on data that lies on the device already and was split before.
"""

import importlib.abc
import importlib.machinery
import sys
import types
import warnings
from unittest import mock

import numpy as np
import pandas as pd
import scipy.integrate
import torch

warnings.filterwarnings("ignore")


class Missing(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Packages that no step needs, but that are imported."""

    names = """optuna opacus tsai monai pycox torchtuples xgboost xgbse shap redis lifelines geomloss pgmpy arfpy
        be_great dgl jax fflows fastcore tenacity igraph matplotlib torch_geometric deepecho decaf pykeops disjoint_set
        torch_sparse pytorch_lightning torchvision statsmodels imblearn catboost""".split()

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in self.names:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return mock.MagicMock(name=spec.name)

    def exec_module(self, module):
        module.__path__ = []


sys.meta_path.insert(0, Missing())
total = np.sum


def as_once(values, *args, **more):
    """np.sum, that takes generators too."""
    return total(list(values) if isinstance(values, types.GeneratorType) else values, *args, **more)


scipy.integrate.trapz, np.sum = np.trapezoid, as_once  # as in the SciPy and the NumPy of its time

from synthcity.plugins.core.models.flows import NormalizingFlows  # noqa: E402
from synthcity.plugins.core.models.gan import GAN  # noqa: E402
from synthcity.plugins.core.models.mlp import MLP  # noqa: E402
from synthcity.plugins.core.models.tabular_ddpm import TabDDPM  # noqa: E402
from synthcity.plugins.core.models.tabular_gan import TabularGAN  # noqa: E402
from synthcity.plugins.core.models.tabular_vae import TabularVAE  # noqa: E402
from synthcity.plugins.core.models.ts_gan import TimeSeriesGAN  # noqa: E402
from synthcity.plugins.core.models.ts_model import TimeSeriesModel  # noqa: E402
from synthcity.plugins.core.models.ts_vae import TimeSeriesVAE  # noqa: E402
from synthcity.plugins.core.models.vae import VAE  # noqa: E402

LOOP = {"n_iter_print": 1, "device": "cuda"}
ROWS = 40


def rows(width=6):
    return torch.rand(ROWS, width, device="cuda")


def once(model, name):
    """Let a method of a model answer as it did at first."""
    method, kept = getattr(model, name), []

    def answer(*args, **more):
        if not kept:
            kept.append(method(*args, **more))
        return kept[0]

    setattr(model, name, answer)


def gan(conditional=0, **more):
    def make():
        sizes = {
            "generator_n_units_hidden": 16,
            "discriminator_n_units_hidden": 16,
            "generator_n_iter": 2,
            "batch_size": 16,
        }
        model = GAN(6, 4, n_units_conditional=conditional, n_iter_min=1, **sizes, **LOOP, **more)
        once(model, "_train_test_split")
        x, cond = rows(), rows(conditional) if conditional else None
        return lambda: model._train(x, cond)

    return make


def vae(conditional=0, **more):
    def make():
        sizes = {"decoder_n_units_hidden": 16, "encoder_n_units_hidden": 16, "n_iter": 2, "batch_size": 16}
        model = VAE(6, 4, n_units_conditional=conditional, n_iter_min=1, **sizes, **LOOP, **more)
        once(model, "_train_test_split")
        x, cond = rows(), rows(conditional) if conditional else None
        return lambda: model._train(x, cond)

    return make


def mlp(task, **more):
    def make():
        model = MLP(
            n_units_in=6, n_units_out=3, task_type=task, n_units_hidden=16, n_iter=2, batch_size=16, **LOOP, **more
        )
        x, y = rows(), torch.arange(ROWS, device="cuda") % 3 if task == "classification" else rows(3)
        return lambda: model._train(x, y)

    return make


def flow(**more):
    def make():
        model = NormalizingFlows(n_iter=2, n_layers_hidden=1, batch_size=16, n_iter_min=1, **LOOP, **more)
        once(model, "_train_test_split")
        x = rows()
        return lambda: model.fit(x)

    return make


def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame({"a": rng.normal(size=ROWS), "b": rng.integers(0, 3, ROWS), "c": rng.normal(size=ROWS)})


def encoded(kind, **more):
    """A model of tables, whose encoder is fitted to one."""

    def make():
        data = table()
        sizes = {"n_units_latent": 4} if kind is TabularGAN else {"n_units_embedding": 4}
        turns = {"generator_n_iter": 2} if kind is TabularGAN else {"n_iter": 2}
        model = kind(data, batch_size=16, n_iter_min=1, **sizes, **turns, **LOOP, **more)
        inner = model.model
        once(inner, "_train_test_split")
        with mock.patch.object(inner, "fit") as fit:
            model.fit(data)
        given = [
            torch.as_tensor(np.asarray(each), dtype=torch.float32, device="cuda") for each in fit.call_args.args[:2]
        ]
        return lambda: inner._train(*given)

    return make


def diffusion(classes):
    def make():
        model = TabDDPM(
            n_iter=1, batch_size=16, num_timesteps=10, is_classification=classes, device=torch.device("cuda")
        )
        model.fit(table(), pd.Series(np.arange(ROWS) % 3) if classes else None)

        def go():
            for x, y in model.dataloader:
                model.optimizer.zero_grad()
                losses = model.diffusion.mixed_loss(x, y) if classes else model.diffusion.mixed_loss(x)
                sum(losses).backward()
                model.optimizer.step()
                model._update_ema(model.ema_model.parameters(), model.diffusion.parameters())

        return go

    return make


def series():
    times = torch.arange(5, device="cuda").float().repeat(ROWS, 1)
    return rows(3), torch.rand(ROWS, 5, 2, device="cuda"), times


def series_gan(mode):
    def make():
        sizes = {"n_static_units": 3, "n_static_units_latent": 3, "n_temporal_units": 2, "n_temporal_units_latent": 2}
        hidden = {"generator_n_units_hidden": 8, "discriminator_n_units_hidden": 8, "generator_n_iter": 1}
        model = TimeSeriesGAN(n_temporal_window=5, batch_size=20, mode=mode, **sizes, **hidden, **LOOP)
        data = series()
        return lambda: model._train(*data)

    return make


def series_vae():
    sizes = {"n_static_units": 3, "n_static_units_embedding": 4, "n_temporal_units": 2, "n_temporal_units_embedding": 4}
    hidden = {"decoder_n_units_hidden": 8, "encoder_n_units_hidden": 8}
    model = TimeSeriesVAE(n_temporal_window=5, batch_size=20, n_iter=2, **sizes, **hidden, **LOOP)
    data = series()
    return lambda: model._train(*data)


def series_model(mode, task):
    def make():
        sizes = {"n_static_units_in": 3, "n_temporal_units_in": 2, "n_temporal_window": 5, "output_shape": [2]}
        hidden = {"n_static_units_hidden": 8, "n_temporal_units_hidden": 8}
        model = TimeSeriesModel(task, mode=mode, n_iter=2, batch_size=16, **sizes, **hidden, **LOOP)
        once(model, "dataloader")
        static, temporal, times = series()
        outcome = torch.arange(ROWS, device="cuda") % 2 if task == "classification" else rows(2)
        return lambda: model._train([static], [temporal], [times], [outcome])

    return make


STEPS |= {  # noqa: F821
    "gan": gan(),
    "gan_conditional": gan(3),
    "gan_penalties": gan(generator_extra_penalties=["identifiability_penalty"], clipping_value=1),
    "vae": vae(),
    "vae_conditional": vae(3),
    "vae_robust": vae(loss_strategy="robust_divergence"),
    "vae_heads": vae(decoder_nonlin_out=[("tanh", 2), ("softmax", 4)]),
    "mlp_regression": mlp("regression"),
    "mlp_classification": mlp("classification", batch_norm=True, residual=True),
    "flow_spline": flow(),
    "flow_affine": flow(base_transform_type="affine-coupling", linear_transform_type="lu"),
    "flow_quadratic": flow(base_transform_type="quadratic-autoregressive", linear_transform_type="svd"),
    "table_gan": encoded(TabularGAN),
    "table_vae": encoded(TabularVAE),
    "table_diffusion": diffusion(False),
    "table_diffusion_classes": diffusion(True),
    "series_gan": series_gan("LSTM"),
    "series_gan_gru": series_gan("GRU"),
    "series_vae": series_vae,
    "series_rnn": series_model("RNN", "regression"),
    "series_gru": series_model("GRU", "regression"),
    "series_lstm_classes": series_model("LSTM", "classification"),
}
