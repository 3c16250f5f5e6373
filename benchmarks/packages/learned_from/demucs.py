"""Training steps over Demucs 4.1.0: its solver's epochs over each of its networks, with its losses, averages, augmentation and penalty."""

import logging
import sys
from unittest import mock

for absent in ("musdb", "museval", "lameenc", "sphn", "diffq", "submitit", "treetable"):
    try:
        __import__(absent)
    except ImportError:
        sys.modules[absent] = mock.MagicMock()

for each in ("hydra", "hydra.core", "hydra.core.global_hydra"):
    sys.modules.setdefault(each, mock.MagicMock())  # ways to start it

import dora

dora.hydra_main = lambda **_: lambda main: main

from demucs import augment
from demucs.demucs import Demucs
from demucs.ema import ModelEMA
from demucs.hdemucs import HDemucs
from demucs.htdemucs import HTDemucs
from demucs.solver import Solver
from demucs.train import get_optimizer
from omegaconf import OmegaConf

logging.getLogger("demucs.solver").setLevel(logging.INFO)
SOURCES, RATE, LENGTH = ["drums", "bass", "vocals"], 1000, 1024


def settings(**more):
    """Its configuration, as far as an epoch of training reads it."""
    base = {
        "max_batches": None,
        "debug": False,
        "flag": None,
        "weights": [1.0] * len(SOURCES),
        "valid_apply": False,
        "optim": {
            "loss": "l1",
            "clip_grad": 0,
            "optim": "adam",
            "lr": 3e-4,
            "momentum": 0.9,
            "beta2": 0.999,
            "weight_decay": 0,
        },
        "quant": {"diffq": None},
        "misc": {"num_prints": 4},
        "svd": {
            "penalty": 0,
            "min_size": 0.001,
            "dim": 1,
            "niters": 2,
            "powm": False,
            "proba": 1,
            "conv_only": False,
            "convtr": True,
            "bs": 1,
        },
        "ema": {"epoch": [0.9, 0.95], "batch": [0.9995, 0.9999]},
        "augment": {
            "shift_same": False,
            "flip": True,
            "scale": {"proba": 1.0, "min": 0.25, "max": 1.25},
            "remix": {"proba": 1.0, "group_size": 2},
        },
    }
    return OmegaConf.merge(OmegaConf.create(base), OmegaConf.create(more))


class Songs:
    """Batches of sources of songs."""

    def __init__(self, length, count=1):
        self.length, self.count = length, count

    def __len__(self):
        return self.count

    def __iter__(self):
        for _ in range(self.count):
            yield torch.randn(2, len(SOURCES), 2, self.length)


def solved(network, shift=256, change=None, **more):
    """A step is an epoch of a batch in its solver."""

    def make():
        args, model = settings(**more), network().to(D)
        solver = Solver.__new__(Solver)  # without the folder of an experiment
        solver.args, solver.model, solver.dmodel, solver.device = args, model, model, torch.device(D, 0)
        solver.loaders = {"train": Songs(LENGTH + shift)}
        solver.optimizer, solver.quantizer = get_optimizer(model, args), None
        solver.emas = {
            kind: [ModelEMA(model, decay, device=D if kind == "batch" else "cpu") for decay in args.ema[kind] or []]
            for kind in ("batch", "epoch")
        }
        parts = [augment.Shift(shift=shift, same=args.augment.shift_same)]
        if args.augment.flip:
            parts += [augment.FlipChannels(), augment.FlipSign()]
        for name in ("scale", "remix"):
            if args.augment[name].proba:
                parts.append(getattr(augment, name.capitalize())(**args.augment[name]))
        solver.augment = torch.nn.Sequential(*parts)
        model.train()
        return lambda: solver._run_one_epoch(0)

    return make


def demucs(**more):
    return lambda: Demucs(SOURCES, channels=4, depth=3, samplerate=RATE, **{"dconv_attn": 2, "dconv_lstm": 2, **more})


def hybrid(**more):
    return lambda: HDemucs(SOURCES, channels=4, nfft=256, depth=3, samplerate=RATE, segment=2, **more)


def transformer(**more):
    small = {
        "channels": 4,
        "nfft": 256,
        "depth": 2,
        "t_layers": 2,
        "t_heads": 2,
        "t_hidden_scale": 1.0,
        "samplerate": RATE,
    }
    return lambda: HTDemucs(
        SOURCES, **{**small, "segment": 2, "bottom_channels": 16, "use_train_segment": False, "dconv_comp": 2, **more}
    )


STEPS["demucs"] = solved(demucs())
STEPS["demucs_mse"] = solved(demucs(), optim={"loss": "mse", "clip_grad": 1.0})
STEPS["demucs_of_one_shift"] = solved(demucs(), augment={"shift_same": True, "remix": {"group_size": 0}})
STEPS["demucs_without_augmentation"] = solved(
    demucs(), augment={"flip": False, "scale": {"proba": 0.0}, "remix": {"proba": 0.0}}
)
STEPS["demucs_with_lstm"] = solved(demucs(lstm_layers=1, dconv_mode=3))
STEPS["demucs_without_resampling"] = solved(demucs(resample=False, normalize=False, gelu=False, glu=False))
STEPS["demucs_without_averages"] = solved(demucs(), ema={"epoch": [], "batch": []})
STEPS["demucs_penalized"] = solved(demucs(), svd={"penalty": 1e-5})
STEPS["demucs_penalized_by_powers"] = solved(demucs(), svd={"penalty": 1e-5, "powm": True, "bs": 2})
STEPS["demucs_penalized_convolutions"] = solved(demucs(), svd={"penalty": 1e-5, "conv_only": True, "convtr": False})
STEPS["demucs_weighted"] = solved(demucs(), weights=[1.0, 2.0, 0.5], optim={"optim": "adamw", "weight_decay": 1e-3})
STEPS["demucs_unused"] = solved(demucs(), flag="uns")
STEPS["hybrid"] = solved(hybrid())
STEPS["hybrid_mse"] = solved(hybrid(), optim={"loss": "mse"})
STEPS["hybrid_of_magnitudes"] = solved(hybrid(cac=False))
STEPS["hybrid_of_magnitudes_filtered"] = solved(hybrid(cac=False, wiener_iters=1, end_iters=1))
STEPS["hybrid_without_time"] = solved(hybrid(hybrid=False))
STEPS["hybrid_of_old"] = solved(hybrid(hybrid_old=True))
STEPS["hybrid_of_many_frequencies"] = solved(hybrid(multi_freqs=[0.25], multi_freqs_depth=2))
STEPS["hybrid_without_embedding"] = solved(hybrid(freq_emb=0, context=0, rewrite=False))
STEPS["transformer"] = solved(transformer())
STEPS["transformer_mse"] = solved(transformer(), optim={"loss": "mse", "clip_grad": 5.0})
STEPS["transformer_of_magnitudes"] = solved(transformer(cac=False))
STEPS["transformer_with_relative_places"] = solved(transformer(t_emb="cape"))
STEPS["transformer_with_scaled_places"] = solved(transformer(t_emb="scaled"))
STEPS["transformer_without_cross"] = solved(transformer(t_layers=1, t_cross_first=True))
STEPS["transformer_grouped"] = solved(transformer(t_group_norm=True, t_norm_in_group=True, t_norm_out=True))
STEPS["transformer_penalized"] = solved(transformer(), svd={"penalty": 1e-5})
STEPS["transformer_of_a_train_segment"] = solved(transformer(use_train_segment=True))
