"""Results that are made of very many numbers are as near to the exact ones as PyTorch's on the CPU."""

import pytest
import torch

import syncscope.kernels  # noqa: F401
from syncscope.kernels.device import is_gpu

# float32 holds a number to 6e-8. On a GPU a sum is made as CUDA makes it: an item adds up its share one by one.
NEAR = 1e-6 if is_gpu else 1.5e-7


def off(made, exact):
    """Relative, by norm."""
    return float((made.cpu().double() - exact).norm() / exact.norm())


@pytest.mark.parametrize(
    ("shape", "dims"),
    [((1 << 20,), (0,)), ((64, 16384), (1,)), ((65536, 16), (0,)), ((8, 32, 64, 64), (0, 2, 3)), ((300, 77), (0, 1))],
)
@pytest.mark.parametrize("how", [torch.sum, torch.mean, torch.linalg.vector_norm, torch.var])
def test_a_long_sum_loses_no_more_than_its_last_bit(shape, dims, how):
    x = torch.rand(shape, generator=torch.Generator().manual_seed(0)) + 1
    made, exact = how(x.to("ocl"), dim=dims), how(x.double(), dim=dims)
    assert off(made, exact) < NEAR


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
