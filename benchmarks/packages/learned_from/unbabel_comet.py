"""Training steps over COMET 2.2.7: metrics that judge translations, each by the step that Lightning calls, on a small encoder."""

import json
import tempfile
from pathlib import Path

absent("jsonargparse")

from comet.models.multitask.unified_metric import UnifiedMetric
from comet.models.multitask.xcomet_metric import XCOMETMetric
from comet.models.ranking.ranking_metric import RankingMetric
from comet.models.regression.referenceless import ReferencelessRegression
from comet.models.regression.regression_metric import RegressionMetric

WORDS = "the a cat dog sat ran on mat fast slow big small red blue house tree".split()
ROWS = 4


def encoder():
    """A folder of a BERT of two layers, and of its words."""
    folder = Path(tempfile.mkdtemp())
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    (folder / "vocab.txt").write_text("\n".join(names))
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
    (folder / "config.json").write_text(json.dumps({"model_type": "bert", "vocab_size": len(names), **sizes}))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "BertTokenizer", "model_max_length": 64})
    )
    return str(folder)


FOLDER = encoder()


def text():
    return " ".join(np.random.choice(WORDS, np.random.randint(3, 9)))


def samples(*names, annotated=False):
    rows = []
    for _ in range(ROWS):
        row = {name: text() for name in names} | {"score": float(np.random.rand())}
        if annotated:
            row["annotations"] = [{"start": 0, "end": len(row["mt"].split()[0]), "severity": "minor"}]
        rows.append(row)
    return rows


def trained(kind, names, annotated=False, frozen=0.0, **more):
    """A step is a batch of the loader: read as its collate does, brought to the device, and the model's own step."""

    def make():
        model = kind(
            encoder_model="BERT",
            pretrained_model=FOLDER,
            load_pretrained_weights=False,
            local_files_only=True,
            nr_frozen_epochs=frozen,
            **more,
        )
        model = model.to(D).train()
        model.log = lambda *_, **__: None
        model.first_epoch_total_steps = 10**6
        optimizers, schedulers = model.configure_optimizers()

        def moved(batch):
            if torch.is_tensor(batch):
                return batch.to(D)
            if isinstance(batch, dict):
                for name in batch:
                    batch[name] = moved(batch[name])
                return batch
            return type(batch)(moved(each) for each in batch) if isinstance(batch, (list, tuple)) else batch

        def go():
            batch = moved(model.prepare_sample(samples(*names, annotated=annotated), "fit"))
            loss = model.training_step(batch, 0)
            optimizers[0].zero_grad()
            loss.backward()
            optimizers[0].step()
            for each in schedulers:
                each.step()

        return go

    return make


THREE, TWO, RANKED = ("src", "mt", "ref"), ("src", "mt"), ("src", "pos", "neg", "ref")
HEAD = {"hidden_sizes": [8]}
STEPS["regression"] = trained(RegressionMetric, THREE, **HEAD)
STEPS["regression_frozen"] = trained(RegressionMetric, THREE, frozen=0.3, warmup_steps=4, **HEAD)
STEPS["regression_sparsemax"] = trained(RegressionMetric, THREE, layer_transformation="sparsemax", **HEAD)
STEPS["regression_of_first_word"] = trained(RegressionMetric, THREE, pool="cls", layer=1, **HEAD)
STEPS["regression_of_maxima"] = trained(RegressionMetric, THREE, pool="max", **HEAD)
STEPS["regression_adafactor"] = trained(RegressionMetric, THREE, optimizer="Adafactor", **HEAD)
STEPS["regression_without_norm"] = trained(RegressionMetric, THREE, layer_norm=False, dropout=0.0, **HEAD)
STEPS["referenceless"] = trained(ReferencelessRegression, TWO, **HEAD)
STEPS["ranking"] = trained(RankingMetric, RANKED)
STEPS["ranking_of_maxima"] = trained(RankingMetric, RANKED, pool="max", layer=2)
STEPS["unified"] = trained(UnifiedMetric, THREE, word_layer=2, **HEAD)
STEPS["unified_of_references"] = trained(UnifiedMetric, THREE, word_layer=2, input_segments=["mt", "ref"], **HEAD)
STEPS["unified_of_sources"] = trained(
    UnifiedMetric, THREE, word_layer=2, input_segments=["mt", "src"], layer_norm=False, **HEAD
)
STEPS["unified_words"] = trained(UnifiedMetric, THREE, True, word_layer=2, word_level_training=True, **HEAD)
STEPS["unified_weighed_words"] = trained(
    UnifiedMetric, THREE, True, word_layer=1, word_level_training=True, cross_entropy_weights=[0.1, 0.4, 0.5], **HEAD
)
STEPS["xcomet"] = trained(XCOMETMetric, THREE, True, word_layer=2, word_level_training=True, **HEAD)
