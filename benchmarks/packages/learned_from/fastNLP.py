"""Training steps over FastNLP 1.0.1: epochs of its Trainer, with its models, metrics and callbacks, on random text.

Each epoch has two batches of training and, where there are metrics, a validation after it.
"""

import logging
import warnings

import numpy as np
import torch
from torch import nn

warnings.filterwarnings("ignore")

absent("tokenizers sentencepiece")

import fastNLP.transformers.torch as pretrained  # noqa: E402
from fastNLP import (  # noqa: E402
    Accuracy,
    ClassifyFPreRecMetric,
    DataSet,
    SpanFPreRecMetric,
    TorchGradClipCallback,
    TorchWarmupCallback,
    Trainer,
    TransformersAccuracy,
    Vocabulary,
    logger,
    prepare_torch_dataloader,
)
from fastNLP.core.metrics import Metric  # noqa: E402
from fastNLP.models import torch as models  # noqa: E402
from fastNLP.modules.torch import LSTM, MLP, StarTransformer  # noqa: E402
from fastNLP.modules.torch.decoder import ConditionalRandomField  # noqa: E402

logger.setLevel(logging.ERROR)
TAGS = Vocabulary(padding=None, unknown=None)
TAGS.add_word_lst("B-PER I-PER B-LOC I-LOC O".split())
TAGS.build_vocab()
SMALL = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}


def sentences(**fields):
    """Eight sentences; a field is made from a generator and a length."""
    rng, rows = np.random.default_rng(0), []
    for length in (5, 7, 4, 6, 7, 5, 6, 4):
        rows.append({name: make(rng, length) for name, make in fields.items()} | {"seq_len": length})
    return DataSet({name: [row[name] for row in rows] for name in rows[0]})


def ids(most=50, least=1):
    return lambda rng, length: rng.integers(least, most, length).tolist()


def number(most):
    return lambda rng, length: int(rng.integers(0, most))


def epochs(model, data, metrics=None, callbacks=(), **more):
    """Epochs of a Trainer, which goes on in each step where it was."""
    loader = prepare_torch_dataloader(data, batch_size=4, shuffle=True, prefetch_factor=None)
    trainer = Trainer(
        model,
        driver="torch",
        device="cuda",
        optimizers=torch.optim.Adam(model.parameters(), 1e-3),
        train_dataloader=loader,
        evaluate_dataloaders=prepare_torch_dataloader(data, batch_size=4, prefetch_factor=None) if metrics else None,
        metrics=metrics,
        callbacks=list(callbacks),
        n_epochs=1,
        progress_bar=None,
        **more,
    )

    def go():
        trainer.n_epochs = trainer.cur_epoch_idx + 1
        trainer.n_batches = -1
        trainer.run(num_eval_sanity_batch=0, catch_KeyboardInterrupt=False)

    return go


def tagged():
    return sentences(words=ids(), target=ids(5, 0))


@step  # noqa: F821
def text_cnn():
    model = models.CNNText((50, 16), num_classes=3)
    return epochs(model, sentences(words=ids(), target=number(3)), {"acc": Accuracy(), "f": ClassifyFPreRecMetric()})


@step  # noqa: F821
def text_cnn_callbacks():
    model = models.CNNText((50, 16), num_classes=3)
    calls = [TorchGradClipCallback(1, "norm"), TorchWarmupCallback(0.1)]
    data = sentences(words=ids(), target=number(3))
    return epochs(model, data, {"acc": Accuracy()}, calls, accumulation_steps=2)


@step  # noqa: F821
def text_cnn_mixed():
    return epochs(models.CNNText((50, 16), num_classes=3), sentences(words=ids(), target=number(3)), fp16=True)


@step  # noqa: F821
def bilstm_crf():
    model = models.BiLSTMCRF((50, 16), 5, hidden_size=8, target_vocab=TAGS)
    return epochs(model, tagged(), {"f": SpanFPreRecMetric(tag_vocab=TAGS, encoding_type="bio")})


@step  # noqa: F821
def sequence_labelling():
    return epochs(models.SeqLabeling((50, 16), 8, 5), tagged(), {"acc": Accuracy()})


@step  # noqa: F821
def deeper_sequence_labelling():
    model = models.AdvSeqLabel(
        (50, 16), 8, 5, id2words=dict(enumerate("B-X I-X B-Y I-Y O".split())), encoding_type="bio"
    )
    return epochs(model, tagged(), {"acc": Accuracy()})


def parser(**more):
    def make():
        model = models.BiaffineParser((50, 16), 10, 8, 6, rnn_hidden_size=16, arc_mlp_size=8, label_mlp_size=8, **more)
        heads = sentences(
            words1=ids(),
            words2=ids(10),
            target1=lambda rng, n: [0, *rng.integers(0, n, n - 1).tolist()],
            target2=ids(6, 0),
        )
        return epochs(model, heads, {"arcs": Arcs()})

    return make


class Arcs(Metric):
    """How many heads are right, counted as the documentation shows for metrics of one's own."""

    def __init__(self):
        super().__init__()
        self.register_element("right", 0, aggregate_method="sum")
        self.register_element("all", 0, aggregate_method="sum")

    def update(self, pred1, target1):
        self.right += (pred1 == target1).sum().item()
        self.all += target1.numel()

    def get_metric(self):
        return {"arcs": self.right.get_scalar() / self.all.get_scalar()}


STEPS["biaffine_lstm"] = parser()  # noqa: F821
STEPS["biaffine_var_lstm"] = parser(encoder="var-lstm", use_greedy_infer=True)  # noqa: F821
STEPS["biaffine_transformer"] = parser(encoder="transformer")  # noqa: F821


def translated():
    data = sentences(src_tokens=ids(), tgt_tokens=ids())
    data.rename_field("seq_len", "src_seq_len")
    data.apply_field(len, "tgt_tokens", "tgt_seq_len", progress_bar=None)
    return data


class Tokens(Metric):
    """How many tokens of a translation are right."""

    def __init__(self):
        super().__init__()
        self.register_element("right", 0, aggregate_method="sum")

    def update(self, pred, tgt_tokens):
        size = min(pred.size(1), tgt_tokens.size(1))
        self.right += (pred[:, :size] == tgt_tokens[:, :size]).sum().item()

    def get_metric(self):
        return {"right": self.right.get_scalar()}


def translation(kind, **generator):
    def make():
        if kind == "lstm":
            model = models.LSTMSeq2SeqModel.build_model((50, 16), (50, 16), num_layers=1, hidden_size=16)
        else:
            model = models.TransformerSeq2SeqModel.build_model(
                (50, 16), (50, 16), num_layers=2, d_model=16, n_head=2, dim_ff=32, pos_embed="sin"
            )
        whole = models.SequenceGeneratorModel(model, bos_token_id=1, eos_token_id=2, max_length=6, **generator)
        return epochs(whole, translated(), {"tokens": Tokens()})

    return make


STEPS["translate_lstm"] = translation("lstm", do_sample=False)  # noqa: F821
STEPS["translate_transformer"] = translation("transformer", do_sample=True, top_k=5, top_p=0.9)  # noqa: F821
STEPS["translate_beams"] = translation("transformer", do_sample=False, num_beams=2)  # noqa: F821


class Tagger(nn.Module):
    """A tagger made of the package's parts."""

    def __init__(self, part, size):
        super().__init__()
        self.words, self.part = nn.Embedding(50, 16), part
        self.out = MLP([size, 16, 5], activation="relu", dropout=0.1)
        self.crf = ConditionalRandomField(5, include_start_end_trans=True)

    def forward(self, words, seq_len):
        mask = torch.arange(words.size(1), device=words.device) < seq_len[:, None]
        return self.out(self.part(self.words(words), seq_len, mask)), mask

    def train_step(self, words, target, seq_len):
        scores, mask = self(words, seq_len)
        return {"loss": self.crf(scores, target, mask).mean()}

    def evaluate_step(self, words, seq_len):
        return {"pred": self.crf.viterbi_decode(*self(words, seq_len))[0]}


class Part(nn.Module):
    """A layer, and how it is called."""

    def __init__(self, layer, call):
        super().__init__()
        self.layer, self.call = layer, call

    def forward(self, x, seq_len, mask):
        return self.call(self.layer, x, seq_len, mask)


PARTS = {
    "lstm": (lambda: LSTM(16, 8, bidirectional=True), lambda layer, x, n, mask: layer(x, n)[0]),
    "star": (lambda: StarTransformer(16, 2, 2, 8), lambda layer, x, n, mask: layer(x, mask.long())[0]),
}
for name, (layer, call) in PARTS.items():
    STEPS["tagger_" + name] = lambda layer=layer, call=call: epochs(  # noqa: F821
        Tagger(Part(layer(), call), 16), tagged(), {"acc": Accuracy()}
    )


class Pretrained(nn.Module):
    """A pretrained model's head, as a Trainer wants it."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def train_step(self, input_ids, attention_mask, labels):
        return {"loss": self.model(input_ids=input_ids, attention_mask=attention_mask, labels=labels).loss}

    def evaluate_step(self, input_ids, attention_mask):
        return {"logits": self.model(input_ids=input_ids, attention_mask=attention_mask).logits}


def head(model, config, labels, metric=True, **more):
    def make():
        data = sentences(input_ids=ids(50, 3), attention_mask=lambda rng, n: [1] * n, labels=labels)
        data.delete_field("seq_len")
        net = Pretrained(getattr(pretrained, model)(getattr(pretrained, config)(**more)))
        return epochs(net, data, {"acc": TransformersAccuracy()} if metric else None)

    return make


BART = {"vocab_size": 50, "d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 32}
BART |= {
    "decoder_ffn_dim": 32,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "max_position_embeddings": 32,
}
GPT = {"vocab_size": 50, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 32, "pad_token_id": 0}
HEADS = {
    "bert_classes": ("BertForSequenceClassification", "BertConfig", number(2), True, SMALL),
    "bert_tags": ("BertForTokenClassification", "BertConfig", ids(2, 0), False, SMALL),
    "bert_words": ("BertForMaskedLM", "BertConfig", ids(), False, SMALL),
    "roberta_classes": ("RobertaForSequenceClassification", "RobertaConfig", number(2), True, SMALL),
    "gpt2_words": ("GPT2LMHeadModel", "GPT2Config", ids(), False, GPT),
    "gpt2_classes": ("GPT2ForSequenceClassification", "GPT2Config", number(2), True, GPT),
    "bart_words": ("BartForConditionalGeneration", "BartConfig", ids(), False, BART),
    "cpt_words": ("CPTForConditionalGeneration", "CPTConfig", ids(), False, BART | {"num_decoder_layers": 1}),
}
for name, (model, config, labels, metric, more) in HEADS.items():
    STEPS[name] = head(model, config, labels, metric, **more)  # noqa: F821
