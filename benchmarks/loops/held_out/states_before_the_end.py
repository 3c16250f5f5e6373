"""Deep Q-learning: the next state is valued where the game goes on, 95 of 100; without, everywhere, the ends at nought."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn = torch.nn
    torch.manual_seed(74)
    batch, width, seen, actions, gamma, tau = 8 * sized(device, 32), sized(device, 48), 64, 18, 0.99, 0.005

    def network() -> Any:
        return nn.Sequential(
            nn.Linear(seen, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, actions)
        ).to(device)

    policy_net, target_net = network(), network()
    target_net.load_state_dict(policy_net.state_dict())
    criterion = nn.SmoothL1Loss()
    optimizer = torch.optim.AdamW(policy_net.parameters(), lr=1e-4, amsgrad=True)
    memory = 5 * batch
    states, next_states = torch.randn(memory, seen).to(device), torch.randn(memory, seen).to(device)
    taken, rewards = torch.randint(0, actions, (memory, 1)).to(device), torch.randn(memory).to(device)
    ended = (torch.rand(memory) < 0.05).to(device)

    def run(reads: bool) -> None:
        drawn = torch.randint(0, memory, (batch,), device=device)
        non_final_mask = ~ended[drawn]
        state_action_values = policy_net(states[drawn]).gather(1, taken[drawn])
        with torch.no_grad():
            if reads:
                next_state_values = torch.zeros(batch, device=device)
                non_final_next_states = next_states[drawn][non_final_mask]
                next_state_values[non_final_mask] = target_net(non_final_next_states).max(1).values
            else:
                next_state_values = target_net(next_states[drawn]).max(1).values * non_final_mask
        expected = next_state_values * gamma + rewards[drawn]
        loss = criterion(state_action_values, expected.unsqueeze(1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(policy_net.parameters(), 100)
        optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(target_net.parameters(), policy_net.parameters(), strict=True):
                slow.mul_(1 - tau).add_(fast, alpha=tau)

    return run
