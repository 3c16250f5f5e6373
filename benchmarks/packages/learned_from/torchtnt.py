"""Training steps over torchtnt 0.2.4: steps of its loop, by units of one's own and by those that it makes, with what it logs."""

import os
import tempfile
from collections import namedtuple

from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchtnt.framework.auto_unit import AutoUnit, SWALRParams, SWAParams
from torchtnt.framework.callback import Callback
from torchtnt.framework.callbacks import (
    EarlyStopping,
    GarbageCollector,
    IterationTimeLogger,
    Lambda,
    LearningRateMonitor,
    TensorBoardParameterMonitor,
    ThroughputLogger,
    TQDMProgressBar,
    TrainProgressMonitor,
)
from torchtnt.framework.fit import fit
from torchtnt.framework.train import train as trained
from torchtnt.framework.unit import EvalUnit, TrainUnit
from torchtnt.utils import copy_data_to_device, init_from_env
from torchtnt.utils.data import CudaDataPrefetcher, MultiDataLoader
from torchtnt.utils.data.iterators import InOrder, RoundRobin
from torchtnt.utils.early_stop_checker import EarlyStopChecker
from torchtnt.utils.loggers import CSVLogger, InMemoryLogger, JSONLogger, StdoutLogger, TensorBoardLogger
from torchtnt.utils.memory import measure_rss_deltas
from torchtnt.utils.misc import transfer_batch_norm_stats, transfer_weights
from torchtnt.utils.timer import Timer

WIDTH, ROWS, BATCHES = 8, 4, 12
Named = namedtuple("Named", "x y")


def net():
    return nn.Sequential(nn.Linear(WIDTH, 8), nn.ReLU(), nn.Linear(8, 2))


def data(pack=None):
    held = TensorDataset(torch.randn(ROWS * BATCHES, WIDTH), torch.randint(0, 2, (ROWS * BATCHES,)))
    if pack is None:
        return DataLoader(held, ROWS, shuffle=True)
    return DataLoader(
        held, ROWS, shuffle=True, collate_fn=lambda rows: pack(*map(torch.stack, zip(*rows, strict=True)))
    )


class Auto(AutoUnit):
    """A unit whose loss alone is one's own."""

    def __init__(self, read=tuple, **more):
        super().__init__(module=net(), device=torch.device(D), **more)
        self.read, self.loss = read, None

    def compute_loss(self, state, data):
        x, y = self.read(data)
        shown = self.module(x)
        return nn.functional.cross_entropy(shown, y), shown

    def configure_optimizers_and_lr_scheduler(self, module):
        held = torch.optim.SGD(module.parameters(), lr=0.01, momentum=0.9)
        return held, torch.optim.lr_scheduler.ExponentialLR(held, gamma=0.99)

    def on_train_step_end(self, state, data, step, results):
        self.loss = results.loss.detach()


class Logging(Auto):
    """Its loss is logged at each step."""

    def __init__(self, logger, **more):
        super().__init__(**more)
        self.logger = logger

    def on_train_step_end(self, state, data, step, results):
        super().on_train_step_end(state, data, step, results)
        self.logger.log("loss", results.loss, step)
        if results.total_grad_norm is not None:
            self.logger.log_dict({"norm": results.total_grad_norm, "rate": self.optimizer.param_groups[0]["lr"]}, step)


class Own(TrainUnit, EvalUnit):
    """As the readme's: a step that is written out."""

    def __init__(self, logger=None, each=1):
        super().__init__()
        self.device = torch.device(D)
        self.module = net().to(self.device)
        self.optimizer = torch.optim.Adam(self.module.parameters(), 1e-3)
        self.lr_scheduler = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, 0.99)
        self.logger, self.each, self.loss = logger, each, None

    def train_step(self, state, data):
        x, y = copy_data_to_device(data, self.device)
        shown = self.module(x)
        loss = nn.functional.cross_entropy(shown, y)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.loss = loss.detach()
        if self.logger and self.train_progress.num_steps_completed % self.each == 0:
            self.logger.log("loss", loss, self.train_progress.num_steps_completed)
        return loss, shown

    def on_train_epoch_end(self, state):
        self.lr_scheduler.step()

    def eval_step(self, state, data):
        x, y = copy_data_to_device(data, self.device)
        return nn.functional.cross_entropy(self.module(x), y)


def folder(name):
    return os.path.join(tempfile.mkdtemp(), name)


def run(unit, feed=data, callbacks=(), **more):
    """A step of `train`."""

    def make():
        made, loader = unit(), feed()
        held = [each(made) for each in callbacks]
        return loop(lambda: trained(made, loader, max_epochs=3, callbacks=held, **more))

    return make


STEPS["own"] = run(Own)
STEPS["own_prefetched"] = run(Own, lambda: CudaDataPrefetcher(data(), torch.device(D), 2))
STEPS["own_timed"] = run(Own, timer=None)
STEPS["auto"] = run(Auto)
STEPS["auto_dicts"] = run(
    lambda: Auto(lambda held: (held["x"], held["y"])), lambda: data(lambda x, y: {"x": x, "y": y, "name": "rows"})
)
STEPS["auto_named"] = run(Auto, lambda: data(Named))
STEPS["auto_lists"] = run(lambda: Auto(lambda held: held[0]), lambda: data(lambda x, y: [(x, y)]))
STEPS["auto_by_steps"] = run(lambda: Auto(step_lr_interval="step"))
STEPS["auto_norm_clipped"] = run(lambda: Auto(clip_grad_norm=1.0))
STEPS["auto_values_clipped"] = run(lambda: Auto(clip_grad_value=0.5))
STEPS["auto_checked"] = run(lambda: Auto(detect_anomaly=True))
STEPS["auto_bf16"] = run(lambda: Auto(precision="bf16"))
STEPS["auto_fp16"] = run(lambda: Auto(precision="fp16"))
STEPS["auto_fp16_clipped"] = run(lambda: Auto(precision="fp16", clip_grad_norm=1.0))
STEPS["auto_averaged"] = run(
    lambda: Auto(swa_params=SWAParams(0, 1, swalr_params=SWALRParams(3)), step_lr_interval="step")
)
STEPS["auto_averaged_equally"] = run(
    lambda: Auto(swa_params=SWAParams(0, 1, averaging_method="swa"), step_lr_interval="step")
)
STEPS["auto_averaged_lightly"] = run(lambda: Auto(swa_params=SWAParams(0, 1, use_lit=True), step_lr_interval="step"))


@step
def auto_accumulating():
    """A step is two batches."""
    made, loader = Auto(gradient_accumulation_steps=2), data()
    return loop(lambda: trained(made, loader, max_epochs=3))


LOGGERS = {
    "memory": InMemoryLogger,
    "stdout": StdoutLogger,
    "csv": lambda: CSVLogger(folder("log.csv"), steps_before_flushing=1),
    "json": lambda: JSONLogger(folder("log.json"), steps_before_flushing=1),
    "tensorboard": lambda: TensorBoardLogger(tempfile.mkdtemp()),
}
for name, logger in LOGGERS.items():
    STEPS[f"own_logged_{name}"] = run(lambda logger=logger: Own(logger()))
    STEPS[f"auto_logged_{name}"] = run(lambda logger=logger: Logging(logger(), clip_grad_norm=1.0))
STEPS["own_logged_at_times"] = run(lambda: Own(InMemoryLogger(), each=50))
STEPS["rates_logged"] = run(Own, callbacks=[lambda _: LearningRateMonitor(InMemoryLogger(), logging_interval="step")])
STEPS["times_logged"] = run(Own, callbacks=[lambda _: IterationTimeLogger(InMemoryLogger(), moving_avg_window=2)])
STEPS["rows_counted"] = run(Auto, callbacks=[lambda _: ThroughputLogger(InMemoryLogger(), {"rows": ROWS})])
STEPS["shown_in_a_bar"] = run(Auto, callbacks=[lambda _: TQDMProgressBar(), lambda _: GarbageCollector(2)])
STEPS["weights_logged"] = run(
    Auto,
    callbacks=[
        lambda _: TensorBoardParameterMonitor(TensorBoardLogger(tempfile.mkdtemp())),
        lambda _: TrainProgressMonitor(TensorBoardLogger(tempfile.mkdtemp())),
    ],
)
STEPS["told_by_a_function"] = run(
    Auto, callbacks=[lambda unit: Lambda(on_train_step_end=lambda state, unit: unit.loss.item())]
)


def stopping(name="own", unit=Own, **more):
    """Stops where the loss of steps is no longer bettered."""
    checker = {"mode": "min", "patience": 99, **more}
    STEPS[f"stopping_{name}"] = run(
        unit, callbacks=[lambda _: EarlyStopping("loss", EarlyStopChecker(**checker), interval="step")]
    )


stopping()
stopping("auto", Auto)
stopping("at_a_threshold", stopping_threshold=-1.0, divergence_threshold=99.0)
stopping("by_shares", min_delta=0.001, threshold_mode="rel")
stopping("unchecked", check_finite=False)


class Watched(Callback):
    """Keeps the mean of the losses, on the device."""

    def __init__(self):
        self.mean = 0.0

    def on_train_step_end(self, state, unit):
        self.mean = 0.9 * self.mean + 0.1 * unit.loss


STEPS["watched"] = run(Own, callbacks=[lambda _: Watched()])
STEPS["fitted"] = lambda: loop(
    lambda made=Own(), rows=data(): fit(made, rows, rows, max_epochs=3, evaluate_every_n_epochs=1)
)
STEPS["fitted_auto"] = lambda: loop(
    lambda made=Auto(), rows=data(): fit(made, rows, rows, max_epochs=3, evaluate_every_n_epochs=1)
)


def several(kind):
    def make():
        made = Own()
        made.train_step = lambda state, held, step=made.train_step: step(state, next(iter(held.values())))
        loader = MultiDataLoader({"a": data(), "b": data()}, kind())
        return loop(lambda: trained(made, loader, max_epochs=3))

    return make


STEPS["of_several_loaders"] = several(RoundRobin)
STEPS["of_loaders_in_order"] = several(InOrder)


def by_hand(**more):
    """A step of the examples without the loop: the device of the environment, a batch, the loss."""

    def make():
        device = init_from_env()
        made = net().to(device)
        optimizer, timer = torch.optim.SGD(made.parameters(), 0.01), Timer(**more)
        batches = (batch for _ in range(9) for batch in data())

        def go():
            with timer.time("copy"):
                x, y = copy_data_to_device(next(batches), device, non_blocking=False)
            with timer.time("step"):
                optimizer.zero_grad()
                nn.functional.cross_entropy(made(x), y).backward()
                optimizer.step()

        return go

    return make


STEPS["hand_timed"] = by_hand(cuda_sync=False)


@step
def hand_measured():
    """What memory of the host a step takes, and a teacher that follows."""
    student, teacher = (nn.Sequential(nn.Linear(WIDTH, 8), nn.BatchNorm1d(8), nn.Linear(8, 2)).to(D) for _ in range(2))
    optimizer, batches = torch.optim.SGD(student.parameters(), 0.01), (batch for _ in range(9) for batch in data())

    def go():
        deltas = []
        with measure_rss_deltas(deltas):
            x, y = copy_data_to_device(next(batches), torch.device(D), non_blocking=True)
            optimizer.zero_grad()
            nn.functional.cross_entropy(student(x), y).backward()
            optimizer.step()
        transfer_weights(student, teacher)
        transfer_batch_norm_stats(student, teacher)

    return go
