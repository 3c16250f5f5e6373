"""Training steps over flow_matching 1.0.10: paths, schedules and losses in plain loops, and solvers where training samples."""

from flow_matching.loss import MixturePathGeneralizedKL
from flow_matching.path import AffineProbPath, CondOTProbPath, GeodesicProbPath, MixtureDiscreteProbPath
from flow_matching.path.scheduler import (
    CondOTScheduler,
    CosineScheduler,
    LinearVPScheduler,
    PolynomialConvexScheduler,
    ScheduleTransformedModel,
    VPScheduler,
)
from flow_matching.solver import MixtureDiscreteEulerSolver, ODESolver, RiemannianODESolver
from flow_matching.utils import ModelWrapper
from flow_matching.utils.manifolds import Euclidean, FlatTorus, Sphere
from torch import nn

ROWS, WIDTH, WORDS, LENGTH = 8, 3, 10, 5


class Field(nn.Module):
    """A velocity at a place and a time."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(WIDTH + 1, 16), nn.SiLU(), nn.Linear(16, WIDTH))

    def forward(self, x, t, **_):
        return self.net(torch.cat([x, t.reshape(-1, 1).expand(len(x), 1)], 1))


def data():
    return torch.randn(ROWS, WIDTH, device=D)


def times():
    return torch.rand(ROWS, device=D) * 0.98 + 0.01


def matched(path, target="velocity"):
    """A step matches the flow of a batch."""

    def make():
        between = path()

        def loss(net):
            held = between.sample(t=times(), x_0=data(), x_1=data())
            out = net(held.x_t, held.t)
            if target == "noise":
                out = between.epsilon_to_velocity(out, held.x_t, held.t[:, None])
            if target == "end":
                out = between.target_to_velocity(out, held.x_t, held.t[:, None])
            return (out - held.dx_t).square().mean()

        return train(Field(), loss)

    return make


STEPS["straight"] = matched(CondOTProbPath)
STEPS["straight_of_noise"] = matched(lambda: AffineProbPath(CondOTScheduler()), "noise")
STEPS["straight_of_ends"] = matched(lambda: AffineProbPath(CondOTScheduler()), "end")
STEPS["polynomial"] = matched(lambda: AffineProbPath(PolynomialConvexScheduler(2.0)))
STEPS["preserving"] = matched(lambda: AffineProbPath(VPScheduler()))
STEPS["preserving_linearly"] = matched(lambda: AffineProbPath(LinearVPScheduler()))
STEPS["cosine"] = matched(lambda: AffineProbPath(CosineScheduler()))


def curved(manifold):
    def make():
        space = manifold()
        between = GeodesicProbPath(CondOTScheduler(), space)

        def loss(net):
            first, last = space.projx(data()), space.projx(data())
            held = between.sample(t=times(), x_0=first, x_1=last)
            out = space.proju(held.x_t, net(held.x_t, held.t))
            return (out - held.dx_t).square().mean()

        return train(Field(), loss)

    return make


STEPS["on_sphere"] = curved(Sphere)
STEPS["on_torus"] = curved(FlatTorus)
STEPS["on_plane"] = curved(Euclidean)


class Words(nn.Module):
    """What each word is to be, by a text and a time."""

    def __init__(self):
        super().__init__()
        self.words, self.out = nn.Embedding(WORDS, 8), nn.Linear(9, WORDS)

    def forward(self, x, t, **_):
        held = self.words(x)
        return self.out(torch.cat([held, t.reshape(-1, 1, 1).expand(*held.shape[:2], 1)], 2))


def text():
    return torch.randint(0, WORDS, (ROWS, LENGTH), device=D)


def mixed(loss_of, power=1.0):
    def make():
        between = MixtureDiscreteProbPath(PolynomialConvexScheduler(power))
        judge = MixturePathGeneralizedKL(between) if loss_of == "kl" else None

        def loss(net):
            last = text()
            held = between.sample(t=times(), x_0=text(), x_1=last)
            out = net(held.x_t, held.t)
            return (
                judge(out, last, held.x_t, held.t)
                if judge
                else nn.functional.cross_entropy(out.flatten(0, 1), last.flatten())
            )

        return train(Words(), loss)

    return make


STEPS["words"] = mixed("entropy")
STEPS["words_by_divergence"] = mixed("kl", 2.0)


@step
def rectified():
    """The ends of the flow itself are matched anew."""
    between, net = CondOTProbPath(), Field().to(D)
    solver = ODESolver(net)

    def loss(net):
        first = data()
        last = solver.sample(first, step_size=0.25, method="midpoint")
        held = between.sample(t=times(), x_0=first, x_1=last)
        return (net(held.x_t, held.t) - held.dx_t).square().mean()

    return train(net, loss)


@step
def rectified_with_steps_of_its_own():
    between, net = CondOTProbPath(), Field().to(D)
    solver = ODESolver(net)

    def loss(net):
        first = data()
        last = solver.sample(first, step_size=None, method="dopri5", atol=1e-2, rtol=1e-2)
        held = between.sample(t=times(), x_0=first, x_1=last)
        return (net(held.x_t, held.t) - held.dx_t).square().mean()

    return train(net, loss)


@step
def rewarded():
    """Gradients go through the sampling."""
    net = Field().to(D)
    solver = ODESolver(net)
    times = torch.tensor([0.0, 1.0], device=D)
    return train(net, lambda _: solver.sample(data(), step_size=0.5, time_grid=times, enable_grad=True).square().mean())


@step
def rescheduled():
    net = Field().to(D)
    other = ScheduleTransformedModel(ModelWrapper(net), CondOTScheduler(), VPScheduler())
    solver = ODESolver(other)
    grid = torch.tensor([0.01, 0.99], device=D)
    return train(net, lambda _: solver.sample(data(), step_size=0.25, time_grid=grid, enable_grad=True).square().mean())


@step
def rectified_on_sphere():
    space, net = Sphere(), Field().to(D)
    between = GeodesicProbPath(CondOTScheduler(), space)
    solver = RiemannianODESolver(space, net)
    grid = torch.tensor([0.0, 1.0], device=D)

    def loss(net):
        first = space.projx(data())
        last = solver.sample(first, step_size=0.25, time_grid=grid).detach()
        held = between.sample(t=times(), x_0=first, x_1=last)
        return (space.proju(held.x_t, net(held.x_t, held.t)) - held.dx_t).square().mean()

    return train(net, loss)


@step
def words_of_its_own():
    """A text that the flow itself made is learned."""

    class Likely(ModelWrapper):
        def forward(self, x, t, **more):
            return self.model(x, t).softmax(-1)

    between, net = MixtureDiscreteProbPath(PolynomialConvexScheduler(1.0)), Words().to(D)
    solver = MixtureDiscreteEulerSolver(Likely(net), between, WORDS)
    judge = MixturePathGeneralizedKL(between)
    grid = torch.tensor([0.0, 0.99], device=D)

    def loss(net):
        first = text()
        last = solver.sample(first, step_size=0.25, time_grid=grid)
        held = between.sample(t=times(), x_0=first, x_1=last)
        return judge(net(held.x_t, held.t), last, held.x_t, held.t)

    return train(net, loss)
