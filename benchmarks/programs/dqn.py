"""Deep Q-learning on a small chain environment (single file, CleanRL style)."""

import random
import time
from collections import deque
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim


@dataclass
class Args:
    seed: int = 1
    total_timesteps: int = 400
    learning_rate: float = 2.5e-4
    buffer_size: int = 1000
    gamma: float = 0.99
    tau: float = 1.0
    target_network_frequency: int = 100
    batch_size: int = 32
    start_e: float = 1.0
    end_e: float = 0.05
    exploration_fraction: float = 0.3
    learning_starts: int = 80
    train_frequency: int = 4
    cuda: bool = True


class ChainEnv:
    """Walk right along a chain of ten cells; the left end pays a little, the right end a lot."""

    n_actions, n_obs = 2, 10

    def reset(self):
        self.pos, self.t = 1, 0
        return self._obs()

    def _obs(self):
        obs = np.zeros(self.n_obs, dtype=np.float32)
        obs[self.pos] = 1.0
        return obs

    def step(self, action):
        self.t += 1
        self.pos = max(0, min(self.n_obs - 1, self.pos + (1 if action == 1 else -1)))
        reward = 1.0 if self.pos == self.n_obs - 1 else 0.01 if self.pos == 0 else 0.0
        return self._obs(), reward, self.t >= 30


class ReplayBuffer:
    def __init__(self, size, device):
        self.storage = deque(maxlen=size)
        self.device = device

    def add(self, *transition):
        self.storage.append(transition)

    def sample(self, batch_size):
        batch = random.sample(self.storage, batch_size)
        obs, next_obs, actions, rewards, dones = map(np.array, zip(*batch))
        return (
            torch.as_tensor(obs).to(self.device),
            torch.as_tensor(next_obs).to(self.device),
            torch.as_tensor(actions, dtype=torch.int64).to(self.device).unsqueeze(1),
            torch.as_tensor(rewards, dtype=torch.float32).to(self.device),
            torch.as_tensor(dones, dtype=torch.float32).to(self.device),
        )


class QNetwork(nn.Module):
    def __init__(self, env):
        super().__init__()
        self.network = nn.Sequential(
            nn.Linear(env.n_obs, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, env.n_actions)
        )

    def forward(self, x):
        return self.network(x)


def linear_schedule(start_e, end_e, duration, t):
    slope = (end_e - start_e) / duration
    return max(slope * t + start_e, end_e)


def evaluate(q_network, env, device, episodes=2):
    returns = []
    for _ in range(episodes):
        obs, done, total = env.reset(), False, 0.0
        while not done:
            q_values = q_network(torch.Tensor(obs).to(device))
            obs, reward, done = env.step(q_values.argmax().item())
            total += reward
        returns.append(total)
    return float(np.mean(returns))


if __name__ == "__main__":
    args = Args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    torch.backends.cudnn.deterministic = True
    device = torch.device("cuda" if torch.cuda.is_available() and args.cuda else "cpu")

    env = ChainEnv()
    q_network = QNetwork(env).to(device)
    optimizer = optim.Adam(q_network.parameters(), lr=args.learning_rate)
    target_network = QNetwork(env).to(device)
    target_network.load_state_dict(q_network.state_dict())
    rb = ReplayBuffer(args.buffer_size, device)
    start_time = time.time()

    obs = env.reset()
    episodic_return, episode_returns = 0.0, []
    for global_step in range(args.total_timesteps):
        epsilon = linear_schedule(
            args.start_e, args.end_e, args.exploration_fraction * args.total_timesteps, global_step
        )
        if random.random() < epsilon:
            action = random.randrange(env.n_actions)
        else:
            q_values = q_network(torch.Tensor(obs).unsqueeze(0).to(device))
            action = torch.argmax(q_values, dim=1).cpu().numpy()[0]

        next_obs, reward, done = env.step(action)
        rb.add(obs, next_obs, action, reward, done)
        episodic_return += reward
        obs = next_obs
        if done:
            episode_returns.append(episodic_return)
            print(f"global_step={global_step}, episodic_return={episodic_return:.2f}")
            obs, episodic_return = env.reset(), 0.0

        if global_step > args.learning_starts:
            if global_step % args.train_frequency == 0:
                b_obs, b_next_obs, b_actions, b_rewards, b_dones = rb.sample(args.batch_size)
                with torch.no_grad():
                    target_max, _ = target_network(b_next_obs).max(dim=1)
                    td_target = b_rewards.flatten() + args.gamma * target_max * (1 - b_dones.flatten())
                old_val = q_network(b_obs).gather(1, b_actions).squeeze()
                loss = F.mse_loss(td_target, old_val)

                if global_step % 100 == 0:
                    print("losses/td_loss", loss.item(), global_step)
                    print("losses/q_values", old_val.mean().item(), global_step)
                    print("SPS:", int(global_step / (time.time() - start_time)))

                optimizer.zero_grad()
                loss.backward()
                optimizer.step()

            if global_step % args.target_network_frequency == 0:
                for target_param, param in zip(target_network.parameters(), q_network.parameters()):
                    target_param.data.copy_(args.tau * param.data + (1.0 - args.tau) * target_param.data)

    print("evaluation:", evaluate(q_network, ChainEnv(), device))
    torch.save(q_network.state_dict(), "dqn.pth")
