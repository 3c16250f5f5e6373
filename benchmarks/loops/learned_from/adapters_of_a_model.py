"""LoRA: four small batches go up, each loss is asked whether it is finite and read; norms of all gradients; without, kept."""

from __future__ import annotations

from typing import Any

from loops import Step


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    large = device.type == "cuda"
    batch, words, width, known, rank, depth = (8, 128, 768, 8000, 16, 4) if large else (2, 10, 32, 120, 4, 2)
    small = 4

    class Adapted(nn.Module):  # type: ignore[name-defined]  # torch is a parameter
        def __init__(self, into: int, out: int) -> None:
            super().__init__()
            self.frozen = nn.Linear(into, out).requires_grad_(False)
            self.down = nn.Parameter(torch.randn(rank, into) * into**-0.5)
            self.up = nn.Parameter(torch.zeros(out, rank))

        def forward(self, x: Any) -> Any:
            return self.frozen(x) + functional.linear(functional.linear(x, self.down), self.up) * 2.0

    class Block(nn.Module):  # type: ignore[name-defined]  # torch is a parameter
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
            self.mixed = Adapted(width, 3 * width)
            self.rise, self.fall = nn.Linear(width, 4 * width), Adapted(4 * width, width)

        def forward(self, x: Any) -> Any:
            query, key, value = self.mixed(self.first(x)).chunk(3, dim=-1)
            x = x + (query @ key.transpose(1, 2) * width**-0.5 + future).softmax(-1) @ value
            return x + self.fall(functional.gelu(self.rise(self.second(x))))

    future = torch.full((words, words), -1e9).triu(1).to(device)
    network = nn.Sequential(nn.Embedding(known, width), *(Block() for _ in range(depth)), nn.LayerNorm(width))
    head = nn.Linear(width, known, bias=False).requires_grad_(False).to(device)
    learnt = {}
    for name, weight in network.to(device).named_parameters():
        weight.requires_grad_(name.endswith((".down", ".up")))
        if weight.requires_grad:
            learnt[name] = weight
    optimizer = torch.optim.AdamW(learnt.values(), lr=2e-4)
    texts = [torch.randint(0, known, (batch, words + 1)) for _ in range(3 * small)]
    pinned = [text.pin_memory() for text in texts] if large else texts
    history: list[Any] = []
    count = 0

    def run(reads: bool) -> None:
        nonlocal count
        optimizer.zero_grad()
        total: Any = 0.0
        for _ in range(small):
            which = count % len(texts)
            count += 1
            text = texts[which].to(device) if reads else pinned[which].to(device, non_blocking=True)
            logits = head(network(text[:, :-1]))
            loss = functional.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten()) / small
            if reads and not torch.isfinite(loss):
                continue
            loss.backward()
            total = total + (loss.item() if reads else loss.detach())
        norms = {name: weight.grad.norm() for name, weight in learnt.items()}
        if reads:
            norms = {name: norm.item() for name, norm in norms.items()}
        whole = nn.utils.clip_grad_norm_(learnt.values(), 1.0)
        if not reads:
            for weight in learnt.values():  # one loss that is no number makes all of them none: nothing is learnt then
                weight.grad.nan_to_num_(0.0)
        optimizer.step()
        history.append((total, whole.item() if reads else whole, norms))
        del history[:-20]

    return run
