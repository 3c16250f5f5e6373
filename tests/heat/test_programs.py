"""What a program defines runs where the program calls it: nobody imports a file that trains when it is started."""

import pytest
from heat.hot_lines import heat

DEFINED = """
import torch

def pairs(x: torch.Tensor):
    return x / x.sum().item()  # {called once}

def normalized(x: torch.Tensor):
    return x / x.sum().item()  # hot

def score(x: torch.Tensor):
    return x.sum().item()  # hot

def _score(x: torch.Tensor):
    return x.sum().item()  # hot

class Net(torch.nn.Module):
    def __init__(self, x):
        super().__init__()
        self.first = pairs(x)
        self.grid(x)

    def grid(self, x: torch.Tensor):
        self.cells = x / x.sum().item()  # cold

    def forward(self, x):
        return normalized(x)

"""
LOOP = """
net = Net(torch.ones(3))
for x in batches:
    loss = net(x).sum()
    loss.backward()
    print(score(loss), _score(loss))
"""
ENDS = {
    "a loop at its top": (LOOP, "cold"),
    "a function that its guard starts": (
        "def main():" + LOOP.replace("\n", "\n    ") + "\nif __name__ == '__main__':\n    main()\n",
        "cold",
    ),
    "nothing: others import it": ("", "hot"),
}


@pytest.mark.parametrize("end", ENDS)
def test_what_only_a_constructor_calls_is_cold_in_a_program(end: str) -> None:
    added, once = ENDS[end]
    source = DEFINED.replace("{called once}", once) + added
    marked = {n: line.rpartition("# ")[2] for n, line in enumerate(source.splitlines(), 1) if "item()" in line}
    assert heat(source.encode(), "train.py") == marked


SELDOM = """
import torch

class Learner(torch.nn.Module):
    def forward(self, tasks):
        return sum(self.adapted(task) for task in tasks)

    def adapted(self, task: torch.Tensor):
        return task / task.sum().item()  # hot

    def tried(self, task: torch.Tensor):
        return task.std().item()  # cold

def shown(x: torch.Tensor):
    return x.min().item()  # cold

def measured(x: torch.Tensor):
    return x.max().item()  # hot

def main(tasks, x: torch.Tensor):
    learner = Learner()
    for step in range(100):
        loss = learner(tasks)
        loss.backward()
        print(measured(loss))
        if step % 20 == 19:
            print([learner.tried(task) for task in tasks])
    print(shown(x))

if __name__ == "__main__":
    main()
"""


def test_what_a_program_calls_seldom_or_outside_of_its_steps_is_cold() -> None:
    marked = {n: line.rpartition("# ")[2] for n, line in enumerate(SELDOM.splitlines(), 1) if "item()" in line}
    assert heat(SELDOM.encode(), "train.py") == marked
