"""Layers made of a few launches of others: values and gradients as on the CPU, and nothing that falls back to it."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from syncscope.kernels import fallback

LAYERS = {
    "glu": lambda x: F.glu(x, 1),
    "glu of the last": lambda x: F.glu(x[..., :6]),
    "mirrored 1d": lambda x: F.pad(x[0], (2, 3), "reflect"),
    "mirrored 2d": lambda x: F.pad(x, (3, 1, 0, 2), "reflect"),
    "mirrored 3d": lambda x: F.pad(x[None], (1, 0, 2, 1, 1, 1), "reflect"),
    "mirrored by nothing": lambda x: F.pad(x, (0, 0, 0, 0), "reflect") * 1,
    "repeated 1d": lambda x: F.pad(x[0], (2, 9), "replicate"),
    "repeated 2d": lambda x: F.pad(x, (0, 1, 8, 2), "replicate"),
    "repeated 3d": lambda x: F.pad(x[None], (1, 0, 2, 1, 1, 1), "replicate"),
    "columns": lambda x: F.unfold(x, (3, 2), dilation=(1, 2), padding=(1, 0), stride=(2, 1)),
    "columns of one": lambda x: F.unfold(x[0], 2, stride=3),
    "folded": lambda x: F.fold(x.flatten()[:480].reshape(2, 16, 15), (6, 5), (2, 2), stride=(1, 2), padding=(0, 1)),
    "largest of windows": lambda x: F.adaptive_max_pool2d(x, (2, 7)),
    "largest of all": lambda x: F.adaptive_max_pool2d(x, 1),
    "bicubic": lambda x: F.interpolate(x, scale_factor=1.7, mode="bicubic"),
    "bicubic, corners": lambda x: F.interpolate(x, size=(3, 11), mode="bicubic", align_corners=True),
    "bicubic, antialiased": lambda x: F.interpolate(x, size=(3, 9), mode="bicubic", antialias=True),
    "bilinear, antialiased": lambda x: F.interpolate(x, size=(5, 3), mode="bilinear", antialias=True),
    "taken": lambda x: torch.take(x, torch.tensor([[3, -1], [0, 7]], device=x.device)),
    "median": lambda x: x.median(),
    "median, even": lambda x: x[0, :1, :4, :1].median(),
    "k-th": lambda x: x.kthvalue(3, 2)[0],
    "k-th, kept": lambda x: x.kthvalue(1, 1, keepdim=True)[0],
    "windows of a row": lambda x: x.unfold(3, 5, 2).unfold(1, 2, 2),
    "repeated rows": lambda x: x[0, 0].repeat_interleave(torch.tensor([0, 2, 1, 0, 3, 1], device=x.device), 0),
    "repeated to a size": lambda x: x[0, 0].repeat_interleave(
        torch.tensor([1, 2, 0, 0, 1, 1], device=x.device), 0, output_size=5
    ),
}  # fmt: skip


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_composed_layers_agree_with_the_cpu_in_value_and_gradient(layer):
    torch.manual_seed(0)
    here = torch.randn(2, 4, 6, 14, requires_grad=True)
    there = here.detach().to("ocl").requires_grad_()
    fallback.counts.clear()
    for _ in range(3):  # worked out twice, then followed
        expected, got = layer(here), layer(there)
        torch.testing.assert_close(got.cpu(), expected, rtol=1e-4, atol=1e-5)
        weights = torch.randn_like(expected)
        expected.backward(weights)
        got.backward(weights.to("ocl"))
    torch.testing.assert_close(there.grad.cpu(), here.grad, rtol=1e-4, atol=1e-5)
    assert not fallback.counts


@pytest.mark.parametrize("dim", [0, -1])
def test_weights_by_direction_and_length(dim):
    torch.manual_seed(0)
    here = nn.utils.parametrizations.weight_norm(nn.Linear(5, 3), dim=dim % 2)
    there = copy.deepcopy(here).to("ocl")
    x = torch.randn(4, 5)
    fallback.counts.clear()
    expected, got = here(x), there(x.to("ocl"))
    torch.testing.assert_close(got.cpu(), expected)
    expected.square().sum().backward()
    got.square().sum().backward()
    for a, b in zip(here.parameters(), there.parameters(), strict=True):
        torch.testing.assert_close(b.grad.cpu(), a.grad, rtol=1e-4, atol=1e-5)
    assert not fallback.counts


NUMBERS = {
    "in a list": lambda x: torch.isin(x, torch.tensor([3.0, 5.0], device=x.device)),
    "not in a list": lambda x: torch.isin(x, torch.tensor([3, 5], device=x.device), invert=True),
    "places": lambda x: torch.searchsorted(torch.arange(6.0, device=x.device), x),
    "places from the right": lambda x: torch.searchsorted(torch.arange(6.0, device=x.device), x, right=True),
    "places of a side": lambda x: torch.searchsorted(torch.arange(6.0, device=x.device), x, side="right"),
    "places in rows": lambda x: torch.searchsorted(x.sort(1)[0], x[:, :2].contiguous(), out_int32=True),
    "buckets": lambda x: torch.bucketize(x, torch.tensor([1.0, 3.0, 7.0], device=x.device)),
    "in parts": lambda x: torch.histc(x, 5),
    "in given parts": lambda x: torch.histc(x, 3, 1, 4),
    "of one kind": lambda x: torch.histc(torch.full_like(x, 2), 4),
    "median with a NaN": lambda x: torch.where(x == 3, float("nan"), x).median(),
    "how often": lambda x: torch.repeat_interleave(x.long().flatten()),
    "how often, all zero": lambda x: torch.repeat_interleave(torch.zeros(3, dtype=torch.long, device=x.device)),
}


@pytest.mark.parametrize("find", NUMBERS.values(), ids=NUMBERS)
def test_places_and_counts_found_on_the_device_are_those_of_the_cpu(find):
    x = torch.tensor([[3.0, 1.0, 5.0, 9.0], [0.0, 2.5, 3.0, 4.0]])
    fallback.counts.clear()
    for _ in range(3):
        torch.testing.assert_close(find(x.to("ocl")).cpu(), find(x), equal_nan=True)
    assert not fallback.counts
    gaps = torch.tensor([[float("nan"), 1.0, 5.0, 9.0], [0.0, 2.5, 3.0, 4.0]])
    if find in (NUMBERS["places"], NUMBERS["places from the right"], NUMBERS["buckets"]):
        torch.testing.assert_close(find(gaps.to("ocl")).cpu(), find(gaps))


def test_histc_counts_integers_too():
    experts = torch.tensor([0, 3, 3, 1, 0, 3, 2], dtype=torch.int32)
    got = torch.histc(
        experts.to("ocl"), bins=5, min=0, max=4
    )  # as transformers counts tokens of experts; the CPU cannot
    assert (got.dtype, got.tolist()) == (torch.int32, [2, 1, 1, 3, 0])


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_an_encoder_without_gradients(norm_first, masked):
    torch.manual_seed(0)
    one = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, norm_first=norm_first, activation="gelu")
    here = nn.TransformerEncoder(one, 2).eval()
    there = copy.deepcopy(here).to("ocl")
    x = torch.randn(2, 5, 16)
    padding = torch.tensor([[0, 0, 0, 0, 1], [0, 0, 0, 1, 1]]).bool() if masked else None
    fallback.counts.clear()
    with torch.no_grad():
        expected = here(x, src_key_padding_mask=padding)
        got = there(x.to("ocl"), src_key_padding_mask=padding.to("ocl") if masked else None).cpu()
    seen = ~padding if masked else slice(None)  # what is padded is zero in nested tensors
    torch.testing.assert_close(got[seen], expected[seen], rtol=1e-4, atol=1e-5)
    assert not fallback.counts


@pytest.mark.parametrize("average", [False, True])
def test_attention_and_its_weights_without_gradients(average):
    torch.manual_seed(0)
    here = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    there = copy.deepcopy(here).to("ocl")
    x, hidden = torch.randn(2, 5, 8), torch.ones(5, 5).triu(1).bool()
    fallback.counts.clear()
    with torch.no_grad():
        expected = here(x, x, x, attn_mask=hidden, average_attn_weights=average)
        y = x.to("ocl")
        got = there(y, y, y, attn_mask=hidden.to("ocl"), average_attn_weights=average)
    for a, b in zip(got, expected, strict=True):
        torch.testing.assert_close(a.cpu(), b, rtol=1e-4, atol=1e-5)
    assert not fallback.counts


@pytest.mark.parametrize(
    "sparse",
    [
        lambda: torch.sparse_coo_tensor(torch.tensor([[0], [1]]), torch.ones(1), (2, 2)).to("ocl"),
        lambda: torch.eye(3, device="ocl").to_sparse(),
        lambda: nn.Embedding(4, 2, sparse=True).to("ocl")(torch.tensor([1], device="ocl")).sum().backward(),
    ],
)
def test_that_there_are_no_sparse_tensors_is_said(sparse):
    with pytest.raises(NotImplementedError, match="ocl has no sparse tensors"):
        sparse()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda device: F.pad(torch.ones(1, 1, 3, 3, device=device), (3, 0, 0, 0), "reflect"),
        lambda device: torch.ones(3, device=device).kthvalue(4),
        lambda device: torch.repeat_interleave(torch.tensor([1, -1], device=device)),
    ],
)
def test_what_is_wrong_is_said_in_pytorchs_words(wrong):
    with pytest.raises((RuntimeError, IndexError)) as there:
        wrong("ocl")
    with pytest.raises((RuntimeError, IndexError)) as here:
        wrong("cpu")
    assert str(there.value).split("\n")[0] == str(here.value).split("\n")[0]
