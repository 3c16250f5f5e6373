"""Training steps over poutyne 1.19.0: batches of a model's `fit`, with its metrics, callbacks, policies and bundles."""

import tempfile

import poutyne
import torchmetrics
from poutyne import Experiment, Lambda, Model, ModelBundle
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FEATURES, CLASSES, ROWS, BATCH = 20, 5, 320, 16


class Convolved(nn.Module):
    """Images of so many pixels."""

    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            Lambda(lambda x: x.view(-1, 1, 4, 5)), nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten()
        )
        self.head = nn.Linear(4 * 2 * 3, CLASSES)

    def forward(self, x):
        return self.head(self.main(x))


class Pixels(nn.Module):
    """A class for each of so many places."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(FEATURES, CLASSES * 6)

    def forward(self, x):
        return self.net(x).view(-1, CLASSES, 6)


class Both(nn.Module):
    """Two things go in, two come out."""

    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Linear(FEATURES, CLASSES), nn.Linear(FEATURES, CLASSES)

    def forward(self, x, y):
        return self.left(x), self.right(y)


def linear(out=CLASSES):
    return lambda: nn.Sequential(nn.Linear(FEATURES, 16), nn.ReLU(), nn.Linear(16, out))


def numbers(*shape):
    return np.random.rand(ROWS, *shape).astype("float32")


def classes(so_many=CLASSES, *shape):
    return np.random.randint(0, so_many, (ROWS, *shape)).astype("int64")


def named():
    return numbers(FEATURES), classes()


def tensors():
    return tuple(torch.from_numpy(each) for each in named())


def fitted(
    data=named,
    net=linear(),
    optimizer="sgd",
    loss="cross_entropy",
    callbacks=lambda net: (),
    metrics=tuple,
    whole=tuple,
    **more,
):
    """A step is a batch of `fit`."""

    def make():
        x, y = data()
        made = optimizer if isinstance(optimizer, str | dict) else None
        net_ = net()
        held = Model(
            net_, made or optimizer(net_.parameters()), loss, batch_metrics=list(metrics()), epoch_metrics=list(whole()), device=D
        )  # fmt: skip
        return loop(lambda: held.fit(x, y, epochs=2, batch_size=BATCH, callbacks=list(callbacks(net_)), **more))

    return make


STEPS["default"] = fitted()
STEPS["of_tensors"] = fitted(tensors)
STEPS["silent"] = fitted(verbose=False)
STEPS["adam"] = fitted(optimizer="adam")
STEPS["weight_decay"] = fitted(optimizer={"optim": "AdamW", "lr": 1e-3, "weight_decay": 0.1})
STEPS["convolved"] = fitted(net=Convolved)
STEPS["accuracy"] = fitted(metrics=lambda: ["accuracy"])
STEPS["accuracies"] = fitted(metrics=lambda: ["accuracy", "top3", "top5"])
STEPS["accuracy_and_f1"] = fitted(metrics=lambda: ["accuracy"], whole=lambda: ["f1"])
STEPS["precision_and_recall"] = fitted(
    whole=lambda: [poutyne.Precision(average="macro"), poutyne.Recall(average="macro")]
)
STEPS["f1_of_a_label"] = fitted(whole=lambda: [poutyne.F1(average=1)])
STEPS["f1_of_each_batch"] = fitted(metrics=lambda: ["f1"])
STEPS["auroc"] = fitted(
    metrics=lambda: ["accuracy"], whole=lambda: [torchmetrics.AUROC(num_classes=CLASSES, task="multiclass")]
)
STEPS["by_sklearn"] = fitted(
    whole=lambda: [poutyne.SKLearnMetrics(lambda y_true, y_pred: float((y_true == y_pred.argmax(1)).mean()))]
)
STEPS["pixels"] = fitted(lambda: (numbers(FEATURES), classes(CLASSES, 6)), Pixels, metrics=lambda: ["accuracy"])
STEPS["two_classes"] = fitted(
    lambda: (numbers(FEATURES), np.random.randint(0, 2, (ROWS, 1)).astype("float32")),
    linear(1),
    loss="binary_cross_entropy_with_logits",
    metrics=lambda: ["binary_accuracy"],
)
STEPS["two_classes_f1"] = fitted(
    lambda: (numbers(FEATURES), np.random.randint(0, 2, (ROWS,)).astype("float32")),
    lambda: nn.Sequential(linear(1)(), nn.Flatten(0)),
    loss="binary_cross_entropy_with_logits",
    whole=lambda: ["binary_f1", "binary_precision"],
)
STEPS["a_number"] = fitted(lambda: (numbers(FEATURES), numbers(1)), linear(1), loss="mse", metrics=lambda: ["l1"])
STEPS["two_and_two"] = fitted(
    lambda: ((numbers(FEATURES), numbers(FEATURES)), (classes(), classes())),
    Both,
    loss=lambda out, y: nn.functional.cross_entropy(out[0], y[0]) + nn.functional.cross_entropy(out[1], y[1]),
)
STEPS["accumulated"] = fitted(metrics=lambda: ["accuracy"], batches_per_step=2)
STEPS["some_batches"] = fitted(steps_per_epoch=12)
CALLED = {
    "clipped_by_norm": lambda net: poutyne.ClipNorm(net.parameters(), max_norm=1.0), "clipped_by_value": lambda net: poutyne.ClipValue(net.parameters(), clip_value=0.5), "stops_at_nan": lambda net: poutyne.TerminateOnNaN(),
    "cosine": lambda net: poutyne.CosineAnnealingLR(T_max=10), "exponential": lambda net: poutyne.ExponentialLR(gamma=0.9),
    "plateau": lambda net: poutyne.ReduceLROnPlateau(monitor="loss"), "told_by_csv": lambda net: poutyne.CSVLogger(f"{tempfile.mkdtemp()}/log.csv"),
    "told_by_csv_of_batches": lambda net: poutyne.CSVLogger(f"{tempfile.mkdtemp()}/log.csv", batch_granularity=True),
    "gradients_told": lambda net: poutyne.TensorBoardGradientTracker(writer(), keep_bias=True),
    "told_by_tensorboard": lambda net: poutyne.TensorBoardLogger(writer()), "stops_early": lambda net: poutyne.EarlyStopping(monitor="loss"),
    "kept": lambda net: poutyne.ModelCheckpoint(f"{tempfile.mkdtemp()}/net.ckpt", monitor="loss", save_best_only=True),
    "restored": lambda net: poutyne.BestModelRestore(monitor="loss"),
    "lambda": lambda net: poutyne.LambdaCallback(on_train_batch_end=lambda batch, logs: logs["loss"]),
    "one_cycle": lambda net: poutyne.OptimizerPolicy(poutyne.one_cycle_phases(40)),
    "restarts": lambda net: poutyne.OptimizerPolicy(poutyne.sgdr_phases(base_cycle_length=10, cycles=3)),
}  # fmt: skip


def writer():
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(tempfile.mkdtemp())


for name, callback in CALLED.items():
    STEPS[f"with_{name}"] = fitted(
        callbacks=lambda net, callback=callback: [callback(net)], metrics=lambda: ["accuracy"]
    )


def dataset():
    return TensorDataset(*tensors())


@step
def of_a_loader():
    held = Model(linear()(), "sgd", "cross_entropy", batch_metrics=["accuracy"], device=D)
    return loop(lambda: held.fit_generator(DataLoader(dataset(), BATCH), DataLoader(dataset(), BATCH), epochs=2))


@step
def of_a_dataset():
    held = Model(linear()(), "sgd", "cross_entropy", batch_metrics=["accuracy"], device=D)
    return loop(lambda: held.fit_dataset(dataset(), dataset(), epochs=2, batch_size=BATCH))


@step
def by_batches():
    held = Model(linear()(), "sgd", "cross_entropy", batch_metrics=["accuracy"], device=D)
    x, y = tensors()
    return lambda: held.train_on_batch(x[:BATCH], y[:BATCH])


@step
def bundled():
    held = ModelBundle.from_network(
        tempfile.mkdtemp(), linear()(), optimizer="sgd", task="classif", device=D, epoch_metrics=["f1"]
    )
    return loop(lambda: held.train(DataLoader(dataset(), BATCH), DataLoader(dataset(), BATCH), epochs=2))


@step
def bundled_numbers():
    held = ModelBundle.from_network(tempfile.mkdtemp(), linear(1)(), optimizer="adam", task="reg", device=D)
    return loop(lambda: held.train_data(numbers(FEATURES), numbers(1), epochs=2, batch_size=BATCH))


@step
def experiment():
    held = Experiment(tempfile.mkdtemp(), linear()(), optimizer="sgd", task="classif", device=D)
    return loop(lambda: held.train(DataLoader(dataset(), BATCH), DataLoader(dataset(), BATCH), epochs=2))
