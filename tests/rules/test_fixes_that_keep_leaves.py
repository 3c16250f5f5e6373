"""What a fix of `max` puts in the place of what went in: a leaf that is trained has to stay one."""

import pytest

pytest.importorskip("libcst")

from rules.driver import fixed

HEAD = "import torch\n\n\n"
LEARNER = """class Learner:
    def __init__(self):
        self.weight = torch.ones((), device="cuda", requires_grad=True)
        self.optimizer = torch.optim.SGD([self.weight], 0.1)

    def step(self, x: torch.Tensor):
        loss = (self.weight * x).mean()
        loss.backward()
        self.optimizer.step()
"""


@pytest.mark.parametrize(
    "code",
    [
        "        self.weight = max(0, self.weight)\n",
        "        self.weight = min(self.weight, 1.0)\n",
        "        self.weight = max(self.weight, x.mean())\n",
        "        weight = self.weight\n        self.weight = max(weight, 0.0)\n",
    ],
)
def test_what_an_optimizer_holds_is_not_replaced_by_another_tensor(code: str) -> None:
    assert fixed(HEAD + LEARNER + code) == HEAD + LEARNER + code


def test_what_goes_round_a_loop_does_not_get_the_graph_of_all_passes() -> None:
    code = "def f(xs: list[torch.Tensor]):\n    most = torch.zeros((), device='cuda')\n    for x in xs:\n"
    code += "        most = max(most, x.mean())\n    return most\n"
    assert fixed(HEAD + code) == HEAD + code


@pytest.mark.parametrize(
    ("code", "after"),
    [
        ("    n = (x > 0).sum().float()\n    n = max(n, 1.0)\n    return x.sum() / n\n", "n = n.clamp(min=1.0)"),
        (
            """
    total = 0
    for _ in range(3):
        n = (x > total).sum().float()
        n = max(n, 1.0)
        total = total + x.sum() / n
    return total
""",
            "n = n.clamp(min=1.0)",
        ),
        ("    return x * max(x.mean(), 0.5)\n", "x.mean().clamp(min=0.5)"),
    ],
)
def test_what_is_made_anew_is_still_clamped_on_the_device(code: str, after: str) -> None:
    assert after in fixed(HEAD + "def f(x: torch.Tensor):\n" + code)
