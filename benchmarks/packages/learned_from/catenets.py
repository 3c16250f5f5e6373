"""Training steps over CATENets 0.2.4: effects of treatments, each of its learners of PyTorch, by batches of their `fit`."""

from unittest import mock

absent("jax jaxlib gdown")

# its modules ask for the device where they are imported
with mock.patch.object(torch.cuda, "is_available", lambda: True):
    import catenets.models.torch as M

ROWS, WIDTH = 320, 6
SMALL = {"n_iter": 3, "batch_size": 16, "n_iter_print": 1}


def patients(binary=False):
    x = np.random.randn(ROWS, WIDTH).astype("float32")
    treated = np.random.randint(0, 2, ROWS).astype("float32")
    outcome = np.random.randint(0, 2, ROWS) if binary else x[:, 0] + treated * x[:, 1]
    return x, outcome.astype("float32"), treated


def fitted(kind, before=0, binary=False, given=torch.from_numpy, **more):
    """A step is a batch of `fit`; `before` are the batches of other networks, which it fits first."""

    def make():
        learner = kind(WIDTH, binary_y=binary, **SMALL, **more)
        data = [given(each) for each in patients(binary)]
        return loop(lambda: learner.fit(*data), before=before)

    return make


STEPS["t_learner"] = fitted(M.TLearner)
STEPS["t_learner_binary"] = fitted(M.TLearner, binary=True)
STEPS["t_learner_dropout"] = fitted(M.TLearner, dropout=True, batch_norm=False, nonlin="relu")
STEPS["s_learner_propensity"] = fitted(M.SLearner, weighting_strategy="ipw")
STEPS["tarnet"] = fitted(M.TARNet)
STEPS["tarnet_discrepancy"] = fitted(M.TARNet, penalty_disc=0.1, n_layers_r=2)
STEPS["dragonnet"] = fitted(M.DragonNet)
STEPS["dragonnet_binary"] = fitted(M.DragonNet, binary=True, early_stopping=False)
STEPS["snet"] = fitted(M.SNet)
STEPS["snet_frobenius"] = fitted(M.SNet, ortho_reg_type="fro", penalty_disc=0.1)
STEPS["snet_without_propensity"] = fitted(M.SNet, with_prop=False)
STEPS["flextenet"] = fitted(M.FlexTENet)
STEPS["flextenet_shared"] = fitted(M.FlexTENet, shared_repr=True, private_out=True, normalize_ortho=True)
STEPS["flextenet_binary"] = fitted(M.FlexTENet, binary=True, dropout=True)
STEPS["dr_learner"] = fitted(M.DRLearner, weighting_strategy="prop")
STEPS["dr_learner_folds"] = fitted(M.DRLearner, weighting_strategy="prop", n_folds=2)
STEPS["r_learner"] = fitted(M.RLearner, weighting_strategy="prop")
STEPS["u_learner"] = fitted(M.ULearner, weighting_strategy="1-prop")

STEPS["r_learner_second"] = fitted(M.RLearner, before=85, weighting_strategy="prop")
STEPS["dr_learner_second"] = fitted(M.DRLearner, before=85, weighting_strategy="prop")
STEPS["x_learner_second"] = fitted(M.XLearner, before=43, weighting_strategy="prop")
