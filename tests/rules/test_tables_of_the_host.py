"""What is read of the device goes on with a tensor of the host as a number of Python's: a tensor of the device does not.

On a CPU both do, so that no test which runs there tells them apart.
"""

import pytest

pytest.importorskip("libcst")

from rules.driver import FIXES, HEAD, fixed

HOST = ("torch.linspace(0, 1, 5)", "torch.linspace(0, 1, 5).exp() / 2", "weights.cpu()")
THERE = ("weights * 2", "torch.linspace(0, 1, 5, device=x.device)")
USES = {
    "a row": "    best = x.argmax()\n    return table[best]\n",
    "a row of each": "    best = x.argmax(1).flatten()\n    return torch.stack([table[row] for row in best], dim=0)\n",
    "divided": "    most = max(x.abs().max().item(), 1e-3)\n    return table / most\n",
    "divided in place": "    table /= max(x.abs().max().item(), 1e-3)\n    return table\n",
    "compared": "    return table > min(x.abs().max().item(), 1e-3)\n",
    "given to a method": "    least = max(x.min().item(), 0.1)\n    return table.clamp(min=least)\n",
    "given to a root": "    return table * math.sqrt(x.square().sum())\n",
    "counted": "    return table * len((x > 0).nonzero())\n",
    "chosen": "    if x.sum() > 0:\n        return table\n    return table * 2\n",
}


def forward(made: str, rest: str) -> str:
    """A function with a table that is made like this."""
    head = "def training_step(x: torch.FloatTensor, weights: torch.FloatTensor):\n    x = x.softmax(1)\n"
    return f"import math\n{HEAD}{head}    table = {made}\n{rest}"


@pytest.mark.parametrize("use", USES)
def test_what_the_host_holds_is_given_a_number(use):
    for made in HOST:
        code = forward(made, USES[use])
        assert fixed(code, allowed=FIXES).rpartition("table = ")[2] == code.rpartition("table = ")[2]


@pytest.mark.parametrize("use", USES)
def test_what_lives_on_the_device_is_given_a_tensor(use):
    for made in THERE:
        code = forward(made, USES[use])
        assert fixed(code, allowed=FIXES) != code


@pytest.mark.parametrize(
    ("base", "kept", "rewritten"),
    [
        ("", "self.table = torch.linspace(0, 1, 5)", False),
        ("", "self.table = torch.cumprod(1 - torch.linspace(0, 1, 5), dim=0)", False),
        ("nn.Module", "self.table = torch.linspace(0, 1, 5)", False),
        ("nn.Module", "self.register_buffer('table', torch.linspace(0, 1, 5))", True),
        ("nn.Module", "self.table = nn.Parameter(torch.linspace(0, 1, 5))", True),
    ],
)
def test_a_table_that_an_object_holds_goes_along_if_it_is_registered(base, kept, rewritten):
    start = "super().__init__()\n        " if base else ""
    code = (
        f"{HEAD}from torch import nn\n\n\nclass Schedule({base}):\n    def __init__(self):\n        {start}{kept}\n\n"
        "    def forward(self, x: torch.FloatTensor):\n        best = x.argmax()\n        return x * self.table[best]\n"
    )
    assert (fixed(code, allowed=FIXES) != code) is rewritten


@pytest.mark.parametrize(("made", "rewritten"), [("torch.zeros(8, 64)", False), ("keys.new_zeros(8, 64)", True)])
def test_a_queue_of_the_host_is_written_from_a_number(made, rewritten):
    code = (
        f"{HEAD}def enqueue(keys: torch.FloatTensor, queue_ptr: torch.LongTensor):\n    queue = {made}\n"
        "    batch_size = keys.shape[0]\n    ptr = int(queue_ptr)\n    queue[:, ptr : ptr + batch_size] = keys.T\n"
        "    ptr = (ptr + batch_size) % queue.shape[1]\n    queue_ptr[0] = ptr\n    return queue\n"
    )
    assert ("ptr = int(queue_ptr)" not in fixed(code, allowed=FIXES)) is rewritten


WRITES = {
    "as it is": ("loss.item()", "loss.detach()"),
    "by another function": ("float(loss)", "loss.detach()"),
    "at least": ("max(loss.item(), 0.0)", "loss.detach().clamp(min=0.0)"),
}
TRAINING = """\
import numpy as np
import torch


def train(model, loader, optimizer, count, kept):
    losses = {made}
    for k, batch in enumerate(loader):
        loss = model(batch.cuda(non_blocking=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses[{at}] = {written}
    return losses
"""


@pytest.mark.parametrize("written", WRITES)
@pytest.mark.parametrize(
    ("made", "at"),
    [("torch.zeros(count)", "k"), ("torch.zeros(2, count)", "0, k"), ("np.zeros(count)", "k")],
)
def test_what_does_not_live_on_the_device_is_written_with_a_number(made, at, written):
    code = TRAINING.format(made=made, at=at, written=WRITES[written][0])
    assert fixed(code, "host-read") == code


@pytest.mark.parametrize("written", WRITES)
def test_what_lives_on_the_device_is_written_with_a_tensor(written):
    code = TRAINING.format(made="torch.zeros(count, device='cuda')", at="k", written=WRITES[written][0])
    assert f"losses[k] = {WRITES[written][1]}\n" in fixed(code, "host-read")


@pytest.mark.parametrize("made", ["[0.0] * count", "{}"])
def test_what_holds_anything_is_written_with_a_tensor(made):
    assert "losses[k] = loss.detach()\n" in fixed(
        TRAINING.format(made=made, at="k", written="loss.item()"), "host-read"
    )


def test_what_may_be_an_array_is_written_with_a_number():
    code = TRAINING.format(made="kept", at="k", written="loss.item()")
    assert fixed(code, "host-read") == code


def test_a_total_of_the_host_is_added_to_with_a_number():
    code = (
        f"{HEAD}class Model(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.total = torch.tensor(0.0)\n\n"
        "    def training_step(self, x: torch.Tensor):\n        loss = self(x).square().mean()\n"
        "        self.total += loss.item()\n        return loss\n"
    )
    assert fixed(code, "host-read") == code
    assert "+= loss.detach()\n" in fixed(code.replace("torch.tensor(0.0)", "0.0"), "host-read")
