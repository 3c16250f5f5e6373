"""Reviews of a DataLoader with three workers, those that were judged rightly counted as numbers; without, on the device."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(47)
    words, width, batch = 40, sized(device, 24), sized(device, 8)
    reviews = torch.utils.data.TensorDataset(
        torch.randint(0, 5000, (100 * batch, words)), torch.randint(0, 2, (100 * batch,))
    )
    loader = torch.utils.data.DataLoader(reviews, batch, shuffle=True, num_workers=3, persistent_workers=True)
    table = nn.Embedding(5000, width).to(device)
    judge = (
        nn.GRU(width, width, batch_first=True).to(device)
        if device.type == "cuda"
        else nn.Linear(width, width).to(device)
    )
    head = nn.Linear(width, 2).to(device)
    optimizer = torch.optim.Adagrad([*table.parameters(), *judge.parameters(), *head.parameters()], lr=1e-2)
    batches: Any = iter(())
    right: Any = 0

    def run(reads: bool) -> None:
        nonlocal batches, right
        found = next(batches, None)
        if found is None:
            batches, right = iter(loader), 0
            found = next(batches)
        text, liked = found[0].to(device), found[1].to(device)
        heard = judge(table(text))
        heard = heard[0] if isinstance(heard, tuple) else heard
        said = head(heard.mean(1))
        optimizer.zero_grad()
        functional.cross_entropy(said, liked).backward()
        optimizer.step()
        hits = (said.argmax(1) == liked).sum()
        right = right + (hits.item() if reads else hits)

    return run
