"""A generator and a critic, two optimizers, a detach that keeps their gradients apart."""

import torch
from torch import nn

device = torch.device("cuda")
torch.manual_seed(0)
critic = nn.Sequential(nn.Linear(4, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1)).to(device)
maker = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 4)).to(device)
of_critic = torch.optim.SGD(critic.parameters(), 0.05, momentum=0.9)
of_maker = torch.optim.SGD(maker.parameters(), 0.05, momentum=0.9)
true, false = 1.0, 0.0
noise_seen = 0.0
for step in range(14):
    real = torch.randn(16, 4, device=device) + 2
    noise = torch.randn(16, 3, device=device)
    critic.zero_grad()
    maker.zero_grad()
    score = critic(real)
    target = torch.full((16, 1), true, device=device)
    of_real = nn.functional.binary_cross_entropy_with_logits(score, target)
    of_real.backward()
    d_x = score.mean().item()
    fake = maker(noise)
    score = critic(fake.detach())
    target = torch.full((16, 1), false, device=device)
    of_fake = nn.functional.binary_cross_entropy_with_logits(score, target)
    of_fake.backward()
    d_g = score.mean().item()
    of_critic.step()
    score = critic(fake)
    target = torch.full((16, 1), true, device=device)
    of_making = nn.functional.binary_cross_entropy_with_logits(score, target)
    of_making.backward()
    of_maker.step()
    noise_seen += noise.abs().mean().item()
    print(f"{step} {of_real.item() + of_fake.item():.4f} {of_making.item():.4f} {d_x:.4f} {d_g:.4f}")
