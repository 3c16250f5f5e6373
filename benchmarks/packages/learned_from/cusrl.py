"""Training steps over cusrl 1.2.2: PPO and what hooks into it, in a world of the device, as simulators of robots are, and in gym's.

A step is a batch of an update, of which there are eight; where it is named `round_`, a whole round: so many steps in the world,
and the update.
"""

import cusrl
from cusrl.environment import make_gym_env, make_gym_vec
from cusrl.hook.auxiliary.symmetry import MirrorDef
from cusrl.preset import AmpAgentFactory, PpoAgentFactory, RecurrentPpoAgentFactory
from cusrl.preset.optimizer import AdamFactory

WORLDS, SEEN, KNOWN, MOVES = 16, 6, 8, 2
cusrl.config.device = D


class Robots(cusrl.Environment):
    """Robots side by side on the device: each goes on by what it does, falls now and then, and is put back up."""

    def __init__(self, state=False, autoreset=True, **more):
        held = {"state_dim": KNOWN, "mirror_state": MirrorDef([1, 0, 3, 2, 5, 4, 7, 6], [2, 3])} if state else {}
        super().__init__(
            SEEN, MOVES, num_instances=WORLDS, device=D, autoreset=autoreset,
            mirror_observation=MirrorDef([1, 0, 3, 2, 5, 4], [2, 3]), mirror_action=MirrorDef([1, 0], []), **held, **more,
        )  # fmt: skip
        self.state = torch.zeros(WORLDS, KNOWN, device=D)
        self.age = torch.zeros(WORLDS, 1, device=D)

    def told(self):
        return self.state[:, :SEEN].clone(), self.state.clone() if self.state_dim else None

    def reset(self, *, indices=None, randomize_episode_progress=False):
        at = slice(None) if indices is None else indices
        self.state[at] = torch.randn_like(self.state[at])
        self.age[at] = 0
        seen, state = self.told()
        return (seen, state, {}) if indices is None else (seen[at], None if state is None else state[at], {})

    def step(self, action):
        self.state = 0.9 * self.state + 0.1 * torch.randn_like(self.state)
        self.state[:, :MOVES] += 0.1 * action
        self.age += 1
        fallen = self.state[:, :1] > 1.0
        late = self.age >= 20
        reward = -self.state.pow(2).mean(-1, keepdim=True)
        if self.spec.autoreset:
            done = fallen | late
            self.state = torch.where(done, torch.randn_like(self.state), self.state)
            self.age = torch.where(done, 0.0, self.age)
        seen, state = self.told()
        return seen, state, reward.expand(-1, self.spec.reward_dim), fallen, late, {}


SMALL = {"num_steps_per_update": 8, "sampler_epochs": 2, "sampler_mini_batches": 4, "device": D}
PLAIN = {**SMALL, "actor_hidden_dims": (16,), "critic_hidden_dims": (16,)}


def ppo(**more):
    return lambda: PpoAgentFactory(**{**PLAIN, **more})


def recurrent(**more):
    given = {"actor_num_layers": 1, "actor_hidden_size": 8, "critic_num_layers": 1, "critic_hidden_size": 8}
    return lambda: RecurrentPpoAgentFactory(**{**SMALL, **given, **more})


def hooked(*hooks, of=None, **where):
    """PPO with hooks more, each made anew."""

    def make():
        made = (of or ppo())().to_underlying()
        for hook in hooks:
            made.register_hook(hook(), **(where or {"before": "gradient_clipping"}))
        return made

    return make


def trained(agent, world=Robots, whole=False):
    def make():
        trainer = cusrl.Trainer(world(), agent(), num_iterations=30, verbose=False)
        return loop(trainer.run_training_loop, 8 if whole else 1)

    return make


def both(name, agent, world=Robots):
    STEPS[name] = trained(agent, world)
    STEPS[f"round_{name}"] = trained(agent, world, True)


both("ppo", ppo())
both("ppo_put_back_by_the_trainer", ppo(), lambda: Robots(autoreset=False))
both("ppo_of_more_state", ppo(), lambda: Robots(state=True))
both("ppo_normalized", ppo(normalize_observation=True, value_loss_clip=0.2, init_distribution_std=0.5))
both("ppo_of_several_rewards", hooked(cusrl.hook.AdvantageReduction, before="value_loss"), lambda: Robots(reward_dim=2))
both("ppo_by_divergence", ppo(desired_kl_divergence=0.01, max_kl_divergence=0.5))
both("ppo_of_two_lambdas", ppo(gae_lamda_value=0.99, grad_clip_groups={"actor": 0.5}))
both("recurrent", recurrent())
both("recurrent_gru_of_more_state", recurrent(rnn_type="GRU", normalize_observation=True), lambda: Robots(state=True))
both("thresholds", hooked(lambda: cusrl.hook.ThresholdLRSchedule(0.01), after="on_policy_statistics"))
both("rates_batch_by_batch", hooked(lambda: cusrl.hook.MiniBatchWiseLRSchedule(0.01)))
both("smooth_recurrent", hooked(lambda: cusrl.hook.ActionSmoothnessLoss(0.1, 0.1), of=recurrent()))
both("mirrored_loss", hooked(lambda: cusrl.hook.MirrorSymmetryLoss(0.5)))
both("mirrored_data", hooked(cusrl.hook.SymmetricDataAugmentation, before="value_loss"))
both("mirrored_by_design", hooked(cusrl.hook.SymmetricArchitecture, index=0))
both("curious", hooked(lambda: cusrl.hook.RandomNetworkDistillation(cusrl.Mlp.Factory(hidden_dims=(16,)), 8, 0.1)))
both("shaped", hooked(lambda: cusrl.hook.RewardShaping(0.5, 0.1, -1.0, 1.0), before="value_computation"))
both("clean", hooked(cusrl.hook.ObservationNanToNum, before="value_computation"))
both("returns_predicted", hooked(cusrl.hook.ReturnPrediction))
both("states_predicted", hooked(lambda: cusrl.hook.StatePrediction(slice(0, 3))), lambda: Robots(state=True))
both("next_states_predicted", hooked(lambda: cusrl.hook.NextStatePrediction(slice(0, 3))), lambda: Robots(state=True))
both(
    "states_estimated",
    hooked(
        lambda: cusrl.hook.StateEstimation(cusrl.Gru.Factory(num_layers=1, hidden_size=8), target_indices=slice(6, 8)),
        index=0,
    ),
    lambda: Robots(state=True),
)
both(
    "weights_scheduled",
    hooked(
        lambda: cusrl.hook.HookParameterSchedule("entropy_loss", "weight", lambda i: 0.01 / (1 + i)),
        after="entropy_loss",
    ),
)
MOTIONS = {"amp_discriminator_hidden_dims": (16,), "amp_state_indices": slice(None), "amp_batch_size": 16}
both(
    "motions",
    lambda: AmpAgentFactory(**PLAIN, **MOTIONS, amp_dataset_source=np.random.randn(64, 2 * SEEN).astype("float32")),
)


def drawn():
    """Batches at random, in place of all of them in turn."""
    made = ppo()().to_underlying()
    made.sampler = cusrl.AutoRandomSampler(num_batches=8, batch_size=32)
    return made


both("at_random", drawn)


def wide():
    """A policy that tells how sure it is, too, of residual layers; AdamW at rates of their own."""
    made = ppo()().to_underlying()
    body = cusrl.Simba.Factory(hidden_dim=16, num_blocks=1)
    made.actor_factory = cusrl.Actor.Factory(
        backbone_factory=body, distribution_factory=cusrl.AdaptiveNormalDist.Factory()
    )
    made.critic_factory = cusrl.Value.Factory(backbone_factory=body)
    made.optimizer_factory = AdamFactory(defaults={"lr": 1e-3})
    return made


both("adaptive_simba", wide)
both(
    "cartpole",
    ppo(action_space_type="discrete"),
    lambda: make_gym_vec("CartPole-v1", num_envs=8, vectorization_mode="sync"),
)
both(
    "cartpole_recurrent",
    recurrent(action_space_type="discrete"),
    lambda: make_gym_vec("CartPole-v1", num_envs=8, vectorization_mode="sync"),
)
both("pendulum", ppo(normalize_observation=True), lambda: make_gym_env("Pendulum-v1"))
