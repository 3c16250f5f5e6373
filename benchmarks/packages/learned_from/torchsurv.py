"""Training steps over torchsurv 0.2.0: networks of hazards by Cox, Weibull and at fixed times, with a momentum, and their scores."""

from torch import nn
from torchsurv.loss.cox import baseline_survival_function, neg_partial_log_likelihood
from torchsurv.loss.momentum import Momentum
from torchsurv.loss.survival import neg_log_likelihood
from torchsurv.loss.weibull import log_hazard, neg_log_likelihood_weibull, survival_function_weibull
from torchsurv.metrics.auc import Auc
from torchsurv.metrics.brier_score import BrierScore
from torchsurv.metrics.cindex import ConcordanceIndex
from torchsurv.stats.ipcw import get_ipcw
from torchsurv.stats.kaplan_meier import KaplanMeierEstimator

ROWS, WIDTH = 64, 16


def lives(ties=True):
    """Of the readme: what is known of each, whether it died, and when it was last seen."""
    x = torch.randn(ROWS, WIDTH, device=D)
    event = torch.randint(0, 2, (ROWS,), device=D).bool()
    time = torch.randint(1, 100, (ROWS,), device=D).float() if ties else torch.rand(ROWS, device=D) * 100
    return x, event, time


def linear(out=1):
    return nn.Sequential(nn.Linear(WIDTH, out))


def deep(out=1):
    """Of the notebooks."""
    return nn.Sequential(
        nn.BatchNorm1d(WIDTH), nn.Linear(WIDTH, 32), nn.ReLU(), nn.Dropout(), nn.Linear(32, 64), nn.ReLU(), nn.Dropout(), nn.Linear(64, out)
    )  # fmt: skip


def learned(loss, net=linear, ties=True, out=1):
    def make():
        x, event, time = lives(ties)
        return train(net(out), lambda net: loss(net(x), event, time))

    return make


def strata():
    return torch.arange(ROWS, device=D) % 3


STEPS["cox"] = learned(neg_partial_log_likelihood)
STEPS["cox_deep"] = learned(neg_partial_log_likelihood, deep)
STEPS["cox_without_ties"] = learned(neg_partial_log_likelihood, ties=False)
STEPS["cox_breslow"] = learned(lambda *of: neg_partial_log_likelihood(*of, ties_method="breslow"))
STEPS["cox_summed"] = learned(lambda *of: neg_partial_log_likelihood(*of, reduction="sum"))
STEPS["cox_by_strata"] = learned(lambda *of: neg_partial_log_likelihood(*of, strata=strata()))
STEPS["cox_by_strata_without_ties"] = learned(lambda *of: neg_partial_log_likelihood(*of, strata=strata()), ties=False)
STEPS["cox_breslow_by_strata"] = learned(
    lambda *of: neg_partial_log_likelihood(*of, ties_method="breslow", strata=strata())
)
STEPS["cox_of_times"] = learned(neg_partial_log_likelihood, out=ROWS, ties=False)
STEPS["weibull"] = learned(neg_log_likelihood_weibull, out=2)
STEPS["weibull_deep"] = learned(neg_log_likelihood_weibull, deep, out=2)
STEPS["exponential"] = learned(neg_log_likelihood_weibull)
STEPS["weibull_summed"] = learned(lambda *of: neg_log_likelihood_weibull(*of, reduction="sum"), out=2)


@step
def at_fixed_times():
    times = torch.linspace(0, 100, 12, device=D)
    return learned(lambda *of: neg_log_likelihood(*of, eval_time=times), out=12)()


@step
def at_fixed_times_summed():
    times = torch.linspace(0, 100, 12, device=D)
    return learned(lambda *of: neg_log_likelihood(*of, eval_time=times, reduction="sum"), deep, out=12)()


def momentum(loss, out=1, net=linear, **more):
    """A batch is compared with those before it, of a network that follows slowly."""

    def make():
        held = Momentum(net(out), loss, **more)
        x, event, time = lives()
        return train(held, lambda net: net(x, event, time))

    return make


STEPS["momentum_cox"] = momentum(neg_partial_log_likelihood, batchsize=ROWS, steps=4)
STEPS["momentum_cox_deep"] = momentum(neg_partial_log_likelihood, net=deep, batchsize=ROWS, steps=2, rate=0.99)
STEPS["momentum_weibull"] = momentum(neg_log_likelihood_weibull, out=2, batchsize=ROWS, steps=2)


def scored(score, loss=neg_partial_log_likelihood, out=1):
    """Of the readme: after a step, the batch is scored."""

    def make():
        x, event, time = lives()
        net = linear(out).to(D)
        optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)

        def go():
            estimate = net(x)
            value = loss(estimate, event, time)
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            with torch.no_grad():
                return score(net(x), event, time)

        return go

    return make


def cindex(estimate, event, time):
    return ConcordanceIndex()(estimate, event, time)


def cindex_weighed(estimate, event, time):
    weight = get_ipcw(event, time)
    return ConcordanceIndex()(estimate, event, time, weight=weight)


def auc(estimate, event, time):
    return Auc()(estimate, event, time, new_time=torch.tensor(50.0, device=D))


def auc_of_all_times(estimate, event, time):
    held = Auc()
    held(estimate, event, time)
    return held.integral()


def auc_weighed(estimate, event, time):
    at = torch.linspace(20, 80, 5, device=D)
    return Auc()(
        estimate, event, time, new_time=at, weight=get_ipcw(event, time), weight_new_time=get_ipcw(event, time, at)
    )


def brier(params, event, time):
    at = torch.linspace(20, 80, 5, device=D)
    held = BrierScore()
    held(survival_function_weibull(params, at), event, time, new_time=at)
    return held.integral()


def cindex_of_hazards(params, event, time):
    return ConcordanceIndex()(log_hazard(params, time), event, time)


def baseline(estimate, event, time):
    return baseline_survival_function(estimate, event, time)


def kaplan_meier(estimate, event, time):
    held = KaplanMeierEstimator()
    held(event, time)
    return held.predict(time)


for each in (cindex, cindex_weighed, auc, auc_of_all_times, auc_weighed, baseline, kaplan_meier):
    STEPS[f"scored_{each.__name__}"] = scored(each)
for each in (brier, cindex_of_hazards):
    STEPS[f"scored_{each.__name__}"] = scored(each, neg_log_likelihood_weibull, 2)
