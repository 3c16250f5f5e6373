"""Attention of halves by tensor cores, its scores never written, beside PyTorch's on the CPU in double precision."""

import pytest
import torch
from torch.nn import functional as F

import syncscope.kernels  # noqa: F401 - registers the device
from syncscope.kernels import fallback, flash, plans

pytestmark = pytest.mark.usefixtures("cores")
FORMS = {
    "plain": {},
    "causal": {"is_causal": True},
    "causal, more keys": {"is_causal": True, "keys": 70},
    "causal, fewer keys": {"is_causal": True, "keys": 9},
    "scaled": {"scale": 0.3, "keys": 5, "width": 24},
    "numbers added": {"keys": 21, "mask": lambda: torch.randn(35, 21, dtype=torch.float64)},
    "masked": {"mask": lambda: (torch.rand(2, 1, 35, 35) > 0.5).index_fill(2, torch.tensor([4]), False)},
}
TOLERANCE = {torch.float16: 3e-3, torch.bfloat16: 2e-2}


def tensors(dtype, keys=35, width=8):
    """As modules give them: heads of one row side by side, and narrow, as a kernel grows with their width."""
    torch.manual_seed(0)
    shapes = [(2, length, 2, width) for length in (35, keys, keys)]
    return [torch.randn(shape).to(dtype).double().transpose(1, 2) for shape in shapes]


def on_ocl(given, dtype, **options):
    """What they see, with gradients for all; none is worked out on the CPU."""
    fallback.counts.clear()
    ours = [x.to("ocl", dtype).requires_grad_() for x in given]
    found = F.scaled_dot_product_attention(*ours, **options)
    found.backward(slope(found).to("ocl"))
    assert not fallback.counts
    return [found.detach(), *(x.grad for x in ours)]


def slope(like):
    return torch.randn(like.shape, generator=torch.Generator().manual_seed(1)).to(like.dtype)


@pytest.fixture
def used(monkeypatch, no_plans):
    """The kernels that are enqueued; those of a plan would not be seen."""
    names, launch = [], flash._launch
    monkeypatch.setattr(flash, "_launch", lambda name, given, **to: (names.append(name), launch(name, given, **to))[1])
    return names


def each_form():
    """What is given with the tensors, in one of the two dtypes, in turns: only what reads and rounds differs between these."""
    for number, form in enumerate(FORMS):
        for dtype in TOLERANCE:
            turn = dtype is list(TOLERANCE)[number % 2]
            yield pytest.param(form, dtype, marks=() if turn else pytest.mark.slow)


@pytest.mark.parametrize(("form", "dtype"), [*each_form()])
def test_scores_that_are_never_written_give_values_and_gradients_of_float64(form, dtype, used):
    options = dict(FORMS[form])
    given = tensors(dtype, options.pop("keys", 35), options.pop("width", 8))
    mask = options.pop("mask", lambda: None)()
    if mask is not None and mask.is_floating_point():
        mask = mask.to(dtype).double()
    exact = [x.clone().requires_grad_() for x in given]
    expected = F.scaled_dot_product_attention(*exact, attn_mask=mask, **options)
    expected.backward(slope(expected.to(dtype)).double())
    theirs = None if mask is None else mask.to("ocl", dtype if mask.is_floating_point() else torch.bool)
    found = on_ocl(given, dtype, attn_mask=theirs, **options)
    assert used == ["flash_forward", "flash_to_query", "flash_to_key_value"]
    for got, wanted in zip(found, (expected, *(x.grad for x in exact)), strict=True):
        assert (got.cpu().double() - wanted).abs().max() <= TOLERANCE[dtype] * wanted.abs().max()


@pytest.mark.parametrize(
    ("tile", "width"), [(64, 8), *(pytest.param(*one, marks=pytest.mark.slow) for one in ((16, 8), (64, 48)))]
)
def test_any_number_of_rows_at_a_time_comes_to_the_same(tile, width, monkeypatch):
    expected = on_ocl(tensors(torch.float16, width=width), torch.float16, is_causal=True)
    monkeypatch.setattr(flash, "TILES", dict.fromkeys(flash.TILES, tile))
    plans.forget()
    found = on_ocl(tensors(torch.float16, width=width), torch.float16, is_causal=True)
    for got, wanted in zip(found, expected, strict=True):
        assert (got.cpu() - wanted.cpu()).abs().max() <= 2e-3 * wanted.abs().max().cpu()


def test_attention_of_halves_repeats_bit_for_bit():
    first, *others = (on_ocl(tensors(torch.bfloat16), torch.bfloat16, is_causal=True) for _ in range(4))
    for other in others:
        assert all(torch.equal(a.cpu(), b.cpu()) for a, b in zip(first, other, strict=True))


def test_what_is_made_lies_as_what_it_was_made_of():
    """So that modules, which put heads side by side again, copy nothing."""
    for order in ((0, 2, 1, 3), (2, 0, 1, 3), (0, 1, 2, 3)):
        inverse = [order.index(i) for i in range(4)]
        given = [torch.randn(2, 2, 35, 8).permute(order).contiguous().permute(inverse) for _ in range(3)]
        assert {x.stride() for x in on_ocl(given, torch.float16)} == {given[0].stride()}


def test_gradients_that_are_not_asked_for_are_none(used):
    query, key, value = (x.to("ocl", torch.float16) for x in tensors(torch.float16))
    whole = on_ocl(tensors(torch.float16), torch.float16)
    for asked, name in ((query, "query"), (value, "value")):
        used.clear()
        asked.requires_grad_()
        out = F.scaled_dot_product_attention(query, key, value)
        out.backward(slope(out).to("ocl"))
        assert torch.equal(asked.grad, whole[1 if name == "query" else 3])
        assert ("flash_to_key_value" in used) == (name == "value")
        asked.requires_grad_(False)


OTHERS = {"not by eight": (12, None), "wider than registers hold": (136, None), "falling scores": (24, -0.3)}


@pytest.mark.parametrize("other", OTHERS)
def test_other_attention_writes_its_scores_as_before(other, used):
    width, scale = OTHERS[other]
    given = tensors(torch.float16, width=width)
    found = on_ocl(given, torch.float16, scale=scale)[0]
    expected = F.scaled_dot_product_attention(*given, scale=scale)
    assert not used
    assert (found.cpu().double() - expected).abs().max() <= 3e-3 * expected.abs().max()


def test_a_gradient_that_is_one_number_spread_out_is_taken(used):
    given = [x.to("ocl", torch.float16).requires_grad_() for x in tensors(torch.float16)]
    F.scaled_dot_product_attention(*given).sum().backward()
    assert len(used) == 3
    rows = given[2].grad.cpu().double().sum(2)
    assert torch.allclose(rows, torch.full_like(rows, 35), rtol=3e-3)
