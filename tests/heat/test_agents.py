"""What an agent's step calls runs in it: acting, weights that are set, predictions of values, looks at the last rollout."""

import textwrap
from pathlib import Path

import pytest
from heat.hot_lines import heat

from syncscope.tensors.interpret import Project, sites

FILES = {
    "agent": """
    import torch
    from .core import Agent

    class Learner(Agent):
        def fit(self, dataset):
            x = torch.stack(dataset)
            target = self.target.predict(x)
            loss = (self.model(x) - target).mean()
            loss.backward()
            self.search()
            self.note(dataset, loss)
            self._note(dataset, loss)

        def search(self):
            for step in range(10):
                self.policy.set_weights(self.direction * step)

        def _note(self, dataset, loss: torch.Tensor):
            print(loss.item(), len(dataset))  # hot

        def note(self, dataset, loss: torch.Tensor):
            print(loss.item(), len(dataset))  # hot

        def score(self, dataset, loss: torch.Tensor):
            print(loss.item(), len(dataset))  # cold
    """,
    "policies": """
    import torch

    class Policy:
        def set_weights(self, weights):
            raise NotImplementedError

    class Gaussian(Policy):
        def draw_action(self, state: torch.Tensor):
            return self.drawn(state).sum().item()  # hot

        def drawn(self, state: torch.Tensor):
            return state / state.sum().item()  # hot

        def draw_ellipse(self, state: torch.Tensor):
            return state.sum().item()  # cold

        def set_weights(self, weights):
            self.scale = torch.as_tensor(weights, device="cuda").sum().item()  # hot

    class Boltzmann(Policy):
        def set_weights(self, weights):
            self.values.set_weights(weights)

    class Ensemble:
        def set_weights(self, weights):
            for model in self.models:
                model.set_weights(weights)

        def predict(self, x):
            return [model.predict(x) for model in self.models]

    class Linear:
        def set_weights(self, weights: torch.Tensor):
            self.scale = weights.sum().item()  # hot

        def set_seed(self, seed: torch.Tensor):
            self.seed = seed.item()  # cold

        def predict(self, x: torch.Tensor):
            return x / x.sum().item()  # hot

    class Table:
        def set_weights(self, weights):
            self.model.set_weights(weights)

        def predict(self, x):
            return self.model.predict(x)
    """,
    "core": """
    class Agent:
        def draw_action(self, state):
            return self.policy.draw_action(state)

    class Core:
        def learn(self, steps):
            for step in range(steps):
                action = self.agent.draw_action(self.state)
                self.state = self.world.step(action)
                self.agent.fit([self.state])
    """,
}


@pytest.mark.parametrize("name", ["agent", "policies"])
def test_what_an_agents_step_calls_runs_in_it_whatever_its_name(name: str, tmp_path: Path) -> None:
    assert found_in(FILES, name, tmp_path) == marked_in(FILES, name)


def marked_in(files: dict[str, str], name: str) -> dict[int, str]:
    """What one of these files says of its lines."""
    lines = enumerate(textwrap.dedent(files[name]).splitlines(), 1)
    return {number: line.rpartition("# ")[2] for number, line in lines if "# " in line}


def found_in(files: dict[str, str], name: str, folder: Path) -> dict[int, str]:
    """What is said of the lines of one of these files, in a package that offers all that they define."""
    (folder / "pyproject.toml").touch()
    (folder / "rl").mkdir()
    (folder / "rl" / "__init__.py").write_text("".join(f"from .{each} import *\n" for each in files))
    for each, text in files.items():
        (folder / "rl" / f"{each}.py").write_text(textwrap.dedent(text))
    file = folder / "rl" / f"{name}.py"
    found = sites(file.read_bytes(), str(file), Project())
    return {s.place.line: "hot" if s.hot else "cold" for s in found if s.op == "item"}


GONE_THROUGH = b"""
import torch

class Trainer:
    def fit(self, dataset):
        for batch in dataset:
            self.model(batch).backward()
        self._note(dataset, batch)

    def _note(self, dataset, batch: torch.Tensor):
        print(batch.sum().item())  # cold
"""


def test_what_is_told_of_a_data_set_that_a_function_trains_on_batch_by_batch_runs_once() -> None:
    assert heat(GONE_THROUGH, "trainer.py") == {11: "cold"}


AROUND = {
    "runner": """
    import torch
    from .agents import Agent
    from .notes import Logger, check_nan, plain

    class Runner:
        def learn(self, iterations):
            self.logger.open(self.agent)
            for it in range(iterations):
                with torch.inference_mode():
                    for _ in range(24):
                        action = self.agent.act(self.seen)
                        self.seen, reward, done = self.env.step(action)
                        check_nan(reward)
                        self.logger.note(reward, done)
                loss = self.agent.update()
                print(loss.sum().item())  # hot
                self.logger.log(loss)
    """,
    "agents": """
    import torch

    class Agent:
        def update(self):
            for batch in self.batches:
                loss = self.loss(batch)
                loss.backward()
                self.optimizer.step()
                with torch.inference_mode():
                    far = self.far(batch).mean()
                    if far.item() > 1:  # hot
                        for group in self.optimizer.param_groups:
                            group["lr"] = 0.0
            with torch.no_grad():
                for batch in self.held:
                    print(self.loss(batch).item())  # cold
            return loss
    """,
    "notes": """
    import torch

    def check_nan(x: torch.Tensor):
        if x.isnan().any().item():  # hot
            raise ValueError

    def check_all(x: torch.Tensor):
        if x.isnan().any().item():  # cold
            raise ValueError

    class Logger:
        def open(self, agent):
            print(agent.scale.sum().item())  # cold

        def note(self, reward: torch.Tensor, done: torch.Tensor):
            self.total = (reward * done).sum().item()  # hot

        def log(self, loss: torch.Tensor):
            print(loss.item())  # hot

    class Table:
        def log(self, loss: torch.Tensor):
            print(loss.item())  # cold
    """,
}


@pytest.mark.parametrize("name", AROUND)
def test_what_a_loop_around_an_environment_calls_runs_in_steps(name: str, tmp_path: Path) -> None:
    assert found_in(AROUND, name, tmp_path) == marked_in(AROUND, name)


EXPERIMENT = {
    "agents": """
    import torch

    class Learner:
        def batch_act(self, states):
            return self._acted(torch.as_tensor(states))

        def batch_observe(self, states, rewards):
            self._seen(torch.as_tensor(states))
            self._improve(self.last)

        def _improve(self, dataset):
            print(torch.as_tensor(dataset, device="cuda").sum().item())  # hot

        def _acted(self, states: torch.Tensor):
            return states.sum().item()  # hot

        def _seen(self, states: torch.Tensor):
            return states.sum().item()  # hot

        def _drawn(self, states: torch.Tensor):
            return states.sum().item()  # cold

        def batch_draw(self, states):
            return self._drawn(torch.as_tensor(states))

        def update(self, loss):
            loss.backward()
    """,
    "experiments": """
    def train_agent_batch(agent, env, steps):
        states = env.reset()
        for step in range(steps):
            states, rewards, done, info = env.step(agent.batch_act(states))
            agent.batch_observe(states, rewards)

    def eval_agent(agent, env, steps):
        states = env.reset()
        for step in range(steps):
            states, rewards, done, info = env.step(agent.batch_draw(states))
    """,
}


def test_an_agent_that_is_trained_in_an_environment_acts_and_observes_in_every_step(tmp_path: Path) -> None:
    assert found_in(EXPERIMENT, "agents", tmp_path) == marked_in(EXPERIMENT, "agents")


@pytest.mark.parametrize(
    ("told", "words"), [("env.step(act)", "for an environment that runs on the host"), ("env.step(0)", "")]
)
def test_what_an_environment_is_given_is_an_action_whatever_it_is_called(told: str, words: str) -> None:
    source = (
        "import torch\n\ndef train(net, opt, env, x: torch.Tensor):\n    for step in range(99):\n"
        f"        act = net(x).argmax(1).cpu().numpy()\n        seen = {told}\n        net(x).sum().backward()\n"
    )
    found = [site.heat.words for site in sites(source.encode(), "x.py") if site.op == "cpu"]
    assert found == [words or "in the training loop"]


JUDGED = """
import torch

class Policy(torch.nn.Module):
    def act(self, seen: torch.Tensor):
        return self.net(seen).argmax()

    def evaluate(self, seen: torch.Tensor, action: torch.Tensor):
        return self.net(seen).sum().item(), action  # hot

class Classifier(torch.nn.Module):
    def evaluates(self, seen: torch.Tensor):
        return self.net(seen).sum().item()  # cold

class Agent:
    def __init__(self):
        self.policy = Policy()
        self.other = Classifier()

    def select_action(self, seen):
        return self.policy.act(seen)

    def update(self, seen, actions):
        for _ in range(self.epochs):
            values, _ = self.policy.evaluate(seen, actions)
            loss = self.loss(values)
            loss.backward()
            self.optimizer.step()
"""


def test_an_update_has_its_policy_evaluate_what_it_has_done(tmp_path: Path) -> None:
    files = {"agent": JUDGED}
    assert found_in(files, "agent", tmp_path) == marked_in(files, "agent")
