"""Training steps over ptan 0.8.1: agents that act in a world of gym's, and learn from what they meet, as its book has them."""

import copy
import sys

absent("cv2 stable_baselines3")

import gymnasium as gym
import ptan
from ignite.engine import Engine
from ptan.common.utils import SMAQueue, TBMeanTracker, WeightedMSELoss
from ptan.ignite import EndOfEpisodeHandler, EpisodeFPSHandler, PeriodicEvents
from torch import nn
from torch.nn import functional as F

ROWS, GAMMA = 16, 0.99
sys.setrecursionlimit(5000)


class Writer:
    """What is logged is thrown away."""

    def add_scalar(self, *_):
        pass

    def close(self):
        pass


def world(name="CartPole-v1"):
    return gym.make(name)


def net(out=2, seen=4):
    return nn.Sequential(nn.Linear(seen, 16), nn.ReLU(), nn.Linear(16, out)).to(D)


class Both(nn.Module):
    """What to do, and what it is worth."""

    def __init__(self, out=2, seen=4):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(seen, 16), nn.ReLU())
        self.policy, self.value = nn.Linear(16, out), nn.Linear(16, 1)

    def forward(self, x):
        held = self.body(x)
        return self.policy(held), self.value(held)


def unpacked(batch):
    """Of the book: a batch of what was met, as arrays."""
    states = np.array([each.state for each in batch], dtype=np.float32)
    last = np.array([each.state if each.last_state is None else each.last_state for each in batch], dtype=np.float32)
    actions, rewards = np.array([each.action for each in batch]), np.array([each.reward for each in batch], np.float32)
    return states, actions, rewards, np.array([each.last_state is None for each in batch]), last


def aimed(batch, model, target, gamma, double=False):
    """What is predicted of what was done, and what it should be."""
    states, actions, rewards, over, last = (torch.as_tensor(each).to(D) for each in unpacked(batch))
    shown = model(states).gather(1, actions.unsqueeze(-1)).squeeze(-1)
    with torch.no_grad():
        if double:
            best = target(last).gather(1, model(last).max(1)[1].unsqueeze(-1)).squeeze(-1)
        else:
            best = target(last).max(1)[0]
        best = torch.where(over, torch.zeros_like(best), best)
    return shown, rewards + gamma * best


def chosen(kind="greedy"):
    if kind == "greedy":
        return ptan.actions.EpsilonGreedyActionSelector(0.1)
    return ptan.actions.ArgmaxActionSelector() if kind == "best" else ptan.actions.ProbabilityActionSelector()


def source(agent, steps=1, several=1, vector=False, **more):
    """What is met, one after another."""
    if vector:
        made = gym.make_vec("CartPole-v1", 4, vectorization_mode="sync")
        return ptan.experience.VectorExperienceSourceFirstLast(made, agent, GAMMA, steps, **more)
    made = [world() for _ in range(several)] if several > 1 else world()
    return ptan.experience.ExperienceSourceFirstLast(made, agent, gamma=GAMMA, steps_count=steps, **more)


def dqn(steps=1, double=False, synced="whole", prior=None, several=1, vector=False, agent=ptan.agent.DQNAgent, how="greedy",
        logged=False, told=False, preprocessor=ptan.agent.float32_preprocessor):  # fmt: skip
    """A step: one more is met, a batch of what is kept is learned from, the target follows."""

    def make():
        model = net()
        target = ptan.agent.TargetNet(model)
        acting = agent(model, chosen(how), device=torch.device(D), preprocessor=preprocessor)
        met = source(acting, steps, several, vector)
        tracker = ptan.actions.EpsilonTracker(chosen(), 1.0, 0.02, 1000)
        kinds = {
            None: lambda: ptan.experience.ExperienceReplayBuffer(met, 200),
            "tree": lambda: ptan.experience.PrioritizedReplayBuffer(met, 200, 0.6),
            "naive": lambda: ptan.experience.PrioReplayBufferNaive(met, 200),
        }
        kept, optimizer, count = kinds[prior](), torch.optim.Adam(model.parameters(), 1e-3), [0]
        kept.populate(2 * ROWS)
        tracked, weighed, mean = TBMeanTracker(Writer(), 10).__enter__(), WeightedMSELoss(), SMAQueue(10)

        def go():
            count[0] += 1
            kept.populate(1)
            tracker.frame(count[0])
            optimizer.zero_grad()
            if prior:
                batch, at, weights = kept.sample(ROWS, 0.4)
                shown, aim = aimed(batch, model, target.target_model, GAMMA**steps, double)
                losses = torch.as_tensor(weights).to(D) * (shown - aim) ** 2
                loss = losses.mean()
                kept.update_priorities(at, (losses + 1e-5).data.cpu().numpy().tolist())
            else:
                shown, aim = aimed(kept.sample(ROWS), model, target.target_model, GAMMA**steps, double)
                loss = weighed(shown, aim)
            loss.backward()
            optimizer.step()
            if logged:
                tracked.track("loss", loss, count[0])
            if told:
                mean.__iadd__(loss.item())
            target.alpha_sync(0.99) if synced == "softly" else target.sync()
            met.pop_total_rewards()

        return go

    return make


STEPS["dqn"] = dqn()
STEPS["dqn_of_several_steps"] = dqn(3)
STEPS["dqn_double"] = dqn(double=True)
STEPS["dqn_softly"] = dqn(synced="softly")
STEPS["dqn_first_things_first"] = dqn(prior="tree")
STEPS["dqn_first_things_first_naively"] = dqn(prior="naive")
STEPS["dqn_of_several_worlds"] = dqn(several=3)
STEPS["dqn_of_a_vector"] = dqn(vector=True)
STEPS["dqn_logged"] = dqn(logged=True)
STEPS["dqn_told"] = dqn(told=True)
STEPS["dqn_best"] = dqn(how="best")
STEPS["dqn_of_states_as_they_are"] = dqn(preprocessor=ptan.agent.default_states_preprocessor)


def by_policy(steps=1, baseline=False, several=1, logged=False, rows=ROWS, entropy=0.0):
    """A step of REINFORCE: so many are met by a policy, which learns from what they brought."""

    def make():
        model = net()
        agent = ptan.agent.PolicyAgent(
            model, device=torch.device(D), apply_softmax=True, preprocessor=ptan.agent.float32_preprocessor
        )
        met = source(agent, steps, several)
        coming, optimizer = iter(met), torch.optim.Adam(model.parameters(), 1e-3)
        tracked, count, mean = TBMeanTracker(Writer(), 10).__enter__(), [0], SMAQueue(50)

        def go():
            count[0] += 1
            batch = [next(coming) for _ in range(rows)]
            states, actions, rewards, _, _ = unpacked(batch)
            for each in rewards:
                mean.__iadd__(float(each))
            worth = rewards - (mean.mean() if baseline else 0.0)
            states, actions = torch.as_tensor(states).to(D), torch.as_tensor(actions).to(D)
            logs = F.log_softmax(model(states), 1)
            loss = -(torch.as_tensor(worth.astype("float32")).to(D) * logs[range(rows), actions]).mean()
            if entropy:
                loss = loss + entropy * (logs.exp() * logs).sum(1).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if logged:
                tracked.track("loss_policy", loss, count[0])
                tracked.track("rows", rows, count[0])
            met.pop_rewards_steps()

        return go

    return make


STEPS["policy"] = by_policy()
STEPS["policy_of_several_steps"] = by_policy(5)
STEPS["policy_beside_a_mean"] = by_policy(5, True)
STEPS["policy_of_several_worlds"] = by_policy(2, several=3)
STEPS["policy_logged"] = by_policy(2, logged=True)
STEPS["policy_unsure"] = by_policy(2, entropy=0.01)


def actor_critic(steps=2, several=2, logged=False, agent="policy", clipped=False):
    """A step of the book's A2C: so many are met, and a policy and what states are worth learn from them."""

    def make():
        model = Both().to(D)
        if agent == "policy":
            acting = ptan.agent.PolicyAgent(
                lambda x: model(x)[0], apply_softmax=True, device=torch.device(D),
                preprocessor=ptan.agent.float32_preprocessor,
            )  # fmt: skip
        else:
            acting = ptan.agent.ActorCriticAgent(
                model, apply_softmax=True, device=torch.device(D), preprocessor=ptan.agent.float32_preprocessor
            )
        met = source(acting, steps, several)
        coming, optimizer = iter(met), torch.optim.Adam(model.parameters(), 1e-3)
        tracked, count = TBMeanTracker(Writer(), 10).__enter__(), [0]

        def go():
            count[0] += 1
            states, actions, rewards, over, last = unpacked([next(coming) for _ in range(ROWS)])
            states, actions = torch.as_tensor(states).to(D), torch.as_tensor(actions).to(D)
            with torch.no_grad():
                worth = model(torch.as_tensor(last).to(D))[1][:, 0] * torch.as_tensor(
                    1.0 - over, dtype=torch.float32
                ).to(D)
            aim = torch.as_tensor(rewards).to(D) + GAMMA**steps * worth
            optimizer.zero_grad()
            logits, value = model(states)
            logs = F.log_softmax(logits, 1)
            policy = -((aim - value[:, 0].detach()) * logs.gather(1, actions.unsqueeze(1))[:, 0]).mean()
            loss = F.mse_loss(value[:, 0], aim) + policy + 0.01 * (logs.exp() * logs).sum(1).mean()
            loss.backward()
            if clipped:
                nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
            if logged:
                for name, each in (("advantage", aim - value[:, 0]), ("values", value), ("loss", loss)):
                    tracked.track(name, each, count[0])

        return go

    return make


STEPS["actor_critic"] = actor_critic()
STEPS["actor_critic_logged"] = actor_critic(logged=True)
STEPS["actor_critic_clipped"] = actor_critic(4, 3, clipped=True)
STEPS["actor_critic_that_keeps_values"] = actor_critic(agent="both")
STEPS["actor_critic_that_keeps_values_logged"] = actor_critic(agent="both", several=3, logged=True)


class Continuous(ptan.agent.BaseAgent):
    """Of the book: does what a network says, and some noise."""

    def __init__(self, model):
        self.model = model

    def __call__(self, states, agent_states):
        seen = ptan.agent.float32_preprocessor(states).to(D)
        done = self.model(seen).data.cpu().numpy()
        return np.clip(done + 0.1 * np.random.normal(size=done.shape), -2, 2).astype("float32"), agent_states


@step
def deterministic():
    """A step of the book's DDPG, in a world of numbers."""
    actor, critic = net(1, 3), net(1, 4)
    targets = ptan.agent.TargetNet(actor), ptan.agent.TargetNet(critic)
    met = ptan.experience.ExperienceSourceFirstLast(world("Pendulum-v1"), Continuous(actor), gamma=GAMMA, steps_count=1)
    kept = ptan.experience.ExperienceReplayBuffer(met, 200)
    kept.populate(2 * ROWS)
    optimizers = [torch.optim.Adam(each.parameters(), 1e-3) for each in (actor, critic)]

    def go():
        kept.populate(1)
        states, actions, rewards, over, last = (torch.as_tensor(each).to(D) for each in unpacked(kept.sample(ROWS)))
        optimizers[1].zero_grad()
        shown = critic(torch.cat([states, actions.float()], 1))[:, 0]
        with torch.no_grad():
            best = targets[1].target_model(torch.cat([last, targets[0].target_model(last)], 1))[:, 0]
        F.mse_loss(shown, rewards + GAMMA * torch.where(over, 0.0, best)).backward()
        optimizers[1].step()
        optimizers[0].zero_grad()
        (-critic(torch.cat([states, actor(states)], 1)).mean()).backward()
        optimizers[0].step()
        for each in targets:
            each.alpha_sync(1 - 1e-3)

    return go


def engine(logged=False):
    """A step of an engine of ignite's, with what ptan attaches to it."""

    def make():
        model = net()
        target = copy.deepcopy(model)
        acting = ptan.agent.DQNAgent(
            model, chosen(), device=torch.device(D), preprocessor=ptan.agent.float32_preprocessor
        )
        met = source(acting)
        kept, optimizer = ptan.experience.ExperienceReplayBuffer(met, 200), torch.optim.Adam(model.parameters(), 1e-3)
        kept.populate(2 * ROWS)

        def process(engine, batch):
            optimizer.zero_grad()
            shown, aim = aimed(batch, model, target, GAMMA)
            loss = F.mse_loss(shown, aim)
            loss.backward()
            optimizer.step()
            return {"loss": loss.item()} if logged else {}

        def batches():
            while True:
                kept.populate(1)
                yield kept.sample(ROWS)

        held = Engine(process)
        EndOfEpisodeHandler(met).attach(held)
        EpisodeFPSHandler().attach(held)
        PeriodicEvents().attach(held)
        return loop(lambda: held.run(batches(), epoch_length=50, max_epochs=1))

    return make


STEPS["engine"] = engine()
STEPS["engine_logged"] = engine(True)
