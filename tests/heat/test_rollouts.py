"""A loop that keeps what an agent is to learn from runs in steps, whatever its environment is called, with what it calls."""

from pathlib import Path

import pytest
from heat.test_agents import found_in, marked_in

from syncscope.tensors.interpret import Project, sites

ROLLOUT = {
    "adapters": """
    import torch

    class Adapter:
        def rollout(self, steps, agent, buffer, act, note):
            self.begin()
            obs, _ = self.reset()
            while steps:
                action = act(obs)
                value, _, _, logp = agent.step(obs)
                seen, reward, terminated, truncated, info = self.step(action)
                if (terminated | truncated).any().item():  # hot
                    self.end(reward)
                buffer.store(obs=obs, act=action, reward=reward)
                note(reward)
                self.count(reward)

        def play(self, agent):
            while True:
                obs, reward, terminated, truncated, info = self.step(agent(obs))
                if (terminated | truncated).any().item():  # cold
                    break

        def begin(self):
            print(self.total.sum().item())  # cold

        def count(self, reward: torch.Tensor):
            self.total += reward.sum().item()  # hot

        def end(self, reward: torch.Tensor):
            print(reward.sum().item())  # hot
    """,
    "learner": """
    import torch
    from .adapters import Adapter

    class Learner:
        def learn(self):
            for epoch in range(self.epochs):
                self.env.rollout(
                    self.steps,
                    self.agent,
                    self.memory,
                    act=self._select,
                    note=self._note if self.notes else None,
                )
                self.update()

        def update(self):
            for batch in self.memory.batches():
                self.loss(batch).backward()
                self.optimizer.step()

        def _select(self, obs: torch.Tensor):
            return self.planner.best_of(obs)

        def _note(self, reward: torch.Tensor):
            print(reward.sum().item())  # hot

        def _show(self, reward: torch.Tensor):
            print(reward.sum().item())  # cold
    """,
    "planner": """
    import torch

    class Planner:
        @torch.no_grad()
        def best_of(self, obs: torch.Tensor):
            return obs[obs.sum(1).argmax().item()]  # hot

        @torch.no_grad()
        def worst_of(self, obs: torch.Tensor):
            return obs[obs.sum(1).argmin().item()]  # cold
    """,
}


@pytest.mark.parametrize("name", ROLLOUT)
def test_what_a_rollout_calls_and_what_it_is_handed_runs_in_steps(name: str, tmp_path: Path) -> None:
    assert found_in(ROLLOUT, name, tmp_path) == marked_in(ROLLOUT, name)


@pytest.mark.parametrize(
    ("kept", "told"),
    [
        ("agent.remember(seen, action, reward)", "hot"),
        ("agent.store_transition(seen, reward)", "hot"),
        ("self.replay.push(seen, reward)", "hot"),
        ("self.rewards.append(reward)", "cold"),
        ("agent.show(seen)", "cold"),
    ],
)
def test_a_loop_is_a_rollout_where_what_it_sees_is_kept_for_the_agent(kept: str, told: str, tmp_path: Path) -> None:
    files = {
        "agents": """
        import torch

        class Agent:
            def learn(self, batch):
                loss = self.model(batch).mean()
                loss.backward()

            @torch.no_grad()
            def choose(self, seen: torch.Tensor):
                return self.model(seen).argmax().item()
        """,
        "play": f"""
        def play(env, agent):
            while True:
                action = agent.choose(seen)
                seen, reward, done, info = env.step(action)
                {kept}
        """,
    }
    assert found_in(files, "agents", tmp_path) == {11: told}


STEP_BY_STEP = {
    "agents": """
    import torch

    class Agent:
        def update(self, info):
            self.loss(info).backward()

        @torch.no_grad()
        def act(self, seen: torch.Tensor):
            return self.model(seen).argmax().item()  # hot

        @torch.no_grad()
        def judge(self, seen: torch.Tensor):
            return self.model(seen).argmax().item()  # cold
    """,
    "runners": """
    class Runner:
        def run_one_step(self, seen):
            '''Run one step.

            seen: what the agent has seen, which it is asked
            for.
            '''
            action = self._agent.act(seen)
            seen, reward, done, _, _ = self._environment.step(action)
            if self._training:
                self._agent.update([seen, reward])
            return seen

        def show_one_step(self, seen):
            return self._environment.step(self._agent.judge(seen))
    """,
}


@pytest.mark.parametrize("name", STEP_BY_STEP)
def test_what_acts_and_learns_without_a_loop_is_a_step_of_one(name: str, tmp_path: Path) -> None:
    assert found_in(STEP_BY_STEP, name, tmp_path) == marked_in(STEP_BY_STEP, name)


def test_what_a_wrapper_of_many_environments_has_its_base_call_runs_in_each_of_their_steps(tmp_path: Path) -> None:
    (tmp_path / "setup.py").touch()
    envs = tmp_path / "envs.py"
    envs.write_text(
        "import torch\nfrom stable_baselines3.common.vec_env import VecEnvWrapper\n\nclass VecPyTorch(VecEnvWrapper):\n"
        "    def step_async(self, actions: torch.Tensor):\n        self.venv.step_async(actions.cpu().numpy())\n\n"
        "    def close(self, actions: torch.Tensor):\n        self.venv.close(actions.cpu().numpy())\n"
    )
    (tmp_path / "main.py").write_text(
        "import torch\nfrom envs import VecPyTorch\n\ndef main(envs, actor, opt):\n    envs = VecPyTorch(envs)\n"
        "    for step in range(1000):\n        obs, reward, done, info = envs.step(actor(obs))\n"
        "        loss = actor(obs).mean()\n        loss.backward()\n        opt.step()\n"
    )
    found = sites(envs.read_bytes(), str(envs), Project())
    assert [site.hot for site in found if site.op == "cpu"] == [True, False]
