"""A captured step trains as the step itself does; one that cannot be repeated is refused, with the reason."""

import copy

import pytest
import torch
from torch import nn

import syncscope.kernels  # noqa: F401 - registers the device
from syncscope.errors import UserError
from syncscope.kernels import capture, queue


def trainer(make, dropout=0.0):
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 5), nn.Dropout(dropout)]
    model = nn.Sequential(*layers).to("ocl")
    optimizer = make(model.parameters())
    x, y = torch.randn(4, 3, 8, 8).to("ocl"), torch.randint(0, 5, (4,)).to("ocl")

    def step():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return model, x, step


def momentum(parameters):
    return torch.optim.SGD(parameters, lr=0.05, momentum=0.9)


@pytest.mark.parametrize("make", [momentum, lambda p: torch.optim.Adam(p, lr=0.01, fused=True)])
def test_replays_of_a_capture_train_as_plain_steps_do(make):
    plain, seen, step = trainer(make)
    captured, input_, again = trainer(make)
    losses = [step().item() for _ in range(7)]
    graph = torch.ocl.capture(again)  # three steps
    assert graph.result.item() == pytest.approx(losses[2], rel=1e-5)
    disturbing = [torch.full((50, 50), 7.0, device="ocl") for _ in range(50)]  # takes no memory that the graph needs
    for expected in losses[3:]:
        graph.replay()
        assert graph.result.item() == pytest.approx(expected, rel=1e-5)
    assert all((x == 7).all().item() for x in disturbing)
    for x in (seen, input_):
        x.copy_(torch.ones(4, 3, 8, 8))
    expected = step().item()
    graph.replay()
    assert graph.result.item() == pytest.approx(expected, rel=1e-5)
    for a, b in zip(plain.state_dict().values(), captured.state_dict().values(), strict=True):
        torch.testing.assert_close(a.cpu(), b.cpu(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("make", "reason"),
    [(momentum, "write"), (lambda p: torch.optim.Adam(p, foreach=True), "foreach")],
    ids=["random numbers of the CPU", "a number counted on the host"],
)
def test_what_is_not_the_same_each_time_is_refused(make, reason):
    _, x, step = trainer(make)

    def noisy():
        if reason == "write":
            x.normal_(generator=torch.default_generator)
        return step()

    with pytest.raises(UserError, match=f"{reason}.*not the same each time"):
        torch.ocl.capture(noisy)
    step()  # the device is as before


def test_replays_draw_the_dropout_of_plain_steps():
    torch.ocl.manual_seed(1)
    _, _, step = trainer(momentum, dropout=0.5)
    losses = [step().item() for _ in range(6)]
    torch.ocl.manual_seed(1)
    graph = torch.ocl.capture(trainer(momentum, dropout=0.5)[2])
    for expected in losses[3:]:
        graph.replay()
        assert graph.result.item() == pytest.approx(expected, rel=1e-5)


def test_a_step_that_waits_is_refused():
    x = torch.ones(3, device="ocl")
    with pytest.raises(UserError, match=r"the host waits .*_local_scalar_dense"):
        torch.ocl.capture(lambda: x.sum().item())
    assert x.sum().item() == 3


def test_a_deep_copy_may_be_captured_twice():
    _, _, step = trainer(momentum)
    first, second = torch.ocl.capture(step), torch.ocl.capture(step)
    assert len(first) == len(second)
    assert copy.copy(first.result).item() != second.result.item()


def test_an_observer_sees_the_operators_of_a_replay_and_their_lines():
    _, _, step = trainer(momentum)
    graph, seen, steps = torch.ocl.capture(step), [], []
    queue.observers.append(lambda name, *_: seen.append(name))
    capture.replayed.append(steps.append)
    first = queue.launches
    try:
        graph.replay()
    finally:
        queue.observers.pop()
        capture.replayed.pop()
    lines = {
        name: step.__code__.co_firstlineno + k for name, k in (("convolution", 2), ("backward", 3), ("foreach", 4))
    }
    for part, line in lines.items():
        assert any(part in name and name.endswith(f"test_capture_on_ocl.py:{line})") for name in seen), part
    assert all(" (captured at " in name for name in seen)
    assert queue.launches - first > len(lines)
    assert [type(optimizer) for optimizer in steps] == [torch.optim.SGD]
