"""A trust region's direction by eight rounds of conjugate gradients, two numbers read in each; without, they are tensors."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn = torch.nn
    torch.manual_seed(75)
    batch, width, seen, actions = 2 * sized(device, 24), sized(device, 24), 17, 6
    policy = nn.Sequential(
        nn.Linear(seen, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, actions)
    ).to(device)
    parameters = list(policy.parameters())
    states = torch.randn(batch, seen).to(device)
    action, advantage = torch.randint(0, actions, (batch, 1)).to(device), torch.randn(batch, 1).to(device)
    damping, max_kl = 0.1, 1e-4

    def flat(gradients: Any) -> Any:
        return torch.cat([gradient.reshape(-1) for gradient in gradients])

    def number(value: Any, reads: bool) -> Any:
        return value.item() if reads else value

    def run(reads: bool) -> None:
        log_chances = policy(states).log_softmax(-1)
        chosen = log_chances.gather(1, action)
        surrogate = (torch.exp(chosen - chosen.detach()) * advantage).mean()
        gradient = flat(torch.autograd.grad(surrogate, parameters, retain_graph=True))
        kl = (log_chances.detach().exp() * (log_chances.detach() - log_chances)).sum(-1).mean()
        slope = flat(torch.autograd.grad(kl, parameters, create_graph=True))

        def fisher(vector: Any) -> Any:
            return flat(torch.autograd.grad(slope @ vector, parameters, retain_graph=True)) + damping * vector

        x, r, p = torch.zeros_like(gradient), gradient.clone(), gradient.clone()
        rdotr = r @ r
        for _ in range(8):
            curved = fisher(p)
            alpha = rdotr / number(p @ curved, reads)
            x = x + alpha * p
            r = r - alpha * curved
            following = number(r @ r, reads)
            p = r + following / rdotr * p
            rdotr = following
        step = x * torch.sqrt(2 * max_kl / (x @ fisher(x)))
        with torch.no_grad():
            nn.utils.vector_to_parameters(nn.utils.parameters_to_vector(parameters) + step, parameters)

    return run
