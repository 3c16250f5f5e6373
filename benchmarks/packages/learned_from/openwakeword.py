"""Training steps over openwakeword 0.6.0: batches of what hears a word, of features of sounds that are made up, by each of its nets."""

import tempfile
from pathlib import Path

absent(
    "torchinfo pronouncing audiomentations torch_audiomentations speechbrain torchaudio mutagen acoustics onnxruntime"
)

from openwakeword.data import mmap_batch_generator
from openwakeword.train import Model
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

SHAPE = (16, 96)


class Endless(IterableDataset):
    """Of the package's script: what a generator gives is a batch."""

    def __init__(self, made):
        self.made = made

    def __iter__(self):
        return self.made


def kept(rows, shift):
    """Features in a file, as they are kept on a disk."""
    path = Path(tempfile.mkdtemp(), "features.npy")
    np.save(path, (np.random.rand(rows, *SHAPE) + shift).astype(np.float32))
    return str(path)


def cut(x):
    """Features of another length are cut into windows."""
    rows = x.shape[0] * x.shape[1] // SHAPE[0]
    return x.reshape(-1, SHAPE[1])[: rows * SHAPE[0]].reshape(rows, *SHAPE)


def batches(rows=160, transformed=False):
    each = {"word": rows // 4, "adversarial_negative": rows // 4, "noise": rows // 2}
    held = mmap_batch_generator(
        {"word": kept(400, 0.1), "adversarial_negative": kept(400, 0.0), "noise": kept(800, -0.1)}, n_per_class=each,
        data_transform_funcs={"noise": cut} if transformed else {},
        label_transform_funcs={"word": lambda x: [1 for _ in x], "adversarial_negative": lambda x: [0 for _ in x], "noise": lambda x: [0 for _ in x]},
    )  # fmt: skip
    return DataLoader(Endless(held), batch_size=None)


def held_apart(rows, label=None):
    """What is looked at between."""
    y = (torch.arange(rows) % 2).float() if label is None else torch.full((rows,), label)
    return DataLoader(TensorDataset(torch.rand(rows, *SHAPE), y), batch_size=rows)


def heard(rows=160, transformed=False, model=None, **more):
    """A step is a batch of `train_model`."""

    def make():
        held = Model(input_shape=SHAPE, **(model or {}))
        given = {"max_steps": 40, "warmup_steps": 8, "hold_steps": 10, "val_steps": [30], **more}
        return loop(lambda: held.train_model(X=batches(rows, transformed), **given))

    return make


SMALL = {"layer_dim": 32}
STEPS["dense"] = heard(model=SMALL)
STEPS["dense_of_blocks"] = heard(model={"layer_dim": 32, "n_blocks": 3})
STEPS["dense_weighed"] = heard(model=SMALL, negative_weight_schedule=np.linspace(1, 100, 40).tolist())
STEPS["dense_large_batches"] = heard(320, model=SMALL)
STEPS["dense_gathered"] = heard(64, model=SMALL)
STEPS["dense_cut"] = heard(transformed=True, model=SMALL)
STEPS["dense_held_rate"] = heard(model=SMALL, hold_steps=0, lr=1e-3)
STEPS["recurrent"] = heard(model={"model_type": "rnn"})
STEPS["recurrent_weighed"] = heard(
    model={"model_type": "rnn"}, negative_weight_schedule=np.linspace(1, 100, 40).tolist()
)


def by_itself(**model):
    """A step is a batch of `auto_train`, which has three sequences of them."""

    def make():
        held = Model(input_shape=SHAPE, **model)
        return loop(lambda: held.auto_train(batches(), held_apart(32), held_apart(64, 0.0), steps=40))

    return make


STEPS["by_itself"] = by_itself(layer_dim=32)
STEPS["by_itself_recurrent"] = by_itself(model_type="rnn")
