"""Roads from two workers: what is where, how far, which way it faces; each loss is read and weighs itself; without, tensors."""

from __future__ import annotations

from typing import Any

from loops import Step


class Roads:
    """Pictures of a road with what is to be known of each pixel, turned round now and then."""

    def __init__(self, torch: Any, number: int, side: int) -> None:
        self.torch, self.number = torch, number
        self.pictures = torch.randn(32, 3, side, side)
        self.kinds = torch.randint(0, 7, (32, side, side))
        self.depths = torch.rand(32, 1, side, side) + 0.1
        self.facing = torch.nn.functional.normalize(torch.randn(32, 3, side, side), dim=1)

    def __len__(self) -> int:
        return self.number

    def __getitem__(self, index: int) -> dict[str, Any]:
        turned = bool(self.torch.rand(()) < 0.5)
        parts = {"picture": self.pictures, "kind": self.kinds, "depth": self.depths, "facing": self.facing}
        found = {name: part[index % 32] for name, part in parts.items()}
        return {name: part.flip(-1) if turned else part for name, part in found.items()}


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    large = device.type == "cuda"
    batch, side, channels = (8, 128, 48) if large else (3, 16, 8)
    loader = torch.utils.data.DataLoader(
        Roads(torch, 40 * batch, side),
        batch_size=batch,
        shuffle=True,
        num_workers=2,
        pin_memory=large,
        persistent_workers=True,
    )
    shared = nn.Sequential(
        nn.Conv2d(3, channels, 3, padding=1, bias=False),
        nn.BatchNorm2d(channels),
        nn.ReLU(),
        nn.Conv2d(channels, channels, 3, padding=1, bias=False),
        nn.BatchNorm2d(channels),
        nn.ReLU(),
    )
    heads = nn.ModuleDict(
        {
            name: nn.Sequential(nn.Conv2d(channels, channels, 3, padding=1), nn.ReLU(), nn.Conv2d(channels, out, 1))
            for name, out in (("kind", 7), ("depth", 1), ("facing", 3))
        }
    )
    network = nn.ModuleList([shared, heads]).to(device)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    criteria = {
        "kind": functional.cross_entropy,
        "depth": lambda said, true: (said - true).abs().mean(),
        "facing": lambda said, true: 1 - (functional.normalize(said, dim=1) * true).sum(1).mean(),
    }
    means: dict[bool, dict[str, Any]] = {True: {}, False: {}}
    batches: Any = iter(())

    def run(reads: bool) -> None:
        nonlocal batches
        found = next(batches, None)
        if found is None:
            batches = iter(loader)
            found = next(batches)
        found = {name: part.to(device, non_blocking=True) for name, part in found.items()}
        features = shared(found["picture"])
        loss, usual = 0.0, means[reads]
        for name, criterion in criteria.items():
            wrong = criterion(heads[name](features), found[name])
            now = wrong.item() if reads else wrong.detach()
            usual[name] = 0.9 * usual.get(name, now) + 0.1 * now
            loss = loss + wrong / usual[name]
        optimizer.zero_grad()
        loss.backward()  # type: ignore[attr-defined]  # a number only before the first head
        optimizer.step()

    return run
