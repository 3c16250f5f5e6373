"""Training steps over dnamite 1.0.8: batches of its additive nets of binned tables, features and pairs, as they are fitted and chosen."""

import pandas as pd
from dnamite.models import DNAMiteBinaryClassifier, DNAMiteRegressor, DNAMiteSurvival

pd.set_option("future.infer_string", False)  # as pandas was when the package was made
ROWS, BATCH = 240, 16
BATCHES = ROWS * 8 // 10 // BATCH  # of an epoch: what is not looked at


def table():
    x = pd.DataFrame({f"x{n}": np.random.rand(ROWS) for n in range(4)})
    x["kind"] = np.random.choice(["a", "b", "c"], ROWS).astype(object)
    return x


def classes(x):
    return (x["x0"] + np.random.rand(ROWS) > 1).astype(int)


def reals(x):
    return x["x0"] + np.random.rand(ROWS)


def times(x):
    """Whether it happened, and when."""
    held = np.empty(ROWS, dtype=[("event", bool), ("time", float)])
    held["event"], held["time"] = np.random.rand(ROWS) > 0.3, np.random.rand(ROWS) * 10 + 0.1
    return held


PAIRS = [["x0", "x1"], ["x2", "kind"]]
SMALL = {
    "n_embed": 8,
    "n_hidden": 8,
    "max_bins": 8,
    "batch_size": BATCH,
    "n_val_splits": 1,
    "device": D,
    "random_state": 0,
}


def fitted(kind, y, fed=None, epochs=3, before=0, how="fit", **more):
    """A step is a batch of the fit."""

    def make():
        x = table()
        held = kind(**SMALL, max_epochs=epochs, **(more | ({"n_eval_times": 10} if kind is DNAMiteSurvival else {})))
        target = y(x)
        return loop(lambda: getattr(held, how)(x, target, **(fed or {})), before=before)

    return make


KINDS = {
    "binary": (DNAMiteBinaryClassifier, classes),
    "real": (DNAMiteRegressor, reals),
    "survival": (DNAMiteSurvival, times),
}
for name, (kind, y) in KINDS.items():
    STEPS[name] = fitted(kind, y)
    STEPS[f"{name}_pairs"] = fitted(kind, y, {"pairs_list": PAIRS}, 1, BATCHES)
    STEPS[f"{name}_partialed"] = fitted(kind, y, {"partialed_feats": ["x0"]}, 1, BATCHES)
    STEPS[f"{name}_unsmoothed"] = fitted(kind, y, kernel_size=0, kernel_weight=0)
    STEPS[f"{name}_pairs_unsmoothed"] = fitted(
        kind, y, {"pairs_list": PAIRS}, 1, BATCHES, pair_kernel_size=0, pair_kernel_weight=0
    )
    STEPS[f"{name}_monotone"] = fitted(kind, y, monotone_constraints=[1, -1, 0, 0, 0])
    STEPS[f"{name}_deep"] = fitted(kind, y, n_layers=3)
    STEPS[f"{name}_chosen"] = fitted(kind, y, {"reg_param": 0.05}, how="select_features")
    STEPS[f"{name}_chosen_by_entropy"] = fitted(
        kind, y, {"reg_param": 0.05, "entropy_param": 0.01, "gamma": 2.0}, how="select_features"
    )
    STEPS[f"{name}_pairs_chosen"] = fitted(
        kind, y, {"reg_param": 0.01, "select_pairs": True, "pair_reg_param": 0.01}, 1, BATCHES, how="select_features"
    )
STEPS["survival_censored_by_cox"] = fitted(DNAMiteSurvival, times, censor_estimator="cox")
