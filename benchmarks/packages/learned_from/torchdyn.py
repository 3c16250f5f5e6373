"""Training steps over torchdyn 1.0.6: networks whose layers are flows of differential equations, by each solver and sensitivity."""

from torchdyn.core import MultipleShootingLayer, NeuralODE
from torchdyn.models import CNF, GNF, HNN, hutch_trace
from torchdyn.nn import Augmenter, DataControl, DepthCat, GalLinear
from torchdyn.nn.galerkin import Fourier, Polynomial, VanillaRBF
from torchdyn.numerics import odeint
from torchdyn.numerics.systems import VanDerPol
from torchdyn.datasets import ToyDataset

F = torch.nn.functional
ROWS, WIDTH = 16, 2


def field(inputs=WIDTH, outputs=WIDTH, hidden=8):
    return torch.nn.Sequential(torch.nn.Linear(inputs, hidden), torch.nn.Tanh(), torch.nn.Linear(hidden, outputs))


def moons():
    x, y = ToyDataset().generate(n_samples=ROWS, dataset_type="moons", noise=0.1)
    return x.float().to(D), y.to(D)


def flow(vector_field=field, before=None, t_span=None, last=WIDTH, **more):
    """A classifier: what flows in, a neural ODE, a linear layer."""

    def make():
        layers = [before()] if before else []
        ode = NeuralODE(vector_field(), **more)
        net = torch.nn.ModuleList([*layers, ode, torch.nn.Linear(last, 2)])
        span = torch.linspace(0, 1, 5).to(D) if t_span is None else t_span()

        def loss(model):
            x, y = moons()
            for layer in model[:-2]:
                x = layer(x)
            _, path = model[-2](x, span)
            return F.cross_entropy(model[-1](path[-1]), y)

        return train(net, loss)

    return make


for solver in ("euler", "midpoint", "rk4", "tsit5", "dopri5"):
    STEPS[f"flow_{solver}"] = flow(solver=solver)
STEPS["flow_adjoint"] = flow(solver="dopri5", sensitivity="adjoint")
STEPS["flow_adjoint_rk4"] = flow(solver="rk4", sensitivity="adjoint")
STEPS["flow_interpolated_adjoint"] = flow(solver="tsit5", sensitivity="interpolated_adjoint")
STEPS["flow_seminorm"] = flow(solver="dopri5", sensitivity="adjoint", seminorm=True)
STEPS["flow_with_depth"] = flow(lambda: torch.nn.Sequential(DepthCat(1), field(WIDTH + 1)), solver="rk4")
STEPS["flow_of_data"] = flow(lambda: torch.nn.Sequential(DataControl(), field(2 * WIDTH)), solver="rk4")
STEPS["flow_augmented"] = flow(
    lambda: field(WIDTH + 3, WIDTH + 3), lambda: Augmenter(augment_dims=3), last=WIDTH + 3, solver="rk4"
)
STEPS["flow_galerkin"] = flow(
    lambda: torch.nn.Sequential(
        DepthCat(1),
        GalLinear(WIDTH, 8, expfunc=Fourier(3)),
        torch.nn.Tanh(),
        DepthCat(1),
        GalLinear(8, WIDTH, expfunc=Polynomial(3)),
    ),
    solver="rk4",
)
STEPS["flow_radial"] = flow(
    lambda: torch.nn.Sequential(DepthCat(1), GalLinear(WIDTH, WIDTH, expfunc=VanillaRBF(3))), solver="euler"
)
STEPS["flow_span_of_host"] = flow(solver="rk4", t_span=lambda: torch.linspace(0, 1, 3))
STEPS["flow_gradient"] = flow(lambda: GNF(field(outputs=1)), solver="rk4")
STEPS["flow_hamiltonian"] = flow(lambda: HNN(field(outputs=1)), solver="midpoint")


@step
def flow_of_second_order():
    """Where a layer flows by its acceleration."""
    net = torch.nn.ModuleList([NeuralODE(field(WIDTH, 1), order=2, solver="rk4"), torch.nn.Linear(WIDTH, 2)])

    def loss(model):
        x, y = moons()
        _, path = model[0](x, torch.linspace(0, 1, 4).to(D))
        return F.cross_entropy(model[1](path[-1]), y)

    return train(net, loss)


@step
def regularized():
    """What the flow costs is integrated beside it."""
    cost = lambda t, x: x.abs().mean(-1)  # noqa: E731
    net = torch.nn.ModuleList(
        [NeuralODE(field(), solver="rk4", sensitivity="adjoint", integral_loss=cost), torch.nn.Linear(WIDTH, 2)]
    )

    def loss(model):
        x, y = moons()
        _, path = model[0](x, torch.linspace(0, 1, 4).to(D))
        return F.cross_entropy(model[1](path[-1]), y)

    return train(net, loss)


def density(trace=None, **more):
    """A continuous normalizing flow: how probable the rows are."""

    def make():
        base = torch.distributions.MultivariateNormal(torch.zeros(WIDTH).to(D), torch.eye(WIDTH).to(D))
        noise = {"trace_estimator": hutch_trace, "noise_dist": base} if trace else {}
        net = torch.nn.Sequential(
            Augmenter(augment_dims=1), NeuralODE(CNF(field(), **noise), return_t_eval=False, **more)
        )

        def loss(model):
            path = model(moons()[0])
            end = path[-1] if path.ndim == 3 else path
            return -(base.log_prob(end[:, 1:]) - end[:, 0]).mean()

        return train(net, loss)

    return make


STEPS["density"] = density(solver="rk4", sensitivity="autograd")
STEPS["density_hutchinson"] = density(trace=True, solver="dopri5", sensitivity="autograd")
STEPS["density_adjoint"] = density(solver="dopri5", sensitivity="adjoint")


def shooting(solver="zero", **more):
    """A flow that is solved at all its times at once."""

    def make():
        net = MultipleShootingLayer(field(), solver, **more)

        def loss(model):
            x, _ = moons()
            span = torch.linspace(0, 1, 5).to(D)
            _, path = model(x, span)
            return path[-1].pow(2).mean()

        return train(net, loss)

    return make


STEPS["shooting"] = shooting()


@step
def fitted_system():
    """A field that is fitted to the path of a known system, solved anew in each step."""
    system = VanDerPol(1.0)

    def loss(model):
        span = torch.linspace(0, 0.5, 8).to(D)
        start = torch.randn(ROWS, 2, device=D)
        with torch.no_grad():
            _, known = odeint(system.to(D), start, span, solver="rk4")
        _, found = odeint(lambda t, x: model(x), start, span, solver="dopri5", atol=1e-3, rtol=1e-3)
        return (found - known).pow(2).mean()

    return train(field(), loss)
