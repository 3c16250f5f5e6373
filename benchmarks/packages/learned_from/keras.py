"""Training steps over keras 3.15.1 on its backend of torch: batches of `fit`, of layers, losses, metrics and optimizers of all
kinds, and steps that are written out.
"""

import os

os.environ["KERAS_BACKEND"], os.environ["KERAS_TORCH_DEVICE"] = "torch", D


class Host(torch.Generator):
    """One of the device, which no CPU has, is one of the host."""

    def __new__(cls, device=None):
        return super().__new__(cls)


torch.Generator = Host
import keras
from keras import layers, losses, metrics, optimizers

ROWS, BATCHES, WIDTH, CLASSES, LONG, WORDS = 4, 8, 8, 3, 6, 20
MANY = ROWS * BATCHES


class Ends(keras.callbacks.Callback):
    """Says where a batch ends, as a step of an optimizer of torch's, which those of keras are not. Where a callback looks at each
    batch, the others look at it in the same thread.
    """

    def on_train_begin(self, logs=None):
        self.held = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1, device="cpu"))], 0.1)

    def on_train_batch_end(self, batch, logs=None):
        self.held.step()


def rows(*shape):
    return np.random.rand(MANY, *(shape or (WIDTH,))).astype("float32")


def labels(classes=CLASSES, *shape):
    return np.random.randint(0, classes, (MANY, *shape))


def words():
    return np.random.randint(1, WORDS, (MANY, LONG))


def shown(*shape):
    return keras.utils.to_categorical(labels(CLASSES, *shape), CLASSES)


def fitted(
    model, x=rows, y=labels, loss="sparse_categorical_crossentropy", optimizer="adam", told=("accuracy",), **more
):
    """A step is a batch of `fit`."""

    def make():
        made = model()
        held = optimizer() if callable(optimizer) else optimizer
        given = {
            name: more.pop(name) for name in ("callbacks", "verbose", "class_weight", "sample_weight") if name in more
        }
        given = {name: value() if callable(value) else value for name, value in given.items()}
        made.compile(
            optimizer=held, loss=loss() if callable(loss) and not isinstance(loss, losses.Loss) else loss,
            metrics=[each() if callable(each) else each for each in told], **more,
        )  # fmt: skip
        callbacks = [Ends(), *given.pop("callbacks", [])]
        if x is None:  # a loader
            return loop(lambda: made.fit(y(), epochs=3, callbacks=callbacks, **given))
        fed = x(), y() if y else None
        return loop(lambda: made.fit(*fed, batch_size=ROWS, epochs=3, callbacks=callbacks, **given))

    return make


def stack(*made, shape=(WIDTH,), dtype=None):
    """A model of layers one after another."""
    return lambda: keras.Sequential([keras.Input(shape, dtype=dtype), *(each() for each in made)])


def end(classes=CLASSES, activation="softmax"):
    return lambda: layers.Dense(classes, activation=activation, dtype="float32")


def mlp():
    return stack(lambda: layers.Dense(8, activation="relu"), end())()


def pictures():
    return rows(8, 8, 3)


def image(*made):
    return stack(*made, layers.GlobalAveragePooling2D, end(), shape=(8, 8, 3))


def text(*made):
    return stack(lambda: layers.Embedding(WORDS, 8), *made, end(), shape=(LONG,), dtype="int32")


STEPS["mlp"] = fitted(mlp)
STEPS["mlp_in_silence"] = fitted(mlp, verbose=0)
STEPS["mlp_one_line_an_epoch"] = fitted(mlp, verbose=2)
STEPS["mlp_without_metrics"] = fitted(mlp, told=())
for name in (
    "SGD",
    "RMSprop",
    "AdamW",
    "Adadelta",
    "Adagrad",
    "Adamax",
    "Adafactor",
    "Nadam",
    "Ftrl",
    "Lion",
    "Lamb",
    "Muon",
):
    STEPS[f"optimizer_{name}"] = fitted(mlp, optimizer=getattr(optimizers, name))
STEPS["optimizer_of_a_schedule"] = fitted(
    mlp,
    optimizer=lambda: optimizers.SGD(optimizers.schedules.ExponentialDecay(0.1, 10, 0.9), momentum=0.9, nesterov=True),
)
STEPS["optimizer_of_a_cosine"] = fitted(
    mlp, optimizer=lambda: optimizers.Adam(optimizers.schedules.CosineDecay(0.0, 30, warmup_target=0.1, warmup_steps=4))
)
for name, more in (
    ("norm", {"clipnorm": 1.0}), ("norm_of_all", {"global_clipnorm": 1.0}), ("values", {"clipvalue": 0.5}),
):  # fmt: skip
    STEPS[f"clipped_{name}"] = fitted(mlp, optimizer=lambda more=more: optimizers.Adam(**more))
STEPS["averaged"] = fitted(mlp, optimizer=lambda: optimizers.Adam(use_ema=True, ema_overwrite_frequency=None))
STEPS["accumulating"] = fitted(mlp, optimizer=lambda: optimizers.Adam(gradient_accumulation_steps=2))
STEPS["decayed"] = fitted(mlp, optimizer=lambda: optimizers.SGD(weight_decay=1e-3))
STEPS["scaled"] = fitted(mlp, optimizer=lambda: optimizers.LossScaleOptimizer(optimizers.Adam()))


def mixed(policy):
    def make():
        keras.mixed_precision.set_global_policy(policy)
        try:
            return mlp()
        finally:
            keras.mixed_precision.set_global_policy("float32")

    return make


STEPS["mixed_bfloat16"] = fitted(mixed("mixed_bfloat16"))
STEPS["mixed_float16"] = fitted(mixed("mixed_float16"))
STEPS["weighted_classes"] = fitted(mlp, class_weight={0: 1.0, 1: 2.0, 2: 0.5})
STEPS["weighted_rows"] = fitted(mlp, sample_weight=lambda: np.random.rand(MANY))

ONE = stack(lambda: layers.Dense(8, activation="relu"), end(1, "sigmoid"))
REAL = stack(lambda: layers.Dense(8, activation="relu"), end(1, None))
for name in (
    "MeanSquaredError",
    "MeanAbsoluteError",
    "Huber",
    "LogCosh",
    "MeanAbsolutePercentageError",
    "CosineSimilarity",
):
    STEPS[f"loss_{name}"] = fitted(REAL, y=lambda: rows(1), loss=getattr(losses, name), told=("mae", "mse"))
for name in ("BinaryCrossentropy", "BinaryFocalCrossentropy", "Hinge", "Poisson", "Dice", "Tversky"):
    STEPS[f"loss_{name}"] = fitted(ONE, y=lambda: labels(2, 1), loss=getattr(losses, name), told=())
for name in ("CategoricalCrossentropy", "CategoricalFocalCrossentropy", "KLDivergence", "CategoricalHinge"):
    STEPS[f"loss_{name}"] = fitted(mlp, y=shown, loss=getattr(losses, name), told=("accuracy",))
for name in ("AUC", "Precision", "Recall", "BinaryAccuracy", "FalsePositives"):
    STEPS[f"metric_{name}"] = fitted(
        ONE, y=lambda: labels(2, 1), loss="binary_crossentropy", told=(getattr(metrics, name),)
    )
STEPS["metric_F1Score"] = fitted(mlp, y=shown, loss="categorical_crossentropy", told=(metrics.F1Score,))
STEPS["metric_TopK"] = fitted(mlp, told=(lambda: metrics.SparseTopKCategoricalAccuracy(2),))
STEPS["metric_R2"] = fitted(REAL, y=lambda: rows(1), loss="mse", told=(metrics.R2Score, metrics.RootMeanSquaredError))
STEPS["metric_of_places"] = fitted(
    mlp, told=(lambda: metrics.SensitivityAtSpecificity(0.5),), y=shown, loss="categorical_crossentropy"
)


def conv():
    return layers.Conv2D(8, 3, padding="same", activation="relu")


STEPS["cnn"] = fitted(image(conv, layers.MaxPooling2D, conv), pictures)
STEPS["cnn_normed"] = fitted(
    image(conv, layers.BatchNormalization, layers.ReLU, lambda: layers.SpatialDropout2D(0.1)), pictures
)
STEPS["cnn_separable"] = fitted(
    image(lambda: layers.SeparableConv2D(8, 3), lambda: layers.DepthwiseConv2D(3, padding="same")), pictures
)
STEPS["cnn_group_normed"] = fitted(image(conv, lambda: layers.GroupNormalization(2)), pictures)
STEPS["cnn_spectral"] = fitted(image(lambda: layers.SpectralNormalization(layers.Conv2D(4, 3))), pictures)
STEPS["augmented"] = fitted(
    image(
        layers.RandomFlip, lambda: layers.RandomRotation(0.1), lambda: layers.RandomZoom(0.1),
        lambda: layers.RandomContrast(0.1), lambda: layers.RandomTranslation(0.1, 0.1), conv,
    ), pictures,
)  # fmt: skip
STEPS["augmented_more"] = fitted(
    image(lambda: layers.RandomBrightness(0.1), lambda: layers.RandomCrop(6, 6), lambda: layers.Rescaling(0.5), conv),
    pictures,
)
STEPS["dropping"] = fitted(
    stack(
        lambda: layers.GaussianNoise(0.1), lambda: layers.Dropout(0.2), lambda: layers.AlphaDropout(0.1),
        lambda: layers.Dense(8, kernel_regularizer="l2", activity_regularizer="l1", kernel_constraint="non_neg"), end(),
    )
)  # fmt: skip
for name in ("LSTM", "GRU", "SimpleRNN"):
    STEPS[f"text_{name}"] = fitted(text(lambda name=name: getattr(layers, name)(8)), words)
STEPS["text_both_ways"] = fitted(text(lambda: layers.Bidirectional(layers.LSTM(8))), words)
STEPS["text_dropping"] = fitted(text(lambda: layers.LSTM(8, dropout=0.2, recurrent_dropout=0.2)), words)
STEPS["text_masked"] = fitted(
    stack(
        lambda: layers.Embedding(WORDS, 8, mask_zero=True), lambda: layers.LSTM(8), end(), shape=(LONG,), dtype="int32"
    ),
    words,
)
STEPS["text_conv"] = fitted(text(lambda: layers.Conv1D(8, 3, activation="relu"), layers.GlobalMaxPooling1D), words)
STEPS["series_ConvLSTM"] = fitted(
    stack(lambda: layers.ConvLSTM1D(4, 3), layers.Flatten, end(), shape=(LONG, 8, 2)), lambda: rows(LONG, 8, 2)
)
STEPS["tagged"] = fitted(text(lambda: layers.GRU(8, return_sequences=True)), words, lambda: labels(CLASSES, LONG))


class Placed(layers.Layer):
    """What words stand for, and where they are."""

    def __init__(self):
        super().__init__()
        self.words, self.places = layers.Embedding(WORDS, 8), layers.Embedding(LONG, 8)

    def call(self, x):
        return self.words(x) + self.places(keras.ops.arange(0, keras.ops.shape(x)[-1]))


def transformer(causal=False, out=CLASSES, pooled=True):
    """Of the example of text: attention, and a small network."""
    x = keras.Input((LONG,), dtype="int32")
    held = Placed()(x)
    seen = layers.MultiHeadAttention(2, 4, dropout=0.1)(held, held, use_causal_mask=causal)
    held = layers.LayerNormalization()(held + seen)
    held = layers.LayerNormalization()(held + layers.Dense(8)(layers.Dense(16, activation="gelu")(held)))
    held = layers.GlobalAveragePooling1D()(held) if pooled else held
    return keras.Model(x, layers.Dense(out, activation="softmax")(held))


STEPS["transformer"] = fitted(transformer, words)
STEPS["transformer_causal"] = fitted(
    lambda: transformer(True, WORDS, False), words, lambda: labels(WORDS, LONG), told=("accuracy",)
)


def several():
    """A model of two inputs and two outputs."""
    a, b = keras.Input((WIDTH,)), keras.Input((WIDTH,))
    held = layers.Concatenate()([layers.Dense(8, "relu")(a), layers.Dense(8, "relu")(b)])
    return keras.Model(
        [a, b], [layers.Dense(CLASSES, "softmax", name="kind")(held), layers.Dense(1, name="size")(held)]
    )


@step
def of_several():
    made = several()
    made.compile(
        "adam", ["sparse_categorical_crossentropy", "mse"], loss_weights=[1.0, 0.5], metrics=[["accuracy"], ["mae"]]
    )
    fed = [rows(), rows()], [labels(), rows(1)]
    return loop(lambda: made.fit(*fed, batch_size=ROWS, epochs=3, callbacks=[Ends()]))


class Loader(keras.utils.PyDataset):
    """Batches that are made as they are asked for."""

    def __len__(self):
        return BATCHES

    def __getitem__(self, at):
        return np.random.rand(ROWS, WIDTH).astype("float32"), np.random.randint(0, CLASSES, ROWS)


def of_torch():
    held = torch.utils.data.TensorDataset(torch.rand(MANY, WIDTH), torch.randint(0, CLASSES, (MANY,)))
    return torch.utils.data.DataLoader(held, ROWS, shuffle=True)


STEPS["of_a_dataset"] = fitted(mlp, None, Loader)
STEPS["of_a_loader"] = fitted(mlp, None, of_torch)
STEPS["of_tensors"] = fitted(mlp, lambda: torch.rand(MANY, WIDTH), lambda: torch.randint(0, CLASSES, (MANY,)))


def on_batch(model=mlp, x=rows, y=labels, **more):
    """A step is `train_on_batch`."""

    def make():
        made = model()
        made.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
        fed = x(), y()
        return lambda: made.train_on_batch(fed[0][:ROWS], fed[1][:ROWS], **more)

    return make


STEPS["on_batch"] = on_batch()
STEPS["on_batch_named"] = on_batch(return_dict=True)
STEPS["on_batch_of_words"] = on_batch(transformer, words)


class Watched(keras.callbacks.Callback):
    """Stops where the loss is not a number, and prints it now and then."""

    def on_train_batch_end(self, batch, logs=None):
        if batch % 100 == 99:
            print(logs["loss"])


STEPS["watched"] = fitted(mlp, callbacks=lambda: [keras.callbacks.TerminateOnNaN(), Watched()])
STEPS["stopping"] = fitted(
    mlp, callbacks=lambda: [keras.callbacks.EarlyStopping("loss"), keras.callbacks.ReduceLROnPlateau("loss")]
)


class Own(keras.Model):
    """Of the guide: a training step of one's own, by torch."""

    def __init__(self):
        super().__init__()
        self.net, self.seen = mlp(), metrics.Mean(name="loss")

    @property
    def metrics(self):
        return [self.seen]

    def call(self, x):
        return self.net(x)

    def train_step(self, data):
        x, y = data
        self.zero_grad()
        loss = losses.SparseCategoricalCrossentropy()(y, self(x, training=True))
        loss.backward()
        held = self.trainable_weights
        with torch.no_grad():
            self.optimizer.apply([each.value.grad for each in held], held)
        self.seen.update_state(loss)
        return {"loss": self.seen.result()}


@step
def own():
    made = Own()
    made.compile(optimizer="adam")
    return loop(lambda x=rows(), y=labels(): made.fit(x, y, batch_size=ROWS, epochs=3, callbacks=[Ends()]))


class Sampling(layers.Layer):
    """Of the example of a VAE."""

    def __init__(self):
        super().__init__()
        self.seeds = keras.random.SeedGenerator(1)

    def call(self, held):
        mean, logs = held
        self.add_loss(-0.5 * keras.ops.mean(1 + logs - keras.ops.square(mean) - keras.ops.exp(logs)))
        return mean + keras.ops.exp(0.5 * logs) * keras.random.normal(keras.ops.shape(mean), seed=self.seeds)


@step
def autoencoder():
    x = keras.Input((WIDTH,))
    held = layers.Dense(8, "relu")(x)
    z = Sampling()([layers.Dense(2)(held), layers.Dense(2)(held)])
    made = keras.Model(x, layers.Dense(WIDTH)(layers.Dense(8, "relu")(z)))
    made.compile("adam", "mse")
    return loop(lambda fed=rows(): made.fit(fed, fed, batch_size=ROWS, epochs=3, callbacks=[Ends()]))


@step
def by_hand():
    """Of the guide: a loop that is written out, with a metric."""
    made, optimizer = mlp(), torch.optim.Adam
    loss, seen = losses.SparseCategoricalCrossentropy(), metrics.SparseCategoricalAccuracy()
    made(np.zeros((1, WIDTH), "float32"))
    held = optimizer(made.parameters(), 1e-3)
    batches = (batch for _ in range(9) for batch in of_torch())

    def go():
        x, y = next(batches)
        shown = made(x, training=True)
        value = loss(y, shown)
        made.zero_grad()
        value.backward()
        held.step()
        seen.update_state(y, shown)

    return go


@step
def by_hand_of_keras():
    """As `by_hand`, with an optimizer of keras."""
    made, optimizer, loss = mlp(), optimizers.Adam(1e-3), losses.SparseCategoricalCrossentropy()
    batches = (batch for _ in range(9) for batch in of_torch())

    def go():
        x, y = next(batches)
        value = loss(y, made(x, training=True))
        made.zero_grad()
        value.backward()
        held = list(made.trainable_weights)
        with torch.no_grad():
            optimizer.apply([each.value.grad for each in held], held)

    return go
