"""Training steps over opacus 1.6.0: networks that `PrivacyEngine` makes private, by each of its ways to clip."""

import torch.nn.functional as F
from opacus import PrivacyEngine
from opacus.layers import DPGRU, DPLSTM, DPRNN, DPMultiheadAttention
from opacus.schedulers import ExponentialGradClip, ExponentialNoise, LambdaNoise, StepGradClip
from opacus.utils.batch_memory_manager import BatchMemoryManager
from opacus.validators import ModuleValidator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(nn.Module):
    """Convolutions with group norms, as in the package's examples."""

    def __init__(self):
        super().__init__()
        self.convs = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3)
        )
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        return self.head(self.convs(x).mean((2, 3)))


class Reader(nn.Module):
    """Words that a recurrent layer reads."""

    def __init__(self, layer=DPLSTM, **more):
        super().__init__()
        self.words = nn.Embedding(50, 16)
        self.layer = layer(16, 16, batch_first=True, **more)
        self.head = nn.Linear(32 if more.get("bidirectional") else 16, 4)

    def forward(self, x):
        return self.head(self.layer(self.words(x))[0].mean(1))


class Attending(nn.Module):
    """A layer of attention, as in the package's example on reviews."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(50, 16)
        self.attention = DPMultiheadAttention(16, 2, batch_first=True)
        self.norm = nn.LayerNorm(16)
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        words = self.words(x)
        attended, _ = self.attention(words, words, words)
        return self.head(self.norm(words + attended).mean(1))


def pictures():
    return TensorDataset(torch.randn(64, 3, 8, 8), torch.randint(0, 4, (64,)))


def texts():
    return TensorDataset(torch.randint(0, 50, (64, 12)), torch.randint(0, 4, (64,)))


def rows():
    return TensorDataset(torch.randn(64, 10), torch.randint(0, 4, (64,)))


def perceptron():
    return nn.Sequential(nn.Linear(10, 16), nn.Tanh(), nn.Linear(16, 4))


def private(net, data, optimizer=torch.optim.SGD, schedulers=(), report=False, physical=0, accountant="prv", **more):
    """A step is one batch of the loader that the engine makes, as in the package's examples."""
    engine = PrivacyEngine(accountant=accountant)
    net = net.to(D).train()
    options = {"noise_multiplier": 1.0, "max_grad_norm": 1.0, "poisson_sampling": False, **more}
    made = engine.make_private(
        module=net,
        optimizer=optimizer(net.parameters(), lr=0.05),
        data_loader=DataLoader(data, batch_size=16, shuffle=True),
        criterion=nn.CrossEntropyLoss(),
        **options,
    )
    net, optimizer, *criterion, loader = made
    criterion = criterion[0] if criterion else nn.CrossEntropyLoss()
    schedulers = [each(optimizer) for each in schedulers]
    if physical:
        loader = BatchMemoryManager(
            data_loader=loader, max_physical_batch_size=physical, optimizer=optimizer
        ).__enter__()

    def batches():
        while True:
            yield from loader

    each = batches()

    def go():
        x, y = (held.to(D) for held in next(each))
        optimizer.zero_grad()
        loss = criterion(net(x), y)
        loss.backward()
        optimizer.step()
        for scheduler in schedulers:
            scheduler.step()
        if report:
            engine.get_epsilon(1e-5)

    return go


@step
def convolutions():
    return private(Classifier(), pictures())


@step
def convolutions_poisson():
    return private(Classifier(), pictures(), torch.optim.RMSprop, poisson_sampling=True)


@step
def convolutions_ghost():
    return private(Classifier(), pictures(), grad_sample_mode="ghost")


@step
def convolutions_by_functorch():
    return private(Classifier(), pictures(), grad_sample_mode="functorch")


@step
def convolutions_by_expanded_weights():
    return private(Classifier(), pictures(), grad_sample_mode="ew")


@step
def convolutions_per_layer():
    norms = [1.0] * len(list(Classifier().parameters()))
    return private(Classifier(), pictures(), clipping="per_layer", max_grad_norm=norms)


@step
def convolutions_adaptive():
    adaptive = {
        "target_unclipped_quantile": 0.5,
        "clipbound_learning_rate": 0.2,
        "max_clipbound": 10.0,
        "min_clipbound": 0.1,
        "unclipped_num_std": 1.0,
    }
    return private(Classifier(), pictures(), clipping="adaptive", **adaptive)


@step
def convolutions_in_smaller_batches():
    return private(Classifier(), pictures(), physical=4)


@step
def convolutions_that_were_mended():
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, groups=2), nn.Flatten(), nn.Linear(128, 4)
    )
    return private(ModuleValidator.fix(net), pictures(), torch.optim.Adam)


@step
def convolutions_in_one_dimension():
    net = nn.Sequential(
        nn.Unflatten(1, (2, 5)), nn.Conv1d(2, 4, 3), nn.InstanceNorm1d(4, affine=True), nn.Flatten(), nn.Linear(12, 4)
    )
    return private(net, rows())


@step
def perceptron_with_schedules():
    schedulers = [lambda o: ExponentialNoise(o, gamma=0.99), lambda o: StepGradClip(o, step_size=2, gamma=0.9)]
    return private(perceptron(), rows(), schedulers=schedulers)


@step
def perceptron_with_other_schedules():
    schedulers = [
        lambda o: LambdaNoise(o, noise_lambda=lambda n: 0.99**n),
        lambda o: ExponentialGradClip(o, gamma=0.99),
    ]
    return private(perceptron(), rows(), torch.optim.Adam, schedulers=schedulers, loss_reduction="mean")


@step
def perceptron_accounted():
    return private(perceptron(), rows(), accountant="rdp", report=True)


@step
def perceptron_accounted_gdp():
    return private(perceptron(), rows(), accountant="gdp", poisson_sampling=True)


@step
def perceptron_ghost_in_smaller_batches():
    return private(perceptron(), rows(), grad_sample_mode="ghost", physical=8)


@step
def perceptron_for_an_epsilon():
    net, engine = perceptron().to(D), PrivacyEngine()
    net, optimizer, loader = engine.make_private_with_epsilon(
        module=net,
        optimizer=torch.optim.SGD(net.parameters(), 0.05),
        data_loader=DataLoader(rows(), batch_size=16),
        target_epsilon=8.0,
        target_delta=1e-5,
        epochs=2,
        max_grad_norm=1.0,
        poisson_sampling=False,
    )

    def batches():
        while True:
            yield from loader

    each = batches()

    def go():
        x, y = (held.to(D) for held in next(each))
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()

    return go


@step
def lstm():
    return private(Reader(), texts(), torch.optim.Adam)


@step
def lstm_in_two_directions():
    return private(Reader(bidirectional=True, num_layers=2, dropout=0.1), texts())


@step
def gru():
    return private(Reader(DPGRU), texts())


@step
def rnn():
    return private(Reader(DPRNN), texts())


@step
def attention():
    return private(Attending(), texts(), torch.optim.AdamW)


@step
def sums_of_squares_normed():
    net = nn.Sequential(nn.Embedding(50, 16), nn.RMSNorm(16), nn.Flatten(), nn.Linear(192, 4))
    return private(net, texts(), clipping="flat", accountant="rdp")


@step
def embeddings_ghost():
    net = nn.Sequential(nn.Embedding(50, 8), nn.Flatten(), nn.LayerNorm(96), nn.Linear(96, 4))
    return private(net, texts(), grad_sample_mode="ghost", poisson_sampling=True)
