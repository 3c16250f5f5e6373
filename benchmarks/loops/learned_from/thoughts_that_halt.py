"""Each word is thought about as long as it needs, up to four times: a `while` asks whether any goes on; without, all are."""

from __future__ import annotations

from typing import Any

from loops import Step


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    large = device.type == "cuda"
    batch, words, width, inner, known, answers = (32, 64, 384, 1024, 5000, 40) if large else (4, 10, 32, 64, 100, 10)
    most, enough = 4, 0.99
    table, halt, head = nn.Embedding(known, width), nn.Linear(width, 1), nn.Linear(width, answers)
    query, key, value = (nn.Linear(width, width) for _ in range(3))
    think = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, inner), nn.ReLU(), nn.Linear(inner, width))
    network = nn.ModuleList([table, halt, head, query, key, value, think]).to(device)
    with torch.no_grad():
        halt.bias.fill_(-3.0)
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-3)
    hops = torch.randn(most, width).to(device) * 0.1
    texts = [torch.randint(0, known, (batch, words)).to(device) for _ in range(4)]
    wanted = [torch.randint(0, answers, (batch,)).to(device) for _ in range(4)]
    count = 0

    def run(reads: bool) -> None:
        nonlocal count
        text, answer = texts[count % 4], wanted[count % 4]
        count += 1
        state = table(text)
        thought, (chance, rest, times) = torch.zeros_like(state), torch.zeros(3, batch, words, device=device).unbind()
        hop = 0
        while ((chance < enough) & (times < most)).any() if reads else hop < most:
            state = state + hops[hop]
            p = halt(state)[..., 0].sigmoid()
            going = (chance < 1).float()
            halted = (chance + p * going > enough).float() * going
            going = (chance + p * going <= enough).float() * going
            chance = chance + p * going
            rest = rest + halted * (1 - chance)
            chance = chance + halted * rest
            times = times + going + halted
            share = (p * going + halted * rest)[..., None]
            weights = (query(state) @ key(state).transpose(1, 2) * width**-0.5).softmax(-1)
            state = state + weights @ value(state)
            state = state + think(state)
            thought = share * state + (1 - share) * thought
            hop += 1
        loss = functional.cross_entropy(head(thought.mean(1)), answer) + 0.01 * (rest + times).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return run
