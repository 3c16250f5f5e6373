"""Operators over many tensors at once: as the CPU computes them, in few launches."""

import pytest
import torch
from torch import nn

from syncscope.kernels import fallback, lists, operators, plans

FOREACH = sorted(name for name in operators.native if name.startswith("_foreach_") and "norm" not in name)
SIZES = [(3,), (5000,), (2, 3, 4), (), (0,), *[(k, 7) for k in range(1, 14)]]


def arguments(name, device, dtype):
    """What an overload is called with: positive numbers, so that roots and quotients are."""
    torch.manual_seed(0)
    made = []
    for argument in operators.overload(name)._schema.arguments:
        kind = str(argument.type)
        if kind == "List[Tensor]":
            made.append([(torch.rand(size) + 0.5).to(device, dtype) for size in SIZES])
        elif kind == "List[number]":
            made.append([1.5 + k for k in range(len(SIZES))])
        elif kind == "Tensor":
            made.append(torch.tensor(1.25).to(device, dtype))
        elif kind == "number" and argument.default_value is None:
            made.append(0.75)
    return made


@pytest.fixture
def few_slots(monkeypatch):
    """Kernels of eight tensors, built in half the time: the optimizers' tests have those of as many as the device takes."""
    monkeypatch.setattr(lists.Listwise, "slots", lambda self, width: 8)
    plans.forget()
    yield
    plans.forget()


@pytest.mark.parametrize("name", FOREACH)
def test_a_line_is_what_the_cpu_computes(name, few_slots, launched):
    here, there = arguments(name, "cpu", torch.float32), arguments(name, "ocl", torch.float32)
    before = launched()
    expected, got = operators.overload(name)(*here) or here[0], operators.overload(name)(*there) or there[0]
    assert launched() - before < 6
    for a, b in zip(expected, got, strict=True):
        torch.testing.assert_close(b.cpu(), a)


@pytest.mark.parametrize("name", ["_foreach_add_.List", "_foreach_div.Scalar", "_foreach_norm.Scalar"])
def test_what_a_line_cannot_do_is_done_tensor_by_tensor(name):
    mixed = [torch.ones(3), torch.ones(2, dtype=torch.float64), torch.arange(6.0).view(2, 3).t()]
    rest = {"_foreach_add_.List": ([x.clone() for x in mixed],), "_foreach_div.Scalar": (2,)}.get(name, ())
    there = [[x.to("ocl") for x in rest[0]]] if rest and isinstance(rest[0], list) else rest
    strided = [x.to("ocl") for x in mixed[:2]] + [mixed[2].t().to("ocl").t()]
    fallback.counts.clear()
    got = operators.overload(name)(strided, *there) or strided
    expected = operators.overload(name)(mixed, *rest) or mixed
    assert not fallback.counts
    for a, b in zip(expected, got, strict=True):
        torch.testing.assert_close(b.cpu(), a)


def test_lists_that_do_not_fit_are_pytorchs_error():
    with pytest.raises(RuntimeError, match="same"):
        torch._foreach_add([torch.ones(2, device="ocl")], [torch.ones(2, device="ocl")] * 2)


@pytest.mark.parametrize("order", [1, 2, float("inf")])
def test_clipping_takes_few_launches_for_all_gradients(order, launched):
    layers = [nn.Linear(9, 9) for _ in range(50)]
    here, there = (nn.ModuleList(layers), nn.ModuleList([nn.Linear(9, 9) for _ in layers]))
    there.load_state_dict(here.state_dict())
    there.to("ocl")
    for a, b in zip(here.parameters(), there.parameters(), strict=True):
        a.grad = torch.randn_like(a)
        b.grad = a.grad.to("ocl")
    before = launched()
    norm = nn.utils.clip_grad_norm_(there.parameters(), 1.0, norm_type=order)
    if order != float("inf"):
        assert launched() - before < 25
    torch.testing.assert_close(norm.cpu(), nn.utils.clip_grad_norm_(here.parameters(), 1.0, norm_type=order))
    for a, b in zip(here.parameters(), there.parameters(), strict=True):
        torch.testing.assert_close(b.grad.cpu(), a.grad)


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool, torch.float16])
def test_many_tensors_are_joined_at_once(dim, dtype, launched):
    parts = [torch.randn(2, 3, 4).to(dtype) for _ in range(30)]
    there = [x.to("ocl") for x in parts]
    before = launched()
    joined = torch.cat(there, dim)
    assert launched() - before < 4
    assert torch.equal(joined.cpu(), torch.cat(parts, dim))
    assert torch.equal(torch.stack(there, dim).cpu(), torch.stack(parts, dim))
    mixed = torch.cat([there[0], there[1].double()], dim)
    assert torch.equal(mixed.cpu(), torch.cat([parts[0], parts[1].double()], dim))


def test_resize_keeps_what_there_is():
    x = torch.arange(6.0, device="ocl")
    assert x.resize_(2, 2).tolist() == [[0, 1], [2, 3]]
    assert x.resize_(9)[:6].tolist() == [0, 1, 2, 3, 4, 5]
