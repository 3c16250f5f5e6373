"""Training steps over TorchJD 0.18.0: several losses, their Jacobian, and each way to make one gradient of it, or one loss."""

from torchjd import aggregation as A
from torchjd import scalarization as S
from torchjd.autogram import Engine
from torchjd.autojac import backward, jac_to_grad, mtl_backward

ROWS, WIDTH, TASKS = 16, 8, 3


def network():
    return torch.nn.Sequential(torch.nn.Linear(WIDTH, 16), torch.nn.Tanh(), torch.nn.Linear(16, TASKS)).to(D)


def batch():
    return torch.randn(ROWS, WIDTH, device=D), torch.randn(ROWS, TASKS, device=D)


def losses(net):
    x, y = batch()
    return (net(x) - y).pow(2).mean(0)


def jacobian(aggregator):
    """A step is one of Jacobian descent: the losses, their Jacobian, and what an aggregator makes of it."""

    def make():
        net, how = network(), aggregator().to(D)
        optimizer = torch.optim.SGD(net.parameters(), 0.1)

        def go():
            backward(losses(net))
            jac_to_grad(net.parameters(), how)
            optimizer.step()
            optimizer.zero_grad()

        return go

    return make


for name, aggregator in {
    "upgrad": A.UPGrad,
    "dual_projected": A.DualProj,
    "mgda": A.MGDA,
    "pcgrad": A.PCGrad,
    "gradvac": A.GradVac,
    "graddrop": A.GradDrop,
    "imtl_g": A.IMTLG,
    "aligned_mtl": A.AlignedMTL,
    "config": A.ConFIG,
    "krum": lambda: A.Krum(n_byzantine=0, n_selected=1),
    "trimmed_mean": lambda: A.TrimmedMean(trim_number=1),
    "cagrad": lambda: A.CAGrad(c=0.5),
    "nash_mtl": lambda: A.NashMTL(n_tasks=TASKS),
    "fairgrad": lambda: A.FairGrad(alpha=1.0),
    "excess_mtl": A.ExcessMTL,
    "pcd": A.PCD,
    "random": A.Random,
    "preferred": lambda: A.UPGrad(pref_vector=torch.tensor([1.0, 2.0, 1.0])),
}.items():
    STEPS[name] = jacobian(aggregator)


@step
def shared_features():
    """Tasks with heads of their own behind features that they share."""
    trunk = torch.nn.Sequential(torch.nn.Linear(WIDTH, 16), torch.nn.ReLU()).to(D)
    heads = [torch.nn.Linear(16, 1).to(D) for _ in range(TASKS)]
    own = [each for head in heads for each in head.parameters()]
    optimizer = torch.optim.Adam([*trunk.parameters(), *own], 1e-3)
    how = A.UPGrad()

    def go():
        x, y = batch()
        features = trunk(x)
        values = [(head(features)[:, 0] - y[:, i]).pow(2).mean() for i, head in enumerate(heads)]
        mtl_backward(values, features=features)
        jac_to_grad(trunk.parameters(), how)
        optimizer.step()
        optimizer.zero_grad()

    return go


def gramian(weighting, rows=True):
    """A step weighs the losses by the Gramian of their Jacobian, which is never formed."""

    def make():
        net, how = network(), weighting()
        engine = Engine(net, batch_dim=0) if rows else Engine(net, batch_dim=None)
        optimizer = torch.optim.SGD(net.parameters(), 0.1)

        def go():
            x, y = batch()
            values = (net(x) - y).pow(2).mean(1 if rows else 0)
            weights = how(engine.compute_gramian(values))
            values.backward(weights)
            optimizer.step()
            optimizer.zero_grad()

        return go

    return make


STEPS["gramian_of_rows"] = gramian(A.UPGradWeighting)
STEPS["gramian_of_tasks"] = gramian(A.MGDAWeighting, rows=False)
STEPS["gramian_smoothed"] = gramian(lambda: A.CRMOGMWeighting(A.UPGradWeighting()), rows=False)


def scalar(scalarizer, after=None):
    """A step is one of an ordinary optimizer, on what a scalarizer makes of the losses."""

    def make():
        net, how = network(), scalarizer().to(D)
        optimizer = torch.optim.Adam([*net.parameters(), *how.parameters()], 1e-3)

        def go():
            loss = how(losses(net))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if after:
                after(how, losses(net))

        return go

    return make


STEPS["famo"] = scalar(lambda: S.FAMO(TASKS), lambda how, values: how.update(values.detach()))
STEPS["dwa"] = scalar(S.DWA)
STEPS["geometric_mean"] = scalar(S.GeometricMean)
STEPS["smooth_tchebycheff"] = scalar(lambda: S.STCH(mu=0.5))
STEPS["uncertainty"] = scalar(lambda: S.UW(TASKS))
STEPS["pbi"] = scalar(lambda: S.PBI(5.0, torch.ones(TASKS, device=D) / TASKS))
