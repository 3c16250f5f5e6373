"""Training steps over robustness 1.2.1: batches of its loop, with and without each of its attacks, and steps of losses of one's own."""

import tempfile

absent("torchvision tables git py3nvml")

from cox.utils import Parameters
from robustness import attack_steps, defaults
from robustness.attacker import AttackerModel
from robustness.datasets import CIFAR
from robustness.model_utils import make_and_restore_model
from robustness.tools import helpers
from robustness.train import train_model
from torch import nn

ROWS = 4


class Parallel(nn.Module):
    """As `DataParallel` is on one device: what it is given goes there without waiting."""

    def __init__(self, module, device_ids=None):
        super().__init__()
        self.module = module

    def forward(self, inp, **more):
        return self.module(inp.to(D, non_blocking=True), **more)


nn.DataParallel = Parallel


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 4, 3, 2, 1), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 8, 3, 2, 1), nn.ReLU(), nn.Flatten()
        )
        self.head = nn.Linear(8 * 64, 10)

    def forward(self, x, with_latent=False, fake_relu=False, no_relu=False):
        latent = self.body(x)
        return (self.head(latent), latent) if with_latent else self.head(latent)


def loader(rows=48):
    data = torch.utils.data.TensorDataset(torch.rand(rows, 3, 32, 32), torch.randint(0, 10, (rows,)))
    return torch.utils.data.DataLoader(data, ROWS, shuffle=True)


def model(arch=None):
    return make_and_restore_model(arch=arch or Small(), dataset=CIFAR("/tmp"))[0]


def learned(adv=0, arch=None, update=None, **more):
    """A step is a batch of `train_model`."""

    def make():
        given = {"out_dir": tempfile.mkdtemp(), "adv_train": adv, "epochs": 2, "lr": 0.01, "attack_steps": 2, **more}
        if adv:
            given = {"constraint": "2", "eps": 0.5, "attack_lr": 0.1, **given}
        args = defaults.check_and_fill_args(Parameters(given), defaults.TRAINING_ARGS, CIFAR)
        if adv:
            args = defaults.check_and_fill_args(args, defaults.PGD_ARGS, CIFAR)
        args.mixed_precision = 0
        held = model(arch)
        return loop(
            lambda: train_model(args, held, (loader(), loader(8)), update_params=update(held) if update else None)
        )

    return make


STEPS["plain"] = learned()
STEPS["plain_resnet"] = learned(arch="resnet18")
STEPS["plain_vgg"] = learned(arch="vgg11")
STEPS["plain_by_schedule"] = learned(custom_lr_multiplier="[(0,1),(1,0.1)]", lr_interpolation="linear")
STEPS["plain_head_alone"] = learned(update=lambda held: held.model.head.parameters())
STEPS["against_2"] = learned(1)
STEPS["against_2_resnet"] = learned(1, arch="resnet18", attack_steps=1)
STEPS["against_inf"] = learned(1, constraint="inf", eps="8/255", attack_lr="2/255")
STEPS["against_all"] = learned(1, constraint="unconstrained")
STEPS["against_chance"] = learned(1, constraint="random_smooth")
STEPS["against_2_started_by_chance"] = learned(1, random_start=1)
STEPS["against_inf_started_by_chance"] = learned(1, constraint="inf", random_start=1)
STEPS["against_the_last"] = learned(1, use_best=0)
STEPS["against_a_growing_eps"] = learned(1, custom_eps_multiplier="[(0,0.5),(1,1)]")
STEPS["evaluated_against"] = learned(0, adv_eval=0)


def smoothed(logits, y):
    return nn.functional.cross_entropy(logits, y, label_smoothing=0.1)


def told_apart(net, inp, y):
    """Of the docs: a loss of an attack of one's own."""
    logits = net(inp)
    return nn.functional.cross_entropy(logits, y, reduction="none"), None


def weights(net, inp, y):
    return 1e-4 * sum(each.square().sum() for each in net.parameters())


def right(logits, y):
    top1, top5 = helpers.accuracy(logits, y, topk=(1, 5))
    return top1[0], top5[0]


def hook(net, at, kind, inp, y):
    """What is called after each batch."""
    return at


STEPS["own_loss"] = learned(custom_train_loss=smoothed)
STEPS["own_attack"] = learned(1, custom_adv_loss=told_apart)
STEPS["own_accuracy"] = learned(custom_accuracy=right)
STEPS["own_penalty"] = learned(regularizer=weights)
STEPS["own_hook"] = learned(1, iteration_hook=hook)


def by_hand(loss, **attack):
    """A step of a loop that is written out."""

    def make():
        held = AttackerModel(Small(), CIFAR("/tmp")).to(D)
        x, y = torch.rand(ROWS, 3, 32, 32, device=D), torch.randint(0, 10, (ROWS,), device=D)
        more = {"constraint": "2", "eps": 0.5, "step_size": 0.1, "iterations": 2, **attack}
        return train(held, lambda net: loss(net, x, y, more))

    return make


def adversarial(net, x, y, more):
    logits, _ = net(x, y, make_adv=True, **more)
    return nn.functional.cross_entropy(logits, y)


def pulled_together(net, x, y, more):
    """What the network makes of a picture and of what attacks it shall be alike."""
    (logits, latent), near = net(x, y, make_adv=True, with_latent=True, **more)
    (_, before), _ = net(x, with_latent=True)
    return nn.functional.cross_entropy(logits, y) + (latent - before).square().mean()


def topped(net, x, y, more):
    """How often the network is right is told beside the loss."""
    logits, _ = net(x, y, make_adv=True, **more)
    top1, top5 = helpers.accuracy(logits, y, topk=(1, 5))
    net.shown = top1.item(), top5.item()
    return nn.functional.cross_entropy(logits, y)


STEPS["hand"] = by_hand(adversarial)
STEPS["hand_inf"] = by_hand(adversarial, constraint="inf")
STEPS["hand_targeted"] = by_hand(adversarial, targeted=True)
STEPS["hand_restarted"] = by_hand(adversarial, random_restarts=2, random_start=True)
STEPS["hand_estimated"] = by_hand(adversarial, est_grad=(0.1, 4))
STEPS["hand_by_a_class"] = by_hand(adversarial, constraint=attack_steps.LinfStep)
STEPS["hand_pulled_together"] = by_hand(pulled_together)
STEPS["hand_topped"] = by_hand(topped)
