"""Where torch makes a tensor of which nobody says where: on the host, until a program sets another default."""

import pytest
from tensors.marked import marks, waits

STEP = """
    model = nn.Linear(4, 4)
    weights = [1.0, 2.0, 3.0, 4.0]
    for step in range(100):
        x = torch.randn(8, 4)
        picked = model(x)[torch.arange(8)]
        loss = (picked * torch.tensor(weights, dtype=torch.float)).mean(){copied}
        loss.backward()
        if x.mean() > 0.1:{read}
            print("high")
"""
NONE = {"copied": "", "read": ""}
SET = {"copied": "  # waits: tensor_literal", "read": "  # waits: condition"}
DEFAULTS = {
    "cuda, where there is one": (
        'torch.set_default_device("cuda" if torch.cuda.is_available() else "cpu")',
        SET,
    ),
    "a name": ("torch.set_default_device(device)", SET),
    "a type": ("torch.set_default_tensor_type(torch.cuda.FloatTensor)", SET),
    "the host": ('torch.set_default_device("cpu")', NONE),
    "another type": (
        "torch.set_default_tensor_type(torch.DoubleTensor)",
        NONE,
    ),
}


@pytest.mark.parametrize("default", DEFAULTS)
def test_a_default_device_is_where_tensors_are_made(default: str) -> None:
    line, said = DEFAULTS[default]
    source = f"\ndef main(device):\n    {line}" + STEP
    for name, mark in said.items():
        source = source.replace("{" + name + "}", mark)
    assert waits(source) == marks(source)
