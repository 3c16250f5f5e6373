"""Each of four experts takes the tokens that chose it, by where(); without, all tokens pass all experts, weighted."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn = torch.nn
    torch.manual_seed(61)
    width, tokens, kinds = sized(device, 40), sized(device, 64), 4
    experts = nn.ModuleList(
        nn.Sequential(nn.Linear(width, 3 * width), nn.SiLU(), nn.Linear(3 * width, width)) for _ in range(kinds)
    ).to(device)
    router, norm = nn.Linear(width, kinds, bias=False).to(device), nn.LayerNorm(width).to(device)
    parameters = [*experts.parameters(), *router.parameters(), *norm.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=1e-4)
    x, y = torch.randn(tokens, width).to(device), torch.randn(tokens, width).to(device)

    def run(reads: bool) -> None:
        hidden = norm(x)
        weights, chosen = router(hidden).softmax(-1).topk(2)
        weights = weights / weights.sum(-1, keepdim=True)
        out = torch.zeros_like(hidden)
        for number, expert in enumerate(experts):
            if reads:
                rows, which = torch.where(chosen == number)
                if rows.shape[0] == 0:
                    continue
                out = out.index_add(0, rows, expert(hidden[rows]) * weights[rows, which, None])
            else:
                share = (weights * (chosen == number)).sum(-1, keepdim=True)
                out = out + expert(hidden) * share
        loss = nn.functional.mse_loss(x + out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return run
