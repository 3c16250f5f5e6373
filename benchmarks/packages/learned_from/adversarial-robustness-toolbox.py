"""Training steps over the Adversarial Robustness Toolbox 1.20.1: what its classifiers, trainers and attacks do of a batch."""

absent("torchvision")

from art.attacks.evasion import (
    AutoProjectedGradientDescent,
    CarliniL2Method,
    FastGradientMethod,
    ProjectedGradientDescentPyTorch,
)
from art.defences import trainer
from art.defences.preprocessor import CutMixPyTorch, CutoutPyTorch, MixupPyTorch
from art.estimators.certification import randomized_smoothing
from art.estimators.classification import PyTorchClassifier

ROWS, CLASSES = 8, 4
SHAPE = (3, 12, 12)
IMAGES = np.random.default_rng(0).random((ROWS, *SHAPE), dtype=np.float32)
LABELS = np.eye(CLASSES, dtype=np.float32)[np.arange(ROWS) % CLASSES]


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(
            torch.nn.Conv2d(3, 4, 3, 2), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(100, CLASSES)
        )

    def forward(self, x):
        return self.body(x)


def classifier(kind=PyTorchClassifier, **more):
    net = Net()
    return kind(
        model=net,
        loss=torch.nn.CrossEntropyLoss(),
        optimizer=torch.optim.SGD(net.parameters(), 0.01),
        input_shape=SHAPE,
        nb_classes=CLASSES,
        clip_values=(0.0, 1.0),
        device_type="gpu",
        **more,
    )


def fitted(made, **more):
    more = {"batch_size": ROWS, "nb_epochs": 1, **more}
    return lambda: made.fit(IMAGES, LABELS, **more)


@step
def plain():
    return fitted(classifier())


@step
def shown():
    return fitted(classifier(), display_progress_bar=True)


for name, make in {
    "cutmix": lambda: CutMixPyTorch(num_classes=CLASSES, alpha=1.0, probability=1.0, device_type="gpu"),
    "cutout": lambda: CutoutPyTorch(length=4, channels_first=True, apply_fit=True, device_type="gpu"),
    "mixup": lambda: MixupPyTorch(num_classes=CLASSES, device_type="gpu"),
}.items():
    STEPS[name] = lambda make=make: fitted(classifier(preprocessing_defences=make()))


def attacked(make):
    def made():
        attack = make(classifier())
        return lambda: attack.generate(IMAGES, LABELS)

    return made


STEPS["fgsm"] = attacked(lambda of: FastGradientMethod(of, eps=0.1, batch_size=ROWS))
STEPS["fgsm_minimal"] = attacked(
    lambda of: FastGradientMethod(of, eps=0.1, minimal=True, eps_step=0.05, batch_size=ROWS)
)
for norm in (np.inf, 1, 2):
    STEPS[f"pgd_{norm}"] = attacked(
        lambda of, norm=norm: ProjectedGradientDescentPyTorch(
            of, norm=norm, eps=0.1, eps_step=0.05, max_iter=2, num_random_init=1, batch_size=ROWS, verbose=False
        )
    )
STEPS["auto_pgd"] = attacked(
    lambda of: AutoProjectedGradientDescent(
        of, eps=0.1, max_iter=3, nb_random_init=1, batch_size=ROWS, loss_type="cross_entropy", verbose=False
    )
)
STEPS["carlini"] = attacked(
    lambda of: CarliniL2Method(of, max_iter=2, binary_search_steps=1, batch_size=ROWS, verbose=False)
)


def inner(of, **more):
    return ProjectedGradientDescentPyTorch(
        of, eps=0.1, eps_step=0.05, max_iter=2, batch_size=ROWS, verbose=False, **more
    )


@step
def madry():
    of = classifier()
    made = trainer.AdversarialTrainerMadryPGD(of, nb_epochs=1, batch_size=ROWS, max_iter=2, num_random_init=1)
    return lambda: made.fit(IMAGES, LABELS)


@step
def adversarial():
    of = classifier()
    made = trainer.AdversarialTrainer(of, inner(of), ratio=0.5)
    return lambda: made.fit(IMAGES, LABELS, batch_size=ROWS, nb_epochs=1)


@step
def fbf():
    made = trainer.AdversarialTrainerFBFPyTorch(classifier(), eps=0.1)
    return lambda: made.fit(IMAGES, LABELS, batch_size=ROWS, nb_epochs=1)


@step
def fbf_validated():
    made = trainer.AdversarialTrainerFBFPyTorch(classifier(), eps=0.1)
    return lambda: made.fit(IMAGES, LABELS, validation_data=(IMAGES, LABELS), batch_size=ROWS, nb_epochs=1)


@step
def trades():
    of = classifier()
    made = trainer.AdversarialTrainerTRADESPyTorch(of, inner(of), beta=6.0)
    return lambda: made.fit(IMAGES, LABELS, batch_size=ROWS, nb_epochs=1)


def awp_of(mode):
    of, proxy = classifier(), classifier()
    made = trainer.AdversarialTrainerAWPPyTorch(of, proxy, inner(of), mode=mode, gamma=0.01, beta=6.0, warmup=0)
    return lambda: made.fit(IMAGES, LABELS, batch_size=ROWS, nb_epochs=1)


@step
def awp_pgd():
    return awp_of("PGD")


@step
def awp_trades():
    return awp_of("TRADES")


def smoothed(kind, **more):
    made = classifier(kind, **more)
    return lambda: made.fit(IMAGES, LABELS, batch_size=ROWS, nb_epochs=1)


@step
def randomized():
    return smoothed(randomized_smoothing.PyTorchRandomizedSmoothing, sample_size=4, scale=0.1)


@step
def macer():
    return smoothed(randomized_smoothing.PyTorchMACER, sample_size=4, scale=0.1, gaussian_samples=2, gamma=8.0)


@step
def smooth_adv():
    return smoothed(
        randomized_smoothing.PyTorchSmoothAdv,
        sample_size=4,
        scale=0.1,
        num_steps=2,
        num_noise_vec=2,
        epsilon=0.2,
        warmup=1,
    )


@step
def smooth_mix():
    return smoothed(
        randomized_smoothing.PyTorchSmoothMix,
        sample_size=4,
        scale=0.1,
        num_steps=2,
        num_noise_vec=2,
        maxnorm=1.0,
        maxnorm_s=0.5,
    )
