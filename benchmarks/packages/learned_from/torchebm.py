"""Training steps over torchebm 0.8.9: energies, fields and flows by its losses, couplings, samplers and trainer, on moons and spots."""

from torch import nn
from torchebm.core import BaseModel, CosineScheduler, LinearScheduler
from torchebm.core.base_trainer import BaseTrainer
from torchebm.couplings import (
    ExactOTCoupling,
    GreedyCoupling,
    ReflowCoupling,
    SinkhornCoupling,
    UnbalancedSinkhornCoupling,
)
from torchebm.datasets import GaussianMixtureDataset, TwoMoonsDataset
from torchebm.integrators import LeapfrogIntegrator
from torchebm.interpolants import CosineInterpolant, LinearInterpolant, VariancePreservingInterpolant
from torchebm.losses import (
    ContrastiveDivergence,
    DenoisingScoreMatching,
    EnergyMatchingLoss,
    EquilibriumMatchingLoss,
    FlowMatchingLoss,
    ScoreMatching,
    SlicedScoreMatching,
)
from torchebm.models import DiT, InteractionModel, TimeConditionedMLP
from torchebm.samplers import (
    FlowSampler,
    GradientDescentSampler,
    HamiltonianMonteCarlo,
    LangevinDynamics,
    NesterovSampler,
)
from torchebm.utils import EMA

ROWS = 16


class Energy(BaseModel):
    """Of the readme: the energy of a point."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 16), nn.SiLU(), nn.Linear(16, 16), nn.SiLU(), nn.Linear(16, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)


class Field(nn.Module):
    """A field of points, and of times."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 16), nn.SiLU(), nn.Linear(16, 2))

    def forward(self, x, t, **_):
        return self.net(torch.cat([x, t.reshape(-1, 1).expand(x.shape[0], 1)], -1))


def moons():
    return TwoMoonsDataset(n_samples=200, noise=0.05, device=D, seed=0).get_data()


def learned(kind, made, of=Energy, data=moons, ema=False, told=False, clip=0.0):
    """A step of the readme's loop: some of the data, its loss, Adam."""

    def make():
        net = of().to(D)
        loss_fn = made(net) if kind is None else kind(net)
        points, optimizer = data(), torch.optim.Adam(net.parameters(), 1e-3)
        kept = EMA(net, decay=0.99) if ema else None

        def go():
            loss = loss_fn(points[torch.randint(len(points), (ROWS,), device=D)])
            loss = loss[0] if isinstance(loss, tuple) else loss
            optimizer.zero_grad()
            loss.backward()
            if clip:
                nn.utils.clip_grad_norm_(net.parameters(), clip)
            optimizer.step()
            if kept is not None:
                kept.update(net)
            return loss.item() if told else None

        return go

    return make


def cd(sampler, **more):
    return lambda net: ContrastiveDivergence(model=net, sampler=sampler(net), k_steps=4, device=torch.device(D), **more)


def langevin(net, **more):
    return LangevinDynamics(model=net, step_size=0.1, noise_scale=1.0, device=D, **more)


STEPS["cd_langevin"] = learned(cd(langevin), None)
STEPS["cd_langevin_told_and_clipped"] = learned(cd(langevin), None, told=True, clip=1.0)
STEPS["cd_persistent"] = learned(cd(langevin, persistent=True, buffer_size=64, init_steps=2), None)
STEPS["cd_persistent_renewed"] = learned(
    cd(langevin, persistent=True, buffer_size=64, init_steps=0, new_sample_ratio=0.3), None
)
STEPS["cd_noisy"] = learned(cd(langevin, add_noise_to_real=True, energy_reg_weight=0.01), None)
STEPS["cd_scheduled"] = learned(
    cd(
        lambda net: LangevinDynamics(
            net, step_size=CosineScheduler(0.1, 0.01, 50), noise_scale=LinearScheduler(1.0, 0.1, 50), device=D
        )
    ),
    None,
)
STEPS["cd_hamiltonian"] = learned(
    cd(lambda net: HamiltonianMonteCarlo(net, step_size=0.1, n_leapfrog_steps=3, device=D)), None
)
STEPS["cd_hamiltonian_by_leapfrog"] = learned(
    cd(
        lambda net: HamiltonianMonteCarlo(
            net, 0.1, 3, mass=torch.tensor([1.0, 2.0], device=D), integrator=LeapfrogIntegrator(device=D), device=D
        )
    ),
    None,
)
STEPS["cd_descent"] = learned(cd(lambda net: GradientDescentSampler(net, step_size=0.1, device=D)), None)
STEPS["cd_nesterov"] = learned(cd(lambda net: NesterovSampler(net, step_size=0.1, momentum=0.9, device=D)), None)
STEPS["score_exact"] = learned(lambda net: ScoreMatching(net, hessian_method="exact", device=D), None)
STEPS["score_approx"] = learned(
    lambda net: ScoreMatching(net, hessian_method="approx", regularization_strength=0.1, device=D), None
)
STEPS["score_denoised"] = learned(lambda net: DenoisingScoreMatching(net, noise_scale=0.1, device=D), None, ema=True)
STEPS["score_sliced"] = learned(lambda net: SlicedScoreMatching(net, n_projections=3, device=D), None)
for kind in ("sphere", "gaussian"):
    STEPS[f"score_sliced_{kind}"] = learned(lambda net, kind=kind: SlicedScoreMatching(net, 3, kind, device=D), None)
STEPS["score_functional"] = learned(
    lambda net: ScoreMatching(net, use_autograd=False, functional_model=net, device=D), None
)


def spots():
    return GaussianMixtureDataset(n_samples=200, n_components=4, device=D, seed=0).get_data()


def equilibrium(**more):
    return learned(lambda net: EquilibriumMatchingLoss(model=net, device=D, **more), None, of=Field, data=spots)


STEPS["equilibrium"] = equilibrium(interpolant="linear", energy_type="dot")
STEPS["equilibrium_field"] = equilibrium()
STEPS["equilibrium_l2_cosine"] = equilibrium(energy_type="l2", interpolant=CosineInterpolant())
STEPS["equilibrium_mean_vp"] = equilibrium(energy_type="mean", interpolant=VariancePreservingInterpolant())
STEPS["equilibrium_lognormal_linear"] = equilibrium(t_sampler="lognormal", ct="linear")
STEPS["equilibrium_score"] = equilibrium(prediction="score", loss_weight="velocity", train_eps=0.01, ct="constant")
STEPS["equilibrium_noise"] = equilibrium(prediction="noise", loss_weight="likelihood", train_eps=0.01)
STEPS["equilibrium_ot"] = equilibrium(coupling=SinkhornCoupling(reg=0.05, n_iters=20), time_invariant=False)


def matched(**more):
    """Flows from noise to spots."""
    return learned(lambda net: FlowMatchingLoss(model=net, device=D, **more), None, of=Field, data=spots, ema=True)


STEPS["flow"] = matched()
STEPS["flow_cosine"] = matched(interpolant="cosine", t_sampler="lognormal")
STEPS["flow_exact_ot"] = matched(coupling=ExactOTCoupling())
STEPS["flow_sinkhorn"] = matched(coupling=SinkhornCoupling(reg=0.05))
STEPS["flow_unbalanced"] = matched(coupling=UnbalancedSinkhornCoupling())
STEPS["flow_greedy"] = matched(coupling=GreedyCoupling())
STEPS["flow_weighted"] = matched(coupling="ot", loss_weight_fn=lambda t: 1 + t, negate_velocity=True)


@step
def flow_by_hand():
    """The readme's few lines: points, noise, times, what lies between, the velocity."""
    field, points, between = Field().to(D), spots(), LinearInterpolant()

    def loss(net):
        x1 = points[torch.randint(len(points), (ROWS,), device=D)]
        x0, t = torch.randn_like(x1), torch.rand(ROWS, device=D)
        xt, ut = between.interpolate(x0, x1, t)
        return (net(xt, t) - ut).pow(2).mean()

    return train(field, loss)


def reflowed(integrator="euler", **more):
    """A flow is straightened by pairs that another makes."""

    def make():
        teacher, between = Field().to(D), LinearInterpolant()
        pairs = ReflowCoupling(
            FlowSampler(model=teacher, interpolant="linear", integrator=integrator, device=D, **more), n_steps=4
        )

        def loss(net):
            x0, x1 = pairs(torch.randn(ROWS, 2, device=D))
            t = torch.rand(ROWS, device=D)
            xt, ut = between.interpolate(x0, x1, t)
            return (net(xt, t) - ut).pow(2).mean()

        return train(Field(), loss)

    return make


STEPS["reflow_euler"] = reflowed()
STEPS["reflow_heun"] = reflowed("heun")
STEPS["reflow_rk4"] = reflowed("rk4")
STEPS["reflow_dopri5"] = reflowed("dopri5")


def energies(**more):
    return learned(lambda net: EnergyMatchingLoss(model=net, device=D, n_langevin_steps=4, **more), None)


STEPS["energy_first_phase"] = energies(lambda_cd=0.0, coupling=SinkhornCoupling(reg=0.01, n_iters=20))
STEPS["energy_second_phase"] = energies(lambda_cd=2.0)
STEPS["energy_scheduled"] = energies(
    lambda_cd=LinearScheduler(0.0, 2.0, 50), sigma=CosineScheduler(0.1, 0.01, 50), cd_clamp=None
)
STEPS["energy_untrimmed"] = energies(cd_trim_fraction=0.0, noise_fraction=1.0)


@step
def energy_of_points_that_repel():
    """Points that are drawn push each other away."""
    net, points = Energy().to(D), moons()
    drawn = LangevinDynamics(InteractionModel(net, sigma_w=1.0).to(D), step_size=0.05, device=D)
    loss_fn = EnergyMatchingLoss(model=net, sampler=drawn, n_langevin_steps=4, device=D)
    return train(net, lambda _: loss_fn(points[:ROWS]))


class Callback:
    """What a trainer calls after each batch: the loss is kept for a curve."""

    def __init__(self):
        self.curve = []

    def on_batch_end(self, trainer, batch, metrics):
        self.curve.append(float(metrics["loss"]))


def trainer(made, of=Energy, labels=False, callbacks=list, before=0, **more):
    """A step is a batch of the package's trainer, which brings it to the device."""

    def make():
        net = of()
        optimizer = torch.optim.AdamW(net.parameters(), 1e-2)
        held = BaseTrainer(net, optimizer, made(net), device=D, callbacks=callbacks(), **more)
        points = TwoMoonsDataset(n_samples=400, noise=0.05, seed=0).get_data()
        data = torch.utils.data.TensorDataset(points, torch.randint(0, 3, (400,))) if labels else points
        batches = torch.utils.data.DataLoader(data, ROWS, shuffle=True)
        return loop(lambda: held.train(batches, 2), before=before)

    return make


STEPS["trainer"] = trainer(lambda net: DenoisingScoreMatching(net, noise_scale=0.1, device=D))
STEPS["trainer_told"] = trainer(lambda net: DenoisingScoreMatching(net, 0.1, device=D), callbacks=lambda: [Callback()])
STEPS["trainer_accumulated"] = trainer(lambda net: SlicedScoreMatching(net, 2, device=D), grad_accum_steps=2)
STEPS["trainer_of_labels"] = trainer(
    lambda net: FlowMatchingLoss(net, device=D),
    of=lambda: TimeConditionedMLP(in_dim=2, hidden_dim=16, depth=2, num_classes=3, class_dropout_prob=0.1),
    labels=True,
    before=8,  # the first batches ask whether the labels are heard
)


def pictures(loss, **more):
    """A transformer's field of pictures, some of whose labels are dropped."""

    def make():
        net = DiT(
            input_size=8, patch_size=2, in_channels=3, embed_dim=16, depth=2, num_heads=2, num_classes=5, class_dropout_prob=0.2
        ).to(D)  # fmt: skip
        loss_fn, optimizer = loss(net, device=D, **more), torch.optim.AdamW(net.parameters(), 1e-2)
        batches = [(torch.randn(4, 3, 8, 8), torch.tensor([0, 1, 2, 3])) for _ in range(20)]

        def fit():
            for x, y in batches:
                value = loss_fn(x.to(D), y=y.to(D))
                optimizer.zero_grad()
                value.backward()
                optimizer.step()

        return loop(fit, before=8)  # the first ask whether the labels are heard

    return make


STEPS["pictures"] = pictures(FlowMatchingLoss)
STEPS["pictures_equilibrium"] = pictures(EquilibriumMatchingLoss, coupling="ot")
