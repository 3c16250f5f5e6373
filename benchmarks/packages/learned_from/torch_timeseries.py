"""Training steps over torch-timeseries 0.2.5: batches of its experiments, each model at each task that it has, on noise."""

import dataclasses
import importlib
import tempfile

import pandas as pd

absent("sktime wandb")

from torch_timeseries.core import TimeSeriesDataset
from torch_timeseries.experiment import Experiment

ROWS, WIDTH, CLASSES = 600, 3, 4
SMALL = {
    "d_model": 16, "d_ff": 16, "hidden_dim": 8, "hidden_size": 8, "n_heads": 2, "e_layers": 2, "d_layers": 1, "n_layers": 2,
    "n_mixer": 2,
    "moving_avg": 5, "modes": 4, "T": 20, "num_kernels": 2, "top_k": 2, "label_len": 12, "patch_len": 8,
    "stride": 4,
    "kernel_size": 5, "epochs_ae": 2, "epochs_sup": 2,
}  # fmt: skip


class Noise(TimeSeriesDataset):
    """A series by the hour."""

    name, freq = "noise", "h"

    def download(self):
        pass

    def _load(self):
        self.data = np.random.rand(ROWS, WIDTH)
        self.df = pd.DataFrame(self.data, columns=[f"c{i}" for i in range(WIDTH)])
        self.df.insert(0, "date", pd.date_range("2022-01-01", periods=ROWS, freq="h"))
        self.dates = self.df[["date"]]
        return self.data


class Machine(TimeSeriesDataset):
    """Of a machine: what is ordinary, and what is not."""

    name, freq = "machine", "t"

    def download(self):
        pass

    def _load(self):
        self.train_data, self.test_data = np.random.rand(ROWS, WIDTH), np.random.rand(200, WIDTH)
        self.test_labels = np.random.randint(0, 2, 200)
        self.df, self.data = pd.DataFrame(self.train_data), self.train_data
        return self.data


class Gestures:
    """Series of one length, each of a class."""

    def __init__(self, *_, **__):
        self.num_features, self.num_classes, self.max_seq_len = WIDTH, CLASSES, 24
        self.train_df, self.train_labels = self.some(64)
        self.test_df, self.test_labels = self.some(16)

    def some(self, count):
        at = np.repeat(np.arange(count), self.max_seq_len)
        labels = pd.DataFrame(np.random.randint(0, CLASSES, (count, 1)), dtype=np.int8)
        return pd.DataFrame(np.random.rand(len(at), WIDTH), index=at), labels


class Patients:
    """Series at times of their own, some of whose values nobody measured."""

    num_features, num_classes = WIDTH, 2

    def __init__(self):
        lengths = np.random.randint(5, 12, 80)
        self.samples = [np.random.rand(n, WIDTH) for n in lengths]
        self.times = [np.sort(np.random.rand(n)) for n in lengths]
        self.masks = [(np.random.rand(n, WIDTH) > 0.3).astype(np.float32) for n in lengths]
        self.labels = np.random.randint(0, 2, 80)

    def __len__(self):
        return len(self.samples)


TASKS = {
    "Forecast": ("forecast", "Noise", {"windows": 24, "pred_len": 12}),
    "Imputation": ("imputation", "Noise", {"windows": 24}),
    "AnomalyDetection": ("anomaly_detection", "Machine", {"windows": 24, "spacing": 4}),
    "UEAClassification": ("uea_classification", "Gestures", {"windows": 24}),
    "Generation": ("generation", "Noise", {"seq_len": 24}),
    "IrregularClassification": ("irregular_classification", "PhysioNet2012", {}),
}
for name, dataset in (
    ("forecast", Noise),
    ("imputation", Noise),
    ("engine", Noise),
    ("generation", Noise),
    ("anomaly_detection", Machine),
):
    setattr(importlib.import_module(f"torch_timeseries.experiments.{name}"), dataset.__name__, dataset)
importlib.import_module("torch_timeseries.experiments.uea_classification").UEA = Gestures


def trained(model, task, optimizers=1, before=0, **more):
    """A step is a batch of an experiment that is run."""

    def make():
        kind = getattr(importlib.import_module(f"torch_timeseries.experiments.{model}"), f"{model}{task}")
        _, dataset, given = TASKS[task]
        known = {each.name for each in dataclasses.fields(kind)}
        home = tempfile.mkdtemp()
        held = {
            "dataset_type": dataset,
            "device": D,
            "batch_size": 16,
            "epochs": 2,
            "data_path": home,
            "save_dir": home,
        }
        small = {name: value for name, value in SMALL.items() if name in known}
        experiment = kind(**{**small, **given, **held, **more})
        if task == "IrregularClassification":
            experiment._toy_dataset = Patients()
        return loop(lambda: experiment.run(seed=1), optimizers, before)

    return make


ALL = ("Forecast", "Imputation", "AnomalyDetection", "UEAClassification")
for model in ("NLinear", "Autoformer", "Informer", "PatchTST", "iTransformer", "TimesNet"):
    for task in ALL:
        STEPS[f"{model}_{task}"] = trained(model, task)
for task in ALL:
    STEPS[f"FEDformer_{task}"] = trained("FEDformer", task, n_heads=8)  # as many as its blocks of frequencies have
for task in ALL[1:]:
    STEPS[f"DLinear_{task}"] = trained("DLinear", task)
for model in ("TSMixer", "SCINet"):  # what else these have asks for what they lack
    STEPS[f"{model}_Forecast"] = trained(model, "Forecast")
for model in ("FITS", "FreTS"):
    STEPS[f"{model}_Forecast"] = trained(model, "Forecast")
    STEPS[f"{model}_UEAClassification"] = trained(model, "UEAClassification")
STEPS["CATS_Forecast"] = trained("CATS", "Forecast")
STEPS["GRUD_IrregularClassification"] = trained("GRUD", "IrregularClassification")
for model in ("CSDI", "DiffusionTS", "NsDiff", "TMDM", "TimeDiff"):
    STEPS[f"{model}_Generation"] = trained(model, "Generation")
STEPS["TimeGAN_Generation"] = trained("TimeGAN", "Generation")
STEPS["forecast_of_what_is_scaled_back"] = trained("NLinear", "Forecast", invtrans_loss=True, max_grad_norm=1.0)
STEPS["forecast_of_absolute_errors"] = trained(
    "iTransformer", "Forecast", loss_func_type="mae", lradj="cosine", optm_type="SGD"
)
STEPS["imputation_of_what_is_scaled_back"] = trained("iTransformer", "Imputation", invtrans_loss=True)


def engine(model, **more):
    """A step is a batch of the engine that the readme's `Experiment` runs."""

    def make():
        home = tempfile.mkdtemp()
        held = Experiment(
            model=model, task="Forecast", dataset="Noise", windows=24, pred_len=12, device=D, batch_size=16, epochs=2,
            data_path=home, save_dir=home, **more,
        )  # fmt: skip
        return loop(lambda: held.run(seeds=[1]))

    return make


STEPS["engine"] = engine("DLinear")
STEPS["engine_clipped"] = engine("DLinear", individual=True, max_grad_norm=1.0, loss_func_type="mae")
STEPS["engine_scaled_back"] = engine("DLinear", invtrans_loss=True, pin_memory=True)
