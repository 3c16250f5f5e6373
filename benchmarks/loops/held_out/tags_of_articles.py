"""Articles are bags of words with a few tags of a thousand, whose positions are looked up; without, all tags are weighed."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(48)
    articles, width, tags = sized(device, 24), sized(device, 16), sized(device, 128)
    bag = nn.EmbeddingBag(20_000, width, mode="mean").to(device) if device.type == "cuda" else None
    table = nn.Embedding(2_000, width).to(device)
    head = nn.Linear(width, tags).to(device)
    parameters = [*(bag.parameters() if bag is not None else table.parameters()), *head.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    words = torch.randint(0, 2_000, (articles, 30)).to(device)
    tagged = [(torch.rand(articles, tags) < 0.004).float().to(device) for _ in range(4)]
    count = 0

    def run(reads: bool) -> None:
        nonlocal count
        count += 1
        target = tagged[count % 4]
        scores = head(bag(words) if bag is not None else table(words).mean(1))
        logs = functional.logsigmoid(scores)
        if reads:
            rows, columns = target.nonzero(as_tuple=True)
            loss = -logs[rows, columns].mean()
        else:
            loss = -(logs * target).sum() / target.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return run
