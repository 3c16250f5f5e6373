"""Launches that a thread of their own gives to the driver, as on GPUs: in order, all of them, and what is refused is raised."""

import ctypes
import os

import pyopencl as cl
import pytest
import torch

from syncscope import native
from syncscope.kernels import generator, in_c, memory, queue

pytestmark = pytest.mark.skipif(in_c.module is None, reason="no compiler")


@pytest.fixture(autouse=True)
def aside(no_plans):
    in_c.module.submit(True)
    yield
    in_c.module.submit(False)


def trained(steps):
    """Weights after steps with random numbers, copies from and to the host, and memory that comes and goes."""
    torch.manual_seed(0)
    layer = torch.nn.Linear(6, 6).to("ocl")
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    losses = []
    for k in range(steps):
        x = torch.full((4, 6), float(k % 3)).to("ocl")
        made = torch.nn.functional.dropout(layer(x), 0.3) + torch.rand(4, 6, device="ocl")
        loss = made.square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if k % 4 == 0:
            losses.append(loss.item())
        if k % 5 == 0:
            memory.empty_cache()
    return layer.weight.cpu(), losses


def test_what_is_computed_is_the_same():
    weight, losses = trained(12)
    in_c.module.submit(False)
    expected, of_each = trained(12)
    assert torch.equal(weight, expected)
    assert losses == of_each


def test_more_is_launched_than_the_ring_has_room_for():
    x, y = torch.zeros(2, device="ocl"), torch.ones(2, device="ocl")
    before = queue.launches
    for _ in range(20_000):  # four words each of 65,536
        x.add_(y)
    assert queue.launches == before + 20_000
    assert x.tolist() == [20_000, 20_000]


def test_a_captured_step_is_replayed_in_order():
    x = torch.zeros(3, device="ocl")
    graph = torch.ocl.capture(lambda: x.mul_(2).add_(1))
    started = x.tolist()[0]
    for _ in range(5):
        graph.replay()
        x.sub_(1)
    assert x.tolist() == [started * 32] * 3


def begin_with(enqueue):
    """plans.c, with another function in the place of OpenCL's that enqueues."""
    library = ctypes.CDLL(cl._cl.__file__)
    called = [getattr(library, name) for name in in_c.FUNCTIONS]
    called[1] = enqueue or called[1]
    in_c.module.begin(
        torch.Tensor.__dlpack_c_exchange_api__, vars(memory), vars(queue), torch.Tensor, torch.nn.Parameter,
        in_c.CONSTANTS, tuple(ctypes.cast(one, ctypes.c_void_p).value for one in called), queue.KEPT,
        ctypes.addressof(generator.default.stands),
    )  # fmt: skip


def test_what_the_driver_refuses_is_raised_by_what_comes_next(tmp_path):
    x = torch.ones(3, device="ocl")
    for _ in range(4):
        x.mul(2)
    (tmp_path / "refuse.c").write_text("int refuse(void) { return -4; }\n")  # CL_MEM_OBJECT_ALLOCATION_FAILURE
    begin_with(ctypes.CDLL(str(native.built(tmp_path / "refuse.c"))).refuse)
    try:
        x.mul(2)
        with pytest.raises(torch.OutOfMemoryError, match="no memory for what mul"):
            torch.ocl.synchronize()
        torch.ocl.synchronize()  # it is said once
        x.mul(2)
        with pytest.raises(torch.OutOfMemoryError, match="no memory for what mul"):
            x.tolist()
    finally:
        begin_with(None)
    assert x.mul(2).tolist() == [2, 2, 2]


def test_a_child_made_by_fork_waits_for_no_thread():
    x = torch.ones(3, device="ocl")
    for _ in range(5):
        x.add_(1)
    child = os.fork()
    if not child:
        code = 0
        for use in (lambda: x.add_(1), lambda: torch.ones(3, device="ocl"), x.tolist):
            try:
                use()
                code |= 2
            except BaseException as error:  # whatever it is: the other tests are the parent's
                code |= "forked process" not in str(error)
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert x.tolist() == [6, 6, 6]
