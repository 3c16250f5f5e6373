"""Training steps over PyTorch Frame 0.3.0: its loaders, encoders of each kind of column, and models, as its examples train them."""

import torch_frame
from torch.nn import functional as F
from torch_frame import NAStrategy, stype
from torch_frame.config.text_embedder import TextEmbedderConfig
from torch_frame.data import DataLoader
from torch_frame.datasets.fake import FakeDataset
from torch_frame.nn import encoder as E
from torch_frame.nn.models import MLP, ExcelFormer, FTTransformer, ResNet, TabNet, TabTransformer, Trompt
from torch_frame.transforms import CatToNumTransform
from torch_frame.typing import TaskType

ROWS, CHANNELS = 32, 8
TASKS = {
    "regression": TaskType.REGRESSION,
    "classes": TaskType.MULTICLASS_CLASSIFICATION,
    "binary": TaskType.BINARY_CLASSIFICATION,
}
BOTH = [stype.numerical, stype.categorical]


class Embedder:
    """Texts as vectors, of nothing."""

    def __call__(self, texts):
        return torch.rand(len(texts), 6)


def table(task="classes", stypes=BOTH, nan=False, transforms=()):
    text = TextEmbedderConfig(text_embedder=Embedder(), batch_size=None) if stype.text_embedded in stypes else None
    data = FakeDataset(ROWS, with_nan=nan, stypes=list(stypes), task_type=TASKS[task], col_to_text_embedder_cfg=text)
    data.materialize()
    frame, stats = data.tensor_frame, data.col_stats
    for each in transforms:
        each.fit(frame, stats)
        frame, stats = each(frame), each.transformed_stats
    return data, frame, stats


def outputs(data, task):
    return data.num_classes if task == "classes" else 1


def loss_of(task, pred, y):
    if task == "classes":
        return F.cross_entropy(pred, y)
    if task == "binary":
        return F.binary_cross_entropy_with_logits(pred.view(-1), y.float())
    return F.mse_loss(pred.view(-1), y.view(-1))


def trained(model, task="classes", stypes=BOTH, nan=False, transforms=(), forward=None, schedule=False, sums=True):
    """A step is an epoch of its examples: batches to the device, the loss, and the sum of losses there."""

    def make():
        data, frame, stats = table(task, stypes, nan, [each() for each in transforms])
        net = model(outputs(data, task), stats, frame.col_names_dict).to(D)
        net.reset_parameters()
        loader = DataLoader(frame, batch_size=16, shuffle=True)
        optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
        scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.95) if schedule else None

        def go():
            net.train()
            total = count = 0
            for tf in loader:
                tf = tf.to(D)
                loss = forward(net, tf, task) if forward else loss_of(task, net(tf), tf.y)
                optimizer.zero_grad()
                loss.backward()
                total += float(loss) * len(tf.y)
                count += len(tf.y)
                optimizer.step()
            if scheduler:
                scheduler.step()
            return total / count

        return go

    return make


ENCODERS = {
    "plain": lambda: {stype.categorical: E.EmbeddingEncoder(), stype.numerical: E.LinearEncoder()},
    "buckets": lambda: {stype.categorical: E.EmbeddingEncoder(), stype.numerical: E.LinearBucketEncoder()},
    "periodic": lambda: {stype.categorical: E.EmbeddingEncoder(), stype.numerical: E.LinearPeriodicEncoder()},
    "stacked": lambda: {stype.categorical: E.EmbeddingEncoder(), stype.numerical: E.StackEncoder()},
    "excel": lambda: {stype.categorical: E.EmbeddingEncoder(), stype.numerical: E.ExcelFormerEncoder(CHANNELS)},
    "activated": lambda: {
        stype.categorical: E.EmbeddingEncoder(post_module=torch.nn.ReLU()),
        stype.numerical: E.LinearEncoder(post_module=torch.nn.LayerNorm(CHANNELS)),
    },
}


def fitting(strategies):
    """Encoders that fill in what is missing."""
    numerical, categorical = strategies
    return lambda: {
        stype.categorical: E.EmbeddingEncoder(na_strategy=categorical),
        stype.numerical: E.LinearEncoder(na_strategy=numerical),
    }


def transformer(encoders=None):
    def made(out, stats, names):
        return FTTransformer(CHANNELS, out, 2, stats, names, encoders() if encoders else None)

    return made


def resnet(encoders=None, **more):
    def made(out, stats, names):
        return ResNet(CHANNELS, out, 2, stats, names, encoders() if encoders else None, **more)

    return made


def mlp(encoders=None, **more):
    def made(out, stats, names):
        return MLP(CHANNELS, out, 2, stats, names, encoders() if encoders else None, **more)

    return made


def tabnet(**more):
    def made(out, stats, names):
        return TabNet(out, 2, CHANNELS, CHANNELS, 1.2, stats, names, **more)

    return made


def trompt(out, stats, names):
    return Trompt(CHANNELS, out, 4, 2, stats, names)


def tab_transformer(out, stats, names):
    return TabTransformer(CHANNELS, out, 2, 2, 2, 0.1, 0.1, stats, names)


def excel(mixup=None, **more):
    def made(out, stats, names):
        columns = sum(map(len, names.values()))
        return ExcelFormer(CHANNELS, out, columns, 2, 2, stats, names, mixup=mixup, **more)

    return made


for task in TASKS:
    STEPS[f"transformer_{task}"] = trained(transformer(), task)
    STEPS[f"resnet_{task}"] = trained(resnet(), task, schedule=True)
    STEPS[f"mlp_{task}"] = trained(mlp(), task)
    STEPS[f"tabnet_{task}"] = trained(tabnet(), task)
    STEPS[f"tab_transformer_{task}"] = trained(tab_transformer, task)
for name, encoders in ENCODERS.items():
    STEPS[f"encoder_{name}"] = trained(transformer(encoders))
    STEPS[f"encoder_{name}_of_resnet"] = trained(resnet(encoders), "regression")
for name, pair in {
    "means": (NAStrategy.MEAN, NAStrategy.MOST_FREQUENT),
    "zeros": (NAStrategy.ZEROS, NAStrategy.MOST_FREQUENT),
}.items():
    STEPS[f"missing_{name}"] = trained(transformer(fitting(pair)), nan=True)
    STEPS[f"missing_{name}_of_mlp"] = trained(mlp(fitting(pair)), "regression", nan=True)
STEPS["batch_norm"] = trained(resnet(normalization="batch_norm"))
STEPS["mlp_of_batch_norm"] = trained(mlp(normalization="batch_norm", dropout_prob=0.0), "binary")
STEPS["tabnet_of_embeddings"] = trained(tabnet(cat_emb_channels=4), "regression")


def regularized(net, tf, task):
    pred, regular = net(tf, return_reg=True)
    return loss_of(task, pred, tf.y) + 0.01 * regular


STEPS["tabnet_regularized"] = trained(tabnet(), forward=regularized)


def layers(net, tf, task):
    """Each layer predicts."""
    out = net(tf)
    count, layer = out.shape[0], out.shape[1]
    pred = out.view(count * layer, -1)
    return loss_of(task, pred, tf.y.repeat_interleave(layer, output_size=count * layer))


STEPS["trompt"] = trained(trompt, forward=layers)
STEPS["trompt_regression"] = trained(trompt, "regression", forward=layers)


def mixed(net, tf, task):
    pred, y = net(tf, mixup_encoded=True)
    return F.cross_entropy(pred, y) if task == "classes" else loss_of(task, pred, y)


STEPS["excelformer"] = trained(excel(), transforms=[CatToNumTransform])
STEPS["excelformer_of_numbers"] = trained(excel(), "regression", [stype.numerical])
STEPS["excelformer_hidden_mix"] = trained(excel("hidden"), transforms=[CatToNumTransform], forward=mixed)
STEPS["excelformer_regression_mix"] = trained(excel("hidden"), "regression", [stype.numerical], forward=mixed)

KINDS = {
    "timestamps": (stype.timestamp, E.TimestampEncoder),
    "embeddings": (stype.embedding, E.LinearEmbeddingEncoder),
    "texts": (stype.text_embedded, E.LinearEmbeddingEncoder),
}
for name, (kind, encoder) in KINDS.items():

    def encoders(kind=kind, encoder=encoder):
        parent = stype.embedding if kind is stype.text_embedded else kind
        return {stype.categorical: E.EmbeddingEncoder(), stype.numerical: E.LinearEncoder(), parent: encoder()}

    STEPS[f"columns_of_{name}"] = trained(transformer(encoders), stypes=[*BOTH, kind])
    STEPS[f"columns_of_{name}_of_resnet"] = trained(resnet(encoders), "binary", stypes=[*BOTH, kind])


def filled(kind, encoder, strategy):
    return lambda: {
        stype.categorical: E.EmbeddingEncoder(),
        stype.numerical: E.LinearEncoder(),
        kind: encoder(na_strategy=strategy),
    }


STEPS["missing_timestamps"] = trained(
    transformer(filled(stype.timestamp, E.TimestampEncoder, NAStrategy.MEDIAN_TIMESTAMP)),
    stypes=[*BOTH, stype.timestamp],
    nan=True,
)
