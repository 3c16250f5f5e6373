"""Training steps over geomloss 0.3.1: clouds of points that flow towards others, networks that are pulled by them, by each of
its losses, and by its solvers.
"""

from geomloss import SamplesLoss, ot
from torch import nn

POINTS, WIDTH = 24, 2


def cloud(*shape, grad=False):
    return torch.rand(*(shape or (POINTS, WIDTH)), device=D).requires_grad_(grad)


def weights(*shape):
    held = torch.rand(*(shape or (POINTS,)), device=D) + 0.1
    return held / held.sum(-1, keepdim=True)


def flow(loss, width=WIDTH, batch=(), weighted=False, rate=0.05):
    """A step of the examples' gradient flow: the gradient of the loss by the points, which move along it."""

    def make():
        held, asked = loss(), (*batch, POINTS, width)
        x, y = cloud(*asked, grad=True), cloud(*asked) + 0.5
        a, b = weights(*batch, POINTS), weights(*batch, POINTS)

        def go():
            given = (a, x, b, y) if weighted else (x, y)
            (g,) = torch.autograd.grad(held(*given).sum(), [x])
            x.data -= rate * POINTS * g

        return go

    return make


def fitted(loss, shown=WIDTH, whole=64):
    """A step of a generator that is pulled towards data: noise, the loss, backward, Adam."""

    def make():
        net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, shown))
        held = loss()
        data = torch.utils.data.DataLoader(torch.randn(whole * 40, shown), whole, shuffle=True)
        batches = (each for _ in range(9) for each in data)
        return train(net, lambda net: held(net(torch.randn(whole, 4, device=D)), next(batches).to(D)))

    return make


def samples(*given, **more):
    return lambda: SamplesLoss(*given, **more)


EACH = {
    "sinkhorn": samples("sinkhorn", p=2, blur=0.05),
    "sinkhorn_p1": samples("sinkhorn", p=1, blur=0.1),
    "sinkhorn_fine": samples("sinkhorn", p=2, blur=0.01, scaling=0.8),
    "sinkhorn_of_a_diameter": samples("sinkhorn", p=2, blur=0.05, diameter=2.0),
    "sinkhorn_unbalanced": samples("sinkhorn", p=2, blur=0.05, reach=0.3),
    "sinkhorn_biased": samples("sinkhorn", p=2, blur=0.05, debias=False),
    "sinkhorn_unbalanced_biased": samples("sinkhorn", p=2, blur=0.05, reach=0.3, debias=False, diameter=2.0),
    "sinkhorn_of_own_costs": samples("sinkhorn", blur=0.1, cost=lambda x, y: torch.cdist(x, y, p=1)),
    "sinkhorn_by_name": samples("sinkhorn", backend="tensorized"),
    "gaussian": samples("gaussian", blur=0.5),
    "laplacian": samples("laplacian", blur=0.5),
    "energy": samples("energy"),
    "own_kernel": samples("gaussian", kernel=lambda x, y, blur, **_: (-torch.cdist(x, y) / blur).exp(), blur=0.3),
}
for name, made in EACH.items():
    STEPS[f"flow_{name}"] = flow(made)
for name in ("sinkhorn", "sinkhorn_unbalanced", "gaussian", "energy", "sinkhorn_of_a_diameter"):
    STEPS[f"flow_of_batches_{name}"] = flow(EACH[name], batch=(3,))
    STEPS[f"flow_weighted_{name}"] = flow(EACH[name], weighted=True)
STEPS["flow_on_a_line"] = flow(EACH["sinkhorn"], width=1)
for name in ("sinkhorn", "sinkhorn_of_a_diameter", "sinkhorn_biased", "laplacian", "energy"):
    STEPS[f"fitted_{name}"] = fitted(EACH[name])


@step
def weights_learned():
    """As the unbalanced example: the weights of the points are learned, too."""
    x, y, b = cloud(grad=True), cloud() + 0.5, weights()
    held = torch.zeros(POINTS, device=D, requires_grad=True)
    loss = SamplesLoss("sinkhorn", p=2, blur=0.05, reach=0.5)
    optimizer = torch.optim.Adam([x, held], 1e-2)

    def go():
        optimizer.zero_grad()
        loss(held.softmax(0), x, b, y).backward()
        optimizer.step()

    return go


@step
def potentials():
    """The dual potentials teach a critic."""
    net = nn.Sequential(nn.Linear(WIDTH, 16), nn.ReLU(), nn.Linear(16, 1))
    loss = SamplesLoss("sinkhorn", p=2, blur=0.1, potentials=True)

    def of(net):
        x, y = cloud(), cloud() + 0.5
        with torch.no_grad():
            f, g = loss(x, y)
        return (net(x)[:, 0] - f.view(-1)).pow(2).mean() + (net(y)[:, 0] - g.view(-1)).pow(2).mean()

    return train(net, of)


@step
def registered():
    """A cloud is laid over another by an affine map."""
    x, y = cloud(POINTS, 3), cloud(POINTS, 3)
    loss = SamplesLoss("sinkhorn", p=2, blur=0.05)
    return train(nn.Linear(3, 3), lambda net: loss(net(x), y))


@step
def embedded():
    """Embeddings of two kinds of words are brought together, in batches of documents."""
    loss = SamplesLoss("energy")

    def of(net):
        a, b = (torch.randint(0, 50, (4, 12)).to(D) for _ in range(2))
        return loss(net(a), net(b)).mean()

    return train(nn.Embedding(50, 8), of)


def labelled(**more):
    """A classifier whose outputs of two domains are brought together beside what is labelled."""

    def make():
        net, loss = nn.ModuleList([nn.Linear(6, 8), nn.Linear(8, 3)]), SamplesLoss(**more)

        def of(net):
            x, target, y = torch.randn(16, 6).to(D), torch.randn(16, 6).to(D), torch.randint(0, 3, (16,)).to(D)
            seen, other = net[0](x), net[0](target)
            return nn.functional.cross_entropy(net[1](seen), y) + 0.1 * loss(seen, other)

        return train(net, of)

    return make


STEPS["adapted"] = labelled(loss="sinkhorn", blur=0.5)
STEPS["adapted_by_energy"] = labelled(loss="energy")


def solved(read, unbalanced=None, batch=(), many=8):
    """A step by `ot.solve`: costs of learned places, how well they are transported."""

    def make():
        x, y = cloud(*batch, POINTS, WIDTH, grad=True), cloud(*batch, POINTS, WIDTH) + 0.5
        a, b = weights(*batch, POINTS), weights(*batch, POINTS)
        optimizer = torch.optim.SGD([x], 0.1)

        def go():
            costs = (x.unsqueeze(-2) - y.unsqueeze(-3)).pow(2).sum(-1)
            optimizer.zero_grad()
            solve = ot.solve_batch if batch else ot.solve
            read(solve(costs, a=a, b=b, reg=0.05, unbalanced=unbalanced, max_iter=many), costs).backward()
            optimizer.step()

        return go

    return make


STEPS["solve"] = solved(lambda held, _: held.value)
STEPS["solve_of_a_plan"] = solved(lambda held, costs: (held.plan * costs).sum())
STEPS["solve_of_potentials"] = solved(lambda held, _: held.potential_a.mean() + held.potential_b.mean())
STEPS["solve_unbalanced"] = solved(lambda held, _: held.value, unbalanced=0.5)
STEPS["solve_so_many"] = solved(lambda held, _: held.value, many=3)
STEPS["solve_batch"] = solved(lambda held, _: held.value.sum(), batch=(3,))
STEPS["solve_batch_of_plans"] = solved(lambda held, costs: (held.plan * costs).sum(), batch=(3,))
STEPS["solve_batch_unbalanced"] = solved(lambda held, _: held.value.sum(), batch=(3,), unbalanced=0.5)
STEPS["solve_batch_of_marginals"] = solved(lambda held, _: held.marginal_a.pow(2).sum(), batch=(3,))


def of_samples(read=lambda held: held.value, weighted=True, many=8, **more):
    """A step by `ot.solve_sample`: the points move."""

    def make():
        x, y = cloud(grad=True), cloud() + 0.5
        given = {"a": weights(), "b": weights()} if weighted else {}
        optimizer = torch.optim.Adam([x], 1e-2)

        def go():
            optimizer.zero_grad()
            read(ot.solve_sample(x, y, **given, max_iter=many, **more)).backward()
            optimizer.step()

        return go

    return make


STEPS["solve_sample"] = of_samples(reg=0.05)
STEPS["solve_sample_debiased"] = of_samples(reg=0.05, debias=True)
STEPS["solve_sample_unbalanced"] = of_samples(reg=0.05, unbalanced=0.5)
STEPS["solve_sample_of_a_blur"] = of_samples(blur=0.1, weighted=False)
STEPS["solve_sample_of_a_reach"] = of_samples(blur=0.1, reach=0.5, debias=True, weighted=False)
STEPS["solve_sample_of_a_plan"] = of_samples(lambda held: held.plan.pow(2).sum(), reg=0.05)
STEPS["solve_sample_so_many"] = of_samples(reg=0.05, many=3)
