"""In four layers tokens are sorted by the expert that they chose, and the lengths are read; without, queues of fixed length."""

from __future__ import annotations

from typing import Any

from loops import Step


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    tokens, width, inner, experts, classes = (4096, 512, 1024, 8, 64) if device.type == "cuda" else (96, 24, 48, 4, 10)
    # twice as much as if all were chosen alike; who comes later is let through as he is
    longest = 2 * tokens // experts

    class Experts(nn.Module):  # type: ignore[name-defined]  # torch is a parameter
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.router = nn.LayerNorm(width), nn.Linear(width, experts, bias=False)
            self.rise = nn.Parameter(torch.randn(experts, width, inner) * width**-0.5)
            self.fall = nn.Parameter(torch.randn(experts, inner, width) * inner**-0.5)

        def forward(self, x: Any, reads: bool) -> Any:
            chances = self.router(self.norm(x)).softmax(-1)
            gate, chosen = chances.max(-1)
            taken = torch.zeros_like(chances).scatter_(1, chosen[:, None], 1.0)
            even = experts * (taken.mean(0) * chances.mean(0)).sum()
            made = (self.in_pieces if reads else self.in_queues)(self.norm(x), chosen, taken)
            return x + made * gate[:, None], even

        def in_pieces(self, x: Any, chosen: Any, taken: Any) -> Any:
            order = chosen.argsort()
            lengths = taken.sum(0).long().tolist()
            pieces = [
                functional.silu(piece @ self.rise[number]) @ self.fall[number]
                for number, piece in enumerate(x[order].split(lengths))
                if len(piece)
            ]
            return torch.zeros_like(x).index_copy(0, order, torch.cat(pieces))

        def in_queues(self, x: Any, chosen: Any, taken: Any) -> Any:
            place = (taken.cumsum(0) * taken).sum(1).long() - 1
            fits = place < longest
            slot = torch.where(fits, chosen * longest + place, experts * longest)
            queues = x.new_zeros(experts * longest + 1, width).index_copy(0, slot, x)
            queued = queues[:-1].view(experts, longest, width)
            made = torch.bmm(functional.silu(torch.bmm(queued, self.rise)), self.fall)
            return made.flatten(0, 1)[slot.clamp(max=experts * longest - 1)] * fits[:, None]

    layers = nn.ModuleList(Experts() for _ in range(4)).to(device)
    head = nn.Linear(width, classes).to(device)
    optimizer = torch.optim.AdamW([*layers.parameters(), *head.parameters()], lr=3e-4)
    batches = [
        (torch.randn(tokens, width).to(device), torch.randint(0, classes, (tokens,)).to(device)) for _ in range(3)
    ]
    count = 0

    def run(reads: bool) -> None:
        nonlocal count
        x, wanted = batches[count % len(batches)]
        count += 1
        uneven = 0.0
        for layer in layers:
            x, even = layer(x, reads)
            uneven = uneven + even
        loss = functional.cross_entropy(head(x), wanted) + 0.01 * uneven
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return run
