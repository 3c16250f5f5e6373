"""Training steps over lassonet 0.0.21: batches of each of its estimators, of the dense net and along the path, and by hand."""

from functools import partial

from lassonet import (
    LassoNet,
    LassoNetClassifier,
    LassoNetClassifierCV,
    LassoNetCoxRegressor,
    LassoNetCoxRegressorCV,
    LassoNetRegressor,
    LassoNetRegressorCV,
    lassonet_path,
)
from lassonet.cox import CoxPHLoss
from lassonet.interfaces import LassoNetIntervalRegressor
from lassonet.utils import log_substract, scatter_logsumexp

ROWS, WIDTH, CLASSES = 90, 6, 3


def reals(width=1):
    return lambda x: (x @ np.random.rand(WIDTH, width)).astype("float32").squeeze()


def kinds(x):
    return np.random.randint(0, CLASSES, len(x))


def times(x):
    """How long somebody was seen, and whether it happened."""
    return np.stack([np.random.randint(1, 30, len(x)).astype("float32"), np.random.rand(len(x)) > 0.4], 1).astype(
        "float32"
    )


def spans(x):
    """Between when and when it happened, and whether that was before, within or after."""
    start, kind = np.random.rand(len(x)) + 0.5, np.eye(3)[np.random.randint(0, 3, len(x))]
    return np.concatenate([np.stack([start, start + np.random.rand(len(x)) + 0.5], 1), kind], 1).astype("float32")


def fitted(kind, y, along=0, how="fit", fed=None, **more):
    """A step is one of an optimizer; of the path, once so many of the dense net are done."""

    def make():
        x = np.random.rand(ROWS, WIDTH).astype("float32")
        given = {
            "hidden_dims": (8,),
            "n_iters": (along or 40, 40),
            "patience": (100, 10),
            "device": torch.device(D),
            **more,
        }
        if along:
            given.setdefault("lambda_start", 1.0)  # what finds one by itself takes long
        held = kind(**given)
        return loop(lambda: getattr(held, how)(x, y(x), **(fed(x, y) if fed else {})), before=along)

    return make


def apart(x, y):
    """Rows to look at that are not among those to learn from."""
    return {"X_val": x[:9], "y_val": y(x)[:9]}


ALL = {
    "regressor": (LassoNetRegressor, reals()), "regressor_of_two": (LassoNetRegressor, reals(2)),
    "classifier": (LassoNetClassifier, kinds), "cox_breslow": (partial(LassoNetCoxRegressor, "breslow"), times),
    "cox_efron": (partial(LassoNetCoxRegressor, "efron"), times), "interval": (LassoNetIntervalRegressor, spans),
}  # fmt: skip
for name, (kind, y) in ALL.items():
    STEPS[name] = fitted(kind, y)
    STEPS[f"{name}_along_the_path"] = fitted(kind, y, 6)
for name in ("regressor", "classifier"):
    kind, y = ALL[name]
    STEPS[f"{name}_in_batches"] = fitted(kind, y, batch_size=8)
    STEPS[f"{name}_in_batches_along_the_path"] = fitted(kind, y, 20, batch_size=8, n_iters=(2, 5))
    STEPS[f"{name}_of_groups"] = fitted(kind, y, groups=[[0, 1], [2, 3, 4], [5]])
    STEPS[f"{name}_of_groups_along_the_path"] = fitted(kind, y, 6, groups=[[0, 1], [2, 3, 4], [5]])
    STEPS[f"{name}_dropping"] = fitted(kind, y, dropout=0.2)
    STEPS[f"{name}_penalized"] = fitted(kind, y, gamma=0.1, gamma_skip=0.1)
    STEPS[f"{name}_going_back"] = fitted(kind, y, backtrack=True)
    STEPS[f"{name}_told"] = fitted(kind, y, 6, verbose=2, lambda_start=1.0)
    STEPS[f"{name}_beside_others"] = fitted(kind, y, fed=apart)
    STEPS[f"{name}_dense"] = fitted(kind, y, fed=lambda x, y: {"dense_only": True})
    STEPS[f"{name}_deep"] = fitted(kind, y, hidden_dims=(8, 8), torch_seed=1)
    STEPS[f"{name}_by_sgd"] = fitted(kind, y, optim=partial(torch.optim.SGD, lr=1e-2, momentum=0.9))
    STEPS[f"{name}_path"] = fitted(kind, y, how="path", fed=lambda x, y: {"return_state_dicts": True})
    STEPS[f"{name}_stable"] = fitted(kind, y, how="stability_selection", fed=lambda x, y: {"n_models": 1})
STEPS["classifier_weighted"] = fitted(LassoNetClassifier, kinds, class_weight=[1.0, 2.0, 0.5])
STEPS["regressor_by_lbfgs"] = fitted(LassoNetRegressor, reals(), optim=partial(torch.optim.LBFGS, max_iter=3))
for name, kind, y in (
    ("regressor", LassoNetRegressorCV, reals()), ("classifier", LassoNetClassifierCV, kinds),
    ("cox", partial(LassoNetCoxRegressorCV, tie_approximation="breslow"), times),
):  # fmt: skip
    STEPS[f"{name}_chosen"] = fitted(kind, y, cv=2)


@step
def path():
    """The function of the docs."""
    x = np.random.rand(ROWS, WIDTH).astype("float32")
    more = {"hidden_dims": (8,), "n_iters": (40, 40), "device": torch.device(D), "verbose": False}
    return loop(lambda: lassonet_path(x, kinds(x), task="classification", **more))


def by_hand(loss, y, out=1, groups=None):
    """A step of a loop that is written out: the loss, backward, the optimizer, the proximal step."""

    def make():
        net = LassoNet(WIDTH, 8, out, groups=groups, dropout=0.1).to(D)
        optimizer = torch.optim.Adam(net.parameters(), 1e-3)

        def go():
            x = np.random.rand(16, WIDTH).astype("float32")
            fed, target = torch.from_numpy(x).to(D), torch.as_tensor(y(x)).to(D)
            optimizer.zero_grad()
            (loss(net(fed), target) + 0.1 * net.l2_regularization() + 0.1 * net.l1_regularization_skip()).backward()
            optimizer.step()
            net.prox(lambda_=0.1 * optimizer.param_groups[0]["lr"], M=10)

        return go

    return make


def squares(shown, y):
    return torch.nn.functional.mse_loss(shown[:, 0], y)


STEPS["hand_regressor"] = by_hand(squares, reals())
STEPS["hand_classifier"] = by_hand(torch.nn.functional.cross_entropy, kinds, CLASSES)
STEPS["hand_regressor_of_groups"] = by_hand(squares, reals(), groups=[[0, 1, 2], [3, 4, 5]])
STEPS["hand_cox"] = by_hand(CoxPHLoss("breslow"), times)
STEPS["hand_cox_efron"] = by_hand(CoxPHLoss("efron"), times)


@step
def hand_of_sums():
    """Logarithms of sums over groups, as a loss of one's own takes them."""
    net = torch.nn.Linear(WIDTH, 1)

    def of(net):
        shown = net(torch.rand(16, WIDTH, device=D))[:, 0]
        groups = torch.arange(16, device=D) // 4
        held = scatter_logsumexp(shown, groups)
        return log_substract(held + 3.0, held).sum()

    return train(net, of)
