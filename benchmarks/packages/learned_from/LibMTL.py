"""Training steps over LibMTL 1.1.5: its trainer with every way to weigh the losses of tasks, over every architecture."""

import functools
import sys
import types

# torchvision's own is gone
sys.modules["torchvision.models.utils"] = types.SimpleNamespace(load_state_dict_from_url=None)

from LibMTL import Trainer, architecture, weighting
from LibMTL.loss import CELoss
from LibMTL.metrics import AccMetric
from LibMTL.model import resnet18
from LibMTL.model.resnet import BasicBlock, ResNet
from LibMTL.model.resnet_dilated import resnet_dilated

# gradients are zeros, as they were in the torch it was written for
for each in (torch.nn.Module, torch.optim.Optimizer):
    each.zero_grad = functools.partialmethod(each.zero_grad, set_to_none=False)

TASKS, CLASSES, SIDE = ("amazon", "dslr", "webcam"), 5, 16
WEIGHTS = {
    "GradNorm": {"alpha": 1.5},
    "DWA": {"T": 2.0},
    "MGDA": {"mgda_gn": "none"},
    "GradVac": {"beta": 0.5},
    "GradDrop": {"leak": 0.2},
    "CAGrad": {"calpha": 0.5, "rescale": 1},
    "RLW": {"dist": "Normal"},
}
EXPERTS = {"img_size": (3, SIDE, SIDE), "num_experts": [2, 1, 1, 1], "num_nonzeros": 2, "kgamma": 1.0}


class Encoder(torch.nn.Sequential):
    """What all tasks share."""

    def __init__(self):
        super().__init__(
            torch.nn.Conv2d(3, 8, 3, 2, 1), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten()
        )


class Pooled(torch.nn.Sequential):
    """A decoder of a ResNet's features."""

    def __init__(self):
        super().__init__(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(512, CLASSES))


class Gated(ResNet):
    """A small ResNet whose pictures keep the size that PLE's gates ask for."""

    def __init__(self):
        super().__init__(BasicBlock, [1, 1, 1, 1])
        self.conv1 = torch.nn.Conv2d(3, 3, 1)
        self.bn1, self.maxpool = torch.nn.BatchNorm2d(3), torch.nn.Identity()
        self.inplanes = 3
        self.layer1 = self._make_layer(BasicBlock, 64, 1)


class Batches:
    """Batches without end for each epoch, as the trainer asks a loader for them."""

    def __init__(self, joint, of=1):
        self.joint, self.of = joint, of

    def __len__(self):
        return self.of

    def __iter__(self):
        return self

    def __next__(self):
        labels = {task: torch.randint(CLASSES, (4,)) for task in TASKS}
        return torch.randn(4, 3, SIDE, SIDE), labels if self.joint else labels[TASKS[0]]

    next = __next__  # the name that the trainer knows it by


def task(metric=AccMetric, loss=CELoss):
    return {"metrics": ["Acc"], "metrics_fn": metric(), "loss_fn": loss(), "weight": [1]}


def trained(
    weigh="EW",
    arch="HPS",
    encoder=Encoder,
    decoder=None,
    joint=True,
    rep_grad=False,
    optim="adam",
    schedule=None,
    epochs=3,
    **more,
):
    """A step is epochs of a batch each: some weights ask for the losses of those before."""

    def make():
        trainer = Trainer(
            task_dict={name: task() for name in TASKS},
            weighting=getattr(weighting, weigh),
            architecture=getattr(architecture, arch),
            encoder_class=encoder,
            decoders=torch.nn.ModuleDict(
                {name: decoder() if decoder else torch.nn.Linear(8, CLASSES) for name in TASKS}
            ),
            rep_grad=rep_grad,
            multi_input=not joint,
            optim_param={"optim": optim, "lr": 1e-3},
            scheduler_param=schedule,
            weight_args={**WEIGHTS.get(weigh, {}), **more},
            arch_args=EXPERTS if arch in ("CGC", "PLE", "MMoE", "DSelect_k") else {},
        )
        trainer.test = lambda *_, **__: None  # the training alone
        loaders = Batches(True) if joint else {name: Batches(False) for name in TASKS}
        return lambda: trainer.train(loaders, None, epochs)

    return make


for each in ("EW", "UW", "GradNorm", "GLS", "RLW", "MGDA", "IMTL", "PCGrad", "GradVac", "CAGrad", "GradDrop", "DWA"):
    STEPS[each] = trained(each, rep_grad=each == "GradDrop")
for each in ("GradNorm", "MGDA", "IMTL", "PCGrad", "GradVac", "CAGrad", "EW"):
    STEPS[f"{each}_of_own_inputs"] = trained(each, joint=False, optim="sgd")
for each in ("GradNorm", "MGDA", "IMTL"):
    STEPS[f"{each}_of_representations"] = trained(each, rep_grad=True)
STEPS["GradDrop_of_own_inputs"] = trained("GradDrop", rep_grad=True, joint=False)
for each in ("l2", "loss", "loss+"):
    STEPS[f"MGDA_by_{each}"] = trained("MGDA", mgda_gn=each)
for each in ("Uniform", "Dirichlet", "Bernoulli"):
    STEPS[f"RLW_{each}"] = trained("RLW", dist=each)
for each in (0, 2):
    STEPS[f"CAGrad_rescaled_{each}"] = trained("CAGrad", rescale=each)
for each in ("MMoE", "CGC", "DSelect_k"):
    STEPS[each] = trained(arch=each)
    STEPS[f"{each}_PCGrad"] = trained("PCGrad", each, joint=False)
STEPS["Cross_stitch"] = trained(arch="Cross_stitch", encoder=resnet18, decoder=Pooled, epochs=1)
STEPS["MTAN"] = trained(arch="MTAN", encoder=resnet18, decoder=Pooled, epochs=1)
STEPS["MTAN_of_own_inputs"] = trained("UW", "MTAN", resnet18, Pooled, joint=False, epochs=1)
STEPS["PLE"] = trained(arch="PLE", encoder=Gated, decoder=Pooled, epochs=1)
STEPS["scheduled"] = trained("UW", schedule={"scheduler": "step", "step_size": 1, "gamma": 0.5}, optim="rmsprop")
STEPS["decayed"] = trained("DWA", "HPS", resnet18, Pooled, schedule={"scheduler": "exp", "gamma": 0.9}, optim="adagrad")
STEPS["dilated"] = trained("IMTL", "HPS", lambda: resnet_dilated("resnet18", pretrained=False), Pooled, epochs=1)
