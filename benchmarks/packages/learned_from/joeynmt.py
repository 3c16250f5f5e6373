"""Training steps over joeynmt 2.3.0: batches of its trainer, which translates words by recurrent networks and by attention."""

import tempfile
from pathlib import Path

from torch.optim import lr_scheduler


class Plateau(lr_scheduler.ReduceLROnPlateau):
    """As torch's was when the package was made."""

    def __init__(self, *given, verbose=False, **more):
        super().__init__(*given, **more)


lr_scheduler.ReduceLROnPlateau = Plateau

from joeynmt.training import train as run

WORDS = [f"w{n}" for n in range(40)]


def written(folder):
    """Sentences, and the same said backwards."""
    for part, rows in (("train", 400), ("dev", 16)):
        lines = [[WORDS[n] for n in np.random.randint(0, len(WORDS), np.random.randint(3, 9))] for _ in range(rows)]
        (folder / f"{part}.src").write_text("\n".join(" ".join(each) for each in lines) + "\n")
        (folder / f"{part}.trg").write_text("\n".join(" ".join(each[::-1]) for each in lines) + "\n")


def side(name):
    return {"lang": name, "max_length": 30, "lowercase": False, "level": "word", "voc_limit": 100, "voc_min_freq": 1}


def recurrent(kind="lstm", attention="luong", **more):
    cell = {"type": "recurrent", "rnn_type": kind, "embeddings": {"embedding_dim": 16, "scale": False}, "dropout": 0.1}
    return {
        "encoder": {**cell, "hidden_size": 16, "bidirectional": True, "num_layers": 1},
        "decoder": {**cell, "hidden_size": 16, "num_layers": 1, "attention": attention, "init_hidden": "bridge", "input_feeding": True, "hidden_dropout": 0.1},
        **more,
    }  # fmt: skip


def attending(**more):
    part = {
        "type": "transformer", "num_layers": 2, "num_heads": 2, "embeddings": {"embedding_dim": 16, "scale": True, "dropout": 0.0},
        "hidden_size": 16, "ff_size": 32, "dropout": 0.1, "layer_norm": "pre",
    }  # fmt: skip
    return {
        "initializer": "xavier_uniform",
        "embed_initializer": "xavier_uniform",
        "encoder": part,
        "decoder": part,
        **more,
    }


def translated(model, optimizers=1, fp16=False, **more):
    """A step is a batch of `train`, which shows its loss each hundred."""

    def make():
        folder = Path(tempfile.mkdtemp())
        written(folder)
        (folder / "model").mkdir()
        config = {
            "name": "backwards", "joeynmt_version": "2.3.0", "model_dir": str(folder / "model"), "use_cuda": True, "fp16": fp16, "random_seed": 42,
            "data": {"train": str(folder / "train"), "dev": str(folder / "dev"), "dataset_type": "plain", "src": side("src"), "trg": side("trg")},
            "testing": {"batch_size": 8, "batch_type": "sentence", "max_output_length": 20, "eval_metrics": ["bleu"], "beam_size": 1},
            "training": {
                "optimizer": "adam", "learning_rate": 1e-3, "batch_size": 10, "batch_type": "sentence", "normalization": "batch", "epochs": 2,
                "validation_freq": 1000, "logging_freq": 100, "clip_grad_norm": 1.0, "scheduling": "plateau", "patience": 5,
                "early_stopping_metric": "ppl", "shuffle": True, **more,
            },
            "model": model,
        }  # fmt: skip
        return loop(lambda: run(rank=0, world_size=None, cfg=config, skip_test=True), optimizers)

    return make


STEPS["recurrent"] = translated(recurrent())
STEPS["recurrent_gru"] = translated(recurrent("gru"))
STEPS["recurrent_bahdanau"] = translated(recurrent(attention="bahdanau"))
STEPS["recurrent_tied"] = translated(recurrent(tied_embeddings=False, tied_softmax=True))
STEPS["recurrent_adding_up"] = translated(recurrent(), batch_multiplier=2)
STEPS["attending"] = translated(attending())
STEPS["attending_post"] = translated(
    {side: {**part, "layer_norm": "post"} if isinstance(part, dict) else part for side, part in attending().items()}
)
STEPS["attending_smoothed"] = translated(attending(), label_smoothing=0.1)
STEPS["attending_by_noam"] = translated(attending(), scheduling="noam", learning_rate_factor=1, learning_rate_warmup=10)
STEPS["attending_by_warmup"] = translated(
    attending(), scheduling="warmupinversesquareroot", learning_rate_warmup=10, learning_rate=2e-3
)
STEPS["attending_to_tokens"] = translated(attending(), normalization="tokens")
STEPS["attending_in_batches_of_tokens"] = translated(attending(), batch_type="token", batch_size=60)
STEPS["attending_tied"] = translated(attending(tied_softmax=True))
STEPS["attending_clipped_by_value"] = translated(attending(), clip_grad_norm=None, clip_grad_val=1.0)
STEPS["attending_by_sgd"] = translated(attending(), optimizer="sgd", scheduling="decaying", decrease_factor=0.9)
STEPS["attending_exponentially"] = translated(attending(), scheduling="exponential")
STEPS["attending_often_shown"] = translated(attending(), logging_freq=10)
STEPS["attending_adamw"] = translated(attending(), optimizer="adamw", weight_decay=1e-2)
STEPS["attending_half"] = translated(attending(), fp16=True)
