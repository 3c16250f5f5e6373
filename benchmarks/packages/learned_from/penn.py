"""Training steps over PENN 1.0.0: its training of networks of pitch, with its losses and what it measures of them."""

absent("torbi torchutil yapecs torchaudio torchcrepe pyworld librosa matplotlib huggingface_hub pypar")

import importlib
import pathlib
import types

import torchutil

torchutil.notify = lambda *_, **__: lambda run: run  # who is told when it is done

import penn
import torbi

# the most likely of each frame, where the real one looks for the most likely path, on the device too
torbi.from_probabilities = lambda observation, **_: observation.argmax(-1)
core = importlib.import_module("penn.train.core")
torchutil.checkpoint.latest_path = lambda _: None  # it begins anew
FRAMES, BATCH = 2, 4
networks = {"fcnf0": penn.model.Fcnf0, "crepe": penn.model.Crepe, "deepf0": penn.model.Deepf0}


class Speech:
    """Batches of audio, of the bins of its pitch, and of the pitch and whether there is one."""

    sampler = types.SimpleNamespace(set_epoch=lambda _: None)

    def __init__(self, voiced=0.7, count=2):
        self.voiced, self.count = voiced, count

    def __iter__(self):
        for _ in range(self.count):
            audio = torch.randn(BATCH, 1, penn.WINDOW_SIZE)
            bins = torch.randint(0, penn.PITCH_BINS, (BATCH, 1))
            yield audio, bins, penn.convert.bins_to_frequency(bins), torch.rand(BATCH, 1) < self.voiced, ["x"] * BATCH


def trained(network="fcnf0", **settings):
    """A step is its training for two batches; what it evaluates now and then is left out."""

    def make():
        for name, each in {
            "STEPS": 2,
            "GAUSSIAN_BLUR": True,
            "LOSS": "categorical_cross_entropy",
            "DROPOUT": None,
            "EARLY_STOPPING": False,
            "LOG_STEPS": 1,
            **settings,
        }.items():
            setattr(penn, name, each)
        net = networks[network]()
        penn.model.Model = lambda: net
        penn.data.loader = lambda *_: Speech()
        core.evaluate = lambda *_: 0.0
        if hasattr(core.loss, "cents"):
            del core.loss.cents

        def go():
            core.train(["mdb"], pathlib.Path("runs"), 0)

        return go

    return make


STEPS["fcnf0"] = trained()
STEPS["fcnf0_without_blur"] = trained(GAUSSIAN_BLUR=False)
STEPS["fcnf0_binary"] = trained(LOSS="binary_cross_entropy")
STEPS["fcnf0_binary_without_blur"] = trained(LOSS="binary_cross_entropy", GAUSSIAN_BLUR=False)
STEPS["fcnf0_stopped_early"] = trained(EARLY_STOPPING=True)
STEPS["crepe"] = trained("crepe", LOSS="binary_cross_entropy")
STEPS["deepf0"] = trained("deepf0", LOSS="binary_cross_entropy")
STEPS["fcnf0_in_longer_runs"] = trained(STEPS=3)


def looped(network, **settings):
    """A loop of the user's over its network and its loss."""

    def make():
        for name, each in {"GAUSSIAN_BLUR": True, "LOSS": "categorical_cross_entropy", **settings}.items():
            setattr(penn, name, each)
        if hasattr(core.loss, "cents"):
            del core.loss.cents
        audio = torch.randn(BATCH, 1, penn.WINDOW_SIZE, device=D)
        bins = torch.randint(0, penn.PITCH_BINS, (BATCH, 1), device=D)
        return train(networks[network](), lambda net: core.loss(net(audio), bins))

    return make


STEPS["own_loop"] = looped("fcnf0")
STEPS["own_loop_without_blur"] = looped("fcnf0", GAUSSIAN_BLUR=False)


@step
def measured():
    """What it measures, in each step of a loop."""
    penn.GAUSSIAN_BLUR, penn.LOSS = True, "categorical_cross_entropy"
    net = penn.model.Fcnf0().to(D)
    counts = penn.evaluate.Metrics()
    audio = torch.randn(BATCH, 1, penn.WINDOW_SIZE, device=D)
    bins = torch.randint(0, penn.PITCH_BINS, (BATCH, 1), device=D)
    pitch, voiced = penn.convert.bins_to_frequency(bins), torch.rand(BATCH, 1, device=D) < 0.7

    def loss(net):
        out = net(audio)
        counts.update(out.detach(), bins.T, pitch.T, voiced.T)
        return core.loss(out, bins)

    go = train(net, loss)

    def both():
        counts.reset()
        go()
        counts()

    return both
