"""Training steps over TorchPhysics 1.1.2: its solver's step over conditions, in domains and with samplers of many kinds."""

absent("trimesh shapely networkx")

import warnings

import torchphysics as tp

warnings.filterwarnings("ignore")
X, T, U = tp.spaces.R2("x"), tp.spaces.R1("t"), tp.spaces.R1("u")
POINTS = 12


def square():
    return tp.domains.Parallelogram(X, [0, 0], [1, 0], [0, 1])


def disc(at=(0.5, 0.5), radius=0.3):
    return tp.domains.Circle(X, list(at), radius)


def span():
    return tp.domains.Interval(T, 0, 1)


def network(kind="fcn", space=None, out=U):
    space = space or X
    if kind == "fcn":
        return tp.models.FCN(space, out, hidden=(8, 8))
    if kind == "quadratic":
        return tp.models.QRES(space, out, hidden=(8,))
    if kind == "harmonic":
        return tp.models.Harmonic_FCN(space, out, hidden=(8,), max_frequenz=1)
    if kind == "ritz":
        return tp.models.DeepRitzNet(space, out, width=8, depth=1)
    return tp.models.Sequential(tp.models.NormalizationLayer(square()), tp.models.FCN(space, out, hidden=(8,)))


def poisson(u, x):
    return tp.utils.laplacian(u, x) + 1.0


def zero(u):
    return u


def heat(u, x, t):
    return tp.utils.laplacian(u, x) - tp.utils.grad(u, t)


def solved(conditions, net=network):
    """A step is one of its solver, its gradients and Adam."""

    def make():
        model = net()
        solver = tp.solver.Solver(conditions(model)).to(D)
        solver.log = lambda *_, **__: None  # there is no trainer
        optimizer = torch.optim.Adam(solver.parameters(), 1e-3)
        solver.train()
        solver.n_training_step = 0  # as on_train_start has it
        for each in solver.train_conditions:
            each._move_static_data(solver.device)

        def go():
            optimizer.zero_grad()
            solver.training_step(None, 0).backward()
            optimizer.step()

        return go

    return make


def inner(domain, **more):
    return lambda model: tp.samplers.RandomUniformSampler(domain(), n_points=POINTS, **more)


def of(sampler, residual=poisson, edge=None):
    """Conditions within a domain and, if one is given, at its edge."""

    def conditions(model):
        held = [tp.conditions.PINNCondition(model, sampler(model), residual, name="inner")]
        if edge is not None:
            held.append(tp.conditions.PINNCondition(model, edge(model), zero, name="edge", weight=10.0))
        return held

    return conditions


STEPS["square"] = solved(of(inner(square), edge=inner(lambda: square().boundary)))
STEPS["disc"] = solved(of(inner(disc), edge=inner(lambda: disc().boundary)))
STEPS["triangle"] = solved(
    of(
        inner(lambda: tp.domains.Triangle(X, [0, 0], [1, 0], [0, 1])),
        edge=inner(lambda: tp.domains.Triangle(X, [0, 0], [1, 0], [0, 1]).boundary),
    )
)
STEPS["square_without_disc"] = solved(
    of(inner(lambda: square() - disc()), edge=inner(lambda: (square() - disc()).boundary))
)
STEPS["square_and_disc"] = solved(
    of(inner(lambda: square() + disc((1, 1), 0.5)), edge=inner(lambda: (square() + disc((1, 1), 0.5)).boundary))
)
STEPS["square_within_disc"] = solved(
    of(inner(lambda: square() & disc((1, 1), 0.8)), edge=inner(lambda: (square() & disc((1, 1), 0.8)).boundary))
)
STEPS["square_by_grid"] = solved(
    of(
        lambda _: tp.samplers.GridSampler(square(), n_points=POINTS),
        edge=lambda _: tp.samplers.GridSampler(square().boundary, n_points=POINTS),
    )
)
STEPS["disc_static"] = solved(of(lambda _: tp.samplers.RandomUniformSampler(disc(), n_points=POINTS).make_static()))
STEPS["square_of_density"] = solved(of(lambda _: tp.samplers.RandomUniformSampler(square(), density=15)))
STEPS["square_gaussian"] = solved(
    of(lambda _: tp.samplers.GaussianSampler(square(), POINTS, mean=torch.tensor([0.5, 0.5]), std=0.2))
)
STEPS["square_of_hypercubes"] = solved(of(lambda _: tp.samplers.LHSSampler(square(), POINTS)))
STEPS["square_adaptive"] = solved(
    of(lambda _: tp.samplers.AdaptiveThresholdRejectionSampler(square(), resample_ratio=0.5, n_points=POINTS))
)
STEPS["square_adaptive_at_random"] = solved(
    of(lambda _: tp.samplers.AdaptiveRandomRejectionSampler(square(), n_points=POINTS))
)
STEPS["square_filtered"] = solved(of(inner(square, filter_fn=lambda x: x[:, 0] > 0.3)))
STEPS["moving_disc"] = solved(
    of(
        lambda _: tp.samplers.RandomUniformSampler(
            tp.domains.Circle(X, [0.5, 0.5], lambda t: 0.2 + 0.1 * t) * span(), n_points=POINTS
        ),
        heat,
    ),
    lambda: network(space=X * T),
)
STEPS["heat"] = solved(
    of(
        lambda _: tp.samplers.RandomUniformSampler(square() * span(), n_points=POINTS),
        heat,
        lambda _: tp.samplers.RandomUniformSampler(square().boundary * span(), n_points=POINTS),
    ),
    lambda: network(space=X * T),
)
STEPS["heat_at_first"] = solved(
    of(
        lambda _: (
            tp.samplers.RandomUniformSampler(square(), n_points=4)
            * tp.samplers.RandomUniformSampler(span(), n_points=3)
        ),
        heat,
        lambda _: tp.samplers.RandomUniformSampler(square() * span().boundary_left, n_points=POINTS),
    ),
    lambda: network("fcn", X * T),
)
for kind in ("quadratic", "ritz", "normalized"):
    STEPS[f"square_{kind}"] = solved(of(inner(square)), lambda kind=kind: network(kind))


def outward(u, x):
    normals = square().boundary.normal(tp.spaces.Points(x.detach(), X), device=x.device)
    return tp.utils.normal_derivative(u, normals, x)


@step
def flux_at_edge():
    def conditions(model):
        return [
            tp.conditions.PINNCondition(model, inner(square)(model), poisson, name="inner"),
            tp.conditions.PINNCondition(model, inner(lambda: square().boundary)(model), outward, name="edge"),
        ]

    return solved(conditions)()


@step
def energy():
    """The deep Ritz method."""

    def conditions(model):
        def integrand(u, x):
            return 0.5 * tp.utils.grad(u, x).square().sum(1, keepdim=True) - u

        return [tp.conditions.DeepRitzCondition(model, inner(square)(model), integrand)]

    return solved(conditions, lambda: network("ritz"))()


@step
def unknown():
    """A parameter is learned beside the solution."""
    strength = tp.models.Parameter(1.0, tp.spaces.R1("k"))

    def conditions(model):
        def residual(u, x, k):
            return k * tp.utils.laplacian(u, x) + 1.0

        rows = tp.utils.PointsDataLoader(
            (tp.spaces.Points(torch.rand(8, 2), X), tp.spaces.Points(torch.rand(8, 1), U)), batch_size=4
        )
        return [
            tp.conditions.PINNCondition(model, inner(square)(model), residual, parameter=strength),
            tp.conditions.DataCondition(model, rows, norm=2),
        ]

    return solved(conditions)()
