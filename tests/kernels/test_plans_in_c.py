"""Plans that are followed in C do as those in Python: memory, launches, what observers are told, and errors."""

import gc
import os
import sys
import threading
import weakref

import pytest
import torch

from syncscope.kernels import comprehension, in_c, memory, operators, plans, queue

pytestmark = [
    pytest.mark.skipif(in_c.module is None, reason="no compiler"),
    pytest.mark.usefixtures("no_plans"),
]


def runs_in_python(call):
    """Whether an operator's function in Python runs for a call."""
    seen = []

    def look(frame, event, argument):
        if event == "call" and frame.f_code is operators.RUNNING:
            seen.append(frame)

    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(None)
    return bool(seen)


def test_the_third_call_is_not_in_python():
    x = torch.ones(4, 5, device="ocl")
    assert [runs_in_python(lambda: x.mul(3)) for _ in range(5)] == [True, True, False, False, False]


@pytest.mark.parametrize("other", [2, 2.0, True, torch.ones(4, 1), torch.ones(())])
def test_calls_of_another_look_are_told_apart(other):
    x = torch.ones(4, 5, device="ocl", dtype=torch.int32)
    for _ in range(4):
        x * 3  # a plan that the next must not follow
    for _ in range(4):
        got = x * (other.to("ocl") if isinstance(other, torch.Tensor) and other.dim() else other)
        torch.testing.assert_close(got.cpu(), torch.ones(4, 5, dtype=torch.int32) * other)


def test_memory_is_counted_and_comes_back():
    x = torch.ones(1000, device="ocl")
    for _ in range(4):
        x * 2
    gc.collect()
    before, free = memory.in_use, sum(map(len, memory._free.values()))
    kept = [x * 2 for _ in range(10)]
    assert memory.in_use == before + 40_000
    assert memory.peak >= memory.in_use
    kept.clear()
    assert memory.in_use == before
    assert sum(map(len, memory._free.values())) >= free


def test_memory_is_told_of():
    x = torch.ones(1000, device="ocl")
    for _ in range(4):
        x * 2
    heard = []
    memory.told = lambda address, size: heard.append((address, size))
    try:
        made = x * 2
        address = made.data_ptr()
        del made
    finally:
        memory.told = None
    assert heard == [(address, 4000), (address, -4000)]


def test_launches_are_counted_and_observers_are_told():
    x = torch.ones(1000, device="ocl")
    for _ in range(4):
        x.add(2, alpha=3)
    heard = []
    queue.observers.append(lambda *what: heard.append(what))
    try:
        x.add(2, alpha=3)  # the queue changes
        assert not runs_in_python(lambda: x.add(2, alpha=3))
    finally:
        queue.observers.clear()
    (name, start, how, args, kwargs, result), before = heard[-1], queue.launches
    assert (name, how, args[1:], kwargs) == ("aten::add", queue.AS_KNOWN, (2,), {"alpha": 3})
    assert type(how) is int  # a bool is no index
    assert start > 0
    assert result.device.type == "ocl"
    x.add(2, alpha=3)
    x.add(2, alpha=3)
    assert queue.launches == before + 2


def test_results_outlive_other_threads_and_are_right():
    x = torch.arange(64.0).to("ocl")
    wrong = []

    def work(k):
        for _ in range(200):
            right = torch.equal((x * k + 1).cpu(), torch.arange(64.0) * k + 1)
            wrong.extend([] if right else [k])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_full_device_is_an_error_that_says_how_full(monkeypatch):
    x = torch.ones(3_000_017, device="ocl")
    for _ in range(4):
        x * 2
    torch.ocl.empty_cache()
    monkeypatch.setattr(memory, "ROOM", memory.held)
    with pytest.raises(torch.OutOfMemoryError, match=r"cannot allocate 12 MiB; .* MiB are in use, the device has"):
        x * 2
    monkeypatch.undo()
    assert (x * 2)[-1].item() == 2


def test_without_a_compiler_all_is_followed_and_viewed_in_python(forked):
    program = (
        "import torch, syncscope.kernels; x = torch.arange(4.0, device='ocl');"
        "print([(x.view(2, 2).t()[1] + k).sum().item() for k in range(5)], syncscope.kernels.in_c.module);"
        "print('views.c' in torch._C._dispatch_dump('aten::view'))"
    )
    made = forked("-c", program, env=os.environ | {in_c.ENV: "python"})
    assert made.stdout == "[4.0, 6.0, 8.0, 10.0, 12.0] None\nFalse\n"


SCALE = "def scale(float(N) X, float(N) Y, float by) -> (O) { O(n) = by * X(n) * Y(n) }"


def test_comprehensions_with_gradients_are_followed_here(monkeypatch):
    x, y = (torch.arange(5.0, device="ocl").requires_grad_() for _ in range(2))
    ones = torch.ones(5, device="ocl")
    scale = comprehension(SCALE)
    names = []

    def step(by):
        launches = queue.launches
        found = torch.autograd.grad(scale(x, y, by), x, ones)[0]
        return found, queue.launches - launches

    for _ in range(3):
        _, launches = step(2.0)
    monkeypatch.setattr(queue, "launch", None)
    monkeypatch.setattr(queue, "launch_again", None)  # neither anew nor in Python
    assert step(2.0)[1] == launches
    monkeypatch.undo()
    queue.observers.append(observer := lambda name, *rest: names.append(name))
    try:
        for _ in range(3):
            torch.testing.assert_close(step(2.0)[0].cpu(), 2 * y.detach().cpu())
    finally:
        queue.observers.remove(observer)
    told = [name.partition(" at ")[0] for name in names if name.startswith("comprehension::")]
    assert told == ["comprehension::scale", "comprehension::scale_grad"] * 3
    torch.testing.assert_close(step(3.0)[0].cpu(), 3 * y.detach().cpu())


def test_a_comprehension_dies_and_the_next_does_not_follow_its_plans():
    x, y = torch.arange(5.0, device="ocl"), torch.ones(5, device="ocl")
    for factor in range(2):
        scale = comprehension(SCALE.replace("by *", f"{factor} * by *"))
        for _ in range(4):
            torch.testing.assert_close(scale(x, y, 2.0).cpu(), 2.0 * factor * x.cpu())
        dies = weakref.ref(scale)
        del scale
        gc.collect()
        assert dies() is None


def test_attention_and_its_gradients_leave_nothing_to_python(monkeypatch):
    torch.manual_seed(0)
    norm, x = torch.nn.LayerNorm(16).to("ocl"), torch.randn(6, 3, 2, 16).to("ocl").requires_grad_()
    waits = []
    queue.readers.append(lambda *read: waits.append(read))
    monkeypatch.setattr(queue, "write", lambda *_: waits.append("an upload"))

    def step():
        q, k, v = norm(x).transpose(0, 2).contiguous().unbind(1)
        made = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        made[0].square().sum().backward()
        found = [p.grad.clone() for p in (x, *norm.parameters())]
        for p in (x, *norm.parameters()):
            p.grad = None
        return found

    before = step()
    for _ in range(3):
        step()
    monkeypatch.setattr(plans.Plan, "follow", lambda *_: pytest.fail("a plan is followed in Python"))
    after = step()
    queue.readers.pop()
    assert not waits
    assert all(torch.equal(a.cpu(), b.cpu()) for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bool, torch.int64, torch.float16, torch.float64])
@pytest.mark.parametrize("diagonal", [0, -2, 3, 1 << 62])
def test_triangles_are_cut_on_the_device(dtype, diagonal):
    host = torch.randint(1, 9, (3, 5, 7)).to(dtype)
    for name in ("tril", "triu"):
        cut = getattr(torch, name)
        there = host.to("ocl")
        assert torch.equal(cut(there, diagonal).cpu(), cut(host, diagonal))
        assert torch.equal(cut(there.transpose(1, 2)[1:], diagonal).cpu(), cut(host.transpose(1, 2)[1:], diagonal))
        getattr(there, f"{name}_")(diagonal)
        assert torch.equal(there.cpu(), cut(host, diagonal))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bool, torch.int16, torch.int64, torch.float16, torch.bfloat16])
def test_fills_and_copies_stay_within_their_elements(dtype):
    host = torch.arange(1, 41).to(dtype)
    there = host.to("ocl")
    for value in (0, 1, 0, 1):
        for x in (host, there):
            x[3:9] = value
            x[20:26] = x[1:7]
            x[12:20] = x[10:18].clone()
            x.view(8, 5)[:, 2].zero_()
    there[5:11].copy_(there[4:10])  # which overlap
    host[5:11] = host[4:10].clone()
    assert torch.equal(there.cpu(), host)


@pytest.mark.parametrize("bounds", [(5,), (2, 9), (9, 2, -3), (0,), (-4, 1 << 40, 1 << 38)])
@pytest.mark.parametrize("dtype", [None, torch.int32])
def test_numbers_in_a_row_are_made_without_python(bounds, dtype):
    made = [torch.arange(*bounds, dtype=dtype, device="ocl") for _ in range(3)]
    if dtype is None:
        assert not runs_in_python(lambda: made.append(torch.arange(*bounds, device="ocl")))
    expected = torch.arange(*bounds, dtype=dtype)
    assert all(x.dtype == expected.dtype and torch.equal(x.cpu(), expected) for x in made)


@pytest.mark.parametrize("bounds", [(-3,), (2, 5, -1), (1, 2, 0), (float("nan"),)])
def test_numbers_in_a_row_that_cannot_be_are_errors_in_pytorch_s_words(bounds):
    said = []
    for device in ("cpu", "ocl"):
        with pytest.raises(RuntimeError) as raised:
            torch.arange(*bounds, device=device)
        said.append(str(raised.value).splitlines()[0])
    assert said[0] == said[1]
