"""What stands around the loop over steps, in the same function or in what calls it, is cold."""

import pytest
from heat.hot_lines import heat

from syncscope.tensors.interpret import sites

AROUND_THE_LOOP = b"""
import torch

class Calibrator:
    def fit(self, scores: torch.Tensor, targets: torch.Tensor):
        first = scores.sum().item()  # cold
        for column in range(3):
            last = scores[:, column].max().item()  # cold
        for batch in self.batches:
            loss = self.train_on(batch)
            total = loss.sum().item()  # hot
        return first, last, total

    @property
    def scale(self):
        return self._scale

    @scale.setter
    def scale(self, value: torch.Tensor):
        self._scale = value.max().item()  # cold
"""


AROUND_THE_STEPS = b"""
import torch

def train(model, loader, optimizer):
    for epoch in range(3):
        total = torch.zeros((), device="cuda")
        for batch in loader:
            loss = model(batch)
            loss.backward()
            optimizer.step()
            total += loss.detach()
            seen = loss.item()  # hot
        print(total.item())  # cold

def train_whole(model, x, steps):
    for epoch in range(steps):
        loss = model(x)
        for part in loss.parts:
            part.backward()
        loss.backward()
        print(loss.sum().item())  # hot

def run(model, epochs):
    for epoch in range(epochs):
        for i in range(100):
            loss = model(i)
            loss.backward()
        print(loss.mean().item())  # cold

class Bins:
    def fit(self, scores: torch.Tensor):
        self.low = scores.min().item()  # cold

class Trainer:
    def fit(self, scores: torch.Tensor):
        self.low = scores.min().item()  # hot
        self._train_loop(scores)

class Matched:
    def tr_epoch(self, scores: torch.Tensor):
        self.low = scores.min().item()  # cold
        for x in self.loader:
            self.tr_batch(x)
            last = scores.max().item()  # hot
        return last

class Tuned:
    def fit(self, scores: torch.Tensor):
        def closure():
            loss = scores.mean()
            loss.backward()
            return loss
        self.low = scores.min().item()  # hot
"""


AROUND_AN_UPDATE = b"""
import torch

class Agent:
    def update(self, rollout, x: torch.Tensor):
        def policy_loss(batch):
            return batch.sum().item()  # hot
        first = x.max().item()  # cold
        for epoch in range(self.epochs):
            for batch in rollout.split():
                loss = policy_loss(batch)
                loss.backward()
                self.optimizer.step()
                seen = x.min().item()  # hot
        return x.std().item()  # cold

    def update_by_parts(self, rollout, x: torch.Tensor):
        self.optimizer.zero_grad()
        for batch in rollout.batches:
            self.model(batch).backward()
        self.optimizer.step()
        return x.std().item()  # hot

    def update_critics(self, x: torch.Tensor):
        for critic, optimizer in self.critics:
            critic(x).backward()
            optimizer.step()
        return x.std().item()  # hot
"""


def test_what_stands_around_the_loop_of_an_update_of_many_steps_is_cold() -> None:
    lines = enumerate(AROUND_AN_UPDATE.splitlines(), 1)
    marks = {n: line.rpartition(b"# ")[2].decode() for n, line in lines if line.endswith((b"# hot", b"# cold"))}
    assert heat(AROUND_AN_UPDATE, "agent.py") == marks


def test_what_an_environment_on_the_host_gave_is_sent_while_nothing_is_in_flight() -> None:
    source = b"""
import torch

class Wrapper:
    def step(self, actions):
        state, reward = self._env.step(actions)
        return torch.tensor(reward, device=self.device)

class Model:
    def step(self, reward):
        return torch.tensor(reward, device=self.device)
"""
    assert [site.whole for site in sites(source, "x.py")] == [False, True]


@pytest.mark.parametrize("line", [n for n, row in enumerate(AROUND_THE_STEPS.splitlines(), 1) if b"# " in row])
def test_what_stands_around_the_loop_over_steps_and_a_fit_that_calls_none_are_cold(line: int) -> None:
    told = AROUND_THE_STEPS.splitlines()[line - 1].rpartition(b"# ")[2].decode()
    assert heat(AROUND_THE_STEPS, "x.py")[line] == told


def test_what_fit_does_around_its_loop_and_setters_are_cold() -> None:
    lines = enumerate(AROUND_THE_LOOP.splitlines(), 1)
    marks = {n: line.rpartition(b"# ")[2].decode() for n, line in lines if line.endswith((b"# hot", b"# cold"))}
    assert heat(AROUND_THE_LOOP, "calibrator.py") == {
        n: told for n, told in marks.items() if n in heat(AROUND_THE_LOOP, "x.py")
    }


def test_what_goes_over_the_weights_without_gradients_is_part_of_the_step() -> None:
    source = b"""
import torch

class Searches(torch.optim.Optimizer):
    def step(self, closure):
        total = 0.0
        for _ in range(4):
            loss = closure()
            loss.backward()
            with torch.no_grad():
                for group in self.param_groups:
                    for p in group["params"]:
                        total += (p * p).sum().item()  # hot
            with torch.no_grad():
                for batch in range(3):
                    held = closure().item()  # cold
        return total, held
"""
    assert list(heat(source, "searches.py").values()) == ["hot", "cold"]
