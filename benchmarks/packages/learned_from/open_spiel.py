"""Training steps over OpenSpiel 2.0.2: its agents of PyTorch that take a device, which play small games and learn of them."""

import tempfile

from open_spiel.python import rl_environment
from open_spiel.python.algorithms import random_agent
from open_spiel.python.pytorch import dqn
from open_spiel.python.pytorch.ppo import PPO, PPOAgent
from open_spiel.python.vector_env import SyncVectorEnv
from torch.utils.tensorboard import SummaryWriter

ROUNDS = 8


def played(game, learns=3, **more):
    """A step is eight moves of the game, each of which is learned from; the other players move at random."""

    def make():
        env = rl_environment.Environment(game)
        size = env.observation_spec()["info_state"][0]
        actions = env.action_spec()["num_actions"]
        agent = dqn.DQN(
            0,
            size,
            actions,
            hidden_layers_sizes=[16],
            replay_buffer_capacity=500,
            batch_size=8,
            learn_every=learns,
            min_buffer_size_to_learn=8,
            update_target_network_every=2,
            epsilon_start=0.1,
            epsilon_end=0.1,
            device=D,
            **more,
        )
        others = [random_agent.RandomAgent(player, actions) for player in range(1, env.num_players)]
        held = {"time": env.reset()}

        def go():
            moves = 0
            while moves < ROUNDS:
                time = held["time"]
                if time.last():
                    for each in [agent, *others]:
                        each.step(time)
                    held["time"] = env.reset()
                    continue
                player = time.observations["current_player"]
                chosen = ([agent, *others][player]).step(time)
                moves += player == 0
                held["time"] = env.step([chosen.action])

        for _ in range(4):  # until there is something to learn from
            go()
        return go

    return make


STEPS["dqn_kuhn_poker"] = played("kuhn_poker")
STEPS["dqn_tic_tac_toe"] = played("tic_tac_toe", optimizer_str="adam")
STEPS["dqn_leduc_huber"] = played("leduc_poker", loss_str="huber", gradient_clipping=1.0)
STEPS["dqn_catch"] = played("catch", optimizer_str="adam", epsilon_decay_schedule_str="linear")
STEPS["dqn_every_fourth"] = played("leduc_poker", learns=4, gradient_clipping=0.5)


@step
def dqn_learns():
    """A batch alone, of a memory that is full."""
    env = rl_environment.Environment("catch")
    agent = dqn.DQN(
        0,
        env.observation_spec()["info_state"][0],
        3,
        hidden_layers_sizes=[16],
        batch_size=16,
        min_buffer_size_to_learn=16,
        replay_buffer_capacity=500,
        device=D,
    )
    time = env.reset()
    for _ in range(60):
        chosen = agent.step(time)
        time = env.reset() if time.last() else env.step([chosen.action])
    return agent.learn


def optimized(game, envs=2, steps=4, logged=False, annealed=False, **more):
    """A step plays four moves in each environment and learns of them, with minibatches."""

    def make():
        games = [rl_environment.Environment(game) for _ in range(envs)]
        players = SyncVectorEnv(games)
        agent = PPO(
            input_shape=(games[0].observation_spec()["info_state"][0],),
            num_actions=games[0].action_spec()["num_actions"],
            num_players=games[0].num_players,
            player_id=0,
            num_envs=envs,
            steps_per_batch=steps,
            num_minibatches=2,
            update_epochs=2,
            device=D,
            writer=SummaryWriter(tempfile.mkdtemp()) if logged else None,
            agent_fn=PPOAgent,
            **more,
        )
        held = {"time": players.reset(), "updates": 0}

        def go():
            for _ in range(steps):
                held["time"], reward, done, _ = players.step(agent.step(held["time"]), reset_if_done=True)
                agent.post_step([each[0] for each in reward], done)
            if annealed:
                agent.anneal_learning_rate(held["updates"], 1000)
            held["updates"] += 1
            agent.learn(held["time"])

        return go

    return make


STEPS["ppo"] = optimized("catch")
STEPS["ppo_annealed"] = optimized("catch", annealed=True, learning_rate=1e-3)
STEPS["ppo_without_gae"] = optimized("catch", gae=False, normalize_advantages=False)
STEPS["ppo_logged"] = optimized("catch", logged=True)
STEPS["ppo_until_too_far"] = optimized("catch", target_kl=0.01, clip_vloss=False)
STEPS["ppo_of_one"] = optimized("catch", envs=1, steps=8)
STEPS["ppo_cliff_walking"] = optimized("cliff_walking", entropy_coef=0.1)
