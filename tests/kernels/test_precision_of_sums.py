"""Results that are made of very many numbers are as near to the exact ones as PyTorch's on the CPU."""

import pytest
import torch
from effort import in_turns
from torch.nn.functional import batch_norm

import syncscope.kernels  # noqa: F401
from syncscope.kernels.device import is_gpu

# float32 holds a number to 6e-8. On a GPU a sum is made as CUDA makes it: an item adds up its share one by one.
NEAR = 1e-6 if is_gpu else 1.5e-7


def off(made, exact):
    """Relative, by norm."""
    return float((made.cpu().double() - exact).norm() / exact.norm())


@pytest.mark.parametrize(
    ("reduced", "how"),
    in_turns(
        [
            ((1 << 20,), (0,)),
            ((64, 16384), (1,)),
            ((65536, 16), (0,)),
            ((8, 32, 64, 64), (0, 2, 3)),
            ((300, 77), (0, 1)),
        ],
        [torch.sum, torch.mean, torch.linalg.vector_norm, torch.var],
    ),
)
def test_a_long_sum_loses_no_more_than_its_last_bit(reduced, how):
    shape, dims = reduced
    x = torch.rand(shape, generator=torch.Generator().manual_seed(0)) + 1
    made, exact = how(x.to("ocl"), dim=dims), how(x.double(), dim=dims)
    assert off(made, exact) < NEAR


@pytest.mark.parametrize("shape", [(16, 8, 56, 56), (4, 8, 7, 7), (4096, 8), (2, 3, 200, 100)])
def test_batch_norm_is_as_near_as_its_last_bits(shape):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0)) + 3
    running = [torch.zeros(shape[1], device="ocl"), torch.ones(shape[1], device="ocl")]
    exactly = [x.cpu().double() for x in running]
    made, exact = batch_norm(x.to("ocl"), *running, training=True), batch_norm(x.double(), *exactly, training=True)
    assert off(made, exact) < NEAR
    assert all(off(a, b) < NEAR for a, b in zip(running, exactly, strict=True))


@pytest.mark.parametrize(
    "compute",
    [
        lambda x: x.cumsum(1),
        lambda x: x.softmax(1),
        lambda x: torch.nn.functional.layer_norm(x, x.shape[1:]),
        lambda x: torch.nn.functional.group_norm(x[..., None], 2),
        lambda x: torch.nn.functional.cross_entropy(x.t(), torch.zeros(x.shape[1], dtype=torch.long, device=x.device)),
        lambda x: torch.stack(torch._foreach_norm([x, x[0]])),
        lambda x: torch.nn.functional.adaptive_avg_pool2d(x.view(1, 8, 50, -1), 1),
    ],
    ids=["cumsum", "softmax", "layer norm", "group norm", "cross entropy", "norms of lists", "average"],
)
def test_what_goes_over_long_rows_is_as_near_as_its_last_bits(compute):
    x = torch.rand(8, 20_000, generator=torch.Generator().manual_seed(0))
    assert off(compute(x.to("ocl")), compute(x.double())) < NEAR


@pytest.mark.parametrize("step", [1, 3])
def test_strided_numbers_are_added_up_in_parts_too(step):
    x = (torch.rand(200_000, generator=torch.Generator().manual_seed(0)) + 1)[::step]
    assert off(x.to("ocl").sum(), x.double().sum()) < NEAR


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_a_nan_is_the_largest_and_the_smallest_wherever_it_stands(dtype):
    x = torch.randn(3, 1000).to(dtype)
    x[0, 0], x[1, 777], x[2, 999] = float("nan"), float("nan"), float("-inf")
    for made in (x.to("ocl").amax(1), x.to("ocl").amin(1)):
        assert made.isnan().tolist() == [True, True, False]
    assert x.to("ocl").amin(1)[2].item() == float("-inf")
    assert x.to("ocl").amax(1)[2].item() == x[2].amax().item()
