"""Training steps over gretel-synthetics 0.22.20: sequences by DoppelGANger, tables by ACTGAN, as numbers, classes and frames."""

absent("sdv")

import pandas as pd
from gretel_synthetics.actgan.actgan import ACTGANSynthesizer
from gretel_synthetics.actgan.structures import ConditionalVectorType
from gretel_synthetics.timeseries_dgan.config import DfStyle, DGANConfig, Normalization, OutputType
from gretel_synthetics.timeseries_dgan.dgan import DGAN

pd.set_option("future.infer_string", False)  # as pandas was when the package was made
ROWS, LENGTH = 48, 12
WORDS = np.array(["a", "b", "c", "d"])


def sequences(*kinds):
    """Features of so many sequences: a real number, or one of four words, each."""
    columns = [
        np.random.rand(ROWS, LENGTH) if kind == "real" else WORDS[np.random.randint(0, 4, (ROWS, LENGTH))]
        for kind in kinds
    ]
    return np.stack([each.astype(object) if len(set(kinds)) > 1 else each for each in columns], -1)


def attributes(*kinds):
    columns = [np.random.rand(ROWS) if kind == "real" else WORDS[np.random.randint(0, 4, ROWS)] for kind in kinds]
    return np.stack([each.astype(object) if len(set(kinds)) > 1 else each for each in columns], -1)


def types(kinds):
    return [OutputType.CONTINUOUS if kind == "real" else OutputType.DISCRETE for kind in kinds]


def grown(features=("real",), of=(), given=None, rounds=1, **more):
    """A step is a batch: each discriminator so many times, then the generator."""

    def make():
        config = {
            "max_sequence_len": LENGTH, "sample_len": 3, "batch_size": 8, "epochs": 4, "attribute_num_units": 16, "feature_num_units": 16,
            "discriminator_rounds": rounds, **more,
        }  # fmt: skip
        held = DGAN(DGANConfig(**config))
        scaled = "real" in features and more.get("apply_example_scaling", True)
        both = bool(of or scaled) and more.get("use_attribute_discriminator", True)
        x = sequences(*features)
        if given:
            x = given(x)
        data = {"features": x, "feature_types": types(features)}
        if of:
            data |= {"attributes": attributes(*of), "attribute_types": types(of)}
        return loop(lambda: held.train_numpy(**data), optimizers=rounds * (1 + both) + 1)

    return make


def cut_short(x):
    """Sequences of unequal length."""
    return [each[: np.random.randint(2, LENGTH + 1)] for each in x]


STEPS["real"] = grown()
STEPS["real_and_real"] = grown(("real", "real"))
STEPS["words"] = grown(("word",))
STEPS["real_and_words"] = grown(("real", "word"))
STEPS["of_words"] = grown(("real",), ("word",))
STEPS["of_both"] = grown(("real", "word"), ("real", "word"))
STEPS["words_of_words"] = grown(("word",), ("word",))
STEPS["unscaled"] = grown(apply_example_scaling=False)
STEPS["unscaled_of_words"] = grown(("real",), ("word",), apply_example_scaling=False)
STEPS["raw"] = grown(("real",), ("real",), apply_example_scaling=False, apply_feature_scaling=False)
STEPS["one_discriminator"] = grown(("real",), ("word",), use_attribute_discriminator=False)
STEPS["around_zero"] = grown(("real",), ("real",), normalization=Normalization.MINUSONE_ONE)
STEPS["more_of_the_discriminator"] = grown(("real",), ("word",), rounds=3)
STEPS["cut_short"] = grown(("real",), ("word",), given=cut_short)
STEPS["in_binary"] = grown(("word",), ("word",), binary_encoder_cutoff=2)
STEPS["forgetting"] = grown(forget_bias=True)
STEPS["deep"] = grown(("real",), ("word",), feature_num_layers=2, attribute_num_layers=4, sample_len=LENGTH)


def framed(frame, **more):
    """A step is a batch of a frame's."""

    def make():
        held = DGAN(
            DGANConfig(
                max_sequence_len=LENGTH,
                sample_len=3,
                batch_size=8,
                epochs=4,
                attribute_num_units=16,
                feature_num_units=16,
            )
        )
        return loop(lambda: held.train_dataframe(frame(), **more), optimizers=3)

    return make


def wide():
    return pd.DataFrame(
        {"kind": WORDS[np.random.randint(0, 4, ROWS)], **{str(n): np.random.rand(ROWS) for n in range(LENGTH)}}
    )


def long():
    rows = ROWS * LENGTH
    return pd.DataFrame({
        "who": np.repeat(np.arange(ROWS), LENGTH), "when": pd.date_range("2020-01-01", periods=rows), "x": np.random.rand(rows),
        "y": np.random.rand(rows), "kind": np.repeat(WORDS[np.random.randint(0, 4, ROWS)], LENGTH), "word": WORDS[np.random.randint(0, 4, rows)],
    })  # fmt: skip


STEPS["frame_wide"] = framed(wide, attribute_columns=["kind"], df_style=DfStyle.WIDE, discrete_columns=["kind"])
STEPS["frame_long"] = framed(
    long,
    attribute_columns=["kind"],
    example_id_column="who",
    time_column="when",
    discrete_columns=["kind", "word"],
    df_style=DfStyle.LONG,
)
STEPS["frame_split"] = framed(lambda: long()[["when", "x", "y"]], time_column="when", df_style=DfStyle.LONG)


def told(info):
    """What is called after each batch: for a bar."""
    return info.frac_completed


@step
def told_of_each_batch():
    held = DGAN(DGANConfig(max_sequence_len=LENGTH, sample_len=3, batch_size=8, epochs=4))
    return loop(lambda: held.train_numpy(sequences("real", "real"), progress_callback=told), optimizers=3)


def table(rows=200):
    return pd.DataFrame({
        "age": np.random.randint(18, 90, rows), "height": np.random.rand(rows), "kind": WORDS[np.random.randint(0, 4, rows)],
        "answer": np.where(np.random.rand(rows) > 0.5, "yes", "no"), "code": [f"c{n % 30}" for n in range(rows)],
    })  # fmt: skip


DISCRETE = ["kind", "answer", "code"]


def tabled(discrete=DISCRETE, frame=table, steps=1, **more):
    """A step is a batch: the discriminator so many times, then the generator."""

    def make():
        given = {
            "embedding_dim": 16, "generator_dim": (16, 16), "discriminator_dim": (16, 16), "generator_lr": 2e-4, "generator_decay": 1e-6,
            "discriminator_lr": 2e-4, "discriminator_decay": 1e-6, "batch_size": 20, "discriminator_steps": steps, "binary_encoder_cutoff": 500,
            "binary_encoder_nan_handler": None, "cbn_sample_size": 250000, "log_frequency": True, "verbose": False, "epochs": 2,
            "epoch_callback": None, "pac": 10, "cuda": True, "conditional_vector_type": ConditionalVectorType.SINGLE_DISCRETE,
            "conditional_select_mean_columns": None, "conditional_select_column_prob": None, "reconstruction_loss_coef": 1.0,
            "force_conditioning": False, **more,
        }  # fmt: skip
        held = ACTGANSynthesizer(**given)
        return loop(lambda: held.fit(frame(), discrete), optimizers=steps + 1)

    return make


ANY = {"conditional_vector_type": ConditionalVectorType.ANYWAY}
STEPS["table"] = tabled()
STEPS["table_of_numbers"] = tabled((), lambda: table()[["age", "height"]])
STEPS["table_of_words"] = tabled(DISCRETE, lambda: table()[DISCRETE])
STEPS["table_unlogged"] = tabled(log_frequency=False)
STEPS["table_unpacked"] = tabled(pac=1)
STEPS["table_discriminated_more"] = tabled(steps=2)
STEPS["table_weighed"] = tabled(reconstruction_loss_coef=10.0, generator_dim=(32, 32, 32))
STEPS["table_any"] = tabled(**ANY, conditional_select_mean_columns=2)
STEPS["table_any_by_chance"] = tabled(**ANY, conditional_select_column_prob=0.3)
STEPS["table_any_of_numbers"] = tabled((), lambda: table()[["age", "height"]], **ANY, conditional_select_mean_columns=1)
