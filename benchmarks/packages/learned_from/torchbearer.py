"""Training steps over torchbearer 0.5.5: its trials run some batches, with its callbacks and metrics."""

import os
import tempfile
from unittest import mock

import torchbearer
from torch import nn
from torchbearer import Trial, callbacks, metrics

CLASSES, ROWS = 4, 12


def images(channels=3):
    return torch.rand(ROWS, channels, 12, 12), torch.randint(0, CLASSES, (ROWS,))


def network():
    return nn.Sequential(
        nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.Flatten(), nn.Linear(864, CLASSES)
    )


def tried(
    told=(), counted=("loss",), loss=None, net=network, data=images, verbose=0, validated=False, prepare=None, **more
):
    """A step is an epoch of three batches in a trial."""

    def make():
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), 1e-3)
        held = torch.utils.data.TensorDataset(*data())
        loader = torch.utils.data.DataLoader(held, batch_size=4, shuffle=True)
        heard = [each() for each in told]
        with mock.patch.object(torchbearer.Trial, "__str__", lambda _: ""):
            trial = Trial(
                model,
                optimizer,
                (loss or nn.CrossEntropyLoss)(),
                metrics=list(counted),
                callbacks=heard,
                verbose=verbose,
            )
        trial = trial.to(D).with_train_generator(loader)
        if validated:
            trial = trial.with_val_generator(loader)
        if prepare:
            prepare(trial)
        held = {"epochs": 0}

        def go():
            held["epochs"] += 1
            trial.run(held["epochs"], **more)

        return go

    return make


STEPS["plain"] = tried()
STEPS["accuracy"] = tried(counted=("acc", "loss"))
STEPS["top_k"] = tried(
    counted=("top_5_acc",),
    data=lambda: (torch.rand(ROWS, 3, 12, 12), torch.randint(0, 4, (ROWS,))),
    net=lambda: nn.Sequential(nn.Flatten(), nn.Linear(432, 8)),
)
STEPS["validated"] = tried(counted=("acc", "loss"), validated=True)
STEPS["shown_by_tqdm"] = tried(counted=("acc", "loss", "lr"), verbose=2)
STEPS["shown_by_epochs"] = tried(counted=("acc", "loss"), verbose=1)
STEPS["printed"] = tried([callbacks.ConsolePrinter], ("acc", "loss"))
STEPS["clipped_norm"] = tried([lambda: callbacks.GradientNormClipping(1.0)])
STEPS["clipped"] = tried([lambda: callbacks.GradientClipping(0.5)])
STEPS["decayed"] = tried([lambda: callbacks.L1WeightDecay(1e-4), lambda: callbacks.L2WeightDecay(1e-4)])
STEPS["ended_by_nan"] = tried([callbacks.TerminateOnNaN])
STEPS["stopped_early"] = tried([lambda: callbacks.EarlyStopping(monitor="val_loss", patience=50)], validated=True)
STEPS["cut_out"] = tried([lambda: callbacks.Cutout(1, 4)])
STEPS["erased"] = tried([lambda: callbacks.RandomErase(1, 4)])
STEPS["cut_and_mixed"] = tried([lambda: callbacks.CutMix(1.0, CLASSES)], loss=lambda: soft, counted=("loss",))
STEPS["mixed"] = tried([lambda: callbacks.Mixup(1.0)], ("loss", callbacks.MixupAcc()), loss=lambda: mixed_loss)
STEPS["mixed_between_classes"] = tried([lambda: callbacks.BCPlus(classes=CLASSES)], loss=lambda: soft)
STEPS["smoothed"] = tried([lambda: callbacks.LabelSmoothingRegularisation(0.1, CLASSES)], loss=lambda: soft)
STEPS["paired"] = tried([callbacks.SamplePairing])
STEPS["scheduled"] = tried([lambda: callbacks.CosineAnnealingLR(10, step_on_batch=True)], ("loss", "lr"))
STEPS["scheduled_by_plateaus"] = tried([lambda: callbacks.ReduceLROnPlateau(monitor="loss")])
STEPS["logged"] = tried(
    [lambda: callbacks.CSVLogger(os.path.join(tempfile.mkdtemp(), "log.csv"), batch_granularity=True)], ("acc", "loss")
)
STEPS["kept"] = tried(
    [lambda: callbacks.Best(os.path.join(tempfile.mkdtemp(), "best.pt"), monitor="val_loss")], validated=True
)
STEPS["regressed"] = tried(
    counted=("mse", "loss"),
    loss=nn.MSELoss,
    net=lambda: nn.Linear(5, 2),
    data=lambda: (torch.randn(ROWS, 5), torch.randn(ROWS, 2)),
)
STEPS["binary"] = tried(
    counted=("binary_acc", "loss"),
    loss=nn.BCELoss,
    net=lambda: nn.Sequential(nn.Linear(5, 1), nn.Sigmoid(), nn.Flatten(0)),
    data=lambda: (torch.randn(ROWS, 5), (torch.arange(ROWS) % 2).float()),
)
STEPS["spread"] = tried(counted=(metrics.std(metrics.Loss()),))


def soft(given, wanted):
    return -(wanted * given.log_softmax(1)).sum(1).mean()


def mixed_loss(state):
    given, kinds = state[torchbearer.Y_PRED], state[torchbearer.Y_TRUE]
    share = state[torchbearer.MIXUP_LAMBDA]
    if not isinstance(kinds, tuple):
        return nn.functional.cross_entropy(given, kinds)
    return share * nn.functional.cross_entropy(given, kinds[0]) + (1 - share) * nn.functional.cross_entropy(
        given, kinds[1]
    )


@step
def closure_of_own():
    """A batch with a loss that the state is given to."""

    def loss():
        return lambda state: nn.functional.cross_entropy(state[torchbearer.Y_PRED], state[torchbearer.Y_TRUE])

    return tried(loss=loss, counted=("loss",))()
