"""Every native operator on PyTorch's own samples against the CPU; the gaps are declared, and still gaps."""

import copy
import re
from pathlib import Path

import pytest
import sweep
import torch
from effort import SEARCHING, each_kind
from known_gaps import GAPS

from syncscope.kernels import generator, plans, queue

pytestmark = [
    pytest.mark.xdist_group("samples"),  # with those in halves: PyTorch's tables are read once
    pytest.mark.usefixtures("exactly"),
]
DOCUMENTS = Path(__file__).parents[2]


@pytest.fixture(autouse=True, scope="module")
def numbers_of_the_cpu():
    """As SYNCSCOPE_RANDOM=host has them: samples with random numbers are compared with the CPU's."""
    plans.forget()
    generator.host = True
    yield
    generator.host = False
    plans.forget()


@pytest.mark.parametrize("base", sorted(sweep.bases()))
def test_agrees_with_the_cpu(base):
    for info, dtype in sweep.by_base().get(base, ()):
        name = sweep.name(info)
        if (name, dtype) not in GAPS:
            few = not SEARCHING and name in sweep.REPEATS.split()
            sweep.sweep(info, dtype, sweep.COUNT, 1 if few else sweep.SAMPLES, one_of_each_kind)


def one_of_each_kind(samples):
    return each_kind(samples, lambda numbered: sweep.kind(numbered[1]))


@pytest.mark.parametrize("gap", GAPS, ids=lambda gap: gap[0])
def test_a_declared_gap_is_still_one(gap):
    case = next(c for c in sweep.chosen() if (sweep.name(c[0]), c[1]) == gap)
    with pytest.raises(AssertionError):
        sweep.sweep(*case, sweep.Count())


@pytest.fixture
def ran():
    """Names of the operators that ran natively."""
    seen = set()

    def see(operator, start, how, *_):
        assert how != queue.ON_CPU, operator
        seen.add(operator.removeprefix("aten::"))

    queue.observers.append(see)
    yield seen
    queue.observers.remove(see)


@pytest.mark.parametrize("kind", [torch.nn.LSTM, torch.nn.GRU])
def test_recurrent_networks_agree_with_the_cpu_and_run_natively(kind, ran):
    torch.manual_seed(0)
    here = kind(4, 5, num_layers=2, bidirectional=True)
    there = copy.deepcopy(here).to("ocl")
    x = torch.randn(3, 2, 4)
    expected, got = here(x)[0], there(x.to("ocl"))[0]
    expected.square().sum().backward()
    got.square().sum().backward()
    torch.testing.assert_close(got.cpu(), expected)
    for a, b in zip(here.parameters(), there.parameters(), strict=True):
        torch.testing.assert_close(b.grad.cpu(), a.grad, rtol=1e-4, atol=1e-5)
    assert any("cell_backward" in name or name == "lstm" for name in ran)


@pytest.mark.parametrize(
    "make",
    [
        lambda device: torch.empty(9, device=device).random_(5, 50),
        lambda device: torch.randperm(20, device=device),
        lambda device: torch.empty(3, 4, device=device).normal_(2, 3),
        lambda device: torch.bernoulli(torch.linspace(0, 1, 12).to(device)),
        lambda device: torch.randn(5, 5, device=device),
        lambda device: torch.rand(7, device=device),
    ],
)
def test_random_numbers_repeat_those_of_the_cpu(make, ran):
    torch.manual_seed(3)
    expected = make("cpu")
    torch.manual_seed(3)
    got = make("ocl")
    assert ran
    torch.testing.assert_close(got.cpu(), expected)


@pytest.mark.parametrize(
    "run",
    [
        lambda x: torch.relu_(x.clone()),
        lambda x: torch.nn.functional.hardtanh_(x.clone()),
        lambda x: torch.nn.functional.hardswish(x.clone(), inplace=True),
        lambda x: x.clone().floor_divide_(2),
        lambda x: torch.ops.aten.gelu_(x.clone()),
        lambda x: x.clone().index_copy_(1, torch.tensor([4, 0], device=x.device), x[:, 2:4] * 2),
        lambda x: torch.nansum(x.masked_fill(x > 1, float("nan")), 1),
        lambda x: torch.range(1, 4, device=x.device),
        lambda x: torch._native_batch_norm_legit(x, None, None, x[0] * 0, x[0] * 0 + 1, True, 0.1, 1e-5)[0],
        lambda x: torch.view_as_real(x.to(torch.complex64).conj().resolve_conj()),
        lambda x: torch.nn.functional.silu(x.requires_grad_()).sum().backward() or x.grad,
    ],
)
def test_in_place_and_rare_variants(run, ran):
    x = torch.linspace(-3, 3, 24).view(4, 6)
    torch.testing.assert_close(run(x.to("ocl")).cpu(), run(x.clone()))


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear"])
@pytest.mark.parametrize(
    "how", [{"size": (14, 4)}, {"size": (1, 18)}, {"scale_factor": (2.0, 1.5)}, {"scale_factor": (0.6, 2.3)}]
)
def test_images_are_resized_both_ways(mode, how, ran):
    here = torch.linspace(-1, 1, 2 * 3 * 7 * 9).view(2, 3, 7, 9).square().requires_grad_()
    there = here.detach().to("ocl").requires_grad_()
    expected, got = (torch.nn.functional.interpolate(x, mode=mode, **how) for x in (here, there))
    expected.square().sum().backward()
    got.square().sum().backward()
    torch.testing.assert_close(got.cpu(), expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(there.grad.cpu(), here.grad, rtol=1e-4, atol=1e-4)
    assert any("backward" in name for name in ran)


@pytest.mark.parametrize("document", ["README.md", "docs/device.md"])
def test_documents_say_how_many_operators_are_native(document):
    said = re.findall(r"(\d+)\soperators\s(?:have|in)\skernels", (DOCUMENTS / document).read_text())
    assert said == [str(sweep.number_of_native())]
