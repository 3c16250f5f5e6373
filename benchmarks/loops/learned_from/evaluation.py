"""Eight batches are classified, each prediction goes to the CPU at once; without, all of them in one copy at the end."""

from __future__ import annotations

from typing import Any

from loops import Step, sized, work


def loop(torch: Any, device: Any) -> Step:
    torch.manual_seed(3)
    width, inner, batch = sized(device, 384), sized(device, 768), sized(device, 96)
    net = torch.nn.Sequential(torch.nn.Linear(width, inner), torch.nn.ReLU(), torch.nn.Linear(inner, 64)).to(device)
    batches = [torch.randn(batch, width).to(device) for _ in range(8)]

    def run(reads: bool) -> None:
        found = []
        with torch.no_grad():
            for x in batches:
                best = net(x).argmax(1)
                found.append(best.cpu() if reads else best)
                work(1.5)
            if reads:
                torch.cat(found)
            else:
                torch.cat(found).cpu()

    return run
