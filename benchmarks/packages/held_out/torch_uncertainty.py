"""Training steps over torch-uncertainty 0.13.0: its routines' steps, of networks that say how sure they are, by each of its losses."""

import torch_uncertainty.losses as L
from torch import nn
from torch_uncertainty.methods import EMA, SWA, SWAG, mc_dropout
from torch_uncertainty.models import mlp as mlps
from torch_uncertainty.models.classification import (
    batchensemble_lenet, bayesian_lenet, lenet, mimo_resnet, packed_lenet, packed_resnet, resnet,
)  # fmt: skip
from torch_uncertainty.optim import SGHMC, SGLD
from torch_uncertainty.routines import ClassificationRoutine, RegressionRoutine, SegmentationRoutine
from torch_uncertainty.transforms import MIMOBatchFormat, RepeatTarget

CLASSES, BATCH = 5, 8


def stepped(routine, batch, optimizer=None):
    """What lightning does with a routine: a step of it, backward, its optimizer."""
    routine = routine.to(D).train()
    steps = (optimizer or (lambda p: torch.optim.Adam(p, lr=1e-3)))(
        [p for p in routine.parameters() if p.requires_grad]
    )

    def go():
        steps.zero_grad()
        routine.training_step(batch).backward()
        steps.step()

    return go


def named(net, loss=nn.CrossEntropyLoss, size=28, channels=1, optimizer=None, classes=CLASSES, **more):
    """A step of the routine that names what is seen."""

    def make():
        held = net()
        given = {name: value() if callable(value) else value for name, value in more.items()}
        routine = ClassificationRoutine(
            model=held, num_classes=classes, loss=loss(held) if loss is elbo else loss(), **given
        )
        x = torch.rand(BATCH, channels, size, size, device=D)
        y = torch.randint(0, max(classes, 2), (BATCH,), device=D)
        return stepped(routine, (x, y), optimizer)

    return make


def elbo(net):
    return L.ELBOLoss(net, nn.CrossEntropyLoss(), kl_weight=1e-3, num_samples=3)


def plain():
    return lenet(1, CLASSES)


STEPS["lenet"] = named(plain)
STEPS["lenet_normed"] = named(lambda: lenet(1, CLASSES, norm=nn.BatchNorm2d, dropout_rate=0.2))
STEPS["lenet_of_two"] = named(lambda: lenet(1, 1), nn.BCEWithLogitsLoss, classes=1)
STEPS["packed_lenet"] = named(
    lambda: packed_lenet(1, CLASSES), is_ensemble=True, format_batch_fn=lambda: RepeatTarget(4)
)
STEPS["bayesian_lenet"] = named(lambda: bayesian_lenet(1, CLASSES), elbo, is_ensemble=True)
STEPS["bayesian_lenet_of_two_priors"] = named(
    lambda: bayesian_lenet(1, CLASSES, prior_sigma_1=0.1, prior_sigma_2=0.4, prior_pi=0.5), elbo, is_ensemble=True
)
STEPS["batched_lenet"] = named(
    lambda: batchensemble_lenet(1, CLASSES, repeat_training_inputs=True), is_ensemble=True, format_batch_fn=lambda: RepeatTarget(4)
)  # fmt: skip
STEPS["mc_dropout"] = named(
    lambda: mc_dropout(lenet(1, CLASSES, dropout_rate=0.4), num_estimators=4, last_layer=False), is_ensemble=True
)
STEPS["ema"] = named(lambda: EMA(plain(), momentum=0.9))
STEPS["swa"] = named(lambda: SWA(plain(), cycle_start=0, cycle_length=1))
STEPS["swag"] = named(lambda: SWAG(plain(), cycle_start=0, cycle_length=1), is_ensemble=True)
LOSSES = {
    "evidence": lambda: L.DECLoss(annealing_step=10, reg_weight=None), "evidence_by_digamma": lambda: L.DECLoss(loss_type="digamma", reg_weight=1e-2),
    "evidence_by_mse": lambda: L.DECLoss(loss_type="mse", reg_weight=1e-2), "confidence": lambda: L.ConfidencePenaltyLoss(reg_weight=0.1),
    "conflict": lambda: L.ConflictualLoss(reg_weight=0.1), "focus": lambda: L.FocalLoss(gamma=2.0),
    "focus_weighed": lambda: L.FocalLoss(gamma=2.0, alpha=torch.rand(CLASSES, device=D)), "max_sup": lambda: L.CrossEntropyMaxSupLoss(max_sup=0.1),
}  # fmt: skip
for name, loss in LOSSES.items():
    STEPS[f"by_{name}"] = named(plain, loss)
MIXED = {
    "mixupmp": {"mixtype": "mixupmp", "mixup_alpha": 1.0},
    "mixup": {"mixup_alpha": 1.0}, "timm": {"mixtype": "timm", "mixup_alpha": 1.0, "cutmix_alpha": 1.0},
}  # fmt: skip
for name, how in MIXED.items():
    STEPS[f"mixed_{name}"] = named(plain, mixup_params={"mixtype": "mixup", **how})
SMALL = {"arch": 18, "style": "cifar", "in_channels": 3, "num_classes": CLASSES}
STEPS["resnet"] = named(lambda: resnet(**SMALL), size=32, channels=3)
STEPS["packed_resnet"] = named(
    lambda: packed_resnet(**SMALL, num_estimators=2, alpha=1, gamma=1), size=32, channels=3, is_ensemble=True, format_batch_fn=lambda: RepeatTarget(2)
)  # fmt: skip
STEPS["mimo_resnet"] = named(
    lambda: mimo_resnet(**SMALL, num_estimators=2), size=32, channels=3, is_ensemble=True, format_batch_fn=lambda: MIMOBatchFormat(2, 0.5, 2)
)  # fmt: skip
STEPS["by_langevin"] = named(plain, optimizer=lambda p: SGLD(p, lr=1e-3))
STEPS["by_hamilton"] = named(plain, optimizer=lambda p: SGHMC(p, lr=1e-3))


def numbers(net, loss, ensemble=False, family=None, out=1, **more):
    """A step of the routine that says numbers."""

    def make():
        held = net()
        routine = RegressionRoutine(
            output_dim=out, model=held, loss=loss(held) if loss is elbo_of_numbers else loss(), is_ensemble=ensemble, dist_family=family, **more
        )  # fmt: skip
        return stepped(
            routine, (torch.rand(BATCH, 6, device=D), torch.rand(BATCH, *([out] if out > 1 else [1]), device=D))
        )

    return make


def elbo_of_numbers(net):
    return L.ELBOLoss(net, nn.MSELoss(), kl_weight=1e-3, num_samples=3)


STEPS["numbers"] = numbers(lambda: mlps.mlp(6, 1, [16]), nn.MSELoss)
for family in ("normal", "laplace", "student", "cauchy"):
    STEPS[f"numbers_{family}"] = numbers(
        lambda family=family: mlps.mlp(6, 1, [16], dist_family=family), L.DistributionNLLLoss, family=family
    )
STEPS["numbers_evidence"] = numbers(
    lambda: mlps.mlp(6, 1, [16], dist_family="nig"), lambda: L.DERLoss(reg_weight=1e-2), family="nig"
)
STEPS["numbers_quantile"] = numbers(lambda: mlps.mlp(6, 1, [16]), lambda: L.PinballLoss(0.3))
STEPS["numbers_packed"] = numbers(
    lambda: mlps.packed_mlp(6, 1, [16]), nn.MSELoss, True, format_batch_fn=RepeatTarget(4)
)
STEPS["numbers_bayesian"] = numbers(lambda: mlps.bayesian_mlp(6, 1, [16]), elbo_of_numbers, True)
STEPS["numbers_of_three"] = numbers(lambda: mlps.mlp(6, 3, [16]), nn.MSELoss, out=3)


class Cut(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, CLASSES, 1))

    def forward(self, x):
        return self.net(x)


@step
def cut():
    routine = SegmentationRoutine(model=Cut(), num_classes=CLASSES, loss=nn.CrossEntropyLoss(ignore_index=255))
    x, y = torch.rand(2, 3, 16, 16, device=D), torch.randint(0, CLASSES, (2, 16, 16), device=D)
    return stepped(routine, (x, y))
