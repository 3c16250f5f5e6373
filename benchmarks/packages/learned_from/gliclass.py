"""Training steps over gliclass 0.1.21: texts beside labels that nobody saw before, by each architecture, scorer and pooling, and its trainers."""

import tempfile

import gliclass.training
from gliclass import GLiClassModel, GLiClassModelConfig
from gliclass.data_processing import AugmentationConfig, DataCollatorWithPadding, GLiClassDataset
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
from transformers import BartConfig, BertConfig, DebertaV2Config, PreTrainedTokenizerFast, Qwen3Config, T5Config

WORDS = "the team won a game planets move around stars shares of banks fell new film was shown sports science business culture".split()
LABELS = ["sports", "science", "business", "culture"]
SMALL = {
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "max_position_embeddings": 128,
}


def tokenizer():
    held = Tokenizer(models.WordLevel({w: n for n, w in enumerate(["[PAD]", "[UNK]", *WORDS])}, "[UNK]"))
    held.pre_tokenizer = pre_tokenizers.Whitespace()
    held.add_tokens([AddedToken(each, special=True) for each in ("<<LABEL>>", "<<SEP>>", "<<EXAMPLE>>")])
    return PreTrainedTokenizerFast(tokenizer_object=held, pad_token="[PAD]", unk_token="[UNK]")


ENCODERS = {
    "bert": BertConfig, "deberta": DebertaV2Config,
    "t5": lambda **more: T5Config(d_model=32, d_kv=16, d_ff=32, num_layers=2, num_heads=2, decoder_start_token_id=0, vocab_size=more["vocab_size"], pad_token_id=0),
    "bart": lambda **more: BartConfig(
        d_model=32, encoder_layers=2, decoder_layers=2, encoder_ffn_dim=32, decoder_ffn_dim=32, encoder_attention_heads=2, decoder_attention_heads=2,
        vocab_size=more["vocab_size"], pad_token_id=0, max_position_embeddings=128,
    ),
    "qwen": lambda **more: Qwen3Config(**SMALL, head_dim=16, num_key_value_heads=2, vocab_size=more["vocab_size"], pad_token_id=0),
}  # fmt: skip


def configured(words, encoder="bert", kind="uni-encoder", **more):
    size = len(words)
    of = ENCODERS[encoder](**({**SMALL, "vocab_size": size, "pad_token_id": 0}))
    if kind.startswith("bi-encoder"):
        more |= {
            "label_model_name": "small",
            "label_model_config": {**BertConfig(**SMALL, vocab_size=size, pad_token_id=0).to_dict()},
        }
    given = {"problem_type": "multi_label_classification", "scorer_num_heads": 2, "scorer_mlp_hidden_size": 32, **more}
    at = words.convert_tokens_to_ids
    return GLiClassModelConfig(
        encoder_config=of, encoder_model="small", architecture_type=kind, class_token_index=at("<<LABEL>>"), text_token_index=at("<<SEP>>"),
        example_token_index=at("<<EXAMPLE>>"), sep_token_index=at("<<SEP>>"), vocab_size=size, max_num_classes=len(LABELS), **given,
    )  # fmt: skip


def examples(rows, single):
    held = []
    for _ in range(rows):
        text = " ".join(np.random.choice(WORDS[:-4], np.random.randint(5, 12)))
        count = 1 if single else np.random.randint(1, 3)
        held.append(
            {
                "text": text,
                "all_labels": list(LABELS),
                "true_labels": list(np.random.choice(LABELS, count, replace=False)),
            }
        )
    return held


def texts(words, config, rows=40, augmented=False):
    return GLiClassDataset(
        examples(rows, config.problem_type == "single_label_classification"), words, AugmentationConfig(enabled=augmented),
        problem_type=config.problem_type, architecture_type=config.architecture_type, max_length=64, labels_tokenizer=words,
    )  # fmt: skip


def asked(**more):
    """A step is a batch of the package's collator, sent over, and the loss that the model gives."""

    def make():
        words = tokenizer()
        config = configured(words, **more)
        net = GLiClassModel(config)
        data = texts(words, config)
        batches = torch.utils.data.DataLoader(data, 4, shuffle=True, collate_fn=DataCollatorWithPadding(config=config))
        held = iter(())

        def loss(net):
            nonlocal held
            batch = next(held, None)
            if batch is None:
                held = iter(batches)
                batch = next(held)
            for text in ("labels_text", "input_texts"):
                batch.pop(text, None)
            return net(
                **{name: each.to(D) if isinstance(each, torch.Tensor) else each for name, each in batch.items()}
            ).loss

        return train(net, loss)

    return make


STEPS["uni"] = asked()
STEPS["uni_deberta"] = asked(encoder="deberta")
STEPS["uni_t5"] = asked(encoder="t5")
for name in ("weighted-dot", "mlp", "hopfield", "cross-attn"):
    STEPS[f"uni_scored_{name}"] = asked(
        scorer_type=name, **({"pooling_strategy": "pass"} if name == "cross-attn" else {})
    )
for name in ("max", "last", "avg", "sum", "rms", "abs_max", "abs_avg"):
    STEPS[f"uni_pooled_{name}"] = asked(pooling_strategy=name)
STEPS["uni_classes_averaged"] = asked(class_token_pooling="average")
STEPS["uni_classes_without_their_token"] = asked(embed_class_token=False)
STEPS["uni_text_apart"] = asked(extract_text_features=True)
STEPS["uni_prompt_first"] = asked(prompt_first=True, extract_text_features=True)
STEPS["uni_recurrent"] = asked(use_lstm=True)
STEPS["uni_layer_wise"] = asked(layer_wise=True)
STEPS["uni_segments"] = asked(use_segment_embeddings=True)
STEPS["uni_normalized"] = asked(normalize_features=True)
STEPS["uni_contrasted"] = asked(contrastive_loss_coef=0.1)
STEPS["uni_summed"] = asked(focal_loss_reduction="sum")
STEPS["uni_room_for_four"] = asked(max_labels_alloc=4)
STEPS["uni_calibrated"] = asked(use_calibrator=True, calibrator_hidden_size=16)
for kind in ("bi-encoder", "bi-encoder-fused"):
    STEPS[kind] = asked(kind=kind)
    STEPS[f"{kind}_averaged"] = asked(kind=kind, pooling_strategy="avg")
    STEPS[f"{kind}_contrasted"] = asked(kind=kind, contrastive_loss_coef=0.1)
for kind in ("encoder-decoder", "encoder-decoder-cls"):
    for encoder in ("t5", "bart"):
        STEPS[f"{kind}_{encoder}"] = asked(kind=kind, encoder=encoder)
STEPS["decoder"] = asked(kind="decoder-kv", encoder="qwen")
STEPS["decoder_whole_sequence"] = asked(kind="decoder-kv", encoder="qwen", scorer_full_sequence=True)
STEPS["decoder_thinking"] = asked(kind="decoder-kv", encoder="qwen", recurrent_steps=3)
STEPS["decoder_thinking_of_the_text"] = asked(
    kind="decoder-kv", encoder="qwen", recurrent_steps=3, recurrent_read_text=True
)
STEPS["decoder_thinking_surely"] = asked(
    kind="decoder-kv", encoder="qwen", recurrent_steps=3, recurrent_confidence_coef=0.1, recurrent_bptt_steps=2
)


def trained(
    kind=gliclass.training.Trainer,
    args=gliclass.training.TrainingArguments,
    fed=None,
    optimizers=1,
    config=None,
    **more,
):
    """A step is one of the package's trainer."""

    def make():
        words = tokenizer()
        held = configured(words, **(config or {}))
        net = GLiClassModel(held)
        given = args(
            output_dir=tempfile.mkdtemp(), per_device_train_batch_size=4, num_train_epochs=2, report_to="none", save_strategy="no",
            logging_strategy="no", disable_tqdm=True, **more,
        )  # fmt: skip
        made = (fed or (lambda words, held: {}))(words, held)
        trainer = kind(
            model=net,
            args=given,
            train_dataset=texts(words, held, augmented=True),
            data_collator=DataCollatorWithPadding(config=held),
            **made,
        )
        return loop(trainer.train, optimizers)

    return make


STEPS["trainer"] = trained()
STEPS["trainer_clipped"] = trained(max_grad_norm=0.1, learning_rate=1e-3)
STEPS["trainer_by_groups"] = trained(others_lr=1e-3, weight_decay=0.01)
STEPS["trainer_logging"] = trained(logging_steps=1)
STEPS["trainer_remembering"] = trained(
    fed=lambda words, held: {"prev_dataset": texts(words, held, 8)}, use_ewc=True, ewc_lambda=10.0, ewc_fisher_samples=4
)
STEPS["trainer_thinking"] = trained(
    config={"kind": "decoder-kv", "encoder": "qwen", "recurrent_steps": 2}, recurrent_lr=1e-3
)
