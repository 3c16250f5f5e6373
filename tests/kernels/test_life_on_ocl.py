"""What people do with a device besides computing: move, save, load, copy, optimise, feed."""

import copy
import io
import operator
import pickle
import subprocess
import sys

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import syncscope.kernels  # noqa: F401 - registers the device


def classifier():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding="same"), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(128, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 5),
    )  # fmt: skip


def same(a, b):
    return all(
        torch.equal(x.cpu(), y.cpu()) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True)
    )


def test_module_to_and_back():
    here = classifier()
    there = copy.deepcopy(here).to("ocl")
    assert {p.device for p in there.parameters()} == {torch.device("ocl", 0)}
    assert same(here, there)
    assert same(here, copy.deepcopy(there).cpu())
    assert classifier().ocl()[0].weight.is_ocl


def test_save_load_deepcopy_and_pickle_keep_values_device_and_sharing():
    model = classifier().to("ocl")
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    assert {t.device.type for t in torch.load(file).values()} == {"ocl"}
    file.seek(0)
    on_cpu = torch.load(file, map_location="cpu")
    assert {t.device.type for t in on_cpu.values()} == {"cpu"}
    fresh = classifier().to("ocl")
    fresh.load_state_dict(on_cpu)
    assert same(fresh, model)
    assert same(copy.deepcopy(model), model)
    x = torch.arange(6.0, device="ocl")
    view, whole = copy.deepcopy([x[2:4], x])
    view.zero_()
    assert whole.tolist() == [0, 1, 0, 0, 4, 5]
    assert torch.equal(pickle.loads(pickle.dumps(x)).cpu(), x.cpu())


@pytest.mark.usefixtures("exactly")
@pytest.mark.parametrize(
    "make",
    [
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, foreach=False),
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, fused=True),
        lambda p: torch.optim.AdamW(p, lr=1e-3, eps=1e-3),
        lambda p: torch.optim.AdamW(p, lr=1e-3, eps=1e-3, foreach=True),
        lambda p: torch.optim.AdamW(p, lr=1e-3, eps=1e-3, fused=True),
        lambda p: torch.optim.Adam(p, lr=1e-3, eps=1e-3, amsgrad=True),
        lambda p: torch.optim.Adam(p, lr=1e-3, eps=1e-3, amsgrad=True, weight_decay=0.1, fused=True),
        lambda p: torch.optim.RMSprop(p, lr=1e-3, eps=1e-3),
    ],
)
def test_optimizers_step_as_on_the_cpu(make):
    torch.manual_seed(2)
    data, labels = torch.randn(6, 3, 8, 8), torch.randint(0, 5, (6,))
    models = {"cpu": classifier(), "ocl": classifier().to("ocl")}
    for device, model in models.items():
        optimizer = make(model.parameters())
        for _ in range(3):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(data.to(device)), labels.to(device)).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
    for a, b in zip(models["cpu"].state_dict().values(), models["ocl"].state_dict().values(), strict=True):
        torch.testing.assert_close(b.cpu(), a, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("workers", [0, 2])
def test_data_loader_with_workers(workers):
    x = torch.ones(1, device="ocl")  # the queue is in use when the workers fork
    loader = DataLoader(TensorDataset(torch.arange(12.0)), batch_size=4, num_workers=workers, pin_memory=True)
    total = sum((batch.to("ocl", non_blocking=True).sum() for (batch,) in loader), torch.zeros((), device="ocl"))
    assert (total * x).item() == 66


def test_views_share_memory_and_versions():
    x = torch.zeros(4, 6, device="ocl")
    x[1:3, ::2] = 1
    x.t()[5].fill_(7)
    x.view(-1)[0] = 9
    expected = torch.zeros(4, 6)
    expected[1:3, ::2] = 1
    expected.t()[5].fill_(7)
    expected.view(-1)[0] = 9
    assert torch.equal(x.cpu(), expected)
    y = torch.ones(3, device="ocl", requires_grad=True)
    z = y * 2
    w = z.square().sum()
    with torch.no_grad():
        z.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        w.backward()


@pytest.mark.parametrize("name", ["mod", "and_", "or_", "xor", "floordiv", "pow"])
def test_operators_take_a_number_of_python_on_either_side(name):
    function, x = getattr(operator, name), torch.arange(1, 9)
    for _ in range(3):  # the third is followed by its plan
        assert torch.equal(function(x.to("ocl"), 3).cpu(), function(x, 3))
        assert torch.equal(function(13, x.to("ocl")).cpu(), function(13, x))


@pytest.mark.parametrize("exponent", [1, 2, 3.0, 0.5, -0.5, -1, -2, 1.5])
def test_powers_that_need_no_pow_are_as_the_cpu_has_them(exponent):
    torch.manual_seed(0)
    x = torch.cat([torch.randn(4000), torch.tensor([0.0, -0.0, torch.inf, -torch.inf, torch.nan])])
    there = x.to("ocl").requires_grad_()
    if exponent in (1, 2, 3):  # products alone round alike, `pow` does not
        assert torch.equal(there.pow(exponent).cpu()[:4000], x.pow(exponent)[:4000])
        assert torch.equal(x.long().to("ocl").pow(int(exponent)).cpu(), x.long().pow(int(exponent)))
    torch.testing.assert_close(there.pow(exponent).cpu(), x.pow(exponent), equal_nan=True)
    here = x.clone().requires_grad_()
    for tensor in (here, there):
        tensor.pow(exponent).sum().backward()
    torch.testing.assert_close(there.grad.cpu(), here.grad, equal_nan=True)
    torch.testing.assert_close(there.detach().pow_(exponent).cpu(), x.pow(exponent), equal_nan=True)


def test_checkpoint_hooks_and_functional_gradients():
    x = torch.rand(4, device="ocl", requires_grad=True)
    seen = []
    x.register_hook(lambda grad: seen.append(grad.device.type))
    torch.utils.checkpoint.checkpoint(lambda t: torch.sigmoid(t).square(), x, use_reentrant=False).sum().backward()
    s = torch.sigmoid(x.detach().cpu())
    torch.testing.assert_close(x.grad.cpu(), 2 * s * s * (1 - s))
    assert seen == ["ocl"]
    slope = torch.func.grad(lambda t: (t**3).sum())(torch.arange(3.0, device="ocl"))
    assert slope.tolist() == [0, 3, 12]
    doubled = torch.func.vmap(lambda row: row * 2)(torch.ones(2, 3, device="ocl"))
    assert doubled.sum().item() == 12


def test_default_device_inference_and_autocast_regions():
    torch.set_default_device("ocl")
    try:
        assert torch.zeros(2).device == torch.device("ocl", 0)
    finally:
        torch.set_default_device(None)
    with torch.inference_mode():
        assert torch.ones(3, device="ocl").mul_(2).sum().item() == 6
    with torch.autocast("ocl", dtype=torch.bfloat16):
        assert (torch.ones(2, 2, device="ocl") @ torch.ones(2, 2, device="ocl")).sum().item() == 8


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_stored_so_and_computed_in_float(dtype):
    torch.manual_seed(0)
    x, w = torch.randn(3, 8, 9).to(dtype), torch.randn(9, 5).to(dtype)

    def run(device):
        return torch.nn.functional.softmax((x.to(device) @ w.to(device)).relu().sum(1), -1)

    got = run("ocl")
    assert got.dtype == dtype
    torch.testing.assert_close(got.cpu(), run("cpu"), rtol=5e-2, atol=5e-2)


def test_printing_seeds_and_names():
    assert repr(torch.tensor([1.5, 2.0], device="ocl")) == "tensor([1.5000, 2.0000], device='ocl:0')"
    torch.ocl.manual_seed_all(5)
    a = torch.rand(3, device="ocl")
    state = torch.ocl.get_rng_state()
    b = torch.rand(3, device="ocl")
    torch.ocl.set_rng_state(state)
    assert torch.equal(torch.rand(3, device="ocl").cpu(), b.cpu())
    torch.ocl.manual_seed_all(5)
    assert torch.equal(torch.rand(3, device="ocl").cpu(), a.cpu())
    assert torch.ocl.is_available()
    assert torch.ocl.device_count() == 1
    assert torch.accelerator.current_accelerator().type == "ocl"
    torch.accelerator.synchronize()


def test_the_process_ends_cleanly_with_work_still_queued():
    code = """
import torch, syncscope.kernels
a = torch.ones(500, 500, device="ocl")
b = a @ a @ a
b.requires_grad_().sum().backward()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    said = [
        line for line in done.stderr.splitlines() if not line.startswith("ocl: building kernels")
    ]  # on a busy machine
    assert (done.returncode, said) == (0, [])


def test_memory_is_counted_under_the_names_of_torch_cuda():
    torch.ocl.empty_cache()
    torch.ocl.reset_peak_memory_stats()
    before = torch.ocl.memory_allocated()
    x = torch.empty(3 << 20, device="ocl")
    assert torch.ocl.max_memory_allocated() >= torch.ocl.memory_allocated() >= before + x.nbytes
    assert torch.ocl.max_memory_reserved() >= torch.ocl.memory_reserved() >= x.nbytes
    free, total = torch.ocl.mem_get_info()
    assert total - free == torch.ocl.memory_reserved()
    assert total == torch.ocl.get_device_properties().total_memory
    del x
    assert torch.ocl.max_memory_allocated() >= before + (12 << 20)
    torch.ocl.reset_peak_memory_stats()
    assert torch.ocl.max_memory_allocated() == torch.ocl.memory_allocated()


def test_torch_accelerator_counts_memory_too():
    x = torch.empty(1 << 20, device="ocl")
    for name in ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"):
        if hasattr(torch.accelerator, name):
            assert getattr(torch.accelerator, name)() == getattr(torch.ocl, name)() >= x.nbytes
    if hasattr(torch.accelerator, "memory_stats"):
        assert torch.accelerator.memory_stats()["allocated_bytes.all.current"] == torch.ocl.memory_allocated()
    torch.accelerator.empty_cache()


def test_a_result_for_the_cpu_is_refused_in_pytorchs_words():
    with pytest.raises(RuntimeError, match="at least two devices, ocl:0 and cpu"):
        torch.add(torch.ones(3, device="ocl"), 1, out=torch.ones(3))


def test_words_on_the_cpu_are_refused_as_on_cuda():
    rows = torch.nn.Embedding(3, 2, device="ocl")
    with pytest.raises(RuntimeError, match="at least two devices, ocl:0 and cpu"):
        rows(torch.tensor([1]))
    assert rows.weight[torch.tensor([1])].shape == (1, 2)  # an index may come from there


def test_a_module_that_moves_keeps_its_parameters():
    net = torch.nn.Sequential(torch.nn.Embedding(4, 3), torch.nn.Linear(3, 4, bias=False))
    net[1].weight = net[0].weight  # as language models share it
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)  # made before the move
    net(torch.tensor([1])).sum().backward()
    shared = net[0].weight
    for device in ("ocl", "cpu", "ocl"):
        net.to(device)
        assert net[0].weight is net[1].weight is shared is optimizer.param_groups[0]["params"][0]
        assert (shared.device.type, shared.grad.device.type) == (device, device)
        before = shared.detach().clone()
        optimizer.zero_grad()
        net(torch.tensor([1, 2], device=device)).sum().backward()
        optimizer.step()
        torch.testing.assert_close(shared.detach(), before - 0.1 * shared.grad)
        assert shared.grad.abs().sum() > 0
