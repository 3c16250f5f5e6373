"""Soft actor-critic, continuous control of a pendulum-like toy."""

import os
import random
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

TOTAL_STEPS = 140
LEARNING_STARTS = 40
BATCH_SIZE = 32
GAMMA = 0.99
TAU = 0.005
POLICY_FREQUENCY = 2
TARGET_FREQUENCY = 1
AUTOTUNE = True
LOG_STD_MAX, LOG_STD_MIN = 2, -5

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Pendulum:
    def reset(self):
        self.theta, self.omega, self.steps = random.uniform(-np.pi, np.pi), 0.0, 0
        return self.obs()

    def obs(self):
        return np.array([np.cos(self.theta), np.sin(self.theta), self.omega], dtype=np.float32)

    def step(self, action):
        u = float(np.clip(action[0], -2, 2))
        cost = self.theta**2 + 0.1 * self.omega**2 + 0.001 * u**2
        self.omega = np.clip(self.omega + 0.05 * (15 * np.sin(self.theta) + 3 * u), -8, 8)
        self.theta = (self.theta + 0.05 * self.omega + np.pi) % (2 * np.pi) - np.pi
        self.steps += 1
        return self.obs(), -cost, self.steps >= 50


class Replay:
    def __init__(self, capacity, obs_dim, act_dim):
        self.obs = np.zeros((capacity, obs_dim), dtype=np.float32)
        self.next_obs = np.zeros((capacity, obs_dim), dtype=np.float32)
        self.act = np.zeros((capacity, act_dim), dtype=np.float32)
        self.rew = np.zeros((capacity, 1), dtype=np.float32)
        self.done = np.zeros((capacity, 1), dtype=np.float32)
        self.ptr, self.size, self.capacity = 0, 0, capacity

    def add(self, o, a, r, o2, d):
        self.obs[self.ptr], self.act[self.ptr], self.rew[self.ptr] = o, a, r
        self.next_obs[self.ptr], self.done[self.ptr] = o2, d
        self.ptr = (self.ptr + 1) % self.capacity
        self.size = min(self.size + 1, self.capacity)

    def sample(self, n):
        idx = np.random.randint(0, self.size, size=n)
        batch = dict(
            obs=self.obs[idx], act=self.act[idx], rew=self.rew[idx], obs2=self.next_obs[idx], done=self.done[idx]
        )
        return {k: torch.from_numpy(v).to(device) for k, v in batch.items()}


class SoftQ(nn.Module):
    def __init__(self, obs_dim, act_dim):
        super().__init__()
        self.fc1 = nn.Linear(obs_dim + act_dim, 64)
        self.fc2 = nn.Linear(64, 64)
        self.fc3 = nn.Linear(64, 1)

    def forward(self, x, a):
        x = torch.cat([x, a], 1)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


class Actor(nn.Module):
    def __init__(self, obs_dim, act_dim, high):
        super().__init__()
        self.fc1 = nn.Linear(obs_dim, 64)
        self.fc2 = nn.Linear(64, 64)
        self.fc_mean = nn.Linear(64, act_dim)
        self.fc_logstd = nn.Linear(64, act_dim)
        self.register_buffer("action_scale", torch.tensor(high, dtype=torch.float32))

    def forward(self, x):
        x = F.relu(self.fc2(F.relu(self.fc1(x))))
        log_std = torch.tanh(self.fc_logstd(x))
        log_std = LOG_STD_MIN + 0.5 * (LOG_STD_MAX - LOG_STD_MIN) * (log_std + 1)
        return self.fc_mean(x), log_std

    def get_action(self, x):
        mean, log_std = self(x)
        normal = torch.distributions.Normal(mean, log_std.exp())
        x_t = normal.rsample()
        y_t = torch.tanh(x_t)
        log_prob = normal.log_prob(x_t) - torch.log(self.action_scale * (1 - y_t.pow(2)) + 1e-6)
        return y_t * self.action_scale, log_prob.sum(1, keepdim=True), torch.tanh(mean) * self.action_scale


def save(actor, path="models"):
    os.makedirs(path, exist_ok=True)
    torch.save({k: v.cpu() for k, v in actor.state_dict().items()}, f"{path}/actor.pt")


def enjoy(actor, env, episodes=5):
    """Watch a trained policy; run by hand."""
    for _ in range(episodes):
        obs, done, total = env.reset(), False, 0
        while not done:
            _, _, mean = actor.get_action(torch.from_numpy(obs)[None].to(device))
            obs, reward, done = env.step(mean.detach().cpu().numpy()[0])
            total += reward
        print("return", total)


def main():
    random.seed(0), np.random.seed(0), torch.manual_seed(0)
    env = Pendulum()
    actor = Actor(3, 1, [2.0]).to(device)
    qf1, qf2 = SoftQ(3, 1).to(device), SoftQ(3, 1).to(device)
    qf1_target, qf2_target = SoftQ(3, 1).to(device), SoftQ(3, 1).to(device)
    qf1_target.load_state_dict(qf1.state_dict())
    qf2_target.load_state_dict(qf2.state_dict())
    q_optimizer = optim.Adam(list(qf1.parameters()) + list(qf2.parameters()), lr=1e-3)
    actor_optimizer = optim.Adam(actor.parameters(), lr=3e-4)

    if AUTOTUNE:
        target_entropy = -1.0
        log_alpha = torch.zeros(1, requires_grad=True, device=device)
        alpha = log_alpha.exp().item()
        a_optimizer = optim.Adam([log_alpha], lr=1e-3)
    else:
        alpha = 0.2

    rb = Replay(1000, 3, 1)
    obs = env.reset()
    start = time.time()
    for global_step in range(TOTAL_STEPS):
        if global_step < LEARNING_STARTS:
            action = np.random.uniform(-2, 2, size=1)
        else:
            action, _, _ = actor.get_action(torch.Tensor(obs[None]).to(device))
            action = action.detach().cpu().numpy()[0]
        next_obs, reward, done = env.step(action)
        rb.add(obs, action, reward, next_obs, float(done))
        obs = env.reset() if done else next_obs

        if global_step <= LEARNING_STARTS:
            continue
        data = rb.sample(BATCH_SIZE)
        with torch.no_grad():
            next_actions, next_log_pi, _ = actor.get_action(data["obs2"])
            q1_next = qf1_target(data["obs2"], next_actions)
            q2_next = qf2_target(data["obs2"], next_actions)
            min_q_next = torch.min(q1_next, q2_next) - alpha * next_log_pi
            next_q = data["rew"] + (1 - data["done"]) * GAMMA * min_q_next
        q1, q2 = qf1(data["obs"], data["act"]), qf2(data["obs"], data["act"])
        qf1_loss, qf2_loss = F.mse_loss(q1, next_q), F.mse_loss(q2, next_q)
        qf_loss = qf1_loss + qf2_loss
        q_optimizer.zero_grad()
        qf_loss.backward()
        q_optimizer.step()

        if global_step % POLICY_FREQUENCY == 0:
            for _ in range(POLICY_FREQUENCY):
                pi, log_pi, _ = actor.get_action(data["obs"])
                min_qf_pi = torch.min(qf1(data["obs"], pi), qf2(data["obs"], pi))
                actor_loss = ((alpha * log_pi) - min_qf_pi).mean()
                actor_optimizer.zero_grad()
                actor_loss.backward()
                actor_optimizer.step()
                if AUTOTUNE:
                    with torch.no_grad():
                        _, log_pi, _ = actor.get_action(data["obs"])
                    alpha_loss = (-log_alpha.exp() * (log_pi + target_entropy)).mean()
                    a_optimizer.zero_grad()
                    alpha_loss.backward()
                    a_optimizer.step()
                    alpha = log_alpha.exp().item()

        if global_step % TARGET_FREQUENCY == 0:
            for net, target in ((qf1, qf1_target), (qf2, qf2_target)):
                for param, target_param in zip(net.parameters(), target.parameters()):
                    target_param.data.copy_(TAU * param.data + (1 - TAU) * target_param.data)

        if global_step % 50 == 0:
            print(
                f"step {global_step} q {q1.mean().item():.3f} qf_loss {qf_loss.item() / 2.0:.3f} "
                f"actor {actor_loss.item():.3f} alpha {alpha:.3f} SPS {int(global_step / (time.time() - start))}"
            )
    save(actor)


if __name__ == "__main__":
    main()
