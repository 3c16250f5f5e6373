"""What distributions read when they draw: `torch.normal` asks whether a deviation is negative, whoever has checked before."""

import pytest
from tensors.marked import marks, waits

IMPORTS = """
from torch.distributions import Binomial, Categorical, Independent, Laplace, Normal, TransformedDistribution
from torch.distributions.transforms import TanhTransform

class Policy(nn.Module):"""
CASES = {
    "of a normal distribution, and of what is made of one": """
    def act(self, x: torch.Tensor):
        policy = Normal(x, x.exp(), validate_args=False)
        a = policy.sample()  # waits: library_read
        b = policy.rsample()
        c = Independent(policy, 1, validate_args=False).sample((2,))  # waits: library_read
        d = TransformedDistribution(policy, [TanhTransform()], validate_args=False)
        return a + b + c + d.sample()  # waits: library_read
    """,
    "of others": """
    def act(self, x: torch.Tensor):
        a = Categorical(logits=x, validate_args=False).sample()
        b = Independent(Laplace(x, x.exp(), validate_args=False), 1, validate_args=False).sample()
        c = Binomial(x.exp(), logits=x, validate_args=False)
        return a + b + c.sample() + c.entropy()  # waits: library_read
    """,
    "on the host": """
    def noise(self):
        return Normal(0.0, 1.0).sample((3,))
    """,
}


@pytest.mark.parametrize("case", CASES)
def test_a_draw_waits_where_torch_looks_at_a_deviation(case: str) -> None:
    source = IMPORTS + CASES[case]
    assert waits(source) == marks(source)
