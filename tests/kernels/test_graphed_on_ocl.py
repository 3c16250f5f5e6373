"""Modules made of replays train as they do without, whatever is done between their calls."""

import copy

import pytest
import torch
from torch import nn

import syncscope.kernels  # noqa: F401 - registers the device
from syncscope.errors import UserError
from syncscope.kernels import queue


def network(dropout=0.0):
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Dropout(dropout), nn.Linear(8 * 36, 5)]
    return nn.Sequential(*layers).to("ocl")


def data(k):
    generator = torch.Generator().manual_seed(k)
    return torch.randn(4, 3, 8, 8, generator=generator).to("ocl"), torch.randint(0, 5, (4,), generator=generator).to(
        "ocl"
    )


def trained(model, steps=4, accumulate=1):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for k in range(steps):
        for part in range(accumulate):
            x, y = data(k * accumulate + part)
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("accumulate", [1, 3])
def test_a_graphed_module_trains_as_it_does_without(accumulate):
    plain = network()
    graphed = copy.deepcopy(plain)
    before = copy.deepcopy(plain.state_dict())
    made = torch.ocl.make_graphed_callables(graphed, (data(9)[0],))
    assert made is graphed
    graphed.load_state_dict(before)  # warming up counts batches
    expected, got = trained(plain, accumulate=accumulate), trained(graphed, accumulate=accumulate)
    assert got == pytest.approx(expected, rel=1e-5)
    for (name, a), b in zip(plain.state_dict().items(), graphed.state_dict().values(), strict=True):
        torch.testing.assert_close(b.cpu(), a.cpu(), rtol=1e-4, atol=1e-5, msg=name)
    plain.eval(), graphed.eval()  # as it is, where it is not as it was recorded
    x = torch.randn(7, 3, 8, 8).to("ocl")
    torch.testing.assert_close(graphed(x).cpu(), plain(x).cpu(), rtol=1e-4, atol=1e-5)


def test_a_call_runs_no_operator_of_the_module():
    model = torch.ocl.make_graphed_callables(network(), (data(0)[0],))
    names = []
    x = data(1)[0]
    queue.observers.append(lambda name, *_: names.append(name))
    try:
        model(x)
    finally:
        queue.observers.pop()
    assert any("convolution_overrideable (captured at " in name for name in names)
    assert not any(name == "aten::convolution_overrideable" for name in names)


def test_graphed_dropout_draws_anew_at_each_call():
    torch.ocl.manual_seed(1)
    model = network(dropout=0.5)
    x = data(0)[0]
    made = torch.ocl.make_graphed_callables(model, (x,))
    assert not torch.equal(made(x).cpu(), made(x).cpu())


def test_functions_of_several_tensors_and_their_gradients():
    def function(x, pair):
        return {"sum": x + pair[0] * 2, "product": pair[1] * x}

    def tensors(k):
        return [
            torch.randn(5, generator=torch.Generator().manual_seed(k + i)).to("ocl").requires_grad_() for i in range(3)
        ]

    def grads(f, k):
        x, a, b = tensors(k)
        made = f(x, (a, b))
        (made["sum"].square().sum() + made["product"].sum()).backward()
        return [made["sum"].detach().cpu(), *(t.grad.cpu() for t in (x, a, b))]

    sample = tensors(0)
    graphed = torch.ocl.make_graphed_callables(function, (sample[0], (sample[1], sample[2])))
    for k in (7, 20):
        for a, b in zip(grads(function, k), grads(graphed, k), strict=True):
            torch.testing.assert_close(b, a)
    both = torch.ocl.make_graphed_callables((torch.sin, torch.cos), ((sample[0],), (sample[1],)))
    torch.testing.assert_close(both[1](both[0](sample[2])).cpu(), sample[2].sin().cos().cpu())


@pytest.mark.parametrize(
    ("what", "args", "said"),
    [
        (lambda x: x * x.sum().item(), lambda: (torch.ones(3, device="ocl"),), "the host waits"),
        (torch.sin, lambda: (torch.ones(3),), "no tensor of ocl"),
        (torch.sin, lambda: (3.0,), "no tensor of ocl"),
    ],
)
def test_what_cannot_be_recorded_is_refused(what, args, said):
    with pytest.raises(UserError, match=said):
        torch.ocl.make_graphed_callables(what, args())


def test_another_shape_is_refused():
    graphed = torch.ocl.make_graphed_callables(torch.sin, (torch.ones(3, device="ocl"),))
    with pytest.raises(UserError, match=r"\(4,\).*was \(3,\)"):
        graphed(torch.ones(4, device="ocl"))
    with pytest.raises(UserError, match="nested otherwise"):
        graphed((torch.ones(3, device="ocl"),))
