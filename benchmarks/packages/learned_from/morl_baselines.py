"""Training steps over MORL-Baselines 1.3.0: each of its agents of several rewards acts and learns for some transitions."""

absent("wandb pymoo cvxpy cdd pygame moviepy imageio seaborn")

import random
import time

import gymnasium
import mo_gymnasium
from mo_gymnasium.wrappers import MORecordEpisodeStatistics
from morl_baselines.common.model_based.probabilistic_ensemble import ProbabilisticEnsemble
from morl_baselines.multi_policy.capql.capql import CAPQL
from morl_baselines.multi_policy.envelope.envelope import Envelope
from morl_baselines.multi_policy.gpi_pd.gpi_pd_continuous_action import GPILSContinuousAction, GPIPDContinuousAction
from morl_baselines.multi_policy.lcn.lcn import LCN
from morl_baselines.multi_policy.pcn.pcn import PCN, Transition
from morl_baselines.single_policy.esr.eupg import EUPG
from morl_baselines.single_policy.ser.mo_ppo import MOPPO, MOPPONet
from morl_baselines.single_policy.ser.mosac_continuous_action import MOSAC
from morl_baselines.single_policy.ser.mosac_discrete_action import MOSACDiscrete
from morl_baselines.single_policy.ser.nl_mo_ppo import NLMOPPO

OBS, ACTIONS, ACT, REWARDS = 4, 3, 2, 2


class World(gymnasium.Env):
    """Observations and rewards at random, an end now and then."""

    def __init__(self, continuous=False, ends=6):
        self.observation_space = gymnasium.spaces.Box(-5.0, 5.0, (OBS,), np.float32)
        self.action_space = (
            gymnasium.spaces.Box(-1.0, 1.0, (ACT,), np.float32) if continuous else gymnasium.spaces.Discrete(ACTIONS)
        )
        self.reward_space = gymnasium.spaces.Box(-1.0, 1.0, (REWARDS,), np.float32)
        self.reward_dim, self.ends, self.at = REWARDS, ends, 0

    def seen(self):
        return np.random.randn(OBS).astype(np.float32)

    def reset(self, *, seed=None, options=None):
        self.at = 0
        return self.seen(), {}

    def step(self, action):
        self.at += 1
        return self.seen(), np.random.randn(REWARDS).astype(np.float32), self.at >= self.ends, False, {}


for name, continuous in (("mo-reacher-discrete-v0", False), ("mo-reacher-continuous-v0", True)):
    gymnasium.register(name, entry_point=lambda continuous=continuous: World(continuous))


def world(continuous=False):
    env = mo_gymnasium.make(
        "mo-reacher-continuous-v0" if continuous else "mo-reacher-discrete-v0", disable_env_checker=True
    )
    return MORecordEpisodeStatistics(env, gamma=0.98)


def lived(agent, steps=10, **more):
    """A step is some transitions in its own loop."""
    return lambda: agent.train(total_timesteps=steps, **more)


def envelope(**more):
    def make():
        agent = Envelope(
            world(), net_arch=[16, 16], batch_size=8, learning_starts=6, buffer_size=200, device=D, seed=1, **more
        )
        return lived(agent, reset_num_timesteps=False)

    return make


# its priorities are given to numpy where they lie: with a device, no buffer by priorities runs, and so none of GPI-PD for discrete actions
STEPS["envelope"] = envelope(log=False, per=False)
STEPS["envelope_logged"] = envelope(log=True, per=False, homotopy_decay_steps=100, epsilon_decay_steps=100)
STEPS["envelope_unclipped"] = envelope(log=False, per=False, max_grad_norm=None)
STEPS["envelope_of_double_dqn"] = envelope(log=False, per=False, envelope=False, tau=0.5, target_net_update_freq=1)
SUPPORT = [np.array([1.0, 0.0], np.float32), np.array([0.0, 1.0], np.float32), np.array([0.5, 0.5], np.float32)]


def gpi_continuous(kind=GPIPDContinuousAction, **more):
    def make():
        agent = kind(
            world(True),
            net_arch=[16, 16],
            batch_size=8,
            learning_starts=6,
            buffer_size=200,
            gradient_updates=2,
            dynamics_train_freq=5,
            dynamics_rollout_starts=6,
            dynamics_rollout_freq=5,
            dynamics_rollout_batch_size=8,
            dynamics_rollout_len=2,
            dynamics_buffer_size=100,
            dynamics_net_arch=[8],
            device=D,
            seed=1,
            **more,
        )
        return lambda: agent.train_iteration(10, SUPPORT[2], SUPPORT, reset_num_timesteps=False)

    return make


STEPS["gpi_pd_continuous_improving"] = gpi_continuous(log=True, use_gpi=True)
STEPS["gpi_ls_continuous"] = gpi_continuous(GPILSContinuousAction, log=False)


@step
def capql():
    agent = CAPQL(
        world(True), net_arch=[16, 16], batch_size=8, learning_starts=9, gradient_updates=2, device=D, log=False
    )
    ends = {"eval_env": None, "ref_point": np.zeros(2), "eval_freq": 10**9, "reset_num_timesteps": False}
    return lived(agent, **ends)


def commanded(kind, continuous=False, **more):
    """A step is what its loop goes through: some updates, new commands, an episode by them."""

    def make():
        agent = kind(world(continuous), np.array([1, 1, 0.1]), batch_size=8, hidden_dim=16, device=D, log=False, **more)
        agent.experience_replay, agent.cd_threshold = [], 0.2

        def episode():
            obs, _ = agent.env.reset()
            done, lived = False, []
            while not done:
                action = agent.env.action_space.sample()
                after, reward, terminated, truncated, _ = agent.env.step(action)
                lived.append(Transition(obs, action, np.float32(reward).copy(), after, terminated))
                done, obs = terminated or truncated, after
            return lived

        agent.global_step = 0
        for _ in range(6):
            agent._add_episode(episode(), max_size=20, step=agent.global_step)
            agent.global_step += 1

        def go():
            for _ in range(2):
                agent.update()
            wanted, horizon = agent._choose_commands(4)
            lived = agent._run_episode(agent.env, wanted, horizon, np.full(2, 100.0))
            agent.global_step += len(lived)
            agent._add_episode(lived, max_size=20, step=agent.global_step)

        return go

    return make


STEPS["pcn"] = commanded(PCN)
STEPS["pcn_continuous"] = commanded(PCN, True)
STEPS["lcn"] = commanded(LCN)


def least(reward, w=None):
    reward = torch.as_tensor(reward)
    return reward.min(dim=-1).values if reward.dim() == 2 else reward.min().item()


@step
def eupg():
    agent = EUPG(world(), scalarization=least, weights=np.ones(2), net_arch=[16], gamma=0.99, device=D, log=False)
    return lived(agent, 8)


def ppo(**more):
    def make():
        envs = mo_gymnasium.wrappers.vector.MOSyncVectorEnv([lambda: world(True) for _ in range(2)])
        net = MOPPONet((OBS,), (ACT,), REWARDS, [16])
        agent = MOPPO(
            0,
            net,
            np.array([0.5, 0.5], np.float32),
            envs,
            log=False,
            steps_per_iteration=16,
            num_minibatches=2,
            update_epochs=2,
            device=D,
            rng=np.random.default_rng(0),
            **more,
        )
        return lambda: agent.train(time.time() - 1, 1, 10)

    return make


STEPS["mo_ppo"] = ppo()
STEPS["mo_ppo_without_gae"] = ppo(gae=False, anneal_lr=True, target_kl=10.0, clip_vloss=False)


def sac(kind, continuous, **more):
    def make():
        agent = kind(
            world(continuous),
            np.array([0.5, 0.5]),
            net_arch=[16, 16],
            buffer_size=200,
            batch_size=8,
            learning_starts=6,
            device=D,
            log=False,
            **more,
        )
        return lived(agent)

    return make


STEPS["mosac"] = sac(MOSAC, True)
STEPS["mosac_of_fixed_temperature"] = sac(MOSAC, True, autotune=False)
STEPS["mosac_discrete"] = sac(MOSACDiscrete, False, update_frequency=2, target_net_freq=4)
STEPS["mosac_discrete_of_fixed_temperature"] = sac(MOSACDiscrete, False, autotune=False, update_frequency=2)


def nonlinear(**more):
    def make():
        envs = mo_gymnasium.wrappers.vector.MOSyncVectorEnv([lambda: world() for _ in range(2)])
        agent = NLMOPPO(
            0,
            envs,
            log=False,
            wandb_mode="disabled",
            total_timesteps=32,
            num_steps=16,
            num_minibatches=2,
            update_epochs=2,
            mc_k=2,
            device=D,
            **more,
        )
        agent.reset_agent(0)
        agent.policy_evaluate = lambda *_, **__: None
        return lambda: agent.train(world(), lambda returns: returns.min(dim=-1).values)

    return make


STEPS["nl_mo_ppo"] = nonlinear()
STEPS["nl_mo_ppo_with_target"] = nonlinear(target_kl=10.0, clip_vloss=False, anneal_lr=False)


@step
def ensemble():
    """The model of the world alone."""
    model = ProbabilisticEnsemble(6, 5, arch=[8], device=D, normalize_inputs=True)
    x, y = np.random.randn(40, 6).astype(np.float32), np.random.randn(40, 5).astype(np.float32)
    return lambda: model.fit(x, y, batch_size=16, max_epochs=2)
