"""Training steps over posteriors 0.1.3: each of its methods by the readme's loop, on a small network's log posterior."""

import itertools

import posteriors
import torchopt
from posteriors.types import Transform
from torch import func, nn

ROWS, WIDTH, CLASSES, SAMPLES = 8, 6, 3, 200
torch.distributions.Distribution.set_default_validate_args(False)


def net():
    return nn.Sequential(nn.Linear(WIDTH, 8), nn.Tanh(), nn.Linear(8, CLASSES)).to(D)


def batches():
    """Batches of a loader, on the device."""
    x, y = torch.randn(SAMPLES, WIDTH), torch.randint(0, CLASSES, (SAMPLES,))
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), ROWS, shuffle=True)
    return ([each.to(D) for each in batch] for _ in itertools.count() for batch in loader)


def posterior(model, prior=True, each=False):
    """As the readme has it: how likely labels are, and weights near zero; of each row where it is asked for."""

    def log_posterior(params, batch):
        x, y = batch
        output = func.functional_call(model, params, x)
        held = -nn.functional.cross_entropy(output, y, reduction="none" if each else "mean")
        return held + posteriors.diag_normal_log_prob(
            params, sd_diag=1.0, normalize=False
        ) / SAMPLES if prior else held, output

    return log_posterior


def updated(build, each=False, prior=True, inplace=False, told=False, leaves=False):
    """A step is an update by a batch of the loader; its log posterior is read where it is told."""

    def make():
        model = net()
        params = {name: value.detach().requires_grad_(leaves) for name, value in model.named_parameters()}
        transform: Transform = build(posterior(model, prior, each))
        held, given = [transform.init(params)], batches()

        def go():
            state, _ = transform.update(held[0], next(given), inplace=inplace)
            held[0] = state
            return state.log_posterior.item() if told else None

        return go

    return make


HEAT = 1 / SAMPLES
STEPS["sgld"] = updated(lambda log: posteriors.sgmcmc.sgld.build(log, 1e-3, temperature=HEAT))
STEPS["sgld_inplace_told"] = updated(
    lambda log: posteriors.sgmcmc.sgld.build(log, 1e-3, temperature=HEAT), inplace=True, told=True
)
STEPS["sgld_scheduled"] = updated(
    lambda log: posteriors.sgmcmc.sgld.build(log, lambda step: 1e-3 / (1 + step) ** 0.5, temperature=lambda step: HEAT)
)
STEPS["sghmc"] = updated(lambda log: posteriors.sgmcmc.sghmc.build(log, 1e-3, alpha=0.1, temperature=HEAT))
STEPS["sghmc_at_rest"] = updated(
    lambda log: posteriors.sgmcmc.sghmc.build(log, 1e-3, alpha=0.1, sigma=0.5, momenta=0.0), inplace=True
)
STEPS["sghmc_scheduled"] = updated(
    lambda log: posteriors.sgmcmc.sghmc.build(log, lambda step: 1e-3 * 0.99**step, beta=0.01, temperature=HEAT)
)
STEPS["sgnht"] = updated(lambda log: posteriors.sgmcmc.sgnht.build(log, 1e-3, temperature=HEAT))
STEPS["sgnht_inplace"] = updated(
    lambda log: posteriors.sgmcmc.sgnht.build(log, 1e-3, xi=0.1, momenta=0.0), inplace=True
)
STEPS["baoa"] = updated(lambda log: posteriors.sgmcmc.baoa.build(log, 1e-3, alpha=0.1, temperature=HEAT), told=True)
STEPS["sglrw"] = updated(lambda log: posteriors.sgmcmc.sglrw.build(log, 1e-3, temperature=HEAT))
STEPS["vi_diag"] = updated(lambda log: posteriors.vi.diag.build(log, torchopt.adam(1e-3), temperature=HEAT))
STEPS["vi_diag_sampled"] = updated(
    lambda log: posteriors.vi.diag.build(log, torchopt.adamw(1e-3), HEAT, n_samples=3, init_log_sds=-3.0)
)
STEPS["vi_diag_not_stl"] = updated(
    lambda log: posteriors.vi.diag.build(log, torchopt.sgd(1e-3, momentum=0.9), HEAT, stl=False), inplace=True
)
STEPS["vi_dense"] = updated(lambda log: posteriors.vi.dense.build(log, torchopt.adam(1e-3), temperature=HEAT))
STEPS["vi_dense_sampled"] = updated(
    lambda log: posteriors.vi.dense.build(log, torchopt.rmsprop(1e-3), HEAT, n_samples=2, init_L=0.1), inplace=True
)
STEPS["ekf_diag"] = updated(lambda log: posteriors.ekf.diag_fisher.build(log, 1e-3), prior=False)
STEPS["ekf_diag_forgetting"] = updated(
    lambda log: posteriors.ekf.diag_fisher.build(log, 1e-3, transition_sd=0.01, init_sds=0.1), prior=False, inplace=True
)
STEPS["ekf_diag_per_sample"] = updated(
    lambda log: posteriors.ekf.diag_fisher.build(log, lambda step: 1e-3, per_sample=True), each=True, prior=False
)
STEPS["ekf_dense"] = updated(
    lambda log: posteriors.ekf.dense_fisher.build(log, 1e-3, per_sample=True), each=True, prior=False
)
STEPS["ekf_dense_forgetting"] = updated(
    lambda log: posteriors.ekf.dense_fisher.build(log, 1e-3, transition_cov=1e-4, init_cov=0.01), prior=False
)
STEPS["laplace_diag_fisher"] = updated(
    lambda log: posteriors.laplace.diag_fisher.build(log, per_sample=True), each=True
)
STEPS["laplace_diag_fisher_of_mean"] = updated(
    lambda log: posteriors.laplace.diag_fisher.build(log, init_prec_diag=1.0)
)
STEPS["laplace_dense_fisher"] = updated(
    lambda log: posteriors.laplace.dense_fisher.build(log, per_sample=True), each=True
)
STEPS["laplace_dense_hessian"] = updated(lambda log: posteriors.laplace.dense_hessian.build(log, epsilon=1e-3))


def turned(log):
    """A loss of a log posterior."""

    def loss(params, batch):
        value, output = log(params, batch)
        return -value, output

    return loss


STEPS["optimizer_of_torch"] = updated(
    lambda log: posteriors.optim.build(turned(log), torch.optim.Adam, lr=1e-3), inplace=True, leaves=True
)
STEPS["optimizer_of_torchopt"] = updated(lambda log: posteriors.torchopt.build(turned(log), torchopt.adam(1e-3)))


def outer(output, batch):
    return -nn.functional.cross_entropy(output, batch[1])


def of_ggn(build):
    """Gauss and Newton's matrix of the network's outputs, batch by batch, around weights that are trained already."""

    def make():
        model = net()
        params = {name: value.detach() for name, value in model.named_parameters()}

        def forward(params, batch):
            return func.functional_call(model, params, batch[0]), torch.tensor([], device=D)

        transform = build(forward, outer)
        held, given = [transform.init(params)], batches()

        def go():
            held[0], _ = transform.update(held[0], next(given))

        return go

    return make


STEPS["laplace_diag_ggn"] = of_ggn(posteriors.laplace.diag_ggn.build)
STEPS["laplace_dense_ggn"] = of_ggn(posteriors.laplace.dense_ggn.build)
STEPS["laplace_dense_ggn_of_prior"] = of_ggn(lambda *held: posteriors.laplace.dense_ggn.build(*held, init_prec=1.0))


@step
def newton_by_conjugate_gradients():
    """Weights that follow a curvature: products with it alone, and its equations solved by conjugate gradients."""
    model, given = net(), batches()
    log = posterior(model)
    held = [{name: value.detach() for name, value in model.named_parameters()}]

    def go():
        params, batch = held[0], next(given)
        grads = func.grad(lambda p: -log(p, batch)[0])(params)

        def curved(v):
            product = posteriors.ggnvp(
                lambda p: func.functional_call(model, p, batch[0]),
                lambda out: nn.functional.cross_entropy(out, batch[1]),
                (params,), (v,),
            )[1]  # fmt: skip
            return {name: product[name] + 0.1 * v[name] for name in v}

        way, _ = posteriors.cg(curved, grads, maxiter=5)
        held[0] = {name: params[name] - 0.1 * way[name] for name in params}

    return go


@step
def natural_gradient():
    """The gradient, and its product with the empirical Fisher matrix."""
    model, given = net(), batches()
    held = [{name: value.detach() for name, value in model.named_parameters()}]
    log = posterior(model, False, True)

    def go():
        params, batch = held[0], next(given)
        grads = func.grad(lambda p: -log(p, batch)[0].mean())(params)
        _, turned, _ = posteriors.fvp(lambda p: log(p, batch), (params,), (grads,), has_aux=True, normalize=True)
        held[0] = {name: params[name] - 0.1 * (grads[name] + turned[name]) for name in params}

    return go
