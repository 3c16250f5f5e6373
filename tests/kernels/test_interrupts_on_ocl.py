"""A signal's handler may raise anywhere in a step on the device, as Ctrl-C does: it arrives, and the process lives on."""

import pytest

from syncscope.kernels import guard, in_c

PROGRAM = """
import random, signal, time
import torch
from torch.nn import functional as F
import syncscope.kernels
from syncscope.kernels import memory

class Alarm(BaseException): ...

raised = caught = 0

def ring(*_):
    global raised
    raised += 1
    raise Alarm

net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.SiLU(), torch.nn.Linear(8, 8)).to("ocl")
optimizer = torch.optim.SGD(net.parameters(), 0.01)
x, y = torch.randn(4, 8).to("ocl"), torch.tensor([1, 2, 3, 4]).to("ocl")

def step():
    out = net(x)
    loss = F.cross_entropy(out, y) + out[out > 0].mean() + out.view(2, -1).transpose(0, 1).contiguous().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()

for _ in range(5):
    step()
if LISTENED:
    memory.told = lambda address, size: sum(range(5))
signal.signal(signal.SIGALRM, ring)
random.seed(0)
while raised < 200:
    try:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-4, 5e-3))
        end = time.monotonic() + 0.01
        while time.monotonic() < end:
            step()
    except Alarm:
        caught += 1
        torch.set_grad_enabled(True)  # PyTorch's own no_grad may be left half way
print(raised, caught)
"""


@pytest.mark.skipif(in_c.module is None, reason="without a compiler PyTorch asks the device by way of Python")
@pytest.mark.parametrize(
    "listened", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["alone", "while somebody listens to memory"]
)
def test_what_a_signals_handler_raises_is_neither_lost_nor_the_end_of_the_process(forked, listened):
    done = forked("-c", f"LISTENED = {listened}\n{PROGRAM}")
    assert done.returncode == 0, done.stderr
    raised, caught = map(int, done.stdout.split())
    assert raised == caught >= 200
    assert "ignored" not in done.stderr


def test_an_order_of_functions_that_nobody_knows_is_not_guessed():
    header = guard._HEADER.read_text()
    order = guard.functions(header)
    assert order is not None
    assert [order.index(x) for x in ("type", "exchangeDevice", "getDevice")] == [0, 1, 2]
    assert guard.functions(header.replace(" getStream(", " streamOf(")) is None
    assert (
        guard.functions(
            header.replace("virtual DeviceType type()", "virtual void first();\n  virtual DeviceType type()")
        )
        is None
    )
    later = header.replace(
        "virtual Device getDevice()",
        "virtual const unsigned int\n    between(int) const = 0;\n  virtual Device getDevice()",
    )
    assert guard.functions(later)[2:4] == ("between", "getDevice")
    assert guard.functions("") is None
