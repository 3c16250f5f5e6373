"""A transformer names the few words that are names (one of twelve) by a large head; without, all words, the others ignored."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(42)
    width, words, kinds = sized(device, 32), 32, sized(device, 300)
    sentences = 4 if device.type == "ocl" else 64
    layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).to(device)
    head = nn.Linear(width, kinds).to(device)
    optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=1e-4)
    text = torch.randn(sentences, words, width).to(device)
    labels = torch.randint(0, kinds, (sentences, words)).to(device)
    names = [(torch.rand(sentences, words) < 1 / 12).to(device) for _ in range(5)]
    count = 0

    def run(reads: bool) -> None:
        nonlocal count
        count += 1
        named = names[count % 5]
        hidden = encoder(text)
        if reads:
            loss = functional.cross_entropy(head(hidden[named]), labels[named])
        else:
            targets = labels.masked_fill(~named, -100)
            loss = functional.cross_entropy(head(hidden).flatten(0, 1), targets.flatten(), ignore_index=-100)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return run
