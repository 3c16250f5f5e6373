"""What is kept under a key, whatever keeps it is called: made the first time, unless a step empties it or makes it itself."""

import pytest
from heat.hot_lines import heat

SEARCHES = """
import torch

class Search(torch.optim.Optimizer):
    def try_step(self, size):
        if size in self.tried:
            return self.tried[size]
        loss = self.closure()
        for p in self.params:
            self.state[p]["slope"] = (p.grad * p.grad).sum().item()
        self.tried[size] = loss
        return loss

    def begin(self):
        EMPTIED

    def step(self, closure):
        self.closure = closure
        self.begin()
        return min(self.try_step(size) for size in (1.0, 0.5))
"""


@pytest.mark.parametrize(
    "emptied", ["self.tried = {}", "self.tried = dict()", "self.tried.clear()", "self.tried = None"]
)
def test_what_each_step_forgets_is_made_in_each(emptied: str) -> None:
    assert set(heat(SEARCHES.replace("EMPTIED", emptied).encode(), "search.py").values()) == {"hot"}


def test_what_nothing_forgets_is_made_seldom() -> None:
    assert set(heat(SEARCHES.replace("EMPTIED", "pass").encode(), "search.py").values()) == {"cold"}


def test_what_runs_a_backward_pass_is_made_anew_under_each_key() -> None:
    source = SEARCHES.replace("EMPTIED", "pass").replace("for p in", "loss.backward()\n        for p in")
    assert set(heat(source.encode(), "search.py").values()) == {"hot"}


def test_what_empties_itself_when_it_is_full_is_made_seldom() -> None:
    source = SEARCHES.replace("self.begin()", "pass").replace("EMPTIED", "self.tried.clear()")
    full = source.replace(
        "        loss = self.c", "        if len(self.tried) > 9:\n            self.begin()\n        loss = self.c"
    )
    assert set(heat(full.encode(), "search.py").values()) == {"cold"}


MEMO = """
import torch

kept = {}

class Scaled(torch.nn.Module):
    def forward(self, x: torch.Tensor, given, step):
        mine = {}
        held = self.held
        if TEST:
            HOLDER[KEY] = x.sum().item()
        return x
"""


def _memo(test: str, holder: str, key: str = "'a'") -> set[str]:
    source = MEMO.replace("TEST", test).replace("HOLDER", holder).replace("KEY", key)
    return set(heat(source.encode(), "scaled.py").values())


@pytest.mark.parametrize("holder", ["kept", "held", "self.held", "kept[x.device]"])
@pytest.mark.parametrize("test", ["'a' not in {}", "{}.get('a') is None"])
def test_what_outlives_the_step_is_filled_once(test: str, holder: str) -> None:
    assert _memo(test.format(holder), holder) == {"cold"}


@pytest.mark.parametrize("holder", ["mine", "given"])
def test_what_is_made_or_given_in_each_step_is_filled_in_each(holder: str) -> None:
    assert _memo(f"'a' not in {holder}", holder) == {"hot"}


def test_under_the_number_of_the_step_something_is_kept_in_each() -> None:
    assert _memo("step not in kept", "kept", "step") == {"hot"}


def test_what_is_made_before_the_training_loop_is_filled_once_in_it() -> None:
    source = b"""
import torch

def train(model, loader, optimizer):
    norms = {}
    for x in loader:
        parts = {}
        loss = model(x.cuda()).sum()
        loss.backward()
        optimizer.step()
        if "norm" not in norms:
            norms["norm"] = loss.item()
        if "loss" not in parts:
            parts["loss"] = loss.sum().item()
"""
    assert list(heat(source, "train.py").values()) == ["cold", "hot"]
