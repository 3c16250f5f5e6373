"""What an optimizer makes once, by its own books: `state` of each parameter and `group` of some together."""

import ast

import pytest
from heat.hot_lines import heat

from syncscope.heat import first_time

SOURCE = """
import torch

class Adapts(torch.optim.Optimizer):
    @torch.no_grad()
    def step(self, closure=None):
        sums = {}
        for group in self.param_groups:
            if TEST:
                group["norm"] = torch.linalg.norm(group["params"][0]).item()
            group["d"] = torch.linalg.norm(group["params"][0]).item()
"""


@pytest.mark.parametrize(
    "test",
    ["'norm' not in group", "'norm' not in state", "group['step'] == 0", "'norm' not in param_group"],
)
def test_what_an_optimizer_makes_the_first_time_is_cold(test: str) -> None:
    made, read = heat(SOURCE.replace("TEST", test).encode(), "adapts.py").values()
    assert (made, read) == ("cold", "hot")


@pytest.mark.parametrize("test", ["'norm' not in sums", "group['step'] > 0", "group['lr'] == 0"])
def test_what_it_makes_anew_is_hot(test: str) -> None:
    assert set(heat(SOURCE.replace("TEST", test).encode(), "adapts.py").values()) == {"hot"}


MISSED = """
import torch

class Adapts(torch.optim.Optimizer):
    def step(self, closure=None):
        for p in self.param_groups[0]["params"]:
            state = self.state[p]
            before = state.get("norm", None)
            if before is not None:
                before = before * p.grad.norm().item()  # hot
            else:
                scale = p.grad.sum().item()  # cold
                state["norm"] = scale
            if "mean" in state:
                scale = p.grad.mean().item()  # hot
            else:
                state["mean"] = p.grad.mean().item()  # cold
            if p.grad is not None:
                scale = p.grad.amax().item()  # hot
            else:
                scale = p.amax().item()  # hot
            lag = state.get("lag", 1)
            if lag is not None:
                scale = p.grad.amin().item()  # hot
            else:
                state["lag"] = p.amin().item()  # hot
"""


def test_the_other_arm_of_a_test_that_finds_it_kept_is_the_first_time() -> None:
    assert_as_marked(MISSED)


MADE_ONCE = """
import torch

class Codebook(torch.nn.Module):
    def fill(self, x: torch.Tensor):
        if self.inited:
            return
        self.width = x.amax().item()  # cold
        self.inited.data.copy_(torch.tensor([True]))

    def forward(self, x: torch.Tensor):
        self.fill(x)
        if not self.counted:
            self.total = x.sum().item()  # cold
            self.counted.fill_(True)
        if not self.ready or self.fitting:
            self.bias = x.mean().item()  # cold
            if self.fitting:
                self.ready = torch.BoolTensor([True])
                return x
        if not hasattr(self, "rows"):
            self.register_buffer("rows", torch.zeros(x.amax().item()))  # cold
        if not self.noisy:
            self.noise = x.std().item()  # hot
            self.noisy.fill_(self.noise)
        return x / x.sum().item()  # hot
"""


def assert_as_marked(code: str) -> None:
    marked = {n: line.rpartition("# ")[2] for n, line in enumerate(code.splitlines(), 1) if "# " in line}
    assert heat(code.encode(), "layers.py") == marked


def test_what_a_flag_or_a_buffer_of_its_own_keeps_from_running_again_is_cold() -> None:
    assert_as_marked(MADE_ONCE)


CALLED_ONCE = """
import torch

class Kernels(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        if self.bias is None:
            self.bias = self.biases_of(x) + self.shared(x)
        if not self.checked:
            self._look_at(x)
            self.checked = True
        try:
            x = torch.linalg.cholesky(x)
        except torch.linalg.LinAlgError:
            x = self._shifted(x)
        return x + self.bias + self.shared(x)

    def biases_of(self, x: torch.Tensor):
        return x / x.sum().item()  # cold

    def _look_at(self, x: torch.Tensor):
        self._look_closer(x)
        return x / x.sum().item()  # cold

    def _look_closer(self, x: torch.Tensor):
        return x / x.sum().item()  # cold

    def _shifted(self, x: torch.Tensor):
        return x / x.sum().item()  # cold

    def shared(self, x: torch.Tensor):
        return x / x.sum().item()  # hot
"""


def test_what_is_only_called_the_first_time_or_after_an_error_is_cold() -> None:
    assert_as_marked(CALLED_ONCE)


KEPT_FOR_A_STEP = """
import torch

class Guided(torch.nn.Module):
    def _drop(self):
        self.rows = None

    def clear(self):
        self.table = None

    def forward(self, x: torch.Tensor):
        if self.rows is None:
            self.rows = torch.zeros(x.amax().item())  # hot
        if self.columns is None:
            self.columns = torch.zeros(self._count(x))
        if self.table is None:
            self.table = torch.zeros(x.amin().item())  # cold
        if self.always:
            self._drop()
            self.columns = None
        return x * self.rows * self.table

    def _count(self, x: torch.Tensor):
        return x.argmax().item()  # hot
"""


def test_what_each_step_takes_away_again_is_made_anew_and_not_the_first_time() -> None:
    assert_as_marked(KEPT_FOR_A_STEP)


def test_who_takes_it_away_again_is_asked_of_what_is_kept_alone():
    """The answer goes through the whole file: asked of each `is None`, a package took over three times as long."""
    asked = []
    for code in ("if x is None:\n    y = 1\n", "if a.b is None:\n    y = a.b\n", "if len(f(x)) == 0:\n    y = 1\n"):
        assert first_time.of_first(ast.parse(code).body[0], forgotten=asked.append) is None
    assert asked == []
    (kept,) = ast.parse("if self.mask is None:\n    self.mask = make()\n").body
    assert first_time.of_first(kept, forgotten=asked.append) is not None
    assert asked == ["self.mask"]


CACHED = """
import torch

class Conv(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        if TEST:
            self.kept = torch.zeros(x.amin().item())
        return x * self.kept
"""


@pytest.mark.parametrize(
    ("test", "told"),
    [
        ("not self.cached or self.kept is None", "hot"),
        ("self.kept is None or not use_cache", "hot"),
        ("self.kept is None", "cold"),
        ("self.kept is None or not self.training", "cold"),
        ("self.cached and self.kept is None", "cold"),
    ],
)
def test_what_is_made_in_each_step_where_a_flag_says_that_nothing_is_kept(test: str, told: str) -> None:
    assert list(heat(CACHED.replace("TEST", test).encode(), "conv.py").values()) == [told]
