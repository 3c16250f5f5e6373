"""Attention on the device beside PyTorch's on the CPU in double precision: results, gradients, and gradients of these."""

import pytest
import torch
from effort import in_turns
from torch.nn import functional as F

import syncscope.kernels  # noqa: F401 - registers the device
from syncscope.kernels import fallback, in_c, plans

FORMS = {
    "plain": {},
    "causal": {"is_causal": True},
    "causal, more keys": {"is_causal": True, "keys": 21},
    "scaled": {"scale": 0.3, "keys": 9},  # eight or more: rows of a tile, as in the others
    "numbers added": {"keys": 21, "mask": lambda: torch.randn(13, 21, dtype=torch.float64)},
    "masked": {"mask": lambda: (torch.rand(2, 1, 13, 13) > 0.5).index_fill(2, torch.tensor([4]), False)},
}
TOLERANCE = {torch.float32: 2e-6, torch.float16: 3e-3, torch.bfloat16: 2e-2}


def tensors(dtype, keys):
    """As modules give them: heads of one row side by side."""
    torch.manual_seed(0)
    shapes = [(2, length, 3, 8) for length in (13, keys, keys)]
    return [torch.randn(shape).to(dtype).double().transpose(1, 2) for shape in shapes]


@pytest.mark.parametrize(("form", "dtype"), in_turns([*FORMS], [*TOLERANCE]))
def test_attention_agrees_with_float64_in_value_and_gradient(form, dtype):
    options = dict(FORMS[form])
    given = tensors(dtype, options.pop("keys", 13))
    mask = options.pop("mask", lambda: None)()
    theirs = None if mask is None else mask.to("ocl", dtype if mask.is_floating_point() else torch.bool)
    exact = [x.clone().requires_grad_() for x in given]
    expected = F.scaled_dot_product_attention(*exact, attn_mask=mask, **options)
    slope = torch.randn(expected.shape).to(dtype)
    expected.backward(slope.double())
    fallback.counts.clear()
    for _ in range(3):  # worked out, noted down, followed
        ours = [x.to("ocl", dtype).requires_grad_() for x in given]
        found = F.scaled_dot_product_attention(*ours, attn_mask=theirs, **options)
        found.backward(slope.to("ocl"))
        for got, wanted in zip((found, *(x.grad for x in ours)), (expected, *(x.grad for x in exact)), strict=True):
            assert (got.cpu().double() - wanted).abs().max() <= TOLERANCE[dtype] * wanted.abs().max()
    assert not fallback.counts


def test_attention_has_gradients_of_gradients():
    torch.manual_seed(0)
    given = [torch.randn(1, 2, 2, 3, device="ocl", dtype=torch.float64).requires_grad_() for _ in range(3)]
    assert torch.autograd.gradgradcheck(lambda *x: F.scaled_dot_product_attention(*x, is_causal=True), given)


@pytest.mark.parametrize("options", [{"dropout_p": 0.5}, {"enable_gqa": True}])
def test_what_is_left_to_the_parts(options):
    query = torch.randn(1, 4, 5, 8, device="ocl", requires_grad=True)
    other = torch.randn(1, 2 if "enable_gqa" in options else 4, 5, 8, device="ocl")
    F.scaled_dot_product_attention(query, other, other, **options).sum().backward()
    assert query.grad.isfinite().all()


@pytest.mark.skipif(in_c.module is None, reason="no compiler here")
def test_attention_is_followed_where_it_was_worked_out():
    given = [torch.randn(2, 3, 7, 8, device="ocl") for _ in range(3)]
    made = [F.scaled_dot_product_attention(*given) for _ in range(3)]
    before = plans.decided
    made.append(F.scaled_dot_product_attention(*given))
    assert plans.decided == before
    assert all(torch.equal(made[0], other) for other in made)


def test_attention_within_functions_that_differentiate():
    given = [torch.randn(1, 2, 3, 4, device="ocl") for _ in range(3)]

    def summed(*tensors):
        return F.scaled_dot_product_attention(*tensors).square().sum()

    found = torch.func.grad(summed, argnums=(0, 1, 2))(*given)
    expected = torch.func.grad(summed, argnums=(0, 1, 2))(*(x.cpu() for x in given))
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours.cpu(), theirs)
