"""What the next steps depend on is put back: the same steps, made twice from a snapshot, compute the same bits."""

import gc
import random
from types import SimpleNamespace

import pytest
from effort import in_turns

torch = pytest.importorskip("torch")
import numpy as np  # noqa: E402

from syncscope.verify import snapshot  # noqa: E402
from syncscope.verify.snapshot import Snapshot  # noqa: E402

ON_GPU = pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"))
DEVICES = pytest.mark.parametrize("device", ["cpu", ON_GPU])


class Training:
    """Everything that a step may depend on, in objects of torch and in one of one's own."""

    def __init__(self, optimizer: str, device: str = "cpu") -> None:
        self.device = device
        torch.manual_seed(0)
        layers = torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 3)
        self.model = torch.nn.Sequential(*layers).to(device)
        options = {"momentum": 0.9} if optimizer == "SGD" else {}
        self.optimizer = getattr(torch.optim, optimizer)(self.model.parameters(), lr=0.1, **options)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 10)
        self.average = [p.detach().clone() for p in self.model.parameters()]
        self.drawn = np.random.default_rng(1)
        self.own = torch.Generator(device).manual_seed(3)
        self.seen, self.history = 0, []

    def step(self) -> float:
        x = (
            torch.randn(6, 4, device=self.device)
            + random.random()
            + float(self.drawn.random())
            + float(np.random.rand())
        )
        x = x + torch.randn(6, 4, generator=self.own, device=self.device) + torch.randn(6, 4).to(self.device)
        self.optimizer.zero_grad(set_to_none=self.seen % 2 == 0)
        loss = self.model(x).square().mean()
        loss.backward()
        self.optimizer.step()
        self.schedule.step()
        self.seen += 1
        self.history.append(float(loss.detach()))
        for mine, p in zip(self.average, self.model.parameters(), strict=True):
            mine.lerp_(p.detach(), 0.1)
        return self.history[-1] + float(self.average[0].sum())


@pytest.mark.parametrize(("optimizer", "before"), in_turns(["SGD", "Adam", "RMSprop"], [3, 0]))
@DEVICES
def test_the_same_steps_compute_the_same_bits(optimizer: str, before: int, device: str) -> None:
    training = Training(optimizer, device)
    for _ in range(before):
        training.step()
    taken = Snapshot()
    first = [training.step() for _ in range(4)]
    rate = training.optimizer.param_groups[0]["lr"]
    for _ in range(2):
        taken.put_back()
        assert (training.seen, len(training.history)) == (before, before)
        assert [training.step() for _ in range(4)] == first
        assert training.optimizer.param_groups[0]["lr"] == rate


@DEVICES
def test_tensors_stay_the_same_objects_and_no_graph_is_told(device: str) -> None:
    training = Training("Adam", device)
    training.step()
    weight = training.model[0].weight
    kept = (weight * weight).sum()  # a graph that is still to be gone back through
    taken = Snapshot()
    training.model(torch.randn(6, 4, device=device)).sum().backward()
    taken.put_back()
    kept.backward()
    assert training.model[0].weight is weight


@DEVICES
def test_what_no_step_had_made_is_gone_again(device: str) -> None:
    training = Training("Adam", device)
    taken = Snapshot()
    assert not training.optimizer.state
    training.step()
    taken.put_back()
    assert not training.optimizer.state
    assert training.model[0].weight.grad is None


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_what_a_full_device_has_no_room_for_is_copied_to_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    training = Training("Adam", "cuda")
    training.step()
    gc.collect()  # what other tests left would go as it likes
    before = torch.cuda.memory_allocated()
    monkeypatch.setattr(snapshot, "PART", 0.0)
    taken = Snapshot()
    assert taken.bytes > 0
    assert torch.cuda.memory_allocated() == before
    first = training.step()
    taken.put_back()
    assert training.step() == first


def test_data_is_not_copied() -> None:
    class Data:
        def __init__(self) -> None:
            self.images = torch.zeros(1 << 25, dtype=torch.uint8)
            self.names = list(range(100_000))

    data = Data()
    assert Snapshot().bytes < data.images.numel()


def test_local_names_of_functions_that_are_under_way_mean_what_they_did() -> None:
    kept = SimpleNamespace(told=(), taken=None)  # which is none of the program's own classes

    def train() -> None:
        count, total, history = 0, 0.5, [0.5]

        def added() -> float:
            return total + 1  # so that it is a cell

        for _ in range(3):
            if kept.taken:
                kept.taken.put_back()
            else:
                kept.taken = Snapshot()
            kept.told += ((count, total, len(history)),)
            count, total = count + 1, added()
            history.append(total)

    train()
    assert kept.told == ((0, 0.5, 1),) * 3
