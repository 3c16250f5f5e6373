"""What only distributions are used for says that a value is one: `# waits: op` marks each line that waits for its checks."""

import pytest
from tensors.marked import marks, waits

CASES = {
    "a class whose constructor has its base check nothing": """
        from torch import distributions as pyd

        class Truncated(pyd.Normal):
            def __init__(self, loc, scale, low=-1.0):
                super().__init__(loc, scale, validate_args=False)
                self.low = low

        class Checked(pyd.Normal):
            def __init__(self, loc, scale, low=-1.0):
                super().__init__(loc, scale)  # waits: distribution_validate
                self.low = low

        class Told(pyd.Normal):
            def __init__(self, loc, scale, **kwargs):
                super().__init__(loc, scale, **kwargs)

        def update(actions, loc: torch.Tensor, scale):
            unchecked = Truncated(loc, scale).log_prob(actions)
            return unchecked + Checked(loc, scale).log_prob(actions)  # waits: distribution_validate
    """,
    "a distribution that is asked for its entropy": """
        def step(model, flow, x: torch.Tensor, actions: torch.Tensor):
            pout, value = model(x)
            action_distrib = model.head(x)
            bonus = pout.entropy().mean()
            before = action_distrib.log_prob(actions)  # waits: distribution_validate
            return pout.log_prob(actions) + bonus + before + flow.log_prob(actions)  # waits: distribution_validate
    """,
    "a class of distributions under another name": """
        class Loss(nn.Module):
            distribution = torch.distributions.Normal

            def forward(self, x, y):
                made = self.distribution(loc=x[..., 0], scale=x[..., 1])  # waits: distribution_validate
                return -made.icdf(y).sum()
    """,
    "a class of distributions that `__init__` chooses": """
        from torch.distributions import Laplace, Normal

        class Autoencoder(nn.Module):
            def __init__(self, kind, config):
                super().__init__()
                if kind == "laplace":
                    self.posterior, self.config, self.either = Laplace, config, Laplace
                else:
                    self.posterior, self.config, self.either = Normal, config, None if kind else dict

            def forward(self, x, given):
                mean, scale = self.encoder(x)
                q = self.posterior(mean, scale)  # waits: distribution_validate
                z = q.rsample()
                for each in given:
                    z = z + q.log_prob(given[each])  # waits: distribution_validate
                return z, self.either(mean, scale)

            def dropped(self, rows: list[torch.Tensor]):
                chance = torch.distributions.Bernoulli(self.config.rate)
                return [row for row in rows if chance.sample().item() == 1]
    """,
    "a distribution that is not in sight": """
        def loss(policy, flow, x: torch.Tensor, action: torch.Tensor):
            dist = policy(x)
            if dist.log_prob(action).sum() > 0:  # waits: distribution_validate # waits: condition
                return 1
            return flow.log_prob(x)
    """,
    "distributions of its own": """
        from torch.distributions import Distribution, constraints

        class Scaled(Distribution):
            arg_constraints = {"scale": constraints.positive}

            def __init__(self, scale, validate_args=None):
                self.scale = scale
                super().__init__(scale.shape, validate_args=validate_args)  # waits: distribution_validate

            def log_prob(self, value):
                if self._validate_args:
                    self._validate_sample(value)  # waits: distribution_validate
                return value / self.scale

        class Inner(Scaled):
            def __init__(self, scale):
                super().__init__(scale)

        class Checked(Distribution):
            arg_constraints = {"scale": constraints.positive}

            def __init__(self, scale):
                self.scale = scale
                super().__init__(scale.shape)  # waits: distribution_validate

        class Unchecked(Distribution):
            arg_constraints = {}

            def __init__(self, scale):
                super(Unchecked, self).__init__(scale.shape)
    """,
    "what is made of another that checks, whatever it is told": """
        from torch import distributions

        def chosen(logits: torch.Tensor, value: torch.Tensor):
            one = distributions.OneHotCategorical(logits=logits, validate_args=False)  # waits: distribution_validate
            heavy = distributions.FisherSnedecor(value, value, validate_args=False)  # waits: distribution_validate
            free = distributions.Categorical(logits=logits, validate_args=False)
            total = one.log_prob(value)  # waits: distribution_validate
            return total + heavy.log_prob(value) + free.log_prob(value)
    """,
    "a class that leaves to torch how it is made": """
        from torch.distributions import Normal as OfTorch

        class Normal(OfTorch):
            def log_cdf(self, x):
                return self.cdf(x).log()  # waits: distribution_validate

        def mixed(locs: torch.Tensor, scales: torch.Tensor):
            return Normal(loc=locs, scale=scales.exp())  # waits: distribution_validate
    """,
}


@pytest.mark.parametrize("code", CASES.values(), ids=CASES)
def test_waits_where_the_marks_say(code: str) -> None:
    assert waits(code, confidence=2) == marks(code)
