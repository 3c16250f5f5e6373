"""Training steps over Betty 0.1.1: problems above problems, each of which learns what another is trained by; steps that its engine runs."""

from betty.configs import Config, EngineConfig
from betty.engine import Engine
from betty.problems import ImplicitProblem

F = torch.nn.functional
WIDTH, ROWS = 6, 64


def loader(classes=1):
    x = torch.randn(ROWS, WIDTH)
    y = torch.randint(0, 2, (ROWS, 1)).float() if classes == 1 else torch.randint(0, classes, (ROWS,))
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=16, shuffle=True)


def mlp(inputs=WIDTH, outputs=1):
    return torch.nn.Sequential(torch.nn.Linear(inputs, 8), torch.nn.Tanh(), torch.nn.Linear(8, outputs))


class Reweight(ImplicitProblem):
    """Above: weighs the rows by their losses, so that the network below does well on rows that are clean."""

    def forward(self, losses):
        return torch.sigmoid(self.module(losses))

    def training_step(self, batch):
        x, y = batch
        logits = self.classifier(x)
        return {
            "loss": F.binary_cross_entropy_with_logits(logits, y),
            "right": ((logits > 0) == (y > 0.5)).float().mean(),
        }

    def configure_train_data_loader(self):
        return loader()

    def configure_module(self):
        return mlp(1)

    def configure_optimizer(self):
        return torch.optim.Adam(self.module.parameters(), 1e-2)


class Classifier(ImplicitProblem):
    """Below: a network on rows that are weighed."""

    def training_step(self, batch):
        x, y = batch
        losses = F.binary_cross_entropy_with_logits(self.forward(x), y, reduction="none")
        return (losses * self.reweight(losses.detach())).mean()

    def configure_train_data_loader(self):
        return loader()

    def configure_module(self):
        return mlp()

    def configure_optimizer(self):
        return torch.optim.SGD(self.module.parameters(), 0.1, momentum=0.9)

    def configure_scheduler(self):
        return torch.optim.lr_scheduler.StepLR(self.optimizer, 10)


class AdamClassifier(Classifier):
    """The same, by Adam: the step of the optimizer is differentiated otherwise."""

    def configure_optimizer(self):
        return torch.optim.Adam(self.module.parameters(), 1e-2)


class AdamWClassifier(Classifier):
    def configure_optimizer(self):
        return torch.optim.AdamW(self.module.parameters(), 1e-2)


class Regularized(ImplicitProblem):
    """Below: how much each weight is decayed is learned above."""

    def training_step(self, batch):
        x, y = batch
        decay = sum(
            (a.exp() * b.pow(2)).sum() for a, b in zip(self.decays.trainable_parameters(), self.trainable_parameters())
        )
        return F.binary_cross_entropy_with_logits(self.module(x), y) + 1e-3 * decay

    def configure_train_data_loader(self):
        return loader()

    def configure_module(self):
        return mlp()

    def configure_optimizer(self):
        return torch.optim.SGD(self.module.parameters(), 0.1)

    def on_inner_loop_start(self):
        for each in self.module.parameters():
            each.data.mul_(0.5)


class Decays(ImplicitProblem):
    def training_step(self, batch):
        x, y = batch
        return F.binary_cross_entropy_with_logits(self.network(x), y)

    def configure_train_data_loader(self):
        return loader()

    def configure_module(self):
        return mlp()

    def configure_optimizer(self):
        return torch.optim.SGD(self.module.parameters(), 0.1)

    def param_callback(self, params):
        for each in params:
            each.data.clamp_(min=-3.0)


def engine(*problems, **more):
    """The first is above the second, and so on."""
    pairs = list(zip(problems, problems[1:]))
    dependencies = {"u2l": {a: [b] for a, b in pairs}, "l2u": {b: [a] for a, b in pairs}}
    held = Engine(list(problems), EngineConfig(train_iters=10**6, **more), dependencies)
    held.train()

    def go():
        held.global_step += 1
        held.train_step()

    return go


def reweighted(kind="darts", below=Classifier, above=None, engine_more=None, **more):
    def make():
        upper = Reweight(name="reweight", config=Config(retain_graph=True, **(above or {})), device=torch.device(D))
        lower = below(name="classifier", config=Config(type=kind, **more), device=torch.device(D))
        return engine(upper, lower, **(engine_more or {}))

    return make


STEPS["darts"] = reweighted()
STEPS["darts_adam"] = reweighted(below=AdamClassifier)
STEPS["darts_adamw"] = reweighted(below=AdamWClassifier)
STEPS["darts_logged"] = reweighted(above={"log_step": 1}, log_step=1)
STEPS["darts_clipped"] = reweighted(gradient_clipping=1.0, above={"gradient_clipping": 1.0})
STEPS["darts_rolled_back"] = reweighted(engine_more={"roll_back": True})
STEPS["darts_second_order"] = reweighted(above={"first_order": False})
STEPS["conjugate"] = reweighted("cg", cg_iterations=3)
STEPS["neumann"] = reweighted("neumann", neumann_iterations=3)
STEPS["neumann_unrolled"] = reweighted("neumann", unroll_steps=2)


def decayed(kind, **more):
    def make():
        upper = Decays(name="decays", config=Config(first_order=True, retain_graph=True), device=torch.device(D))
        lower = Regularized(name="network", config=Config(type=kind, **more), device=torch.device(D))
        return engine(upper, lower)

    return make


STEPS["decays_conjugate"] = decayed("cg", cg_iterations=2)
STEPS["decays_neumann"] = decayed("neumann")
STEPS["decays_darts_accumulated"] = decayed("darts", gradient_accumulation=2)


class AloneClassifier(Classifier):
    def training_step(self, batch):
        x, y = batch
        return F.binary_cross_entropy_with_logits(self.forward(x), y)


@step
def alone():
    """One problem, no other."""
    held = AloneClassifier(name="classifier", config=Config(log_step=1), device=torch.device(D))
    run = Engine([held], EngineConfig(train_iters=10**6), {"u2l": {}, "l2u": {}})
    run.train()
    return run.train_step
