"""Records what a small network allocates: prints what is said of it as JSON, beside what torch itself counts."""

import json

import torch

import syncscope

WIDE = 4096


def main() -> None:
    """Prints it."""
    model = torch.nn.Sequential(*(torch.nn.Linear(WIDE, WIDE, bias=False) for _ in range(3))).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    x = torch.rand(4 * WIDE, WIDE, device="cuda")
    with syncscope.trace(memory=True, wait=1, active=3) as trace:
        for _ in range(4):
            torch.cuda.reset_peak_memory_stats()
            step(model, optimizer, x)
            trace.step()
    (found,) = trace.report(show=False).memory
    peak = torch.cuda.memory_stats()["requested_bytes.all.peak"]
    held = [[one.name.rpartition("/")[2], one.bytes] for one in found.held if one.count]
    said = {"peak": found.peak, "torch": peak, "held": held, "made_by": found.made_by.name.rpartition("/")[2]}
    print(json.dumps(said | {"batch": 3 * x.nbytes, "allocations": found.allocations, "before": found.before}))


def step(model: torch.nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> None:
    """One step of training."""
    out = model(x)
    out.square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()


if __name__ == "__main__":
    main()
