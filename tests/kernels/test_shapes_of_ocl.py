"""Kernels come in a shape for CPUs and one for GPUs: both compute the same here, against float64."""

import pytest
import torch
from torch.nn import functional as F

import syncscope.kernels  # noqa: F401 - registers the device
from syncscope.kernels import programs


@pytest.fixture(params=[(1, 8), (64, 1)], ids=["for CPUs", "for GPUs"])
def shape(request, monkeypatch):
    group, width = request.param
    monkeypatch.setattr(programs, "GROUP", group)
    monkeypatch.setattr(programs, "WIDTH", width)


def agrees(function, *inputs, tolerance=1e-5):
    """Whether values and gradients are those of float64, relative to the largest."""
    wide = [x.double().requires_grad_() for x in inputs]
    here = [x.to("ocl").requires_grad_() for x in inputs]
    expected, got = function(*wide), function(*here)
    slope = torch.linspace(-1, 2, expected.numel()).view(expected.shape)
    expected.backward(slope.double())
    got.backward(slope.to("ocl"))
    pairs = [(expected, got), *((a.grad, b.grad) for a, b in zip(wide, here, strict=True))]
    for a, b in pairs:
        error = (a - b.cpu().double()).abs().max() / a.abs().max().clamp_min(1e-3)
        assert error < tolerance, error
    return True


@pytest.mark.parametrize("size", [(3, 4, 5, 7), (2, 6, 70, 90), (5, 4)])
@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_and_its_running_statistics(shape, size, training):
    torch.manual_seed(0)

    def normalized(x, weight, bias):
        mean, var = (torch.full_like(weight, v).detach() for v in (0.5, 2))
        made = F.batch_norm(x, mean, var, weight, bias, training, 0.3)
        return torch.cat([made.flatten(), mean, var])

    assert agrees(normalized, torch.randn(size) + 5, *torch.randn(2, size[1]), tolerance=1e-4)


@pytest.mark.parametrize("size", [(3, 4, 33), (700, 5), (2, 1000)])
def test_layer_norm(shape, size):
    torch.manual_seed(0)
    assert agrees(lambda x, w, b: F.layer_norm(x, size[-1:], w, b), torch.randn(size) + 3, *torch.randn(2, size[-1]))


@pytest.mark.parametrize("size", [(3, 4, 5, 7), (2, 6, 40), (3, 8)])
def test_group_norm(shape, size):
    torch.manual_seed(0)
    assert agrees(lambda x, w, b: F.group_norm(x, 2, w, b), torch.randn(size) + 3, *torch.randn(2, size[1]))
