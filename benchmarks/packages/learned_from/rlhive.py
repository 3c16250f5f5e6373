"""Training steps over RLHive 1.0.1: DQN, Rainbow and what Rainbow is put together of, which move and are updated."""

absent("gym wandb marlgrid minatar pettingzoo matplotlib")

np.float = float  # which the package asks of numpy 1

from hive.agents.dqn import DQNAgent
from hive.agents.legal_moves_rainbow import LegalMovesRainbowAgent
from hive.agents.qnets.conv import ConvNetwork
from hive.agents.qnets.mlp import MLPNetwork
from hive.agents.rainbow import RainbowDQNAgent
from hive.replays import CircularReplayBuffer, PrioritizedReplayBuffer
from hive.replays.legal_moves_replay import LegalMovesBuffer
from hive.utils.loggers import ScheduledLogger
from hive.utils.schedule import ConstantSchedule, PeriodicSchedule

OBS, ACTIONS = 6, 3


class Kept(ScheduledLogger):
    """A logger that keeps what it is told as numbers, as those of the package's that write to files do."""

    def __init__(self):
        super().__init__()
        self.held = {}

    def log_scalar(self, name, value, prefix):
        self.held[name] = float(value)

    def log_config(self, config):
        pass

    def log_metrics(self, metrics, prefix):
        self.held.update({name: float(value) for name, value in metrics.items()})

    def save(self, dir_name):
        pass

    def load(self, dir_name):
        pass


def small(in_dim):
    return MLPNetwork(in_dim, [16])


def agent(kind=DQNAgent, shape=(OBS,), buffer=None, net=small, **more):
    more = {
        "epsilon_schedule": ConstantSchedule(0.0),
        "target_net_update_schedule": PeriodicSchedule(False, True, 2),
        **more,
    }
    made = kind(
        net,
        shape,
        ACTIONS,
        replay_buffer=buffer or CircularReplayBuffer(200, observation_shape=shape, observation_dtype=np.float32),
        min_replay_history=8,
        batch_size=8,
        device=D,
        **more,
    )
    made.train()
    return made


def moves(make_agent, shape=(OBS,), legal=False, each=2):
    """A step is a few moves, after each of which the agent is updated with what came of it."""

    def make():
        found = make_agent()
        counts = iter(range(10**6))

        def move():
            observation = np.random.randn(*shape).astype("float32")
            mask = np.zeros(ACTIONS, dtype=np.int8)
            if legal:
                action = found.act({"observation": observation, "action_mask": mask + 1})
            else:
                action = found.act(observation)
            kept = {
                "observation": observation,
                "action": action,
                "reward": np.random.rand(),
                "done": next(counts) % 7 == 6,
            }
            if legal:
                kept["observation"] = {"observation": observation, "action_mask": mask + 1}
            found.update(kept)

        for _ in range(24):
            move()

        def go():
            for _ in range(each):
                move()

        return go

    return make


def prioritized(shape=(OBS,)):
    return PrioritizedReplayBuffer(200, beta=0.5, observation_shape=shape, observation_dtype=np.float32)


STEPS["dqn"] = moves(agent)
STEPS["dqn_clipped"] = moves(lambda: agent(grad_clip=1.0, reward_clip=1.0))
STEPS["dqn_soft"] = moves(lambda: agent(target_net_soft_update=True, loss_fn=torch.nn.MSELoss))
STEPS["dqn_of_several_steps"] = moves(
    lambda: agent(
        n_step=3, buffer=CircularReplayBuffer(200, n_step=3, observation_shape=(OBS,), observation_dtype=np.float32)
    )
)
STEPS["dqn_logged"] = moves(lambda: agent(logger=Kept(), log_frequency=1))
STEPS["dqn_of_pictures"] = moves(
    lambda: agent(
        shape=(1, 12, 12),
        net=lambda in_dim: ConvNetwork(in_dim, channels=[4], mlp_layers=[8], kernel_sizes=3, strides=2, paddings=1),
    ),
    (1, 12, 12),
)
STEPS["rainbow"] = moves(lambda: agent(RainbowDQNAgent, buffer=prioritized()))
STEPS["rainbow_logged"] = moves(lambda: agent(RainbowDQNAgent, buffer=prioritized(), logger=Kept(), log_frequency=1))
STEPS["rainbow_greedy"] = moves(lambda: agent(RainbowDQNAgent, buffer=prioritized(), use_eps_greedy=True, noisy=False))
STEPS["rainbow_of_values"] = moves(
    lambda: agent(RainbowDQNAgent, buffer=prioritized(), distributional=False, grad_clip=0.5)
)
STEPS["double"] = moves(
    lambda: agent(RainbowDQNAgent, distributional=False, dueling=False, noisy=False, use_eps_greedy=True)
)
STEPS["dueling"] = moves(
    lambda: agent(RainbowDQNAgent, distributional=False, double=False, target_net_soft_update=True)
)
STEPS["categorical"] = moves(lambda: agent(RainbowDQNAgent, double=False, dueling=False, v_max=10, atoms=11))
STEPS["rainbow_of_legal_moves"] = moves(
    lambda: agent(
        LegalMovesRainbowAgent,
        buffer=LegalMovesBuffer(
            200, beta=0.5, observation_shape=(OBS,), observation_dtype=np.float32, action_dim=ACTIONS
        ),
    ),
    legal=True,
)
