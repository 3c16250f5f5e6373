"""Training steps over mbrl 0.2.0: dynamics models and their trainer, PETS and PlaNet, and the SAC of its MBPO."""

import sys
import tempfile
import types
from unittest import mock

for absent in ("skvideo", "skvideo.io", "dm_control", "dmc2gym", "imageio", "cv2", "termcolor"):
    sys.modules.setdefault(absent, mock.MagicMock())
sys.modules["termcolor"].colored = lambda text, *_, **__: text

import gymnasium as gym
import mbrl.models as M
import mbrl.util.common as common
from mbrl.algorithms.mbpo import rollout_model_and_populate_sac_buffer
from mbrl.env import reward_fns, termination_fns
from mbrl.env.cartpole_continuous import CartPoleEnv
from mbrl.planning import RandomAgent, create_trajectory_optim_agent_for_model
from mbrl.planning.sac_wrapper import SACAgent
from mbrl.third_party.pytorch_sac_pranz24.sac import SAC
from mbrl.util import Logger, ReplayBuffer
from omegaconf import OmegaConf

OBS, ACT = 4, 1


def generator():
    """Of the device's random numbers; a device that is pretended has only the host's."""
    try:
        return torch.Generator(device=D)
    except RuntimeError:
        return torch.Generator()


def filled(size=256):
    """A replay buffer of cart poles that are moved at random."""
    env = CartPoleEnv()
    buffer = ReplayBuffer(1000, (OBS,), (ACT,), rng=np.random.default_rng(0))
    obs, _ = env.reset(seed=0)
    for _ in range(size):
        action = np.random.uniform(-1, 1, ACT).astype("float32")
        following, reward, done, _, _ = env.step(action)
        buffer.add(obs, action, following, reward, done, False)
        obs = env.reset()[0] if done else following
    return buffer


def dynamics(kind="gaussian_mlp", normalize=True, learned_rewards=True, elites=3, **more):
    """A model of transitions, as `create_one_dim_tr_model` makes it of the package's configurations."""
    member = {
        "_target_": "mbrl.models.GaussianMLP",
        "device": D,
        "num_layers": 3,
        "hid_size": 16,
        "activation_fn_cfg": {"_target_": "torch.nn.SiLU"},
        "_recursive_": False,
    }
    if kind == "basic_ensemble":
        net = {"_target_": "mbrl.models.BasicEnsemble", "ensemble_size": 3, "device": D, "member_cfg": member}
        net = {**net, "_recursive_": False, **more}
    else:
        net = {**member, "ensemble_size": 5, "propagation_method": "random_model", **more}
    cfg = {
        "dynamics_model": net,
        "algorithm": {
            "learned_rewards": learned_rewards,
            "target_is_delta": True,
            "normalize": normalize,
            "normalize_double_precision": normalize,
        },
        "overrides": {"num_elites": elites, "no_delta_list": [0]},
    }
    return common.create_one_dim_tr_model(OmegaConf.create(cfg), (OBS,), (ACT,))


def updates(model, iterator, **more):
    """A step is one batch that goes through the model's `update`."""
    optimizer = torch.optim.Adam(model.parameters(), 1e-3, weight_decay=3e-5)

    def batches():
        while True:
            yield from iterator

    each = batches()
    return lambda: model.update(next(each), optimizer, **more)


@step
def gaussian_mlp_ensemble():
    buffer, model = filled(), dynamics()
    iterator, _ = common.get_basic_buffer_iterators(buffer, 32, 0, ensemble_size=5, shuffle_each_epoch=True)
    model.update_normalizer(buffer.get_all())
    return updates(model, iterator)


@step
def gaussian_mlp_alone():
    iterator, _ = common.get_basic_buffer_iterators(filled(), 32, 0)
    return updates(dynamics(normalize=False, ensemble_size=1, propagation_method=None, elites=None), iterator)


@step
def gaussian_mlp_with_learned_bounds():
    buffer, model = filled(), dynamics(learn_logvar_bounds=True)
    iterator, _ = common.get_basic_buffer_iterators(buffer, 32, 0, ensemble_size=5, bootstrap_permutes=True)
    model.update_normalizer(buffer.get_all())
    return updates(model, iterator)


@step
def deterministic_ensemble():
    buffer, model = filled(), dynamics(deterministic=True, learned_rewards=False)
    iterator, _ = common.get_basic_buffer_iterators(buffer, 32, 0, ensemble_size=5)
    model.update_normalizer(buffer.get_all())
    return updates(model, iterator)


@step
def ensemble_of_any_models():
    iterator, _ = common.get_basic_buffer_iterators(filled(), 32, 0, ensemble_size=3)
    return updates(dynamics("basic_ensemble", normalize=False, propagation_method="fixed_model"), iterator)


@step
def trainer_of_one_epoch():
    buffer, model = filled(), dynamics()
    train_data, held = common.get_basic_buffer_iterators(buffer, 64, 0.2, ensemble_size=5)
    trainer = M.ModelTrainer(model, optim_lr=1e-3, weight_decay=5e-5)

    def go():
        model.update_normalizer(buffer.get_all())
        trainer.train(train_data, dataset_val=held, num_epochs=1, patience=1, silent=True)

    return go


@step
def trainer_without_validation():
    buffer, model = filled(), dynamics("basic_ensemble", normalize=False, propagation_method="random_model")
    train_data, _ = common.get_basic_buffer_iterators(buffer, 64, 0, ensemble_size=3)
    trainer = M.ModelTrainer(model)
    return lambda: trainer.train(train_data, num_epochs=1, evaluate=False, silent=True)


OPTIMIZERS = {
    "cem": {
        "_target_": "mbrl.planning.CEMOptimizer",
        "num_iterations": 2,
        "elite_ratio": 0.1,
        "population_size": 20,
        "alpha": 0.1,
        "clipped_normal": False,
    },
    "clipped_cem": {
        "_target_": "mbrl.planning.CEMOptimizer",
        "num_iterations": 2,
        "elite_ratio": 0.1,
        "population_size": 20,
        "alpha": 0.1,
        "clipped_normal": True,
        "return_mean_elites": True,
    },
    "mppi": {
        "_target_": "mbrl.planning.MPPIOptimizer",
        "num_iterations": 2,
        "population_size": 20,
        "gamma": 0.9,
        "sigma": 1.0,
        "beta": 0.9,
    },
    "icem": {
        "_target_": "mbrl.planning.ICEMOptimizer",
        "num_iterations": 2,
        "elite_ratio": 0.1,
        "population_size": 20,
        "population_decay_factor": 1.3,
        "colored_noise_exponent": 2,
        "keep_elite_frac": 0.3,
        "population_size_module": 5,
        "alpha": 0.1,
    },
}


def planner(model_env, optimizer, particles=1):
    cfg = {
        "_target_": "mbrl.planning.TrajectoryOptimizerAgent",
        "action_lb": "???",
        "action_ub": "???",
        "planning_horizon": 4,
        "optimizer_cfg": {**OPTIMIZERS[optimizer], "lower_bound": "???", "upper_bound": "???", "device": D},
        "replan_freq": 1,
        "_recursive_": False,
        "verbose": False,
    }
    return create_trajectory_optim_agent_for_model(model_env, OmegaConf.create(cfg), num_particles=particles)


def pets(optimizer, reward=reward_fns.cartpole, particles=3, **more):
    """PETS: an action that is planned, taken and kept, and a batch for the model."""

    def make():
        env, buffer, model = CartPoleEnv(), filled(), dynamics(learned_rewards=reward is None, **more)
        model.update_normalizer(buffer.get_all())
        world = M.ModelEnv(env, model, termination_fns.cartpole, reward, generator=generator())
        agent = planner(world, optimizer, particles)
        iterator, _ = common.get_basic_buffer_iterators(buffer, 32, 0, ensemble_size=len(model))
        update = updates(model, iterator)
        held = {"obs": env.reset(seed=0)[0]}

        def go():
            following, _, done, *_ = common.step_env_and_add_to_buffer(env, held["obs"], agent, {}, buffer)
            held["obs"] = env.reset()[0] if done else following
            update()

        return go

    return make


STEPS["pets_cem"] = pets("cem")
STEPS["pets_clipped_cem"] = pets("clipped_cem", propagation_method="fixed_model")
STEPS["pets_mppi"] = pets("mppi", reward=None)
STEPS["pets_icem"] = pets("icem", particles=5, propagation_method="expectation")
STEPS["pets_basic_ensemble"] = pets(
    "cem", kind="basic_ensemble", propagation_method="fixed_model", normalize=True, elites=None
)


def sac(**more):
    args = {
        "gamma": 0.99,
        "tau": 0.005,
        "alpha": 0.2,
        "policy": "Gaussian",
        "target_update_interval": 1,
        "automatic_entropy_tuning": True,
        "target_entropy": -0.05,
        "hidden_size": 16,
        "device": torch.device(D),
        "lr": 3e-4,
        **more,
    }
    return SAC(OBS, gym.spaces.Box(-1.0, 1.0, (ACT,)), types.SimpleNamespace(**args))


def sac_updates(**more):
    def make():
        agent, buffer, count = sac(**more), filled(), iter(range(10**6))
        return lambda: agent.update_parameters(buffer, 32, next(count), reverse_mask=True)

    return make


STEPS["sac"] = sac_updates()
STEPS["sac_fixed_entropy"] = sac_updates(automatic_entropy_tuning=False)
STEPS["sac_deterministic"] = sac_updates(policy="Deterministic", target_update_interval=2)


@step
def sac_logged():
    agent, buffer, count = sac(target_entropy=None), filled(), iter(range(10**6))
    logger = Logger(tempfile.mkdtemp(), enable_back_compatible=True)
    return lambda: agent.update_parameters(buffer, 32, next(count), logger, reverse_mask=True)


@step
def mbpo():
    """An action, a roll-out of the model into SAC's buffer, and an update of each."""
    env, buffer, model = CartPoleEnv(), filled(), dynamics()
    model.update_normalizer(buffer.get_all())
    iterator, _ = common.get_basic_buffer_iterators(buffer, 32, 0, ensemble_size=5)
    world = M.ModelEnv(env, model, termination_fns.cartpole, None, generator=generator())
    agent, imagined, update = SACAgent(sac()), ReplayBuffer(2000, (OBS,), (ACT,)), updates(model, iterator)
    held, count = {"obs": env.reset(seed=0)[0]}, iter(range(10**6))

    def go():
        following, _, done, *_ = common.step_env_and_add_to_buffer(env, held["obs"], agent, {}, buffer)
        held["obs"] = env.reset()[0] if done else following
        update()
        rollout_model_and_populate_sac_buffer(world, buffer, agent, imagined, True, 2, 60)
        agent.sac_agent.update_parameters(imagined, 32, next(count), reverse_mask=True)

    return go


def planet():
    return M.PlaNetModel(
        obs_shape=(3, 64, 64),
        obs_encoding_size=64,
        encoder_config=((3, 4, 4, 2), (4, 8, 4, 2), (8, 8, 4, 2), (8, 16, 4, 2)),
        decoder_config=((16, 1, 1), ((16, 8, 5, 2), (8, 8, 5, 2), (8, 4, 6, 2), (4, 3, 6, 2))),
        latent_state_size=8,
        action_size=ACT,
        belief_size=16,
        hidden_size_fcs=16,
        device=D,
        free_nats=3.0,
        rng=generator(),
    )


def seen(trajectories=4, length=20):
    """A replay buffer of pictures."""
    buffer = ReplayBuffer(200, (3, 64, 64), (ACT,), obs_type=np.uint8, max_trajectory_length=length)
    for _ in range(trajectories):
        for i in range(length):
            before, after = (np.random.randint(0, 255, (3, 64, 64), dtype=np.uint8) for _ in range(2))
            buffer.add(before, np.random.uniform(-1, 1, ACT), after, np.random.rand(), i == length - 1, False)
        buffer.close_trajectory()
    return buffer


@step
def planet_model():
    iterator, _ = common.get_sequence_buffer_iterator(
        seen(), 4, 0, 5, max_batches_per_loop_train=4, use_simple_sampler=True
    )
    return updates(planet(), iterator)


@step
def planet_trainer():
    model = planet()
    trainer = M.ModelTrainer(model, optim_lr=1e-3, optim_eps=1e-4)
    iterator, _ = common.get_sequence_buffer_iterator(
        seen(), 4, 0, 5, max_batches_per_loop_train=2, use_simple_sampler=True
    )
    losses = []

    def each(_epoch, _loss, meta, _mode):
        losses.append(meta["observations_loss"])

    return lambda: trainer.train(iterator, num_epochs=1, batch_callback=each, evaluate=False, silent=True)


class Pictures(gym.Env):
    """An environment that is seen as pictures."""

    observation_space = gym.spaces.Box(0, 255, (3, 64, 64), np.uint8)
    action_space = gym.spaces.Box(-1.0, 1.0, (ACT,))

    def reset(self, **_):
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), float(action[0]), False, False, {}


@step
def planet_agent():
    """An episode's step, planned in the latent space, and a batch for the model."""
    env, model, buffer = Pictures(), planet(), seen()
    numbers = generator()
    agent = planner(M.ModelEnv(env, model, termination_fns.no_termination, generator=numbers), "cem")
    iterator, _ = common.get_sequence_buffer_iterator(
        buffer, 4, 0, 5, max_batches_per_loop_train=4, use_simple_sampler=True
    )
    update = updates(model, iterator)
    model.reset_posterior()
    held = {"obs": env.reset()[0], "action": None}

    def go():
        model.update_posterior(held["obs"], action=held["action"], rng=numbers)
        held["action"] = np.clip(agent.act(held["obs"]) + 0.3 * np.random.randn(ACT), -1, 1).astype("float32")
        held["obs"] = env.step(held["action"])[0]
        update()

    return go


@step
def exploring_at_random():
    env, buffer, model = CartPoleEnv(), filled(), dynamics()
    agent, optimizer = RandomAgent(env), torch.optim.Adam(model.parameters(), 1e-3)

    def go():
        common.rollout_agent_trajectories(env, 8, agent, {}, replay_buffer=buffer)
        model.update_normalizer(buffer.get_all())
        iterator, _ = common.get_basic_buffer_iterators(buffer, 128, 0, ensemble_size=5)
        for batch in iterator:
            model.update(batch, optimizer)

    return go
