"""Training steps over OpenSoundscape 0.13.2: classifiers of recorded birds, their losses and metrics, by `training_step`."""

absent(
    "skimage pywt docopt schema librosa soundfile pytorch_grad_cam timm wandb ipywidgets deprecated aru_metadata_parser hawkears noisereduce soxr"
)

import librosa
import pandas as pd

librosa.load = lambda *_, **__: (np.zeros(16000, "float32"), 16000)  # the package loads a sample where it is imported
from opensoundscape.ml import loss as L
from opensoundscape.ml.cnn import SpectrogramClassifier
from opensoundscape.ml.shallow_classifier import MLPClassifier, fit
from opensoundscape.sample import AudioSample

CLASSES = ["wren", "robin", "owl", "rail"]


class Small(torch.nn.Module):
    """A network of pictures that ends in a layer of its own, as the package asks."""

    def __init__(self, classes=len(CLASSES)):
        super().__init__()
        self.conv = torch.nn.Conv2d(1, 4, 3, stride=2)
        self.norm = torch.nn.BatchNorm2d(4)
        self.fc = torch.nn.Linear(4, classes)
        self.classifier_layer = "fc"

    def forward(self, x):
        return self.fc(self.norm(self.conv(x)).relu().mean((2, 3)))


def samples(single=False, count=8):
    """Spectrograms and what is heard in them, as a data set of the package's gives them."""
    found = []
    for _ in range(count):
        labels = np.zeros(len(CLASSES)) if single else (np.random.rand(len(CLASSES)) > 0.6).astype(float)
        labels[np.random.randint(len(CLASSES))] = 1.0
        each = AudioSample("a.wav", start_time=0, duration=1.0, labels=pd.Series(labels, index=CLASSES))
        each.data = torch.randn(1, 24, 24)
        found.append(each)
    return found


def classifier(single=False, **more):
    model = SpectrogramClassifier(
        Small(), CLASSES, sample_duration=1.0, sample_rate=16000, single_target=single, channels=1, device=D, **more
    )
    model.network.to(D)
    return model


def stepped(loss=None, single=False, change=None, after=None):
    """A step is a batch: the loss, what the metrics make of it, and the number that `train` keeps."""

    def make():
        model = classifier(single)
        if loss:
            model.loss_fn = loss()
        if change:
            change(model)
        held = model.configure_optimizers(reset_optimizer=True)
        model.optimizer, model.scheduler = held["optimizer"], held["scheduler"]
        model.network.train()
        count = iter(range(10**6))

        def go():
            value = model.training_step(samples(single), next(count))
            model.loss_hist.append(value.item())
            model.scheduler.step()
            if after:
                after(model)

        return go

    return make


def optimized(name, **kwargs):
    def change(model):
        model.optimizer_params = {"class": getattr(torch.optim, name), "kwargs": kwargs, "classifier_lr": 0.01}

    return change


def mixed(model):
    model.use_amp = True


STEPS["multilabel"] = stepped()
STEPS["multilabel_sgd"] = stepped(change=optimized("SGD", lr=0.01, momentum=0.9))
STEPS["multilabel_mixed"] = stepped(change=mixed)
STEPS["weak_negatives"] = stepped(lambda: L.BCELossWeakNegatives(0.1))
STEPS["single_target"] = stepped(single=True)
STEPS["resampled"] = stepped(lambda: L.ResampleLoss(torch.tensor([3.0, 5.0, 2.0, 9.0], device=D)))
STEPS["resampled_from_host"] = stepped(lambda: L.ResampleLoss(torch.tensor([3.0, 5.0, 2.0, 9.0])))
STEPS["evaluated"] = stepped(after=lambda model: model.eval())
STEPS["single_target_evaluated"] = stepped(single=True, after=lambda model: model.eval())
STEPS["frozen"] = stepped(change=lambda model: model.freeze_feature_extractor())


@step
def validated():
    """A batch that trains, and one that is held out."""
    go, model = stepped()(), classifier()

    def both():
        go()
        model.network.eval()
        with torch.no_grad():
            model.validation_step(samples(), 0)

    return both


@step
def shallow():
    """Steps of a small classifier of features that another network found."""
    net = MLPClassifier(16, len(CLASSES), hidden_layer_sizes=(8,)).to(D)
    x, y = np.random.randn(64, 16).astype("float32"), (np.random.rand(64, len(CLASSES)) > 0.5).astype("float32")
    return lambda: fit(net, x, y, x, y, steps=2, batch_size=32, validation_interval=1, device=D)
