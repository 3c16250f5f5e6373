"""Clips of many lengths are cut, made louder and padded by three workers; the bar shows loss and hits; without, kept."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


class Clips:
    """Recordings of birds, of which a random part is heard, at a random loudness."""

    def __init__(self, torch: Any, number: int, length: int) -> None:
        self.torch, self.length = torch, length
        self.waves = torch.randn(number, 2 * length)
        self.birds = torch.randint(0, 20, (number,))

    def __len__(self) -> int:
        return len(self.waves)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        start, length = (int(self.torch.randint(self.length // 2, self.length, ())) for _ in range(2))
        return self.waves[index, start : start + length] * (0.5 + self.torch.rand(())), self.birds[index]


def loop(torch: Any, device: Any) -> Step:
    nn = torch.nn
    torch.manual_seed(78)
    length, batch, channels = 2 * sized(device, 512), sized(device, 6), sized(device, 4)

    def collate(clips: list[tuple[Any, Any]]) -> tuple[Any, Any]:
        waves = nn.utils.rnn.pad_sequence([wave for wave, _ in clips], batch_first=True)
        waves = nn.functional.pad(waves, (0, length - waves.shape[1]))
        return waves.unsqueeze(1), torch.stack([bird for _, bird in clips])

    loader = torch.utils.data.DataLoader(
        Clips(torch, 40 * batch, length),
        batch_size=batch,
        shuffle=True,
        num_workers=3,
        collate_fn=collate,
        pin_memory=device.type == "cuda",
        persistent_workers=True,
    )
    model = nn.Sequential(
        nn.Conv1d(1, channels, 64, stride=8),
        nn.BatchNorm1d(channels),
        nn.ReLU(),
        nn.Conv1d(channels, 2 * channels, 9, stride=2),
        nn.BatchNorm1d(2 * channels),
        nn.ReLU(),
        nn.AdaptiveAvgPool1d(1),
        nn.Flatten(),
        nn.Linear(2 * channels, 20),
    ).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    batches: Any = iter(())
    shown: dict[str, Any] = {}

    def run(reads: bool) -> None:
        nonlocal batches
        found = next(batches, None)
        if found is None:
            batches = iter(loader)
            found = next(batches)
        waves, birds = (part.to(device, non_blocking=True) for part in found)
        logits = model(waves)
        loss = criterion(logits, birds)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        hits = (logits.argmax(1) == birds).float().mean()
        shown.update(loss=loss.item() if reads else loss.detach(), hits=hits.item() if reads else hits)

    return run
