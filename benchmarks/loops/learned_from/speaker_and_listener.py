"""A speaker and a listener are trained in turns, each by its own optimizer; losses and scores are noted; without, kept."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(45)
    width, batch = sized(device, 48), sized(device, 32)

    def net(out: int) -> Any:
        return nn.Sequential(
            nn.Linear(width, 2 * width), nn.LayerNorm(2 * width), nn.GELU(), nn.Linear(2 * width, out)
        ).to(device)

    speaker, listener = net(width), net(10)
    optimizers = [torch.optim.AdamW(speaker.parameters(), lr=1e-4), torch.optim.RMSprop(listener.parameters(), lr=1e-4)]
    scene, meant = torch.randn(batch, width).to(device), torch.randint(0, 10, (batch,)).to(device)
    notes: list[Any] = []

    def run(reads: bool) -> None:
        notes.clear()
        for optimizer in optimizers:
            heard = listener(speaker(scene))
            loss = functional.cross_entropy(heard, meant)
            for each in optimizers:
                each.zero_grad()
            loss.backward()
            optimizer.step()
            score = (heard.argmax(1) == meant).float().mean()
            notes.extend((loss.item(), score.item()) if reads else (loss.detach(), score))

    return run
