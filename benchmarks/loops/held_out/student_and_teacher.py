"""Distillation: the teacher's sure rows alone count, half of them, and a dictionary of means is kept by the host."""

from __future__ import annotations

from typing import Any

from loops import Step


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    large = device.type == "cuda"
    batch, width, inner, classes = (4096, 512, 1024, 100) if large else (160, 64, 128, 20)

    def network(inner: int) -> Any:
        layers = nn.Linear(width, inner), nn.ReLU(), nn.Linear(inner, inner), nn.ReLU(), nn.Linear(inner, classes)
        return nn.Sequential(*layers).to(device)

    student, teacher = network(inner), network(inner).eval()
    optimizer = torch.optim.SGD(student.parameters(), lr=0.01, momentum=0.9)
    batches = [(torch.randn(batch, width).to(device), torch.randint(0, classes, (batch,)).to(device)) for _ in range(6)]
    with torch.no_grad():
        sure = float(teacher(batches[0][0]).softmax(1).amax(1).median())
    meters = {name: [0.0, 0] for name in ("loss", "soft", "hard", "top1", "top5", "sure")}
    count = 0

    def run(reads: bool) -> None:
        nonlocal count
        x, y = batches[count % len(batches)]
        count += 1
        with torch.no_grad():
            taught = teacher(x).softmax(1)
        logits = student(x)
        confident = taught.amax(1) > sure
        if reads:
            chosen = logits[confident], taught[confident]
            soft = functional.kl_div(chosen[0].log_softmax(1), chosen[1], reduction="batchmean")
        else:
            each = functional.kl_div(logits.log_softmax(1), taught, reduction="none").sum(1)
            soft = (each * confident).sum() / confident.sum()
        hard = functional.cross_entropy(logits, y)
        loss = hard + 0.5 * soft
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            right = logits.topk(5).indices == y[:, None]
            told = {"loss": loss, "soft": soft, "hard": hard, "top1": right[:, 0].float().mean()}
            told |= {"top5": right.any(1).float().mean(), "sure": confident.float().mean()}
        for name, value in told.items():
            if reads:
                meters[name][0] += value.item() * batch
            meters[name][1] += batch

    return run
