"""A loop over the epochs of one update, and the loop around it, run once for many steps: told in a line, both alike."""

from heat.hot_lines import heat

from syncscope.tensors.interpret import sites

CODE = b"""
import torch

def main(agent, env, optimizer, args, writer):
    h = torch.zeros(args.envs, 64, device="cuda")
    for iteration in range(args.iterations):
        for step in range(args.steps):
            h = agent.act(h)
            best = h.argmax(dim=-1).tolist()  # whole
            while best:
                best = h.sum().item()  # whole
        if args.anneal:
            first = h.mean().item()  # line
        for epoch in range(args.update_epochs):
            for part in torch.randperm(args.envs, device="cuda").split(args.minibatch):
                loss = agent(h[part]).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                seen = loss.item()  # whole
            if loss > args.target:  # line
                break
        writer.add_scalar("loss", loss.item(), iteration)  # line

def epochs_of_a_training(agent, loader, optimizer, epochs):
    for epoch in range(epochs):
        for x in loader:
            loss = agent(x.cuda()).square().mean()
            loss.backward()
            optimizer.step()
            seen = loss.item()  # whole
        print(loss.item())  # cold

def of_a_fold(agent, folds, optimizer, epochs):
    for fold in folds:
        for epoch in range(epochs):
            for x in fold:
                loss = agent(x.cuda()).square().mean()
                loss.backward()
                seen = loss.item()  # whole
            print(loss.item())  # cold
"""


def marked(code: bytes) -> dict[int, str]:
    """How much each marked line says that is to be told of it."""
    lines = ((n, line.rpartition(b"# ")[2].decode()) for n, line in enumerate(code.splitlines(), 1))
    return {n: mark for n, mark in lines if mark in ("whole", "line", "cold")}


def told(code: bytes, path: str) -> dict[int, str]:
    """How much is told of each marked line."""
    found = {
        site.place.line: "whole" if site.heat.whole else "line" if site.hot else "cold" for site in sites(code, path)
    }
    return {line: found[line] for line in marked(code)}


def test_what_runs_once_an_update_is_told_in_a_line() -> None:
    assert told(CODE, "ppo.py") == marked(CODE)


IN_A_METHOD = b"""
import torch

class Learner:
    def update(self, obs: torch.Tensor):
        first = obs.sum().item()  # line
        for epoch in range(self.update_epochs):
            for part in obs.split(8):
                loss = self.net(part).square().mean()
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                seen = loss.item()  # whole
        return loss.item()  # line

    def calibrate(self, obs: torch.Tensor):
        first = obs.sum().item()  # cold
        for epoch in range(self.update_epochs):
            for part in obs.split(8):
                loss = self.net(part).square().mean()
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
        return loss.item()  # cold

class Fitted:
    def update(self, obs: torch.Tensor):
        first = obs.sum().item()  # cold
        for epoch in range(self.epochs):
            for part in obs.split(8):
                loss = self.net(part).square().mean()
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
        return loss.item()  # cold
"""


def test_what_stands_around_the_epochs_in_an_update_runs_as_often_as_that() -> None:
    assert told(IN_A_METHOD, "learner.py") == marked(IN_A_METHOD)


OF_AN_AGENT = b"""
import torch

class Agent:
    def learn(self, drawn):
        seen = drawn.sum().item()  # hot
        loss = self.actor(drawn).mean()
        loss.backward()
        self.actor_optimizer.step()
        for _ in range(self.updates):
            loss = (self.critic(drawn) - 1).square().mean()
            loss.backward()
            self.critic_optimizer.step()
            kept = loss.item()  # hot
        best = drawn.max().item()  # hot

class Other:
    def learn(self, steps):
        x = torch.zeros(3, device="cuda")
        seen = x.sum().item()  # cold
        for _ in range(steps):
            loss = self.actor(x).mean()
            loss.backward()
            self.optimizer.step()
            kept = loss.item()  # hot
"""


def test_what_runs_a_backward_pass_beside_its_loops_is_a_step() -> None:
    lines = enumerate(OF_AN_AGENT.splitlines(), 1)
    marks = {n: line.rpartition(b"# ")[2].decode() for n, line in lines if line.endswith((b"# hot", b"# cold"))}
    assert heat(OF_AN_AGENT, "agent.py") == marks


AGENT = """
import torch

class Agent:
    def get_action(self, obs):
        return self.net(obs)

    def learn(self, obs: torch.Tensor):
        first = obs.sum().item()  # line
        for epoch in range(self.update_epochs):
            for part in obs.split(8):
                loss = self.net(part).square().mean()
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
        self.writer.add_scalar("loss", loss.item(), self.steps)  # line
"""
ONE_LOOP = """
import torch

class PPO:
    def select_action(self, obs):
        return self.net(obs)

    def update(self, rewards: torch.Tensor):
        scale = rewards.std().item()  # line
        for _ in range(self.K_epochs):
            loss = self.net(rewards / scale).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return loss.item()  # line
"""
ALONE = "\n    def play(self, obs):\n        obs, reward, done, info = self.env.step(self.get_action(obs))\n"


def test_an_agent_learns_once_a_rollout_unless_it_drives_its_environment_itself() -> None:
    assert told(AGENT.encode(), "agent.py") == marked(AGENT.encode())
    assert told(ONE_LOOP.encode(), "ppo.py") == marked(ONE_LOOP.encode())
    alone = (AGENT + ALONE).replace("# line", "# cold").encode()
    assert told(alone, "agent.py") == marked(alone)
