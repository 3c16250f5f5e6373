"""Two views of an image are to predict each other; the bar shows the loss and how spread the outputs are; without, kept."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn = torch.nn
    torch.manual_seed(93)
    batch, width = 2 * sized(device, 24), sized(device, 32)
    encoder = nn.Sequential(
        nn.Linear(128, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, width), nn.BatchNorm1d(width)
    ).to(device)
    predictor = nn.Sequential(nn.Linear(width, width // 2), nn.ReLU(), nn.Linear(width // 2, width)).to(device)
    optimizer = torch.optim.SGD([*encoder.parameters(), *predictor.parameters()], lr=0.03, momentum=0.9)
    views = torch.randn(2, batch, 128).to(device)
    shown: dict[str, Any] = {}

    def run(reads: bool) -> None:
        first, second = encoder(views[0]), encoder(views[1])
        alike = nn.functional.cosine_similarity
        loss = (
            -alike(predictor(first), second.detach()).mean() / 2 - alike(predictor(second), first.detach()).mean() / 2
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        spread = nn.functional.normalize(first.detach(), dim=1).std(0).mean()
        shown.update(loss=loss.item() if reads else loss.detach(), spread=spread.item() if reads else spread)

    return run
