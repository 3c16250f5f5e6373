"""LSTMs on the device beside PyTorch's on the CPU: outputs, states and all gradients, in double precision there."""

import pytest
import torch
from torch import nn

import syncscope.kernels  # noqa: F401 - registers the device
from syncscope.kernels import fallback

pytestmark = pytest.mark.usefixtures("exactly")
FORMS = {
    "plain": {},
    "batch first": {"batch_first": True},
    "two layers both ways": {"num_layers": 2, "bidirectional": True},
    "without biases": {"bias": False, "num_layers": 2},
    "projected": {"proj_size": 3},
}


def made(form, dtype, device):
    torch.manual_seed(0)
    model = nn.LSTM(5, 7, **FORMS[form]).to(device, dtype)
    x = torch.randn(4, 3, 5).to(device, dtype).requires_grad_()
    ways = (2 if model.bidirectional else 1) * model.num_layers
    sequences = 4 if model.batch_first else 3
    state = [
        torch.randn(ways, sequences, size).to(device, dtype).requires_grad_() for size in (model.proj_size or 7, 7)
    ]
    return model, x, state


@pytest.mark.parametrize("form", FORMS)
def test_lstms_agree_with_float64_in_value_and_gradient(form):
    found = []
    for dtype, device in ((torch.float64, "cpu"), (torch.float32, "ocl")):
        model, x, state = made(form, dtype, device)
        out, (hidden, cell) = model(x, tuple(state))
        (out.square().sum() + hidden.sin().sum() + cell.cos().sum()).backward()
        found.append([out, hidden, cell, *(y.grad for y in (x, *state, *model.parameters()))])
    for expected, got in zip(*found, strict=True):
        torch.testing.assert_close(got.detach().cpu().double(), expected.detach(), rtol=1e-4, atol=1e-5)


def test_many_steps_and_those_left_over():
    found = []
    for dtype, device in ((torch.float64, "cpu"), (torch.float32, "ocl")):
        torch.manual_seed(0)
        model, x = nn.LSTM(3, 4).to(device, dtype), torch.randn(37, 2, 3)
        for _ in range(3):  # worked out, noted down, followed
            model.zero_grad()
            out, _ = model(x.to(device, dtype))
            out.square().sum().backward()
        found.append([out, *(p.grad for p in model.parameters())])
    for expected, got in zip(*found, strict=True):
        torch.testing.assert_close(got.detach().cpu().double(), expected.detach(), rtol=1e-4, atol=1e-5)


def test_lstms_have_gradients_of_gradients():
    found = []
    for dtype, device in ((torch.float64, "cpu"), (torch.float32, "ocl")):
        model, x, state = made("plain", dtype, device)
        out, _ = model(x, tuple(state))
        (slope,) = torch.autograd.grad(out.square().sum(), x, create_graph=True)
        slope.square().sum().backward()
        found.append([x.grad, *(p.grad for p in model.parameters())])
    for expected, got in zip(*found, strict=True):
        torch.testing.assert_close(got.cpu().double(), expected, rtol=1e-4, atol=1e-5)


def test_without_gradients_and_under_autocast():
    model, x, state = made("plain", torch.float32, "ocl")
    expected = model(x, tuple(state))[0].detach()
    with torch.inference_mode():
        torch.testing.assert_close(model(x, tuple(state))[0].cpu(), expected.cpu())
    with torch.autocast("ocl", torch.bfloat16):
        got = model(x, tuple(state))[0]
    torch.testing.assert_close(got.float().cpu(), expected.cpu(), rtol=0.05, atol=0.05)


def test_a_step_is_two_launches_each_way_and_nothing_falls_back(launched):
    model, x, state = made("plain", torch.float32, "ocl")
    counts = []
    for steps in (1, 3):
        for _ in range(3):
            before, fallen = launched(), sum(fallback.counts.values())
            model(x[:1].repeat(steps + 1, 1, 1), tuple(state))[0].sum().backward()
        counts.append(launched() - before)
        assert sum(fallback.counts.values()) == fallen
    assert counts[1] - counts[0] <= 2 * (4 + 2)  # products may pack an operand, where the device is a CPU
