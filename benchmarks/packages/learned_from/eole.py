"""Training steps over eole 0.6.4: batches of `train`, each kind of model that it builds from a config, on sentences of noise."""

import os
import tempfile
import warnings

absent("spacy ctranslate2 fasttext torchcodec bitsandbytes fastapi uvicorn")
warnings.filterwarnings("ignore")

import eole.train_single
from eole.config.run import TrainConfig

eole.train_single.configure_cuda_backends = lambda: None  # kernels that no CPU has
WORDS = [f"w{i}" for i in range(40)]


def home(lines=80):
    """Sentences, their translations, how words are aligned, how good they are, and the words."""
    folder = tempfile.mkdtemp()

    def kept(name, rows):
        path = os.path.join(folder, name)
        with open(path, "w") as file:
            file.write("\n".join(rows) + "\n")
        return path

    lengths = np.random.randint(4, 9, lines)
    source, target = ([" ".join(np.random.choice(WORDS, n)) for n in lengths] for _ in range(2))
    return {
        "path_src": kept("src", source),
        "path_tgt": kept("tgt", target),
        "path_align": kept("align", [" ".join(f"{i}-{i}" for i in range(n)) for n in lengths]),
        "path_sco": kept("sco", [f"{each:.3f}" for each in np.random.rand(lines)]),
        "vocab": kept("vocab", WORDS),
        "folder": folder,
    }


SMALL = {"hidden_size": 16, "layers": 2, "embeddings": {"word_vec_size": 16}}
HEADS = {**SMALL, "heads": 2, "transformer_ff": 32}
ROTARY = {
    "embeddings": {"word_vec_size": 16, "position_encoding_type": "Rotary"},
    "rope_config": {"rotary_interleave": False},
}
LEARNED = {"embeddings": {"word_vec_size": 16, "position_encoding_type": "Learned", "n_positions": 64}}
SINES = {"embeddings": {"word_vec_size": 16, "position_encoding_type": "SinusoidalInterleaved"}}


def trained(model, data=(), transforms=(), share=True, optimizers=1, config=None, **more):
    """A step is one of the trainer's."""

    def make():
        files = home()
        corpus = {"path_src": files["path_src"], "transforms": list(transforms)}
        if model.get("architecture") != "transformer_lm":
            corpus["path_tgt"] = files["path_tgt"]
        given = {
            "world_size": 1, "gpu_ranks": [0], "batch_size": 4, "num_workers": 0, "bucket_size": 64, "optim": "adam",
            "learning_rate": 0.001, "train_steps": 30, "valid_steps": 1000, "save_checkpoint_steps": 1000, "dropout": [0.1],
            "attention_dropout": [0.1], "model_path": files["folder"] + "/model", "compute_dtype": "fp32", **more,
        }  # fmt: skip
        asked = TrainConfig(
            data={"corpus": {**corpus, **{name: files[name] for name in data}}}, src_vocab=files["vocab"],
            tgt_vocab=None if share else files["vocab"], share_vocab=share, model=model, training=given,
            save_data=files["folder"], overwrite=True, seed=1, report_every=1, **(config or {}),
        )  # fmt: skip
        return loop(lambda: eole.train_single.main(asked, 0), optimizers)

    return make


def transformer(**more):
    return {"architecture": "transformer", **HEADS, **SINES, **more}


def language(**more):
    return {"architecture": "transformer_lm", **HEADS, **SINES, **more}


def rnn(**more):
    return {"architecture": "rnn", **SMALL, **more}


STEPS["transformer"] = trained(transformer())
STEPS["transformer_rotary"] = trained(transformer(**ROTARY))
STEPS["transformer_learned_places"] = trained(transformer(**LEARNED))
STEPS["transformer_relative"] = trained(
    transformer(embeddings={"word_vec_size": 16, "position_encoding_type": "Relative", "n_positions": 20})
)
STEPS["transformer_alibi"] = trained(transformer(embeddings={"word_vec_size": 16, "position_encoding_type": "Alibi"}))
STEPS["transformer_pytorch_attention"] = trained(transformer(), self_attn_backend="pytorch")
STEPS["transformer_aligned"] = trained(
    transformer(decoder={"decoder_type": "transformer", "lambda_align": 0.05, "alignment_heads": 1}), ["path_align"]
)
STEPS["transformer_averaged_attention"] = trained(
    transformer(decoder={"decoder_type": "transformer", "aan_useffn": True})
)
STEPS["transformer_gated"] = trained(transformer(**ROTARY, mlp_activation_fn="gated-silu", layer_norm="rms"))
STEPS["transformer_parallel"] = trained(transformer(parallel_residual=True, shared_layer_norm=True))
STEPS["transformer_of_experts"] = trained(
    transformer(**ROTARY, num_experts=2, num_experts_per_tok=1, mlp_activation_fn="gated-silu", layer_norm="rms")
)
STEPS["transformer_of_tied_embeddings"] = trained(transformer(share_decoder_embeddings=True, share_embeddings=True))
STEPS["transformer_of_two_vocabularies"] = trained(transformer(), share=False)
STEPS["transformer_estimating"] = trained(transformer(add_estimator=True), ["path_sco"])
STEPS["transformer_windowed"] = trained(transformer(**ROTARY, sliding_window=4))
STEPS["transformer_grouped_heads"] = trained(transformer(**ROTARY, heads=4, heads_kv=2))
STEPS["by_tokens"] = trained(transformer(), batch_type="tokens", batch_size=64, normalization="tokens")
STEPS["smoothed"] = trained(transformer(), label_smoothing=0.1, max_grad_norm=1.0)
STEPS["unclipped"] = trained(transformer(), max_grad_norm=0)
STEPS["noam"] = trained(transformer(), decay_method="noam", warmup_steps=10, learning_rate=2)
STEPS["averaged"] = trained(transformer(), average_decay=1e-4)
STEPS["accumulating"] = trained(transformer(), accum_count=[2], accum_steps=[0])
STEPS["without_entropies"] = trained(transformer(), log_attention_entropy=False)
STEPS["checkpointed"] = trained(transformer(), use_ckpting=["ffn", "mha"])
STEPS["half_bf16"] = trained(transformer(), compute_dtype="bf16")
STEPS["half_fp16"] = trained(transformer(), compute_dtype="fp16")
STEPS["whole_bf16"] = trained(transformer(), compute_dtype="bf16", use_amp=False, optim="adamw")
STEPS["adapted"] = trained(
    transformer(), lora_layers=["linear_values", "linear_query"], lora_rank=2, lora_dropout=0.1, lora_alpha=4
)
STEPS["logged"] = trained(transformer(), config={"tensorboard": True, "tensorboard_log_dir": tempfile.mkdtemp()})
STEPS["frozen_encoder"] = trained(transformer(), freeze_encoder=True)
for name in ("sgd", "adagrad", "adamw", "adafactor"):
    STEPS[f"optimizer_{name}"] = trained(transformer(), optim=name)
STEPS["language"] = trained(language())
STEPS["language_rotary"] = trained(language(**ROTARY, mlp_activation_fn="gated-silu", layer_norm="rms"))
STEPS["language_of_experts"] = trained(
    language(**ROTARY, num_experts=4, num_experts_per_tok=2, mlp_activation_fn="gated-silu", layer_norm="rms")
)
STEPS["language_half"] = trained(language(), compute_dtype="bf16")
STEPS["rnn"] = trained(rnn())
STEPS["rnn_gru"] = trained(rnn(rnn_type="GRU"))
STEPS["rnn_both_ways"] = trained(rnn(encoder={"encoder_type": "brnn"}))
STEPS["rnn_covering"] = trained(rnn(decoder={"decoder_type": "rnn", "coverage_attn": True, "lambda_coverage": 0.1}))
STEPS["rnn_mlp_attention"] = trained(rnn(decoder={"decoder_type": "rnn", "global_attention": "mlp"}))
STEPS["cnn"] = trained({"architecture": "cnn", **SMALL})
STEPS["mean_and_rnn"] = trained(
    {
        "architecture": "custom", **SMALL, "encoder": {"encoder_type": "mean", "layers": 2, "hidden_size": 16},
        "decoder": {"decoder_type": "rnn", "layers": 2, "hidden_size": 16},
    }
)  # fmt: skip
