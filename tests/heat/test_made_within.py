"""What a function makes for itself and calls runs when that function does, whatever it is called."""

import textwrap

import pytest
from heat.hot_lines import heat

STEP = """
import torch

class Attack(torch.nn.Module):
    def forward(self, x: torch.Tensor, best: torch.Tensor):
        def replace_best(a):
            return a.sum().item()
        {call}
        return x
"""


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("replace_best(x)", "hot"),
        ("for _ in range(3): best = replace_best(x)", "hot"),
        ("if self.debug: replace_best(x)", "cold"),
        ("self.later = replace_best", "cold"),
    ],
)
def test_a_helper_called_like_set_up_is_hot_where_the_step_around_it_calls_it(call: str, said: str) -> None:
    assert heat(textwrap.dedent(STEP.format(call=call)).encode(), "attack.py") == {7: said}


def test_what_a_cold_function_makes_for_itself_stays_cold() -> None:
    code = STEP.replace("def forward", "def validate").format(call="replace_best(x)")
    assert heat(code.encode(), "attack.py") == {7: "cold"}


LOOP = """
import torch

def fit(net, x, y, optimizer, epochs):
    def evaluate(out):
        return (out == y).sum().item()
    for epoch in range(epochs):
        loss = net(x).sum()
        loss.backward()
        optimizer.step()
        {inside}
    {behind}
"""


@pytest.mark.parametrize(
    ("inside", "behind", "said"),
    [
        ("score = evaluate(x)", "return score", "hot"),
        ("pass", "return evaluate(x)", "cold"),
        ("if epoch % 100 == 0: evaluate(x)", "return net", "cold"),
    ],
)
def test_what_evaluates_is_hot_where_each_pass_of_the_training_loop_around_it_calls_it(
    inside: str, behind: str, said: str
) -> None:
    assert heat(LOOP.format(inside=inside, behind=behind).encode(), "fit.py") == {6: said}
