"""Training steps over schedulefree 1.4.1: each of its optimizers, by hand and by closures, fused and one by one, and its wrappers."""

import schedulefree
from torch import nn
from torch.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 16), nn.ReLU()
        )
        self.head = nn.Linear(16, 10)

    def forward(self, x):
        return self.head(self.body(x))


def learned(made, closure=False, clip=False, evaluated=False):
    """A step of the readme's loop: the optimizer is told to train, then bettered."""

    def make():
        net = Net().to(D)
        optimizer = made(net)

        def go():
            net.train()
            if not closure:
                optimizer.train()
            x, y = torch.rand(8, 1, 8, 8, device=D), torch.randint(0, 10, (8,), device=D)

            def loss():
                optimizer.zero_grad()
                value = F.cross_entropy(net(x), y)
                value.backward()
                return value

            if closure:
                optimizer.step(loss)
            else:
                loss()
                if clip:
                    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                optimizer.step()
            if evaluated:
                optimizer.eval()

        return go

    return make


def by(name, of=None, **more):
    return lambda net: getattr(schedulefree, name)(net.parameters(), **(of() if of else {}), **more)


for name in (
    "AdamWScheduleFree",
    "AdamWScheduleFreeReference",
    "AdamWScheduleFreePaper",
    "SGDScheduleFree",
    "SGDScheduleFreeReference",
    "RAdamScheduleFree",
):
    STEPS[name] = learned(by(name))
    STEPS[f"{name}_one_by_one"] = learned(by(name, foreach=False))
    STEPS[f"{name}_decayed"] = learned(by(name, weight_decay=0.1, r=1.0), clip=True)
    STEPS[f"{name}_told_to_stop"] = learned(by(name), evaluated=True)
for name in ("AdamWScheduleFree", "SGDScheduleFree"):
    STEPS[f"{name}_warmed_up"] = learned(by(name, warmup_steps=10))
    STEPS[f"{name}_of_a_rate_on_the_device"] = learned(by(name, of=lambda: {"lr": torch.tensor(0.01, device=D)}))
    STEPS[f"{name}_of_groups"] = learned(
        lambda net, name=name: getattr(schedulefree, name)(
            [{"params": net.body.parameters(), "lr": 1e-3}, {"params": net.head.parameters()}], lr=1e-2
        )
    )
for name in ("AdamWScheduleFreeClosure", "SGDScheduleFreeClosure", "RAdamScheduleFreeClosure"):
    STEPS[name] = learned(by(name), closure=True)
    STEPS[f"{name}_one_by_one"] = learned(by(name, foreach=False, weight_decay=0.1), closure=True)
STEPS["RAdamScheduleFree_told_early"] = learned(by("RAdamScheduleFree", silent_sgd_phase=False))
for name in ("ScheduleFreeWrapper", "ScheduleFreeWrapperReference"):
    STEPS[f"{name}_SGD"] = learned(
        lambda net, name=name: getattr(schedulefree, name)(
            torch.optim.SGD(net.parameters(), lr=1e-3), momentum=0.9, weight_decay_at_y=0.1
        )
    )
