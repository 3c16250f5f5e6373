"""Training steps over PFRL 0.4.0: each of its agents acting, observing and learning, a transition or a batch of them at a time."""

import sys

import gymnasium

sys.modules.setdefault("gym", gymnasium)  # what it knows as gym has another name since
sys.modules.setdefault("gym.spaces", gymnasium.spaces)

import pfrl
from pfrl import agents, explorers, nn, policies, q_functions, replay_buffers
from pfrl.agents import iqn
from torch import distributions, nn as layers

OBS, ACTIONS, ACT, ENVS = 4, 3, 2, 3


class World:
    """Something to learn in: observations at random, an end now and then."""

    def __init__(self, shape=(OBS,), ends=6):
        self.shape, self.ends, self.at = shape, ends, 0

    def seen(self):
        return np.random.randn(*self.shape).astype(np.float32)

    def step(self):
        self.at += 1
        return self.seen(), float(np.random.rand()), self.at % self.ends == 0


def lived(agent, steps=12, shape=(OBS,)):
    """A step is some transitions, as `train_agent` goes through them, of which some end an episode."""
    world, held = World(shape), {"obs": None}

    def go():
        for _ in range(steps):
            obs = held["obs"] if held["obs"] is not None else world.seen()
            agent.act(obs)
            obs, reward, done = world.step()
            agent.observe(obs, reward, done, done)
            held["obs"] = None if done else obs
        agent.get_statistics()

    return go


def lived_together(agent, steps=8, shape=(OBS,)):
    """A step is some transitions of environments side by side, as `train_agent_batch` goes through them."""
    worlds = [World(shape, ends=5 + i) for i in range(ENVS)]
    held = [each.seen() for each in worlds]

    def go():
        for _ in range(steps):
            agent.batch_act(held)
            told = [each.step() for each in worlds]
            obs, rewards, dones = ([one[i] for one in told] for i in range(3))
            agent.batch_observe(obs, rewards, dones, [False] * ENVS)
            held[:] = [worlds[i].seen() if dones[i] else obs[i] for i in range(ENVS)]
        agent.get_statistics()

    return go


def epsilon():
    return explorers.LinearDecayEpsilonGreedy(1.0, 0.1, 100, lambda: np.random.randint(ACTIONS))


def values():
    return q_functions.FCStateQFunctionWithDiscreteAction(OBS, ACTIONS, 8, 1)


def distributional():
    return q_functions.DistributionalFCStateQFunctionWithDiscreteAction(OBS, ACTIONS, 11, -10, 10, 8, 1)


def quantiles():
    return iqn.ImplicitQuantileQFunction(
        psi=layers.Sequential(layers.Linear(OBS, 8), layers.ReLU()),
        phi=layers.Sequential(iqn.CosineBasisLinear(8, 8), layers.ReLU()),
        f=layers.Linear(8, ACTIONS),
    )


def plain(capacity=1000, **more):
    return replay_buffers.ReplayBuffer(capacity, **more)


def dqn(
    agent=agents.DQN, q=values, buffer=plain, explorer=epsilon, together=False, recurrent=False, shape=(OBS,), **more
):
    def make():
        net = q()
        learner = agent(
            net,
            torch.optim.Adam(net.parameters(), 1e-3),
            buffer(),
            0.99,
            explorer(),
            gpu=0,
            replay_start_size=8,
            minibatch_size=4,
            update_interval=6 if recurrent else 1,
            target_update_interval=6,
            recurrent=recurrent,
            **more,
        )
        return (lived_together if together else lived)(learner, shape=shape)

    return make


STEPS["dqn"] = dqn()
STEPS["dqn_batch"] = dqn(together=True)
STEPS["dqn_soft_update"] = dqn(target_update_method="soft", batch_accumulator="sum", clip_delta=False)
STEPS["dqn_clipped_gradients"] = dqn(max_grad_norm=0.5, explorer=explorers.Boltzmann)
STEPS["dqn_prioritized"] = dqn(buffer=lambda: replay_buffers.PrioritizedReplayBuffer(1000, betasteps=100))
STEPS["dqn_prioritized_batch"] = dqn(
    buffer=lambda: replay_buffers.PrioritizedReplayBuffer(1000, betasteps=100, normalize_by_max="batch"), together=True
)
STEPS["dqn_of_many_steps"] = dqn(buffer=lambda: plain(num_steps=3))
STEPS["double_dqn"] = dqn(agents.DoubleDQN)
STEPS["advantage_learning"] = dqn(agents.AL, alpha=0.9)
STEPS["persistent_advantage_learning"] = dqn(agents.PAL, alpha=0.9)
STEPS["double_persistent_advantage_learning"] = dqn(agents.DoublePAL, alpha=0.9)
STEPS["dynamic_policy_programming"] = dqn(agents.DPP, eta=1.0)
STEPS["categorical_dqn"] = dqn(agents.CategoricalDQN, distributional)
STEPS["categorical_double_dqn"] = dqn(agents.CategoricalDoubleDQN, distributional)
STEPS["categorical_dqn_batch"] = dqn(agents.CategoricalDQN, distributional, together=True)
STEPS["iqn"] = dqn(
    agents.IQN, quantiles, quantile_thresholds_N=8, quantile_thresholds_N_prime=8, quantile_thresholds_K=8
)


def noisy():
    net = values()
    nn.to_factorized_noisy(net, sigma_scale=0.5)
    return net


@step
def rainbow():
    def net():
        q = q_functions.DistributionalDuelingDQN(ACTIONS, 11, -10, 10, n_input_channels=1)
        nn.to_factorized_noisy(q, sigma_scale=0.5)
        return q

    buffer = lambda: replay_buffers.PrioritizedReplayBuffer(1000, betasteps=100, num_steps=3)  # noqa: E731
    return dqn(agents.CategoricalDoubleDQN, net, buffer, explorers.Greedy, shape=(1, 84, 84))()


STEPS["dqn_noisy"] = dqn(q=noisy, explorer=explorers.Greedy)
STEPS["dueling_dqn"] = dqn(q=lambda: q_functions.DuelingDQN(ACTIONS, n_input_channels=1), shape=(1, 84, 84))


def remembering():
    return nn.RecurrentSequential(
        layers.Linear(OBS, 8),
        layers.ReLU(),
        layers.LSTM(8, 8),
        layers.Linear(8, ACTIONS),
        q_functions.DiscreteActionValueHead(),
    )


def episodes():
    return replay_buffers.EpisodicReplayBuffer(1000)


STEPS["drqn"] = dqn(q=remembering, buffer=episodes, recurrent=True, episodic_update_len=4)
STEPS["drqn_batch"] = dqn(q=remembering, buffer=episodes, recurrent=True, episodic_update_len=4, together=True)


@step
def naf():
    """Normalized advantages of actions that are real numbers."""
    space = gymnasium.spaces.Box(-1.0, 1.0, (ACT,), np.float32)
    net = q_functions.FCQuadraticStateQFunction(OBS, ACT, 8, 1, space)
    learner = agents.DQN(
        net,
        torch.optim.Adam(net.parameters(), 1e-3),
        plain(),
        0.99,
        explorers.AdditiveOU(sigma=0.2),
        gpu=0,
        replay_start_size=8,
        minibatch_size=4,
        target_update_interval=5,
    )
    return lived(learner)


def actor():
    return layers.Sequential(
        layers.Linear(OBS, 8),
        layers.ReLU(),
        layers.Linear(8, ACT),
        nn.BoundByTanh(low=-np.ones(ACT), high=np.ones(ACT)),
        policies.DeterministicHead(),
    )


def critic(kind=nn.MLP):
    return layers.Sequential(nn.ConcatObsAndAction(), kind(OBS + ACT, 1, (8,)))


def adam(net):
    return torch.optim.Adam(net.parameters(), 1e-3)


def at_random():
    return np.random.uniform(-1, 1, ACT).astype(np.float32)


def ddpg(kind=nn.MLP, together=False, explorer=lambda: explorers.AdditiveGaussian(0.1, -1, 1), **more):
    def make():
        policy, q = actor(), critic(kind)
        learner = agents.DDPG(
            policy,
            q,
            adam(policy),
            adam(q),
            plain(),
            0.99,
            explorer(),
            gpu=0,
            replay_start_size=8,
            minibatch_size=4,
            target_update_interval=5,
            burnin_action_func=at_random,
            **more,
        )
        return (lived_together if together else lived)(learner)

    return make


STEPS["ddpg"] = ddpg()
STEPS["ddpg_soft"] = ddpg(target_update_method="soft", together=True)
STEPS["ddpg_with_batch_norm"] = ddpg(nn.MLPBN, explorer=lambda: explorers.AdditiveOU(sigma=0.1))


def td3(together=False, **more):
    def make():
        policy, one, two = actor(), critic(), critic()
        learner = agents.TD3(
            policy,
            one,
            two,
            adam(policy),
            adam(one),
            adam(two),
            plain(),
            0.99,
            explorers.AdditiveGaussian(0.1, -1, 1),
            gpu=0,
            replay_start_size=8,
            minibatch_size=4,
            burnin_action_func=at_random,
            **more,
        )
        return (lived_together if together else lived)(learner)

    return make


STEPS["td3"] = td3()
STEPS["td3_batch"] = td3(True, max_grad_norm=1.0, policy_update_delay=1)


def squashed():
    def head(x):
        mean, log_scale = torch.chunk(x, 2, dim=-1)
        base = distributions.Independent(distributions.Normal(mean, torch.exp(log_scale.clamp(-20, 2))), 1)
        return distributions.TransformedDistribution(base, [distributions.transforms.TanhTransform(cache_size=1)])

    return layers.Sequential(layers.Linear(OBS, 8), layers.ReLU(), layers.Linear(8, 2 * ACT), nn.Lambda(head))


def sac(together=False, **more):
    def make():
        policy, one, two = squashed(), critic(), critic()
        learner = agents.SoftActorCritic(
            policy,
            one,
            two,
            adam(policy),
            adam(one),
            adam(two),
            plain(),
            0.99,
            gpu=0,
            replay_start_size=8,
            minibatch_size=4,
            burnin_action_func=at_random,
            **more,
        )
        return (lived_together if together else lived)(learner)

    return make


STEPS["sac"] = sac()
STEPS["sac_of_learned_temperature"] = sac(entropy_target=-2, temperature_optimizer_lr=1e-3)
STEPS["sac_batch"] = sac(True, entropy_target=-2, temperature_optimizer_lr=1e-3, max_grad_norm=1.0)


def discrete():
    return layers.Sequential(
        layers.Linear(OBS, 8), layers.Tanh(), layers.Linear(8, ACTIONS), policies.SoftmaxCategoricalHead()
    )


def gaussian(head=None):
    head = head or policies.GaussianHeadWithStateIndependentCovariance(ACT, "diagonal", lambda x: torch.exp(2 * x), 0)
    width = 2 * ACT if isinstance(head, policies.GaussianHeadWithDiagonalCovariance) else ACT
    return layers.Sequential(layers.Linear(OBS, 8), layers.Tanh(), layers.Linear(8, width), head)


def value():
    return layers.Sequential(layers.Linear(OBS, 8), layers.Tanh(), layers.Linear(8, 1))


def both(policy):
    return lambda: nn.Branched(policy(), value())


def ppo(model, together=False, **more):
    def make():
        net = model()
        learner = agents.PPO(net, adam(net), gpu=0, update_interval=8, minibatch_size=4, epochs=2, **more)
        return (lived_together if together else lived)(learner, 18)

    return make


STEPS["ppo"] = ppo(both(discrete))
STEPS["ppo_batch"] = ppo(both(gaussian), True, clip_eps_vf=0.2, max_grad_norm=0.5)
STEPS["ppo_normalized"] = ppo(
    both(lambda: gaussian(policies.GaussianHeadWithDiagonalCovariance())),
    True,
    standardize_advantages=False,
    obs_normalizer=nn.EmpiricalNormalization(OBS, clip_threshold=5),
)


def trpo(policy, together=False, **more):
    def make():
        actor, critic = policy(), value()
        learner = agents.TRPO(
            actor,
            critic,
            adam(critic),
            gpu=0,
            update_interval=8,
            vf_epochs=2,
            vf_batch_size=4,
            conjugate_gradient_max_iter=3,
            conjugate_gradient_damping=1e-1,
            **more,
        )
        return (lived_together if together else lived)(learner, 18)

    return make


STEPS["trpo"] = trpo(discrete)
STEPS["trpo_normalized"] = trpo(gaussian, True, obs_normalizer=nn.EmpiricalNormalization(OBS), entropy_coef=0.0)


def a2c(model=both(discrete), **more):
    def make():
        net = model()
        return lived_together(agents.A2C(net, adam(net), 0.99, ENVS, gpu=0, update_steps=4, **more))

    return make


STEPS["a2c"] = a2c()
STEPS["a2c_with_gae"] = a2c(both(gaussian), use_gae=True, max_grad_norm=0.5)


def reinforce(**more):
    def make():
        net = discrete()
        return lived(agents.REINFORCE(net, adam(net), gpu=0, batchsize=2, **more))

    return make


STEPS["reinforce"] = reinforce()
STEPS["reinforce_apart"] = reinforce(backward_separately=True, beta=1e-3, max_grad_norm=1.0)
