"""Values that are sent to a device that is written out and is no GPU of CUDA or ROCm."""

import pytest
from rules.driver import findings, fixed

HEAD = "import torch\n\n\ndef fit(x: torch.Tensor, i: int):\n    loss = x.sum() + "


def told(made: str) -> bool:
    """Whether a tensor that is made in a step is told."""
    return any(f.rule == "tensor-literal-on-device" for f in findings(f"{HEAD}{made}\n    loss.backward()\n"))


@pytest.mark.parametrize("place", ["torch.device('mlu', i)", "torch.device('xpu')", "'hpu'", "'npu:0'"])
def test_a_device_of_another_kind_is_not_waited_for(place: str) -> None:
    assert not told(f"torch.tensor(0, device={place})")


@pytest.mark.parametrize("place", ["torch.device('cuda', i)", "'cuda:1'", "x.device"])
def test_a_gpu_is(place: str) -> None:
    assert told(f"torch.tensor(0, device={place})")


NAMED = """
import torch

d = {device}

def forward(x: torch.Tensor):
    return torch.zeros(3).to(d) + x
"""


@pytest.mark.parametrize(
    ("device", "made"),
    [
        ('torch.device("cuda" if torch.cuda.is_available() else "cpu")', "torch.zeros(3, device=d)"),
        ('"cuda" if torch.cuda.is_available() else "cpu"', "torch.zeros(3, device=d)"),
        ("load()", "torch.zeros(3).to(d)"),
    ],
)
def test_what_holds_a_device_is_one_whatever_it_is_called(device, made):
    assert f"return {made} + x" in fixed(NAMED.format(device=device), "created-on-host")
