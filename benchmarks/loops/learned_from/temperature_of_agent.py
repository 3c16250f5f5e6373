"""Soft actor-critic: three optimizers, the temperature read as a number that weighs two losses; without, a tensor."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(55)
    width, batch, seen, acts = sized(device, 40), sized(device, 32), sized(device, 12), sized(device, 4)

    def net(inputs: int, outputs: int) -> Any:
        return nn.Sequential(
            nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, outputs)
        ).to(device)

    actor, critic, target = net(seen, 2 * acts), net(seen + acts, 1), net(seen + acts, 1)
    target.load_state_dict(critic.state_dict())
    temperature = torch.zeros(1, device=device, requires_grad=True)
    actor_optimizer = torch.optim.Adam(actor.parameters(), lr=3e-4)
    critic_optimizer = torch.optim.Adam(critic.parameters(), lr=3e-4)
    alpha_optimizer = torch.optim.Adam([temperature], lr=3e-4)
    state, after = torch.randn(batch, seen).to(device), torch.randn(batch, seen).to(device)
    action, reward = torch.rand(batch, acts).to(device), torch.randn(batch, 1).to(device)
    noise = torch.randn(batch, acts).to(device)
    log: dict[str, Any] = {}

    def sampled(state: Any) -> tuple[Any, Any]:
        mean, spread = actor(state).chunk(2, -1)
        spread = spread.clamp(-5, 2)
        drawn = torch.tanh(mean + spread.exp() * noise)
        chance = -(0.5 * noise.square() + spread + torch.log(1 - drawn.square() + 1e-6)).sum(-1, keepdim=True)
        return drawn, chance

    def run(reads: bool) -> None:
        alpha = temperature.exp().item() if reads else temperature.detach().exp()
        with torch.no_grad():
            following, chance = sampled(after)
            worth = reward + 0.99 * (target(torch.cat([after, following], -1)) - alpha * chance)
        critic_loss = functional.mse_loss(critic(torch.cat([state, action], -1)), worth)
        critic_optimizer.zero_grad()
        critic_loss.backward()
        critic_optimizer.step()

        drawn, chance = sampled(state)
        actor_loss = (alpha * chance - critic(torch.cat([state, drawn], -1))).mean()
        actor_optimizer.zero_grad()
        actor_loss.backward()
        actor_optimizer.step()

        alpha_loss = -(temperature.exp() * (chance.detach() - acts)).mean()
        alpha_optimizer.zero_grad()
        alpha_loss.backward()
        alpha_optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(target.parameters(), critic.parameters(), strict=True):
                slow.lerp_(fast, 0.005)
        losses = {"critic": critic_loss, "actor": actor_loss, "alpha": alpha_loss}
        for name, loss in losses.items():
            log[name] = loss.item() if reads else loss.detach()

    return run
