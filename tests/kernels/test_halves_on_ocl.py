"""Tensors in half precision: the kernels of float32 read, widen, compute, round and write them, in as many launches."""

import itertools
import re

import pytest
import torch
from effort import in_turns
from torch import nn
from torch.nn import functional as F

from syncscope.kernels import elementwise, fallback, plans, programs, queue
from syncscope.kernels.generate import run

HALVES = (torch.float16, torch.bfloat16)
WORK = {
    "product": ((33, 70), (70, 40), lambda a, b: a @ b),
    "product of transposes": ((70, 33), (40, 70), lambda a, b: a.t() @ b.t()),
    "batch of products": ((3, 20, 24), (3, 24, 36), torch.bmm),
    "linear": ((2, 9, 64), (32, 64), F.linear),
    "linear with a bias": ((2, 9, 64), (32, 64), lambda x, w: F.linear(x, w, w[:, 0])),
    "convolution": ((2, 8, 9, 9), (16, 8, 3, 3), lambda x, w: F.conv2d(x, w, w[:, 0, 0, 0], padding=1)),
    "strided convolution": ((2, 3, 11, 11), (9, 3, 3, 3), lambda x, w: F.conv2d(x, w, stride=2)),
    "grouped convolution": ((2, 16, 7, 7), (16, 4, 3, 3), lambda x, w: F.conv2d(x, w, padding=1, groups=4)),
    "depthwise convolution": ((2, 8, 7, 7), (8, 1, 3, 3), lambda x, w: F.conv2d(x, w, padding=1, groups=8)),
    "transposed convolution": ((2, 8, 5, 5), (8, 6, 4, 4), lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1)),
    "batch norm": ((4, 6, 5, 5), (6,), lambda x, w: F.batch_norm(x, None, None, w, w, training=True)),
    "layer norm": ((7, 40), (40,), lambda x, w: F.layer_norm(x, (40,), w, w)),
    "group norm": ((3, 8, 5, 5), (8,), lambda x, w: F.group_norm(x, 4, w, w)),
    "softmax": ((9, 50), (1,), lambda x, w: F.softmax(x * w, 1)),
    "softmax across": ((5, 9, 6), (1,), lambda x, w: F.log_softmax(x * w, 1)),
    "largest of windows": ((2, 3, 9, 9), (1,), lambda x, w: F.max_pool2d(x * w, 3, 2, 1)),
    "mean of windows": ((2, 3, 9, 9), (1,), lambda x, w: F.adaptive_avg_pool2d(F.avg_pool2d(x * w, 2), 2)),
    "sums": ((2, 300, 9), (1,), lambda x, w: torch.stack([(x * w).sum((0, 1)), (x * w).mean((0, 1))])),
}  # fmt: skip


def results(work, inputs, device, dtype):
    """A result and the gradients of both inputs, on the way that `dtype` is computed there, as float64 on the CPU."""
    given = [x.to(dtype).to(device).detach().requires_grad_() for x in inputs]
    made = work(*given)
    slopes = torch.linspace(-1, 1, made.numel()).view(made.shape).to(inputs[0].dtype).to(dtype).to(device)
    made.backward(slopes)
    return [x.detach().cpu().double() for x in (made, *(x.grad for x in given))]


# A convolution's kernels with other windows, which other tests take in float32: 2 s to build for each; and products that
# read their operands as another does.
ALIKE = ("strided convolution", "transposed convolution", "product of transposes", "linear with a bias")
# Whose kernels for CPUs PyTorch's samples ask in halves, too (`test_autocast_on_ocl.py`), or are those of a convolution.
SAMPLED = (
    "batch of products", "linear", "layer norm", "group norm", "softmax", "softmax across", "largest of windows",
    "mean of windows", "grouped convolution", "depthwise convolution",
)  # fmt: skip


def every_other(*parts):
    """Combinations of two dtypes with others such that each part meets each dtype; the rest find the same, slowly."""
    found = []
    for *rest, dtype in itertools.product(*parts, range(len(HALVES))):
        places = [part.index(value) for part, value in zip(parts, rest, strict=True)]
        same = (sum(places) + dtype) % 2 or rest[0] in ALIKE or (rest[0] in SAMPLED and rest[1] == "cpu")
        marks = pytest.mark.slow if same else ()
        found.append(pytest.param(*rest, HALVES[dtype], marks=marks))
    return found


@pytest.fixture
def shape(request, monkeypatch):
    """Kernels for CPUs and, which any device can run, those for GPUs."""
    if request.param == "cpu" and run.SHAPE == "gpu":
        pytest.skip("a GPU")
    monkeypatch.setattr(run, "SHAPE", request.param)
    run.plan.cache_clear()
    plans.forget()
    yield
    run.plan.cache_clear()
    plans.forget()


@pytest.fixture
def launches():
    """The names of the kernels that are launched, without how a GPU multiplies float32: halves have no such choice."""
    seen = []

    def record(enqueue, *arguments):
        if enqueue is queue.launch:
            seen.append(arguments[0].function_name.partition("_tf32")[0])

    queue.recorders.append(record)
    yield seen
    queue.recorders.remove(record)


@pytest.mark.parametrize(("name", "shape", "dtype"), every_other(list(WORK), ["cpu", "gpu"]), indirect=["shape"])
def test_halves_are_as_exact_as_on_the_cpu_and_take_the_launches_of_float32(name, dtype, shape, launches):
    torch.manual_seed(0)
    *sizes, work = WORK[name]
    inputs = [torch.randn(size).to(dtype) for size in sizes]
    before = dict(fallback.counts)
    true, cpu = results(work, inputs, "cpu", torch.float64), results(work, inputs, "cpu", dtype)
    ours = results(work, inputs, "ocl", dtype)
    taken = list(launches)
    launches.clear()
    results(work, inputs, "ocl", torch.float32)
    assert [x for x in taken if "copy" not in x] == [x for x in launches if "copy" not in x]
    small = 9 if "norm" in name else 0  # weights and their gradients
    assert len(taken) <= len(launches) + small
    for exact, theirs, own in zip(true, cpu, ours, strict=True):
        least = torch.finfo(dtype).eps * exact.abs().max()  # the last digit of the largest
        assert (own - exact).abs().max() <= 2 * max((theirs - exact).abs().max(), least / 2)
    assert fallback.counts == before


def test_every_half_is_read_and_written_as_it_is():
    bits = torch.arange(65536, dtype=torch.int32).to(torch.int16)
    for dtype in HALVES:
        x = bits.view(dtype)
        wide = x.to("ocl").float()
        torch.testing.assert_close(wide.cpu(), x.float(), rtol=0, atol=0, equal_nan=True)
        back = wide.to(dtype).cpu()
        assert torch.equal(back.view(torch.int16)[~x.isnan()], bits[~x.isnan()])
        assert back[x.isnan()].isnan().all()


@pytest.mark.parametrize("dtype", HALVES)
def test_floats_are_rounded_as_on_the_cpu(dtype):
    torch.manual_seed(0)
    x = torch.randint(-(2**31), 2**31 - 1, (1 << 16,), dtype=torch.int32).view(torch.float32)
    x = torch.cat([x[~x.isnan()], torch.randn(1 << 14) * 1e-6, torch.randn(1 << 14) * 65520])
    assert torch.equal(x.to("ocl").to(dtype).cpu().view(torch.int16), x.to(dtype).view(torch.int16))


def test_nvidias_gpus_convert_halves_themselves_wherever_a_gpus_kernel_does():
    prelude, own = ((programs.CL / f"{name}.cl").read_text() for name in ("prelude", "nvidia"))
    # Eight at once are for CPUs.
    of_gpus = {name for name in re.findall(r"#define (\w+_half)\(", prelude) if "8" not in name}
    assert of_gpus == set(re.findall(r"#undef (\w+)", own)) == set(re.findall(r"#define (\w+)\(", own))


@pytest.mark.parametrize(
    ("kind", "fused", "dtype"), in_turns([torch.optim.SGD, torch.optim.AdamW], [True, None], HALVES)
)
def test_parameters_in_half_precision_are_updated_in_as_few_launches(dtype, kind, fused, launches):
    def updated(device, dtype):
        torch.manual_seed(0)
        parameters = [nn.Parameter(torch.randn(40, 3).to(HALVES[0]).to(dtype).to(device)) for _ in range(30)]
        optimizer = kind(parameters, lr=0.1, **({"momentum": 0.9} if kind is torch.optim.SGD else {}), fused=fused)
        for _ in range(3):
            for p in parameters:
                p.grad = torch.full_like(p, 0.5)
            launches.clear()
            norm = nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
        return torch.stack(parameters).detach().cpu().double(), norm.item()

    exact, norm = updated("cpu", torch.float64)
    cpu, _ = updated("cpu", dtype)
    ours, measured = updated("ocl", dtype)
    assert len(launches) < 30
    assert measured == pytest.approx(norm, rel=torch.finfo(dtype).eps)
    assert (ours - exact).abs().max() <= 2 * max(
        (cpu - exact).abs().max(), torch.finfo(dtype).eps * exact.abs().max() / 2
    )


@pytest.mark.parametrize(
    "dtype", [HALVES[0], *(pytest.param(one, marks=pytest.mark.slow) for one in (HALVES[1], torch.float32))]
)
def test_items_take_four_neighbours_wherever_these_lie(dtype, monkeypatch):
    """As on GPUs: at once from multiples of four on, one by one elsewhere and at the end."""
    monkeypatch.setattr(elementwise, "WIDE", 4)
    monkeypatch.setattr(elementwise, "_plans", {})
    plans.forget()
    torch.manual_seed(0)
    for size, first in ((8, 0), (1023, 0), (3, 0), (64, 1), (64, 4)):
        a, b = (torch.randn(size + first).to(dtype) for _ in range(2))
        there = [x.to("ocl")[first:] for x in (a, b)]
        for work in (torch.add, lambda x, y: F.gelu(x) * y, lambda x, y: x.double() - y, lambda x, y: x.float() * 3):
            torch.testing.assert_close(work(*there).cpu(), work(a[first:], b[first:]))
    a, b = (torch.randn(6, 5, 12).to(dtype) for _ in range(2))
    cuts = (
        (slice(1, 4), slice(None), slice(4, 12)),
        (slice(None), slice(0, 5, 2), slice(0, 8)),
        (slice(2, 3), slice(None), slice(1, 9)),
    )
    for cut in cuts:
        for turn in (lambda x: x, lambda x: x.transpose(0, 1)):
            ours, theirs = ([turn(x[cut]) for x in both] for both in ((a.to("ocl"), b.to("ocl")), (a, b)))
            torch.testing.assert_close((ours[0] * ours[1]).cpu(), theirs[0] * theirs[1])
            assert torch.equal(ours[0].contiguous().cpu(), theirs[0].contiguous())
            assert torch.equal(ours[0].contiguous().float().cpu(), theirs[0].contiguous().float())
    c = torch.randn(3, 5, 24).to(dtype)
    for first in (0, 8, 3):  # sixteen bytes at once, and one by one
        cut = (slice(None), slice(1, 4), slice(first, first + 16))
        assert torch.equal(c.to("ocl")[cut].transpose(0, 1).contiguous().cpu(), c[cut].transpose(0, 1))
    whole, filled = a.to("ocl"), a.clone()
    whole[:, 1:3, 4:8] += whole[:, 2:4, 8:12] * 2
    filled[:, 1:3, 4:8] += filled[:, 2:4, 8:12] * 2
    torch.testing.assert_close(whole.cpu(), filled)
    plans.forget()


def test_items_take_four_neighbours_of_operators_whose_operands_are_named_as_functions_of_c_are(monkeypatch):
    """An operand `min` is a macro in its kernel: what the kernel is made of may not call `min`."""
    monkeypatch.setattr(elementwise, "WIDE", 4)
    monkeypatch.setattr(elementwise, "_plans", {})
    plans.forget()
    torch.manual_seed(0)
    x, y = torch.randn(1023), torch.randn(1023)
    for work in (torch.clamp_min, torch.clamp_max):
        assert torch.equal(work(x.to("ocl"), y.to("ocl")).cpu(), work(x, y))
    plans.forget()


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_of_every_half_by_a_gpus_own_exponentials_is_rounded_as_the_exact_one(approximate, monkeypatch):
    as_on_a_gpu = elementwise.HELPERS.replace("erfc(", "no_such(").replace("tanh(gelu_inner", "no_such(gelu_inner")
    monkeypatch.setattr(elementwise, "HELPERS", f"#undef ON_GPU\n#define ON_GPU 1\n{as_on_a_gpu}")
    monkeypatch.setattr(elementwise, "_plans", {})
    elementwise._source.cache_clear()
    plans.forget()
    fallback.counts.clear()
    every = torch.arange(1 << 16).to(torch.int16).view(torch.float16)
    every = every[every.isfinite()]
    exact, ours = every.double().requires_grad_(), every.to("ocl").requires_grad_()
    expected, found = (F.gelu(x, approximate=approximate) for x in (exact, ours))
    expected.sum().backward()
    found.backward(torch.ones_like(found))
    assert not fallback.counts
    for wanted, got in ((expected.detach(), found.detach()), (exact.grad, ours.grad)):
        step = wanted.abs().clamp_min(2**-14).log2().floor().exp2() * 2**-10  # from one half to the next
        assert ((got.cpu().double() - wanted).abs() <= 0.51 * step + 2e-6 * (wanted is exact.grad)).all()
    elementwise._source.cache_clear()
    plans.forget()


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("inner", [4, 8, 3])
def test_gradients_of_parts_lie_amid_zeros(inner, dtype):
    x = torch.randn(3, 5, inner).to(dtype)
    for cut in (lambda x: x[1], lambda x: x[:, 3], lambda x: x[:, 1:4:2], lambda x: x[..., 1:]):
        grads = []
        for device in ("ocl", "cpu"):
            there = x.clone().to(device).requires_grad_()
            slope = torch.arange(1, 1 + 2 * cut(x).numel(), device=device).to(dtype)[1::2].reshape(cut(x).shape)
            cut(there).backward(slope)
            grads.append(there.grad.cpu())
        assert torch.equal(*grads)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_an_operator_that_widens_its_argument_first_stays_itself_when_repeated(dtype):
    x = torch.randint(0, 9, (7, 3, 5)).to(dtype)  # small whole numbers: sums are exact
    given = x.to("ocl")
    for _ in range(4):
        assert torch.equal(given.cumsum(0).cpu(), x.cumsum(0))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("numbers", [{}, {"nan": 2.0, "posinf": 7.0}, {"neginf": -3.0}], ids=str)
def test_an_infinity_becomes_the_largest_number_of_the_tensors_own_dtype(dtype, numbers):
    x = torch.tensor([torch.inf, -torch.inf, torch.nan, 1.5], dtype=dtype)
    there = x.to("ocl").nan_to_num(**numbers)
    assert there.dtype == dtype
    assert torch.equal(there.cpu(), x.nan_to_num(**numbers))
