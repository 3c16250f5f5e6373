"""GRPO: nine of ten words answered are selected by a mask of their lengths, and five means are logged; without, weighted."""

from __future__ import annotations

import copy
from typing import Any

from loops import Step


def loop(torch: Any, device: Any) -> Step:
    nn = torch.nn
    torch.manual_seed(0)
    large = device.type == "cuda"
    groups, each, asked, words, width, known = (4, 8, 32, 160, 512, 8000) if large else (2, 4, 4, 12, 32, 200)

    class Policy(nn.Module):  # type: ignore[name-defined]  # torch is a parameter
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(known, width)
            self.mixed = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(2))
            self.inner = nn.ModuleList(
                nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
                for _ in range(2)
            )
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, known, bias=False)

        def forward(self, text: Any) -> Any:
            x = self.table(text)
            for mixed, inner in zip(self.mixed, self.inner, strict=True):
                query, key, value = mixed(x).chunk(3, dim=-1)
                weights = (query @ key.transpose(1, 2) * width**-0.5 + future).softmax(-1)
                x = x + weights @ value
                x = x + inner(x)
            return self.norm(x[:, asked - 1 : -1])

    def chances(model: Any, hidden: Any, chosen: Any) -> Any:
        return model.head(hidden).log_softmax(-1).gather(-1, chosen[..., None])[..., 0]

    future = torch.full((asked + words, asked + words), -1e9).triu(1).to(device)
    policy = Policy().to(device)
    reference = copy.deepcopy(policy).requires_grad_(False)
    optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-4)
    rollouts = []
    for _ in range(3):
        text = torch.randint(0, known, (groups * each, asked + words))
        lengths = torch.where(
            torch.rand(groups * each) < 0.7, words, torch.randint(words // 3, words, (groups * each,))
        )
        rollout = [part.to(device) for part in (text, lengths, torch.rand(groups * each).round())]
        with torch.no_grad():
            rollouts.append([*rollout, chances(policy, policy(rollout[0]), rollout[0][:, asked:])])
    places = torch.arange(words, device=device)
    logged: dict[str, Any] = {}
    count = 0

    def run(reads: bool) -> None:
        nonlocal count
        text, lengths, rewards, old = rollouts[count % len(rollouts)]
        count += 1
        grouped = rewards.view(groups, each)
        spread = grouped.std(1, keepdim=True)
        advantages = ((grouped - grouped.mean(1, keepdim=True)) / (spread + 1e-4)).view(-1, 1)
        mask = places < lengths[:, None]
        advantages, chosen, hidden = advantages.expand(-1, words), text[:, asked:], policy(text)
        with torch.no_grad():
            first = reference(text)
        if reads:
            advantages, chosen, old, hidden, first = (part[mask] for part in (advantages, chosen, old, hidden, first))
        now = chances(policy, hidden, chosen)
        with torch.no_grad():
            then = chances(reference, first, chosen)
        ratio = (now - old).exp()
        clipped = ratio.clamp(0.8, 1.2)
        gained = torch.minimum(ratio * advantages, clipped * advantages)
        drift = (then - now).exp() - (then - now) - 1
        loss = 0.04 * drift - gained
        moved = (ratio.detach() != clipped.detach()).float()
        if reads:
            loss, drift, moved = loss.mean(), drift.detach().mean(), moved.mean()
        else:
            share = mask.float() / mask.sum()
            loss, drift, moved = (loss * share).sum(), (drift.detach() * share).sum(), (moved * share).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        told = {"loss": loss.detach(), "kl": drift, "clipped": moved, "reward": rewards.mean(), "spread": spread.mean()}
        logged.update({name: value.item() for name, value in told.items()} if reads else told)

    return run
