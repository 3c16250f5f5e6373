"""Training steps over fast-safe-rl 0.1.0: updates of each of its agents, which keep costs low, and episodes that they collect."""

absent("wandb pyrallis bullet_safety_gym")

import gymnasium as gym
from fsrl.agent import CPOAgent, CVPOAgent, DDPGLagAgent, FOCOPSAgent, PPOLagAgent, SACLagAgent, TRPOLagAgent
from fsrl.data import FastCollector
from tianshou.data import ReplayBuffer, VectorReplayBuffer
from tianshou.env import DummyVectorEnv

LONG = 20


class Road(gym.Env):
    """A car on a line: it is paid for being far, and costs where it is fast."""

    observation_space = gym.spaces.Box(-10, 10, (4,), np.float32)
    action_space = gym.spaces.Box(-1, 1, (2,), np.float32)
    spec = gym.envs.registration.EnvSpec("Road-v0", max_episode_steps=LONG)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.time = self.np_random.normal(size=4).astype(np.float32), 0
        return self.at, {"cost": 0.0}

    def step(self, action):
        self.at = np.clip(self.at + 0.1 * np.concatenate([action, self.at[:2]]), -10, 10).astype(np.float32)
        self.time += 1
        return self.at, float(self.at[0]), False, self.time >= LONG, {"cost": float(abs(self.at[2]) > 0.5)}


SMALL = {"device": D, "hidden_sizes": (16, 16), "thread": 1}


def envs(so_many=2):
    return DummyVectorEnv([Road for _ in range(so_many)])


def collected(agent, episodes=4, one=False):
    train = Road() if one else envs()
    buffer = ReplayBuffer(1000) if one else VectorReplayBuffer(1000, 2)
    collector = FastCollector(agent.policy, train, buffer, exploration_noise=True)
    collector.collect(n_episode=episodes, random=True)
    return collector


STATS = {"cost": 12.0, "rew": 1.0, "n/st": 4 * LONG, "n/ep": 4, "len": LONG}


def off(kind, lives=False, one=False, updates=1, **more):
    """A step is an update of an agent that learns of what is remembered; or an episode, then updates, as its trainer has it."""

    def make():
        agent = kind(Road(), cost_limit=10, **SMALL, **more)
        collector = collected(agent, one=one)
        agent.policy.train()

        def go():
            stats = collector.collect(n_episode=2 - one) if lives else STATS
            agent.policy.pre_update_fn(stats_train=stats, batch_size=16, buffer=collector.buffer, update_per_step=0.1)
            for _ in range(updates):
                agent.policy.update(16, collector.buffer)
            agent.policy.post_update_fn(stats_train=stats)

        return go

    return make


def on(kind, lives=False, one=False, size=20, repeat=2, **more):
    """A step is an update of an agent that learns of what it has just seen, in so many batches, so often."""

    def make():
        agent = kind(Road(), cost_limit=10, **SMALL, **more)
        collector = collected(agent, one=one)
        agent.policy.train()

        def go():
            stats = collector.collect(n_episode=2 - one) if lives else STATS
            agent.policy.pre_update_fn(stats_train=stats, batch_size=size, buffer=collector.buffer)
            agent.policy.update(0, collector.buffer, batch_size=size, repeat=repeat)
            agent.policy.post_update_fn(stats_train=stats)
            if lives:
                collector.reset_buffer(keep_statistics=True)

        return go

    return make


for name, kind in {"ddpg": DDPGLagAgent, "sac": SACLagAgent, "cvpo": CVPOAgent}.items():
    STEPS[name] = off(kind)
    STEPS[f"{name}_lives"] = off(kind, lives=True)
    STEPS[f"{name}_lives_alone"] = off(kind, lives=True, one=True, updates=2)
    STEPS[f"{name}_looks_far"] = off(kind, n_step=4)
STEPS["ddpg_unconstrained"] = off(DDPGLagAgent, use_lagrangian=False)
STEPS["ddpg_unscaled"] = off(DDPGLagAgent, rescaling=False)
STEPS["sac_by_hand"] = off(SACLagAgent, auto_alpha=False, alpha=0.01)
STEPS["sac_unconstrained"] = off(SACLagAgent, use_lagrangian=False)
STEPS["sac_bounded"] = off(SACLagAgent, unbounded=False, conditioned_sigma=False)
STEPS["cvpo_of_two_critics"] = off(CVPOAgent, double_critic=True)
STEPS["cvpo_repeated"] = off(CVPOAgent, estep_iter_num=2, mstep_iter_num=2)
STEPS["cvpo_unconditioned"] = off(CVPOAgent, conditioned_sigma=False)

for name, kind in {"ppo": PPOLagAgent, "trpo": TRPOLagAgent, "cpo": CPOAgent, "focops": FOCOPSAgent}.items():
    STEPS[name] = on(kind)
    STEPS[f"{name}_at_once"] = on(kind, size=9999, repeat=1)
    STEPS[f"{name}_lives"] = on(kind, lives=True)
    STEPS[f"{name}_lives_alone"] = on(kind, lives=True, one=True)
    STEPS[f"{name}_of_raw_advantages"] = on(kind, advantage_normalization=False)
    STEPS[f"{name}_of_scaled_rewards"] = on(kind, reward_normalization=True)
STEPS["ppo_recomputed"] = on(PPOLagAgent, recompute_advantage=True)
STEPS["ppo_unconstrained"] = on(PPOLagAgent, use_lagrangian=False)
STEPS["trpo_unconstrained"] = on(TRPOLagAgent, use_lagrangian=False)
STEPS["focops_recomputed"] = on(FOCOPSAgent, recompute_advantage=True)
