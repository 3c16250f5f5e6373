"""Training steps over nodegam 0.3.0: batches of its estimators, and of its trainer, which learns trees of tables first without their answers."""

import os
import tempfile

import pandas as pd
from nodegam.arch import GAMAttBlock, GAMBlock, ODSTBlock
from nodegam.nn_utils import EM15Temp, GSMTemp, SMTemp, entmoid15, sparsemoid
from nodegam.sklearn import NodeGAMClassifier, NodeGAMRegressor
from nodegam.trainer import Trainer
from qhoptim.pyt import QHAdam

os.chdir(tempfile.mkdtemp())  # a trainer keeps its logs where it is called
ROWS, WIDTH = 120, 5


def table(kinds=2):
    x = pd.DataFrame({f"x{n}": np.random.rand(ROWS) for n in range(WIDTH)})
    return x, np.random.randint(0, kinds, ROWS)


def fitted(kind, kinds=2, **more):
    """A step is a batch of `fit`."""

    def make():
        x, y = table(kinds)
        given = {
            "num_trees": 8, "num_layers": 2, "depth": 2, "batch_size": 16, "max_steps": 20, "anneal_steps": 50, "report_frequency": 50,
            "device": D, "verbose": 0, "name": f"n{np.random.randint(1 << 30)}", **more,
        }  # fmt: skip
        held = kind(in_features=WIDTH, **given)
        return loop(lambda: held.fit(x, y if kind is NodeGAMClassifier else np.random.rand(ROWS).astype("float32")))

    return make


for name, kind in {"classifier": NodeGAMClassifier, "regressor": NodeGAMRegressor}.items():
    STEPS[name] = fitted(kind)
    STEPS[f"{name}_of_single_features"] = fitted(kind, ga2m=0)
    STEPS[f"{name}_attentive"] = fitted(kind, arch="GAMAtt", dim_att=4)
    STEPS[f"{name}_attentive_to_single_features"] = fitted(kind, arch="GAMAtt", dim_att=4, ga2m=0)
    STEPS[f"{name}_penalized"] = fitted(kind, l2_lambda=0.01)
    STEPS[f"{name}_dropping"] = fitted(kind, output_dropout=0.2, last_dropout=0.5)
    STEPS[f"{name}_of_all_columns"] = fitted(kind, colsample_bytree=1.0, addi_tree_dim=1)
    STEPS[f"{name}_settled"] = fitted(kind, anneal_steps=1)
    STEPS[f"{name}_not_warmed_up"] = fitted(kind, lr_warmup_steps=-1, quantile_dist="uniform")
STEPS["classifier_of_three"] = fitted(NodeGAMClassifier, 3, num_classes=3)


def batches(answers):
    x = np.random.rand(ROWS, WIDTH).astype("float32")
    return x, {"class": np.random.randint(0, 2, ROWS).astype("float32"), "classes": np.random.randint(0, 3, ROWS), "none": None,
               "number": np.random.rand(ROWS).astype("float32")}[answers]  # fmt: skip


def trained(arch, problem="classification", answers="class", classes=1, choice=None, bins=entmoid15, how=None, **more):
    """A step is a call of `train_on_batch`, as the readme's script makes it."""

    def make():
        choose = choice() if choice else EM15Temp(max_temp=1.0, min_temp=0.01, steps=50)
        tempered = hasattr(choose, "temp_step_callback")
        more_of = (
            {}
            if arch is ODSTBlock
            else {"selectors_detach": 1, "ga2m": 1, "l2_interactions": 0.01, "l1_interactions": 0.01}
        )
        net = arch(
            in_features=WIDTH, num_trees=8, num_layers=2, num_classes=WIDTH if problem.startswith("pretrain") else classes, depth=2,
            choice_function=choose, bin_function=bins, colsample_bytree=0.6, add_last_linear=True, **more_of, **(how or {}),
        ).to(D)  # fmt: skip
        with torch.no_grad():
            net(torch.rand(32, WIDTH, device=D))
        held = Trainer(
            model=net, experiment_name=f"t{np.random.randint(1 << 30)}", Optimizer=QHAdam, problem=problem,
            optimizer_params={"nus": (0.7, 1.0), "betas": (0.95, 0.998)}, step_callbacks=[choose.temp_step_callback] if tempered else [], **more,
        )  # fmt: skip
        x, y = batches(answers)

        def go():
            at = np.random.permutation(ROWS)[:16]
            return held.train_on_batch(x[at], None if y is None else y[at], device=D)

        return go

    return make


for name, arch in {"trees": ODSTBlock, "additive": GAMBlock, "attentive": GAMAttBlock}.items():
    STEPS[f"{name}_class"] = trained(arch)
    STEPS[f"{name}_classes"] = trained(arch, answers="classes", classes=3)
    STEPS[f"{name}_number"] = trained(arch, "regression", "number")
    STEPS[f"{name}_of_no_answers"] = trained(arch, "pretrain_recon", "none")
    STEPS[f"{name}_frozen_at_first"] = trained(arch, freeze_steps=2, lr_warmup_steps=10)
    STEPS[f"{name}_last_layer_alone"] = trained(arch, opt_only_last_layer=True)
    STEPS[f"{name}_of_hidden_without_noise"] = trained(
        arch, "pretrain_recon", "none", masks_noise=0.0, pretraining_ratio=0.3
    )
CHOICES = {
    "softmax": lambda: SMTemp(50, sample_soft=True), "gumbel": lambda: GSMTemp(50), "gumbel_settled": lambda: GSMTemp(1),
}  # fmt: skip
for name, choice in CHOICES.items():
    STEPS[f"chosen_by_{name}"] = trained(GAMBlock, choice=choice)
STEPS["binned_by_sparsemoid"] = trained(ODSTBlock, bins=sparsemoid)
