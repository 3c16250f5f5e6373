"""Speech from text: each of 48 phonemes is repeated as often as a number on the device says; without, as the loader knew."""

from __future__ import annotations

from typing import Any

from loops import Step


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    large = device.type == "cuda"
    batch, phonemes, longest, known, width, mels = (4, 12, 60, 80, 768, 80) if large else (4, 12, 5, 40, 40, 20)
    table = nn.Embedding(known, width)
    encoder = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
    lasting = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))
    decoder = nn.Sequential(
        nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, mels)
    )
    network = nn.ModuleList([table, encoder, lasting, decoder]).to(device)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-4)
    batches, loaded = [], []
    for _ in range(4):
        lengths = torch.randint(1, longest + 1, (batch, phonemes))
        loaded.append(lengths.tolist())
        text, sound = torch.randint(0, known, (batch, phonemes)), torch.randn(batch, phonemes * longest, mels)
        batches.append([part.to(device) for part in (text, lengths, sound)])
    count = 0

    def longer(hidden: Any, lengths: Any) -> Any:
        """Each vector as often as it lasts, padded to the longest of the batch; and how long each row really is."""
        rows = []
        for row, often in zip(hidden, lengths, strict=True):
            rows.append(torch.cat([vector.expand(max(int(often[n]), 0), -1) for n, vector in enumerate(row)]))
        most = max(len(row) for row in rows)
        return torch.stack([functional.pad(row, (0, 0, 0, most - len(row))) for row in rows])

    def run(reads: bool) -> None:
        nonlocal count
        text, lengths, sound = batches[count % len(batches)]
        known_ones = loaded[count % len(batches)]
        count += 1
        hidden = encoder(table(text))
        guess = lasting(hidden)[..., 0]
        frames = longer(hidden, lengths if reads else known_ones)
        said = torch.arange(frames.shape[1], device=device) < lengths.sum(1, keepdim=True)
        away = (decoder(frames) - sound[:, : frames.shape[1]]).abs().mean(-1)
        loss = (away * said).sum() / said.sum() + functional.mse_loss(guess, (lengths + 1).float().log())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return run
