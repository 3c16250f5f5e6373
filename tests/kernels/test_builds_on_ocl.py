"""Kernels that are built while the host goes on: everything is enqueued in its order, and who waits, waits for all of it."""

import threading

import pyopencl as cl
import pytest
import torch

from syncscope.kernels import coming, elementwise, fold, plans, programs, queue


@pytest.fixture
def slow(monkeypatch):
    """Kernels take as long to build as the test wants: until its event is set."""
    torch.ocl.synchronize()
    plans.forget()
    done, plain = threading.Event(), programs._built

    def built(*what):
        assert done.wait(300)
        return plain(*what)

    monkeypatch.setattr(coming, "ahead", True)
    monkeypatch.setattr(programs, "_built", built)
    programs.build.cache_clear()
    programs._kernel.cache_clear()
    elementwise._plans.clear()  # whoever remembers kernels of its own remembers none that is there
    for module in (elementwise, fold):
        for x in vars(module).values():
            if hasattr(x, "cache_clear"):
                x.cache_clear()
    yield done
    done.set()
    torch.ocl.synchronize()
    plans.forget()


def test_the_host_goes_on_and_all_comes_in_its_order(slow):
    x = torch.full((1000,), 2.0, device="ocl")
    y = x * 3  # stands in line, and so does what follows
    x.fill_(7)  # after it was read
    z = torch.arange(1000.0).to("ocl") + y
    y.copy_(x)
    w = y * z
    assert queue.backlog
    threading.Timer(0.2, slow.set).start()
    assert torch.equal(z.cpu(), torch.arange(1000.0) + 6)
    assert not queue.backlog
    assert torch.equal(w.cpu(), (torch.arange(1000.0) + 6) * 7)
    for _ in range(4):  # from here on plans are kept and followed
        assert torch.equal((x * 3).cpu(), torch.full((1000,), 21.0))


def test_gradients_wait_for_nobody_and_are_right(slow):
    x = torch.linspace(-1, 1, 64, device="ocl").view(8, 8).requires_grad_()
    (x.tanh() * x).sum().backward()
    assert queue.backlog
    slow.set()
    here = torch.linspace(-1, 1, 64).view(8, 8).requires_grad_()
    (here.tanh() * here).sum().backward()
    torch.testing.assert_close(x.grad.cpu(), here.grad)


@pytest.mark.parametrize("wait", ["event", "synchronize", "observer", "capture"])
def test_who_waits_waits_for_the_kernels(slow, wait):
    x = torch.ones(100, device="ocl")
    y = x.sinh()
    assert queue.backlog
    threading.Timer(0.2, slow.set).start()
    if wait == "event":
        event = torch.ocl.Event()
        event.record()
        event.synchronize()
    elif wait == "synchronize":
        torch.ocl.synchronize()
    elif wait == "observer":
        heard = []
        queue.observers.append(lambda name, *_: heard.append(name))
        try:
            x.cosh()
        finally:
            queue.observers.pop()
        assert "aten::cosh" in heard
    else:
        graph = torch.ocl.capture(lambda: y * 2)
        graph.replay()
        assert graph.result.cpu()[0].item() == pytest.approx(2 * 1.1752, abs=1e-3)
    assert not queue.backlog
    assert y.cpu()[0].item() == pytest.approx(1.1752, abs=1e-3)


def test_a_kernel_that_does_not_build_is_told_of_where_it_is_waited_for(slow, monkeypatch):
    broken = programs.build("__kernel void broken(__global float *x) { this is no C }", "broken")
    queue.launch(broken, (1,), (1,), torch.ones(1, device="ocl").untyped_storage().lease.buffer)
    slow.set()
    with pytest.raises(cl.RuntimeError, match="BUILD_PROGRAM_FAILURE"):
        torch.ocl.synchronize()
    assert (torch.ones(3, device="ocl") + 1).cpu().tolist() == [2, 2, 2]


def test_who_waits_for_long_is_told(slow, monkeypatch, capsys):
    monkeypatch.setattr(coming, "PATIENCE", 0.1)
    y = torch.ones(100, device="ocl").sinh() + 1
    threading.Timer(0.8, slow.set).start()
    y.cpu()
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.startswith("ocl: building kernels for this device, ")


def test_the_tuner_gets_kernels_and_no_promises(slow):
    slow.set()
    text = "__kernel void one%d(__global int *x) { *x = 1; }"
    made = programs.side_by_side(lambda n: programs.build(text % n, f"one{n}"), [1, 2])
    assert all(isinstance(kernel, cl.Kernel) for kernel in made)


@pytest.mark.parametrize(("kept", "said"), [(0.0, 1), (1e9, 0)])
def test_who_asks_for_kernels_that_are_built_at_once_is_told_once_unless_they_were_kept(
    kept, said, monkeypatch, capsys
):
    for name, value in {"ahead": False, "PATIENCE": 0.0, "KEPT": kept, "_waited": 0.0}.items():
        monkeypatch.setattr(coming, name, value)
    for n in (1, 2):
        programs.build(f"__kernel void told{said}{n}(__global int *x) {{ *x = 1; }}", f"told{said}{n}")
    assert (
        capsys.readouterr().err
        == "ocl: building kernels for this device; the next start of this program finds them built\n" * said
    )
