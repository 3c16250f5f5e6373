"""Training steps over omnisafe 0.5.0: a whole update of agents of each family, in a small environment of ours.

On policy and with a model, a step is an epoch of `learn`: a rollout, the updates, the log. Off policy it is some steps
in the environment and an update; offline, the training of a batch of a data set that lies in a file.
"""

import importlib.abc
import importlib.machinery
import os
import sys
import tempfile
from unittest import mock

import numpy as np
import torch
from gymnasium import spaces


class Missing(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Packages that no step needs, but that are imported."""

    names = "safety_gymnasium gdown wandb seaborn typer moviepy matplotlib".split()

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in self.names:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return mock.MagicMock(name=spec.name)

    def exec_module(self, module):
        module.__path__ = []


sys.meta_path.insert(0, Missing())

import omnisafe  # noqa: E402
from omnisafe.envs.core import CMDP, env_register  # noqa: E402

FOLDER = tempfile.mkdtemp()


@env_register
class Walk(CMDP):
    """A point that walks, and pays where it walks far."""

    _support_envs = ["Walk-v0"]
    need_auto_reset_wrapper = True
    need_time_limit_wrapper = True
    need_evaluation = True
    metadata = {}

    def __init__(self, env_id, num_envs=1, device="cpu", **kwargs):
        super().__init__(env_id)
        self._num_envs, self._device = 1, torch.device(device)
        self._observation_space = spaces.Box(low=-10.0, high=10.0, shape=(6,), dtype=np.float32)
        self._action_space = spaces.Box(low=-1.0, high=1.0, shape=(2,), dtype=np.float32)
        self.coordinate_observation_space = self._observation_space
        self.env_spec_log = {}
        self.rng = np.random.default_rng(0)
        self.at = np.zeros(6)

    @property
    def max_episode_steps(self):
        return 8

    def tensor(self, value, dtype=torch.float32):
        return torch.as_tensor(value, dtype=dtype, device=self._device)

    def reset(self, seed=None, options=None):
        self.at = self.rng.normal(size=6)
        return self.tensor(self.at), {}

    def step(self, action):
        moved = action.detach().cpu().numpy().reshape(-1)
        self.at = 0.9 * self.at + np.tile(moved, 3) + 0.1 * self.rng.normal(size=6)
        far = float(np.abs(self.at).sum())
        seen = self.tensor(self.at)
        end = self.tensor(False, torch.bool)
        return seen, self.tensor(-far), self.tensor(float(far > 3)), end, end, {"final_observation": seen}

    def get_cost_from_obs_tensor(self, obs, is_binary=True):
        return (obs.abs().sum(-1, keepdim=True) > 3).float()

    def get_lidar_from_coordinate(self, obs):
        return None

    def set_seed(self, seed):
        self.rng = np.random.default_rng(seed)

    def spec_log(self, logger):
        pass

    def render(self):
        return np.zeros((8, 8, 3), np.uint8)

    def close(self):
        pass


def agent(name, total, epoch, **more):
    """An agent whose runs go on: nothing is closed or kept in files between them."""
    settings = {
        "train_cfgs": {"device": "cuda:0", "total_steps": total, **more.pop("train_cfgs", {})},
        "algo_cfgs": {"steps_per_epoch": epoch, **more.pop("algo_cfgs", {})},
        "logger_cfgs": {"use_wandb": False, "use_tensorboard": False, "log_dir": FOLDER},
        **more,
    }
    made = omnisafe.Agent(name, "Walk-v0", custom_cfgs=settings).agent
    made.logger.close = made.logger.torch_save = lambda *_: None
    return made


def on_policy(name, **more):
    def make():
        algo_cfgs = {"update_iters": 2, **more.pop("algo_cfgs", {})}
        return agent(name, 32, 32, algo_cfgs={**algo_cfgs, "batch_size": 16}, **more).learn

    STEPS[name.lower()] = make  # noqa: F821


def off_policy(name, **more):
    def make():
        algo_cfgs = {"batch_size": 16, "size": 1000, "start_learning_steps": 8, "policy_delay": 1, "warmup_epochs": 0}
        known = omnisafe.utils.config.get_default_kwargs_yaml(name, "Walk-v0", "off-policy").algo_cfgs
        made = agent(name, 64, 32, algo_cfgs={key: value for key, value in algo_cfgs.items() if hasattr(known, key)})
        play = {"agent": made._actor_critic, "buffer": made._buf, "logger": made.logger}
        made._env.rollout(rollout_step=24, use_rand_action=True, **play)

        def go():
            made._env.rollout(rollout_step=8, use_rand_action=False, **play)
            made._update()

        return go

    STEPS[name.lower()] = make  # noqa: F821


def offline(name):
    def make():
        rng, path = np.random.default_rng(0), os.path.join(FOLDER, "walk.npz")
        np.savez(
            path,
            obs=rng.normal(size=(256, 6)).astype(np.float32),
            action=rng.uniform(-1, 1, (256, 2)).astype(np.float32),
            reward=rng.normal(size=256).astype(np.float32),
            cost=rng.integers(0, 2, 256).astype(np.float32),
            next_obs=rng.normal(size=(256, 6)).astype(np.float32),
            done=(rng.uniform(size=256) > 0.9).astype(np.float32),
            init_obs=rng.normal(size=(256, 6)).astype(np.float32),
        )
        made = agent(name, 8, 4, algo_cfgs={"batch_size": 32}, train_cfgs={"dataset": path})
        return lambda: made._train(made._dataset.sample())

    STEPS[name.lower()] = make  # noqa: F821


def with_model(name, **algo_cfgs):
    def make():
        made = agent(
            name,
            24,
            24,
            algo_cfgs={"start_learning_steps": 12, "update_dynamics_cycle": 12, "action_repeat": 1, **algo_cfgs},
            dynamics_cfgs={"num_ensemble": 4, "elite_size": 4, "hidden_size": 16, "batch_size": 8, "max_epoch": 2},
            planner_cfgs={"num_samples": 8, "num_elites": 4, "plan_horizon": 3, "num_iterations": 2},
            evaluation_cfgs={"use_eval": False},
        )
        return made.learn

    STEPS[name.lower()] = make  # noqa: F821


for each in "PolicyGradient PPO NaturalPG TRPO PPOLag TRPOLag CPO PCPO FOCOPS CUP IPO P3O OnCRPO CPPOPID".split():
    on_policy(each)
for each in "PPOSaute PPOEarlyTerminated".split():
    on_policy(each)
for each in "DDPG TD3Lag SAC SACPID".split():
    off_policy(each)
for each in "BCQLag CCRR COptiDICE VAEBC".split():
    offline(each)
for each in "PETS CCEPETS CAPPETS".split():
    with_model(each)
for each in "LOOP SafeLOOP".split():
    with_model(each, policy_batch_size=4, update_policy_cycle=12, update_policy_iters=1)
