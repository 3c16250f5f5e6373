"""Half precision on the device: torch.autocast and GradScaler as on CUDA, and operators called with halves directly."""

import functools
import itertools
import re
from pathlib import Path

import pytest
import sweep
import torch
from effort import EFFORT, SEARCHING
from torch import nn

from syncscope.kernels import autocast, casts, fallback

pytestmark = pytest.mark.xdist_group("samples")  # with those of all operators: PyTorch's tables are read once
HALVES = {torch.float16: 5e-3, torch.bfloat16: 4e-2}
PLAIN = """
    add div.no_rounding_mode exp sum mean amax where cat clone bmm addmm softmax cumsum gather index_select index_add var_mean
    nn.functional.layer_norm nn.functional.group_norm nn.functional.batch_norm nn.functional.conv2d nn.functional.cross_entropy
    nn.functional.max_pool2d nn.functional.adaptive_avg_pool2d nn.functional.embedding nn.functional.gelu
    nn.functional.interpolate.bilinear native_layer_norm
""".split()
# Whose kernels read and write halves as another's do: of each such kind the others are asked.
REPEAT = "div.no_rounding_mode mean amax clone addmm index_add native_layer_norm".split()


# Windows of a larger storage, and the order of equal numbers, of which halves have many.
LEFT = ("as_strided.partial_views", "sort", "argsort", "topk", "msort", "kthvalue", "median")


@functools.cache
def sets():
    """The sample sets by name, each in one of the two dtypes, in turns."""
    found = {}
    for info, dtype in sweep.chosen():
        name = sweep.name(info)
        wanted = [half for half in HALVES if half in info.supported_dtypes("cpu")]
        if wanted and dtype == torch.float32 and name not in (*LEFT, *sweep.SKIPPED) and not name.startswith("sparse"):
            found[name] = info, wanted[len(found) % len(wanted)]
    return found


@pytest.mark.parametrize(
    "name",
    sets() if SEARCHING else [pytest.param(one, marks=[pytest.mark.slow] * (one in REPEAT)) for one in PLAIN],
)
def test_operators_take_halves(name, monkeypatch):
    info, dtype = sets()[name]
    before = dict(fallback.counts)
    monkeypatch.setattr(sweep, "TOLERANCE", HALVES[dtype])
    monkeypatch.setattr(sweep, "LOOSE", True)
    sweep.sweep(info, dtype, sweep.Count(), 2 if EFFORT >= 1 else 1)  # shapes are asked in float32
    if name in PLAIN and not name.startswith("index_"):  # which leave tensors of no dimension to the CPU
        assert fallback.counts == before


def test_the_lists_are_those_of_pytorch():
    header = (Path(torch.__file__).parent / "include/ATen/autocast_mode.h").read_text()

    def listed(macro):
        body = re.search(rf"#define {macro}\(_\)(.*?)\n\n", header, re.DOTALL)[1]
        return {
            ".".join(filter(None, (name, variant)))
            for name, variant in re.findall(r"\b_\((\w+)(?:, (\w+))?\)", body)
            if "dimname" not in variant.lower()  # names of dimensions, before torch 2.13: they call what is listed
        }

    def ours(names):
        return set(filter(autocast.casts_on_cuda, names.split()))

    assert ours(autocast.LOWER) == listed("AT_FORALL_LOWER_PRECISION_FP")
    assert ours(autocast.FLOAT) == listed("AT_FORALL_FP32")
    assert ours(autocast.FLOAT_RESULT) == listed("AT_FORALL_FP32_SET_OPT_DTYPE")
    assert ours(autocast.WIDEST) == listed("AT_FORALL_PROMOTE")


@pytest.mark.parametrize("dtype", HALVES)
def test_types_in_a_region(dtype):
    x, weight = torch.randn(4, 6, device="ocl"), torch.randn(3, 6, device="ocl")
    with torch.autocast("ocl", dtype=dtype):
        product = nn.functional.linear(x, weight)
        assert product.dtype == dtype
        assert (product + product).dtype == dtype
        assert torch.relu(product).dtype == dtype
        for wide in (
            product.softmax(1), product.exp(), product.sum(), product.norm(), product.norm(dim=1), product.cumsum(0),
            nn.functional.layer_norm(product, (3,)), nn.functional.mse_loss(product, product + 1),
            torch.addcmul(x, x.to(dtype), x.to(dtype)), x.double() @ x.double().T,
        ):  # fmt: skip
            assert wide.dtype in (torch.float32, torch.float64)
        assert product.sum(dtype=dtype).dtype == dtype
        assert (x.long() + 1).dtype == torch.int64
        with torch.autocast("ocl", enabled=False):
            assert (x @ x.T).dtype == torch.float32
        with pytest.raises(RuntimeError, match="binary_cross_entropy_with_logits"):
            nn.functional.binary_cross_entropy(product.sigmoid(), product.detach())
    assert (x @ x.T).dtype == torch.float32
    torch.testing.assert_close(product.cpu(), (x.cpu() @ weight.cpu().T).to(dtype), rtol=3e-2, atol=3e-2)


def test_softmax_widens_without_a_copy(launched):
    x = torch.randn(6, 9).half()
    for name in ("softmax", "log_softmax"):
        there, here = x.to("ocl").requires_grad_(), x.clone().requires_grad_()
        before = launched()
        with torch.autocast("ocl", dtype=torch.float16):
            made = getattr(there, name)(1)
        assert launched() == before + 1
        made.backward(torch.ones_like(made) * made.detach())
        getattr(here.float(), name)(1).pow(2).div(2).sum().backward()
        assert made.dtype == torch.float32
        assert there.grad.dtype == torch.float16
        torch.testing.assert_close(there.grad.cpu(), here.grad, rtol=2e-3, atol=2e-3)


def test_a_parameter_is_cast_once_in_a_region_and_anew_in_the_next():
    layer = nn.Linear(5, 5, bias=False, device="ocl")
    x = torch.ones(2, 5, device="ocl")
    with torch.autocast("ocl", dtype=torch.bfloat16):
        layer(layer(x)).sum().backward()
        assert len(casts._there) == 1
        with torch.no_grad():
            assert not layer(x).requires_grad
        assert layer(x).requires_grad
    assert not casts._there
    assert layer.weight.grad.dtype == torch.float32
    with torch.no_grad():
        layer.weight.fill_(2)
    with torch.autocast("ocl", dtype=torch.bfloat16):
        assert layer(x)[0, 0].item() == 10


class Classifier(nn.Module):
    """A little of everything that a ResNet has."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
        self.norm, self.last = nn.BatchNorm2d(8), nn.Linear(8, 5)

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.norm(self.first(x))), 2)
        return self.last(torch.relu(x + self.second(x)).mean((2, 3)))


class Language(nn.Module):
    """A GPT of one layer."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(5, 16)
        self.block = nn.TransformerEncoderLayer(16, 2, 32, 0.0, "gelu", batch_first=True, norm_first=True)
        self.last = nn.Linear(16, 5)

    def forward(self, x):
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1], device=x.device)
        return self.last(self.block(self.words(x), src_mask=mask, is_causal=True)).flatten(0, 1)


ONCE = [(Classifier, False, torch.float16)]  # the dtype whose gradients are scaled


def trained(kind, dtype, fused):
    torch.manual_seed(0)
    x, y = (
        (torch.randn(8, 3, 8, 8), torch.arange(8) % 5) if kind is Classifier else (torch.arange(16).view(2, 8) % 5,) * 2
    )
    model = kind().to("ocl")
    optimizer = (
        torch.optim.SGD(model.parameters(), 0.1, 0.9, fused=fused)
        if kind is Classifier
        else torch.optim.AdamW(model.parameters(), 1e-2, fused=fused)
    )
    scaler = torch.amp.GradScaler("ocl", init_scale=2.0**12, enabled=dtype == torch.float16)
    x, y, losses = x.to("ocl"), y.flatten().to("ocl"), []
    for _ in range(20):
        optimizer.zero_grad()
        with torch.autocast("ocl", dtype=dtype or torch.float16, enabled=dtype is not None):
            loss = nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.detach())
    return torch.stack(losses).cpu()


@pytest.mark.parametrize(
    ("kind", "fused", "dtype"),
    [
        pytest.param(*case, marks=() if case in ONCE else pytest.mark.slow)
        for case in itertools.product([Classifier, Language], [False, True], HALVES)
    ],
)
def test_training_follows_that_in_float32(kind, fused, dtype):
    before = dict(fallback.counts)
    wide = trained(kind, None, fused)
    off = {torch.float16: 0.02, torch.bfloat16: 0.1}[dtype]
    assert (trained(kind, dtype, fused) - wide).abs().max() < off * wide[0]
    assert wide[-1] < wide[0] / 2
    assert fallback.counts == before


@pytest.mark.parametrize("fused", [False, True])
def test_a_step_with_an_infinity_is_left_out_and_the_scale_comes_down(fused):
    layer = nn.Linear(3, 3, device="ocl")
    optimizer = torch.optim.SGD(layer.parameters(), 0.1, 0.9, fused=fused)
    scaler = torch.amp.GradScaler("ocl", init_scale=8.0, growth_interval=2)
    x, before = torch.ones(2, 3, device="ocl"), layer.weight.detach().clone()
    for factor, scale in ((float("inf"), 4.0), (1.0, 4.0), (1.0, 8.0)):
        optimizer.zero_grad()
        scaler.scale((layer(x) * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        assert scaler.get_scale() == scale
    torch.testing.assert_close((before - layer.weight).cpu(), torch.full((3, 3), 0.1 * 2 + 0.1 * 2 * 1.9))


def test_what_nobody_has_says_so():
    with pytest.raises(NotImplementedError, match=r"ocl has no kernel of aten::.* and neither has the CPU"):
        torch.linalg.cholesky(torch.eye(3, dtype=torch.float16, device="ocl"))


def rows(count):
    return nn.Sequential(*(nn.Linear(5, 5) for _ in range(count))).to("ocl")


def in_a_region(model, x):
    with torch.autocast("ocl", dtype=torch.bfloat16):
        return model(x)


def test_what_a_region_casts_the_next_one_casts_together(launched):
    model, x = rows(6), torch.randn(3, 5, device="ocl")
    gradients, launches = [], []
    for _ in range(4):
        model.zero_grad()
        before = launched()
        in_a_region(model, x).sum().backward()
        launches.append(launched() - before)
        gradients.append([p.grad.cpu() for p in model.parameters()])
    assert launches[0] - launches[-1] == 2 * 12 - 2  # weights and biases, there and back
    for later in gradients[1:]:
        assert all(torch.equal(a, b) for a, b in zip(gradients[0], later, strict=True))


def test_of_what_was_cast_together_each_is_as_it_is_when_it_is_used():
    model, x = rows(3), torch.randn(3, 5, device="ocl")
    in_a_region(model, x)
    with torch.autocast("ocl", dtype=torch.bfloat16):
        y = model[0](x)
        with torch.no_grad():
            model[2].bias.fill_(1000)
        assert (model[2](model[1](y)) > 900).all()
    frozen = [p.requires_grad_(False) for p in model[1].parameters()]
    in_a_region(model, x).sum().backward()
    assert all(p.grad is None for p in frozen)
    assert all(p.grad is not None for p in (*model[0].parameters(), *model[2].parameters()))


def test_gradients_of_a_part_of_what_was_cast_together_and_gradients_of_gradients():
    model, x = rows(3), torch.randn(3, 5, device="ocl")
    alone = [torch.autograd.grad(in_a_region(model, x).float().pow(2).sum(), model[k].weight) for k in (2, 0)]
    with torch.autocast("ocl", dtype=torch.bfloat16):
        loss = model(x).float().pow(2).sum()
    for k, (expected,) in zip((2, 0), alone, strict=True):
        (made,) = torch.autograd.grad(loss, model[k].weight, retain_graph=True, create_graph=True)
        assert torch.equal(made, expected)
    (second,) = torch.autograd.grad(made.sum(), model[0].weight)
    assert second.abs().sum() > 0
    with torch.autocast("ocl", dtype=torch.bfloat16):
        model[1](x).sum().backward()  # another first parameter, and only two
    assert model[0].weight.grad is None
