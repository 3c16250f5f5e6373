"""Training steps over AI Traineree 0.5.2: what its runners call of each agent, with an environment at random."""

import sys
from unittest import mock

import gymnasium

absent("jsons")
sys.modules.setdefault("gym", gymnasium)  # what it knows as gym has another name since
sys.modules.setdefault("gym.spaces", gymnasium.spaces)

from ai_traineree.agents.ddpg import DDPGAgent
from ai_traineree.agents.dqn import DQNAgent
from ai_traineree.agents.ppo import PPOAgent
from ai_traineree.agents.rainbow import RainbowAgent
from ai_traineree.agents.sac import SACAgent
from ai_traineree.agents.td3 import TD3Agent
from ai_traineree.multi_agents.independent import IndependentAgents
from ai_traineree.multi_agents.iql import IQLAgents
from ai_traineree.multi_agents.maddpg import MADDPGAgent
from ai_traineree.runners.env_runner import EnvRunner
from ai_traineree.runners.multiagent_env_runner import MultiAgentEnvRunner
from ai_traineree.types import DataSpace

OBS, ACT = 5, 2
SEEN = DataSpace("float", (OBS,), low=-1, high=1)
MOVES = DataSpace("float", (ACT,), low=-1, high=1)
CHOICES = DataSpace("int", (1,), low=0, high=3)
SET = {"device": "cuda", "batch_size": 8, "buffer_size": 200, "hidden_layers": (16, 16), "warm_up": 0}


class World:
    """Something to learn in: observations at random, an end now and then."""

    name, ends = "world", 8

    def __init__(self):
        self.at = 0

    def seen(self):
        return np.random.rand(OBS).astype(np.float32).tolist()

    def reset(self):
        self.at = 0
        return self.seen()

    def step(self, action, agent_id=None):
        self.at += 1
        return self.seen(), float(np.random.rand()), self.at >= self.ends, {}


class Worlds(World):
    """The same for two who take turns."""

    ends = 16

    def reset(self):
        self.at = 0
        return [self.seen(), self.seen()]


def lived(agent):
    """A step is an episode, as the runner leads it, with its log."""
    runner = EnvRunner(World(), agent, data_logger=mock.MagicMock())

    def go():
        runner.interact_episode(train=True, eps=0.1, log_interaction_freq=4)

    for _ in range(4):
        go()
    return go


def lived_together(agents):
    runner = MultiAgentEnvRunner(Worlds(), agents, data_logger=mock.MagicMock())

    def go():
        runner.interact_episode(eps=0.1, log_interaction_freq=4)

    for _ in range(4):
        go()
    return go


@step
def dqn():
    return lived(DQNAgent(SEEN, CHOICES, **SET))


@step
def dqn_nstep():
    return lived(DQNAgent(SEEN, CHOICES, n_steps=3, using_double_q=False, **SET))


@step
def rainbow():
    return lived(RainbowAgent(SEEN, CHOICES, v_min=-1, v_max=1, **SET))


@step
def ddpg():
    return lived(DDPGAgent(SEEN, MOVES, **SET))


@step
def td3():
    return lived(TD3Agent(SEEN, MOVES, **SET))


@step
def sac():
    return lived(SACAgent(SEEN, MOVES, **SET))


@step
def sac_simple():
    return lived(SACAgent(SEEN, MOVES, simple_policy=True, std=0.2, **SET))


@step
def ppo():
    return lived(PPOAgent(SEEN, MOVES, rollout_length=8, **SET))


@step
def ppo_simple():
    return lived(PPOAgent(SEEN, MOVES, rollout_length=8, simple_policy=True, std=0.2, **SET))


@step
def ppo_returns():
    return lived(PPOAgent(SEEN, MOVES, rollout_length=8, using_gae=False, using_kl_div=True, **SET))


@step
def iql():
    return lived_together(IQLAgents(SEEN, CHOICES, 2, **SET))


@step
def independent():
    return lived_together(IndependentAgents([DDPGAgent(SEEN, MOVES, **SET) for _ in "01"], agent_names=list("01")))


@step
def maddpg():
    agents = MADDPGAgent(SEEN, MOVES, 2, agent_names=list("01"), **SET)
    world = Worlds()
    from ai_traineree.types.experience import Experience

    def go():
        states = world.reset()
        for _ in range(4):
            for i, name in enumerate("01"):
                lived = agents.act(name, Experience(obs=states[i]), 0.1)
                seen, reward, done, _ = world.step(lived.action)
                lived.update(next_obs=seen, reward=reward, done=done)
                agents.step(name, lived)
                states[i] = seen
            agents.commit()
        agents.log_metrics(mock.MagicMock(), 0)

    for _ in range(4):
        go()
    return go
