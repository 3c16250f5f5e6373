"""A total stays on the device where all passes of its loop are on one: what says so, and what does not."""

import pytest
from rules.driver import FIXES, findings, fixed

LOOP = """
import torch

def train(models, model, criterion, loader, shards, place):
    total = 0.0
    for {each}:
        {first}
        loss = criterion(model(x), y)
        total += loss.item()
    return total
"""


@pytest.mark.parametrize(
    ("each", "first", "offered"),
    [
        ("x, y in loader", "x = x.to(place); y = y.to(place)", True),
        ("x, y in loader", "x = x.to(place)\n        y = y.to(x.device)", True),
        ("batch in loader", "x = batch[0].cuda()\n        y = batch[1].to(device=x.device)", True),
        ("x, y in loader", "y = y.to(x.device)", False),
        ("x, y in loader", "y = y.to(x.device)\n        x = x.to(place)", False),
        ("model, x in zip(models, shards)", "y = x.float()\n        model = model.to(x.device)", False),
        ("rank, (x, y) in enumerate(loader)", "x = x.to(rank)\n        y = y.to(x.device)", False),
    ],
)
def test_a_total_stays_on_the_device_where_all_passes_are_on_one(each: str, first: str, offered: bool) -> None:
    (found,) = [
        f for f in findings(LOOP.format(each=each, first=first), "host-read") if f.place.line == 9 + first.count("\n")
    ]
    assert (found.fix is not None and found.fix.title.startswith("add up on the device")) is offered


BESIDE = """
import torch

def train(model, criterion, loader):
    total = 0.0
    for step, (x, y) in enumerate(loader):
        loss, other = criterion(model(x), y).mean(), model(y).mean()
        total += loss.item()
        print({"other": other.item()})
    return total
"""


def test_what_is_read_beside_a_total_is_named() -> None:
    (found,) = [f for f in findings(BESIDE, "host-read") if f.place.line == 8]
    assert found.fix is not None
    assert found.fix.changes.endswith("; `other.item()`, another read beside it, stays, and waits as long")


NORMS = """
import torch

class Trainer:
    def update(self):
        total, other = 0.0, 0.0
        for p in self.model.parameters():
            with torch.no_grad():
                total += torch.norm(p, p=2, dtype=torch.float32).item() ** 2
                other += torch.norm(p, p=2).item()
        return total, other
"""


def test_what_is_added_up_without_gradients_and_in_float32_is_added_as_it_is() -> None:
    after = fixed(NORMS, "host-read", allowed=FIXES)
    assert "total += torch.norm(p, p=2, dtype=torch.float32) ** 2\n" in after
    assert "other += torch.norm(p, p=2).float()\n" in after
    tracked = fixed(NORMS.replace("with torch.no_grad()", "if self.on"), "host-read", allowed=FIXES)
    assert "dtype=torch.float32).detach() ** 2\n" in tracked
