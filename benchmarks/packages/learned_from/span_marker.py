"""Training steps over SpanMarker 1.8.1: entities in texts, on a small BERT, by the trainer of the package and by loops of one's own."""

import json
import tempfile
from pathlib import Path

absent("evaluate seqeval")

from span_marker import SpanMarkerModel, Trainer
from transformers import BertConfig, BertModel, BertTokenizerFast, TrainingArguments

WORDS = "anna paul berlin paris works lives in at the bank and with".split()
LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
SHORT = ["O", "PER", "LOC"]


def encoder():
    """A folder of a BERT of two layers, and of its words."""
    folder = Path(tempfile.mkdtemp())
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    (folder / "vocab.txt").write_text("\n".join(names))
    BertTokenizerFast(str(folder / "vocab.txt"), model_max_length=32).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(names),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=130,
    )
    BertModel(config).save_pretrained(folder)
    return str(folder)


FOLDER = encoder()


def model(labels=LABELS, **more):
    more = {"model_max_length": 24, "marker_max_length": 16, "entity_max_length": 3, **more}
    return SpanMarkerModel.from_pretrained(FOLDER, labels=labels, **more)


def sentences(labels, count=64, documents=False):
    rows = {"tokens": [], "ner_tags": []}
    for _ in range(count):
        length = np.random.randint(4, 9)
        rows["tokens"].append(list(np.random.choice(WORDS, length)))
        rows["ner_tags"].append([0] * (length - 2) + ([1, 2] if len(labels) > 3 else [1, 1]))
    if documents:
        rows |= {"document_id": [i // 8 for i in range(count)], "sentence_id": [i % 8 for i in range(count)]}
    return rows


def trained(labels=LABELS, documents=False, config=None, **more):
    """A step is a batch of the trainer."""

    def make():
        from datasets import Dataset

        args = TrainingArguments(
            tempfile.mkdtemp(),
            per_device_train_batch_size=4,
            report_to=[],
            save_strategy="no",
            num_train_epochs=3,
            disable_tqdm=True,
            **more,
        )
        trainer = Trainer(
            model(labels, **(config or {})), args, Dataset.from_dict(sentences(labels, documents=documents))
        )
        return loop(trainer.train)

    return make


STEPS["trainer"] = trained()
STEPS["trainer_of_short_labels"] = trained(SHORT)
STEPS["trainer_logged"] = trained(logging_steps=1)
STEPS["trainer_warmed"] = trained(warmup_steps=3, lr_scheduler_type="cosine", optim="adamw_torch")
STEPS["trainer_unclipped"] = trained(max_grad_norm=0.0)
STEPS["trainer_adafactor"] = trained(optim="adafactor")
STEPS["trainer_sgd"] = trained(optim="sgd")
STEPS["trainer_decayed"] = trained(weight_decay=0.1, max_grad_norm=0.5)
STEPS["trainer_of_documents"] = trained(documents=True, config={"max_prev_context": 1, "max_next_context": 1})
STEPS["trainer_accumulating"] = trained(gradient_accumulation_steps=2)


def own(labels=LABELS):
    """A loop of one's own: texts are cut into spans, padded and marked as the trainer does it."""

    def make():
        net = model(labels)
        kinds = len(labels)

        def loss(held):
            rows = [list(np.random.choice(WORDS, 5)) for _ in range(4)]
            tokenized = held.tokenizer({"tokens": rows}, return_num_words=True)
            cut = [dict(zip(tokenized, each)) for each in zip(*tokenized.values())]
            for each in cut:
                each["labels"] = list(np.random.randint(0, kinds if len(labels) < 4 else 3, each["num_spans"]))
            batch = {name: each.to(D) for name, each in held.data_collator(cut).items()}
            return held(**batch).loss

        return train(net, loss)

    return make


STEPS["own_loop"] = own()
