"""Training steps over machin 0.4.2: updates of each of its agents, of what is remembered, or of the episode that was just seen."""

absent("torchviz tensorboardX moviepy gym GPUtil colorlog pytorch_lightning")
np.float = float  # as numpy was when the package was made

from machin.frame.algorithms import A2C, DDPG, DQN, GAIL, PPO, RAINBOW, SAC, TD3, TRPO, DDPGPer, DQNPer, HDDPG
from machin.model.algorithms.trpo import ActorContinuous, ActorDiscrete
from machin.model.nets.base import static_module_wrapper
from torch import nn
from torch.distributions import Categorical, Normal

SEEN, MOVES, LONG, BATCH = 4, 3, 24, 16


def body(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, 16), nn.ReLU(), nn.Linear(16, outputs))


class QNet(nn.Module):
    """Of the examples, as all below."""

    def __init__(self):
        super().__init__()
        self.net = body(SEEN, MOVES)

    def forward(self, state):
        return self.net(state)


class Atoms(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = body(SEEN, MOVES * 10)

    def forward(self, state):
        return torch.softmax(self.net(state).view(-1, MOVES, 10), dim=-1)


class Mover(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = body(SEEN, 1)

    def forward(self, state):
        return torch.tanh(self.net(state))


class Chooser(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = body(SEEN, MOVES)

    def forward(self, state):
        return torch.softmax(self.net(state), dim=1)


class Worth(nn.Module):
    def __init__(self, moves=1):
        super().__init__()
        self.net = body(SEEN + moves, 1)

    def forward(self, state, action):
        return self.net(torch.cat([state, action], 1))


class Value(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = body(SEEN, 1)

    def forward(self, state):
        return self.net(state)


class Gaussian(nn.Module):
    """Of SAC."""

    def __init__(self):
        super().__init__()
        self.net, self.mu, self.sigma = nn.Linear(SEEN, 16), nn.Linear(16, 1), nn.Linear(16, 1)

    def forward(self, state, action=None):
        a = torch.relu(self.net(state))
        dist = Normal(self.mu(a), nn.functional.softplus(self.sigma(a)))
        act = action if action is not None else dist.rsample()
        log = dist.log_prob(act) - torch.log(1 - torch.tanh(act).pow(2) + 1e-6)
        return torch.tanh(act), log.sum(1, keepdim=True), dist.entropy().sum(1, keepdim=True)


class Policy(nn.Module):
    """Of A2C and PPO."""

    def __init__(self):
        super().__init__()
        self.net = body(SEEN, MOVES)

    def forward(self, state, action=None):
        dist = Categorical(torch.softmax(self.net(state), dim=1))
        act = action if action is not None else dist.sample()
        return act, dist.log_prob(act.flatten()), dist.entropy()


class TrustedChooser(ActorDiscrete):
    def __init__(self):
        super().__init__()
        self.net = body(SEEN, MOVES)
        self.set_input_module(self.net[0]), self.set_output_module(self.net[-1])

    def forward(self, state, action=None):
        return self.sample(torch.softmax(self.net(state), dim=1), action)


class TrustedMover(ActorContinuous):
    def __init__(self):
        super().__init__(1)
        self.net = body(SEEN, 1)
        self.set_input_module(self.net[0]), self.set_output_module(self.net[-1])

    def forward(self, state, action=None):
        return self.sample(self.net(state), action)


class Judge(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = body(SEEN + 1, 1)

    def forward(self, state, action):
        return torch.sigmoid(self.net(torch.cat([state, action], 1)))


def held(*kinds):
    """Networks on the device."""
    return [static_module_wrapper(kind().to(D), D, D) for kind in kinds]


def episode(kind):
    """What was seen, done and paid, as an environment tells it."""

    def done():
        if kind == "named":
            return torch.randint(0, MOVES, (1, 1))
        return torch.softmax(torch.rand(1, MOVES), 1) if kind == "shares" else torch.rand(1, 1) * 2 - 1

    states = torch.randn(LONG + 1, 1, SEEN)
    return [
        {
            "state": {"state": states[n]}, "action": {"action": done()}, "next_state": {"state": states[n + 1]},
            "reward": float(torch.rand(())), "terminal": n == LONG - 1,
        }
        for n in range(LONG)
    ]  # fmt: skip


def remembered(agent, kind):
    """A step is an update of an agent that remembers."""

    def make():
        made = agent()
        for _ in range(4):
            made.store_episode(episode(kind))
        return lambda: made.update()

    return make


def squared():
    return nn.MSELoss(reduction="sum")


GIVEN = {"batch_size": BATCH, "replay_size": 1000}
ADAM = torch.optim.Adam


def dqn(kind=DQN, **more):
    return lambda: kind(
        *held(QNet, QNet), ADAM, nn.MSELoss(reduction="sum" if kind is DQN else "none"), **GIVEN, **more
    )


def ddpg(kind=DDPG, reduction="sum", actor=Mover, **more):
    moves = MOVES if actor is Chooser else 1
    worth = lambda: Worth(moves)
    return lambda: kind(*held(actor, actor, worth, worth), ADAM, nn.MSELoss(reduction=reduction), **GIVEN, **more)


STEPS["dqn"] = remembered(dqn(), "named")
STEPS["dqn_vanilla"] = remembered(dqn(mode="vanilla"), "named")
STEPS["dqn_fixed"] = remembered(dqn(mode="fixed_target"), "named")
STEPS["dqn_copied_at_times"] = remembered(dqn(update_rate=None, update_steps=100), "named")
STEPS["dqn_clipped"] = remembered(dqn(gradient_max=1.0), "named")
STEPS["dqn_kept_on_device"] = remembered(dqn(replay_device=D), "named")
STEPS["dqn_by_priority"] = remembered(dqn(DQNPer), "named")
STEPS["rainbow"] = remembered(
    lambda: RAINBOW(*held(Atoms, Atoms), ADAM, -1.0, 10.0, reward_future_steps=3, **GIVEN), "named"
)
STEPS["rainbow_of_one_step"] = remembered(
    lambda: RAINBOW(*held(Atoms, Atoms), ADAM, -1.0, 10.0, reward_future_steps=1, **GIVEN), "named"
)
STEPS["ddpg"] = remembered(ddpg(), "moved")
STEPS["ddpg_of_shares"] = remembered(ddpg(actor=Chooser), "shares")
STEPS["ddpg_clipped"] = remembered(ddpg(gradient_max=1.0), "moved")
STEPS["ddpg_kept_on_device"] = remembered(ddpg(replay_device=D), "moved")
STEPS["ddpg_by_priority"] = remembered(ddpg(DDPGPer, "none"), "moved")
STEPS["hddpg"] = remembered(ddpg(HDDPG, q_increase_rate=1.0, q_decrease_rate=0.5), "moved")
STEPS["td3"] = remembered(
    lambda: TD3(*held(Mover, Mover, Worth, Worth, Worth, Worth), ADAM, squared(), **GIVEN), "moved"
)
STEPS["sac"] = remembered(lambda: SAC(*held(Gaussian, Worth, Worth, Worth, Worth), ADAM, squared(), **GIVEN), "moved")
STEPS["sac_aiming"] = remembered(
    lambda: SAC(*held(Gaussian, Worth, Worth, Worth, Worth), ADAM, squared(), target_entropy=-1.0, **GIVEN), "moved"
)
STEPS["td3_copied_at_times"] = remembered(
    lambda: TD3(*held(Mover, Mover, Worth, Worth, Worth, Worth), ADAM, squared(), update_rate=None, update_steps=100, **GIVEN), "moved"
)  # fmt: skip


def fresh(agent, kind="named"):
    """A step is an update of an agent that has just seen an episode, which it forgets."""

    def make():
        made = agent()

        def go():
            made.store_episode(episode(kind))
            made.update()

        return go

    return make


def on(kind, actor=Policy, **more):
    return lambda: kind(*held(actor, Value), ADAM, squared(), **GIVEN, **more)


STEPS["a2c"] = fresh(on(A2C))
STEPS["a2c_with_entropy"] = fresh(on(A2C, entropy_weight=1e-2))
STEPS["a2c_generalized"] = fresh(on(A2C, gae_lambda=0.95))
STEPS["a2c_unnormalized"] = fresh(on(A2C, normalize_advantage=False))
STEPS["ppo"] = fresh(on(PPO))
STEPS["ppo_with_entropy"] = fresh(on(PPO, entropy_weight=1e-2))
STEPS["ppo_generalized_and_clipped"] = fresh(on(PPO, gae_lambda=0.95, gradient_max=1.0))


def trusted(actor, **more):
    return lambda: TRPO(actor().to(D), held(Value)[0], ADAM, squared(), **GIVEN, **more)


STEPS["trpo"] = fresh(trusted(TrustedChooser))
STEPS["trpo_direct"] = fresh(trusted(TrustedChooser, hv_mode="direct"))
STEPS["trpo_moving"] = fresh(trusted(TrustedMover), "moved")


@step
def gail():
    made = GAIL(held(Judge)[0], on(PPO)(), ADAM, batch_size=BATCH)
    made.store_expert_episode([{"state": each["state"], "action": each["action"]} for each in episode("named")])

    def go():
        made.store_episode(episode("named"))
        made.update()

    return go
