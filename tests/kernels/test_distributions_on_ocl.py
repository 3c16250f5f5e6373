"""Random numbers of the device are random: shares, moments and correlations of many. Seeds are fixed: what fails, fails for
everybody.
"""

import math

import pytest
import torch
from test_random_on_ocl import drawn

from syncscope.kernels import generator, queue


def chi_square(counts, expected):
    return float(((counts - expected) ** 2 / expected).sum())


def likely(statistic, freedom):
    """Whether a chi-square statistic is no rarer than one in ten thousand, on either side (Wilson and Hilferty, 1931)."""
    z = ((statistic / freedom) ** (1 / 3) - (1 - 2 / (9 * freedom))) / math.sqrt(2 / (9 * freedom))
    return abs(z) < 3.9


N = 400_000


@pytest.mark.parametrize("seed", [0, 1, -1, 2**40 + 3])
def test_uniform_numbers_are_uniform(seed):
    x = drawn(lambda: torch.rand(N, device="ocl"), seed).double()
    assert x.min() >= 0
    assert x.max() < 1
    assert likely(chi_square(torch.histc(x, 1000, 0, 1), N / 1000), 999)
    pairs = torch.histogramdd(torch.stack((x[::2], x[1::2]), 1), [30, 30], range=[0.0, 1.0, 0.0, 1.0]).hist
    assert likely(chi_square(pairs, N / 2 / 900), 899)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_normal_numbers_have_the_moments_of_the_normal_distribution(dtype):
    x = drawn(lambda: torch.randn(N, device="ocl", dtype=dtype)).double()
    for power, expected, spread in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs(float((x**power).mean()) - expected) < 4 * math.sqrt(spread / N)
    shares = torch.histc(torch.special.ndtr(x), 500, 0, 1)
    assert likely(chi_square(shares, N / 500), 499)


@pytest.fixture(scope="module")
def streams():
    """Two of one seed, one after the other, and one of the next seed."""
    torch.ocl.manual_seed(11)
    first, second = (torch.randn(N, device="ocl").cpu().double() for _ in range(2))
    return first, second, drawn(lambda: torch.randn(N, device="ocl"), seed=12).double()


@pytest.mark.parametrize("lag", [1, 2, 255, 256, 1000, 135_168])
def test_streams_are_not_correlated(lag, streams):
    first, second, other = streams
    for a, b in ((first[:-lag], first[lag:]), (first[lag:], second[:-lag]), (first, second), (first, other)):
        assert abs(float((a * b).mean())) < 4 / math.sqrt(len(a))


def test_whole_numbers_and_classes_come_as_often_as_they_should():
    numbers = drawn(lambda: torch.randint(0, 37, (N,), device="ocl"))
    assert likely(chi_square(torch.bincount(numbers, minlength=37).double(), N / 37), 36)
    chances = torch.tensor([0.0, 0.1, 0.2, 0.0, 0.4, 0.3, 0.0])
    rows = chances.to("ocl").expand(N // 10, -1)
    for make in (
        lambda: torch.multinomial(chances.to("ocl"), N, True),
        lambda: torch.multinomial(rows, 1).view(-1),
        lambda: torch.multinomial(rows, 2)[:, 0].clone(),
    ):
        counts = torch.bincount(drawn(make), minlength=7).double()
        assert counts[chances == 0].sum() == 0
        assert likely(chi_square(counts[chances > 0], chances[chances > 0].double() * counts.sum()), 3)


def test_a_class_is_drawn_once_without_replacement():
    classes = drawn(lambda: torch.multinomial(torch.rand(300, 9, device="ocl"), 9))
    assert torch.equal(classes.sort(1)[0], torch.arange(9).expand(300, 9))


@pytest.mark.parametrize("n", [0, 1, 2, 1000, 40_000])
def test_permutations_have_every_number_once(n):
    assert torch.equal(drawn(lambda: torch.randperm(n, device="ocl")).sort()[0], torch.arange(n))


def test_all_permutations_are_as_likely():
    torch.ocl.manual_seed(2)
    each = torch.stack([torch.randperm(4, device="ocl") for _ in range(2400)]).cpu()
    counts = torch.unique(each, dim=0, return_counts=True)[1].double()
    assert len(counts) == 24
    assert likely(chi_square(counts, 100), 23)


def test_equal_keys_of_a_permutation_are_shuffled():
    """With 40,000 numbers some of the keys are equal; left in order, the smaller number would come first always."""
    keys = torch.zeros(5, dtype=torch.int64)
    from syncscope.kernels import programs, storage

    torch.ocl.manual_seed(1)
    seen = set()
    for _ in range(60):
        places = torch.arange(5).to("ocl")
        queue.launch(
            programs.kernel("sampling", "shuffle_equal"), (256,), (256,),
            storage.buffer(keys.to("ocl")), storage.buffer(places), 5, generator.default.draw(5),
        )  # fmt: skip
        seen.add(tuple(places.tolist()))
    assert all(sorted(x) == [0, 1, 2, 3, 4] for x in seen)
    assert len(seen) > 35  # of 120


def test_exponential_and_other_numbers_are_what_they_are_called():
    x = drawn(lambda: torch.empty(N, device="ocl").exponential_(2)).double()
    assert x.min() > 0
    assert likely(chi_square(torch.histc(torch.exp(-2 * x), 200, 0, 1), N / 200), 199)
    x = drawn(lambda: torch.empty(N, device="ocl").cauchy_(1, 2)).double()
    assert likely(chi_square(torch.histc(torch.atan((x - 1) / 2) / math.pi + 0.5, 200, 0, 1), N / 200), 199)
    x = drawn(lambda: torch.empty(N, device="ocl").geometric_(0.25)).double()
    counts = torch.bincount(x.long())[1:9].double()
    assert likely(chi_square(counts, N * 0.25 * 0.75 ** torch.arange(8).double()), 8)
    x = drawn(lambda: torch.empty(N, device="ocl").log_normal_(0.5, 0.25)).double()
    assert abs(float(x.log().mean()) - 0.5) < 4 * 0.25 / math.sqrt(N)
    x = drawn(lambda: torch.empty(N, device="ocl").uniform_(-3, 5)).double()
    assert likely(chi_square(torch.histc(x, 200, -3, 5), N / 200), 199)


@pytest.mark.parametrize("size", [(N,), (399, 1001), (2, 3)])
@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout_keeps_a_share_and_scales_it(size, p):
    x = torch.rand(size) + 1
    torch.ocl.manual_seed(9)
    got, mask = torch.native_dropout(x.to("ocl"), p, True)
    kept = mask.cpu()
    torch.testing.assert_close(got.cpu(), torch.where(kept, x / (1 - p), torch.zeros(())))
    n = kept.numel()
    assert abs(float(kept.double().mean()) - (1 - p)) < 4 * math.sqrt(p * (1 - p) / n)
