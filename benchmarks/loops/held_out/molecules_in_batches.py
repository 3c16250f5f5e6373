"""Graphs of many sizes in one batch: how many there are is asked of the device for each pooling; without, it is known."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(64)
    graphs, width = sized(device, 16), sized(device, 24)
    sizes = torch.randint(6, 20, (graphs,))
    nodes = int(sizes.sum())
    batch = torch.repeat_interleave(torch.arange(graphs), sizes).to(device)
    starts = (sizes.cumsum(0) - sizes).repeat_interleave(3 * sizes)
    within = sizes.repeat_interleave(3 * sizes)
    ends = [(starts + (torch.rand(3 * nodes) * within).long()).to(device) for _ in range(2)]
    features, label = torch.randn(nodes, width).to(device), torch.randn(graphs, 1).to(device)
    messages = nn.ModuleList(nn.Linear(width, width) for _ in range(3)).to(device)
    updates = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(3)).to(device)
    head = nn.Linear(3 * width, 1).to(device)
    optimizer = torch.optim.Adam([*messages.parameters(), *updates.parameters(), *head.parameters()], lr=1e-3)
    total: Any = 0.0

    def pooled(hidden: Any, reads: bool) -> Any:
        number = int(batch.max()) + 1 if reads else graphs
        sums = torch.zeros(number, hidden.shape[1], device=device).index_add(0, batch, hidden)
        counts = torch.zeros(number, 1, device=device).index_add(0, batch, torch.ones_like(hidden[:, :1]))
        return sums / counts

    def run(reads: bool) -> None:
        nonlocal total
        hidden, levels = features, []
        for message, update in zip(messages, updates, strict=True):
            received = torch.zeros_like(hidden).index_add(0, ends[1], message(hidden)[ends[0]])
            hidden = torch.relu(update(torch.cat([hidden, received], 1)))
            levels.append(pooled(hidden, reads))
        loss = functional.mse_loss(head(torch.cat(levels, 1)), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += (loss.item() if reads else loss.detach()) * graphs

    return run
