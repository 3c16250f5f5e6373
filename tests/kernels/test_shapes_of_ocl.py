"""Kernels come in a shape for CPUs and one for GPUs: both compute the same here, against float64."""

import pytest
import torch
from effort import in_turns
from torch.nn import functional as F

import syncscope.kernels  # noqa: F401 - registers the device
from syncscope.kernels import fold, plans, programs, queue


@pytest.fixture(params=[(1, 8), (64, 4)], ids=["for CPUs", "for GPUs"])
def shape(request, monkeypatch):
    group, width = request.param
    monkeypatch.setattr(programs, "GROUP", group)
    monkeypatch.setattr(programs, "WIDTH", width)
    monkeypatch.setattr(fold, "TEAMS", group > 1)
    plans.forget()
    yield
    plans.forget()


def agrees(function, *inputs, tolerance=1e-5):
    """Whether values and gradients are those of float64, relative to the largest."""
    wide = [x.double().requires_grad_() for x in inputs]
    here = [x.to("ocl").requires_grad_() for x in inputs]
    expected, got = function(*wide), function(*here)
    slope = torch.sin(torch.arange(expected.numel()) * 1.7).view(expected.shape)
    expected.backward(slope.double())
    got.backward(slope.to("ocl"))
    pairs = [(expected, got), *((a.grad, b.grad) for a, b in zip(wide, here, strict=True))]
    for a, b in pairs:
        error = (a - b.cpu().double()).abs().max() / a.abs().max().clamp_min(1e-3)
        assert error < tolerance, error
    return True


@pytest.mark.parametrize(("size", "training"), in_turns([(3, 4, 5, 7), (2, 6, 70, 90), (5, 4)], [True, False]))
def test_batch_norm_and_its_running_statistics(shape, size, training):
    torch.manual_seed(0)

    def normalized(x, weight, bias):
        mean, var = (torch.full_like(weight, v).detach() for v in (0.5, 2))
        made = F.batch_norm(x, mean, var, weight, bias, training, 0.3)
        return torch.cat([made.flatten(), mean, var])

    assert agrees(normalized, torch.randn(size) + 5, *torch.randn(2, size[1]), tolerance=1e-4)


def test_lists_are_walked_in_the_shape_of_the_moment(monkeypatch):
    """What is written for one size of work-groups leaves elements out in another: in memory that held something else."""
    parts = [torch.randn(300), torch.randn(50)]
    there = [x.to("ocl") for x in parts]
    for group in (64, 1, 64):
        monkeypatch.setattr(programs, "GROUP", group)
        plans.forget()
        torch.full((350,), 7.0, device="ocl")  # in the memory that the result will have
        assert torch.equal(torch.cat(there).cpu(), torch.cat(parts))
    plans.forget()


@pytest.mark.parametrize("size", [(3, 4, 33), pytest.param((700, 5), marks=pytest.mark.slow), (2, 1000), (2, 1100)])
def test_layer_norm_agrees_with_the_cpu(shape, size):
    torch.manual_seed(0)
    assert agrees(lambda x, w, b: F.layer_norm(x, size[-1:], w, b), torch.randn(size) + 3, *torch.randn(2, size[-1]))


@pytest.mark.parametrize("order", [(1, 0, 2), (2, 0, 1, 3)])
def test_layer_norm_reads_rows_wherever_they_lie(shape, order):
    """As modules leave them that put the sequence before the batch; its result is row-major all the same."""
    torch.manual_seed(0)
    x, slope = (torch.randn(*(3, 4, 5)[: len(order) - 1], 33) for _ in range(2))
    weight, bias = torch.randn(2, 33)

    def through(x, weight, bias):
        made = F.layer_norm(x.permute(order), (33,), weight, bias)
        assert made.is_contiguous()
        return made.permute([order.index(i) for i in range(len(order))]) * slope.to(x.device)

    assert agrees(through, x, weight, bias)


@pytest.mark.parametrize("size", [(3, 4, 5, 7), pytest.param((2, 6, 40), marks=pytest.mark.slow), (3, 8)])
def test_group_norm_agrees_with_the_cpu(shape, size):
    torch.manual_seed(0)
    assert agrees(lambda x, w, b: F.group_norm(x, 2, w, b), torch.randn(size) + 3, *torch.randn(2, size[1]))


@pytest.mark.parametrize(
    ("size", "dims"),
    [
        ((3, 5000), (-1,)),
        pytest.param((3, 5000), (0, -1), marks=pytest.mark.slow),
        ((5000, 40), (0,)),
        ((4, 3, 17, 6), (0, -1)),
    ],
)
def test_sums_and_extremes_agree_with_the_cpu_and_of_equals_the_first_counts(shape, size, dims):
    torch.manual_seed(0)
    x = torch.randn(size)
    x.view(-1)[7] = x.max() + 1  # the largest, twice: the first of them counts
    x.view(-1)[5000 % x.numel()] = x.max()
    there = x.to("ocl")
    torch.testing.assert_close(there.sum(dims).cpu().double(), x.double().sum(dims), rtol=1e-5, atol=1e-3)
    assert torch.equal(there.amax(dims).cpu(), x.amax(dims))
    assert torch.equal(
        there.t().amin(dims).cpu() if x.dim() == 2 else there.amin(dims).cpu(),
        x.t().amin(dims) if x.dim() == 2 else x.amin(dims),
    )
    assert torch.equal(there.argmax(dims[0]).cpu(), x.argmax(dims[0]))
    assert there.argmax().item() == x.argmax().item()
    for a, b in zip(there.max(dims[0]), x.max(dims[0]), strict=True):
        assert torch.equal(a.cpu(), b)


@pytest.mark.parametrize(
    ("size", "function"), in_turns([(3, 4, 33), (700, 5), (2, 1000), (5, 1)], [torch.softmax, torch.log_softmax])
)
def test_softmax_agrees_with_the_cpu_along_either_dimension(shape, size, function):
    torch.manual_seed(0)
    assert agrees(lambda x: function(x, -1), torch.randn(size) * 5)
    assert agrees(lambda x: function(x, 0), torch.randn(size) * 5)
    assert function(torch.tensor([[1.0, float("nan")], [1, -torch.inf]], device="ocl"), -1).isnan().tolist() == [
        [True] * 2,
        [False] * 2,
    ]


ALONG = (
    "sum",
    "mean",
    "prod",
    "amax",
    "argmin",
    "max",
    "sort",
    "cumsum",
    "softmax",
    "logsumexp",
    "any",
    "cummax",
)


@pytest.mark.parametrize("length", [31, 4097, 70_000])
def test_sorts_are_stable_whatever_their_pieces(length):
    x = torch.randint(-40, 40, (2, length)).float()
    x[:, ::97] = torch.nan
    for descending in (False, True):
        values, places = x.sort(stable=True, descending=descending)
        here = x.to("ocl").sort(stable=True, descending=descending)
        assert torch.equal(here[1].cpu(), places)
        torch.testing.assert_close(here[0].cpu(), values, equal_nan=True)


@pytest.mark.parametrize("name", ALONG)
@pytest.mark.parametrize("dim", [0, -1])
def test_a_number_has_the_dimension_that_every_operator_takes(name, dim):
    here, there = (getattr(torch, name)(torch.tensor(3.0, device=device), dim) for device in ("cpu", "ocl"))
    for a, b in zip(
        [here] if torch.is_tensor(here) else here, [there] if torch.is_tensor(there) else there, strict=True
    ):
        assert torch.equal(a, b.cpu())


@pytest.mark.usefixtures("no_plans")
@pytest.mark.parametrize(
    "taken",
    [
        lambda x: x[1],
        lambda x: x[:, -1],
        lambda x: x[..., 2],
        lambda x: x[:, 1:3],
        lambda x: x[:, ::2],
        lambda x: x[1:1],
    ],
)
def test_gradients_of_what_is_taken_out_are_one_launch(taken):
    x, slope = torch.randn(3, 4, 5), torch.randn(taken(torch.empty(3, 4, 5)).shape)
    here, there = x.clone().requires_grad_(), x.to("ocl").requires_grad_()
    (expected,) = torch.autograd.grad(taken(here), here, slope)
    made, moved = taken(there), slope.to("ocl")
    for _ in range(3):
        before = queue.launches
        (got,) = torch.autograd.grad(made, there, moved, retain_graph=True)
        assert queue.launches - before == 1
        assert torch.equal(got.cpu(), expected)


@pytest.mark.usefixtures("no_plans")
@pytest.mark.parametrize("count", [2, 3, 4, 5])
@pytest.mark.parametrize("turned", [lambda x: x.transpose(1, 2), lambda x: x[..., ::2], lambda x: x.transpose(-1, -2)])
def test_a_few_tensors_of_one_layout_are_stacked(turned, count):
    given = [torch.randn(2, 3, 4, 6) for _ in range(count)]
    expected = torch.stack([turned(x) for x in given])
    there = [turned(x.to("ocl")) for x in given]
    for _ in range(3):
        before = queue.launches
        made = torch.stack(there)
        assert count > 4 or queue.launches - before == 1
        assert torch.equal(made.cpu(), expected)


@pytest.mark.usefixtures("no_plans")
def test_whole_numbers_one_after_the_other_are_made_on_the_device():
    for given in ((7,), (3, 20, 4), (9, -3, -2), (5, 5)):
        before = queue.launches
        made = torch.arange(*given, device="ocl")
        assert queue.launches - before == int(made.numel() > 0)
        assert torch.equal(made.cpu(), torch.arange(*given))
