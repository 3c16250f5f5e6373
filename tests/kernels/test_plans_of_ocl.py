"""What is enqueued from notes is what the operator would enqueue; what depends on more than its arguments show is not kept."""

import math

import pytest
import torch
from pyopencl import invoker
from torch.nn import functional as F

import syncscope.kernels  # noqa: F401 - registers the device
from syncscope.kernels import plans, queue


@pytest.fixture(autouse=True)
def nothing_kept():
    plans.forget()


def draw(k, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(k))


CASES = {
    "in place": lambda x, y: x.add_(y, alpha=0.5),
    "broadcast": lambda x, y: x * y[:1] + 1,
    "one tensor twice": lambda x, y: x * x,
    "views of one tensor": lambda x, y: torch.sub(x[:2], x[2:]),
    "a product": lambda x, y: x @ y.t(),
    "several results": lambda x, y: torch.cat([z.view(-1) for z in torch.native_layer_norm(x, (6,), y[0], y[1], 1e-5)]),
    "results that share memory": lambda x, y: torch.cat(
        torch.ops.aten.native_layer_norm_backward(
            x, y, (6,), y.mean(1, keepdim=True), 1 / y.std(1, keepdim=True), x[0], x[1], (True, True, True)
        )[1:]
    ),
    "a list": lambda x, y: torch.cat([x, y, x]),
    "several kernels": lambda x, y: F.cross_entropy(x, torch.tensor([0, 5, 2, 1], device=x.device)),
    "a cast": lambda x, y: (x > y).sum(dtype=torch.float64).float(),
    "numbers of one value and two types": lambda x, y: (x * 2).sum() + (x.int() * 2).sum() + (x.int() * 2.0).sum(),
}


@pytest.mark.parametrize("name", CASES)
def test_notes_give_what_the_operator_gives(name):
    for k in range(5):
        x, y = draw(k, 4, 6), draw(k + 10, 4, 6)
        expected = CASES[name](x.clone(), y)
        got = CASES[name](x.to("ocl"), y.to("ocl"))
        assert got.dtype == expected.dtype
        torch.testing.assert_close(got.cpu(), expected, rtol=1e-5, atol=1e-5)


def test_the_third_call_enqueues_what_the_first_did():
    x, weight = torch.randn(2, 3, 9, 9, device="ocl"), torch.randn(4, 3, 3, 3, device="ocl")
    counts = []
    for _ in range(5):
        before = queue.launches
        torch.conv2d(x, weight, padding=1)
        counts.append(queue.launches - before)
    assert len(set(counts)) == 1


def test_random_numbers_are_drawn_each_time():
    x = torch.ones(1000, device="ocl")
    sums = {F.dropout(x, 0.5).sum().item() for _ in range(6)}
    assert len(sums) > 1


def test_tensors_that_share_memory_are_told_from_those_that_do_not():
    for _ in range(3):
        x, y = draw(0, 8).to("ocl"), draw(1, 8).to("ocl")
        torch.testing.assert_close((x[:4] * y[:4]).cpu(), draw(0, 8)[:4] * draw(1, 8)[:4])
        torch.testing.assert_close((x[:4] * x[:4]).cpu(), draw(0, 8)[:4] ** 2)
        torch.testing.assert_close((x[:4] * y[4:]).cpu(), draw(0, 8)[:4] * draw(1, 8)[4:])


def test_results_are_new_each_time():
    x = torch.ones(100, device="ocl")
    made = [x + 1 for _ in range(6)]
    for k, one in enumerate(made):
        one.fill_(k)
    assert [one[0].item() for one in made] == list(range(6))
    assert len({one.data_ptr() for one in made}) == 6


def test_errors_are_the_same_each_time():
    x = torch.zeros(3, dtype=torch.int64, device="ocl")
    for _ in range(4):
        with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
            x.add_(1.5)
        with pytest.raises(RuntimeError, match=r"output with shape \[3\] doesn't match the broadcast shape \[2, 3\]"):
            x.add_(torch.zeros(2, 3, dtype=torch.int64, device="ocl"))


def test_an_output_that_grows_has_its_shape_each_time():
    for _ in range(4):
        out = torch.empty(0, device="ocl")
        torch.add(torch.ones(3, device="ocl"), 1, out=out)
        assert out.tolist() == [2, 2, 2]


ZEROS = {
    "filled": lambda x, zero: x.fill_(zero),
    "padded": lambda x, zero: F.pad(x, (1, 1), value=zero)[:1],
    "a list": lambda x, zero: torch._foreach_mul([x, x], [1.0, zero])[1],
}


@pytest.mark.parametrize("name", ZEROS)
def test_a_zero_has_a_sign(name):
    for zero in (0.0, 0.0, 0.0, -0.0, 0.0, -0.0):
        result = ZEROS[name](torch.ones(8, device="ocl"), zero)
        assert result.signbit().tolist() == [math.copysign(1, zero) < 0] * len(result)


def test_the_default_dtype_counts():
    x = torch.arange(1, 4, device="ocl")
    for _ in range(4):
        assert (x / 2).dtype == torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        assert (x / 2).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_an_operator_is_noted_down_without_asking_a_database_on_disk(monkeypatch):
    x = torch.ones(7, device="ocl")
    x * 2.5  # the kernel is there
    monkeypatch.setattr(invoker.invoker_cache, "on_disk", None)
    for _ in range(3):
        y = x * 3.5
    assert y.tolist() == [3.5] * 7


def test_observers_hear_which_operators_were_decided_anew():
    x, heard = torch.ones(7, device="ocl"), []
    queue.observers.append(lambda name, start, how, *_: heard.append(how))
    try:
        for number in (2.5, 2.5, 2.5, 3.5):
            x * number
    finally:
        queue.observers.pop()
    assert heard == [queue.ANEW, queue.ANEW, queue.AS_KNOWN, queue.ANEW]
