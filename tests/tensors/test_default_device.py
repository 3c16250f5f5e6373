"""Where torch makes a tensor of which nobody says where: on the host, until a program sets another default."""

from pathlib import Path

import pytest
from tensors.marked import marks, waits

from syncscope.tensors.interpret import Project, sites

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


STEPS = """
import torch
from .{layers} import scaled

class Net(torch.nn.Module):
    def training_step(self, x):
        return scaled(x, [1.0, 2.0])

def train(loader, net, optimizer):
    for x in loader:
        net.training_step(x).backward()
        optimizer.step()
"""
LAYERS = """
import torch

def scaled(x, weights):
    weights = torch.as_tensor(weights)
    return (x * weights.sum()).mean() + torch.as_tensor([1.0])
"""
SWITCH = 'if torch.cuda.is_available():\n    torch.set_default_device("cuda")\n'
PROGRAM = f'import torch\n\nif __name__ == "__main__":\n    {SWITCH.splitlines()[1].strip()}\n'
METHOD = """
import torch

class Algorithm:
    def learn(self):
        torch.set_default_tensor_type("torch.cuda.FloatTensor")
"""
SWITCHED = {
    "where it is imported": ({"backend": f"import torch\n\n{SWITCH}"}, True),
    "where others ask for it": ({"config": f"import torch\n\ndef use_gpu():\n    {SWITCH.splitlines()[1].strip()}\n"}, True),
    "where others say which": ({"config": "import torch\n\ndef use(device):\n    torch.set_default_device(device)\n"}, False),
    "by a program above": ({"../main": PROGRAM}, True),
    "by a program elsewhere": ({"programs/one": PROGRAM}, False),
    "by an algorithm beside": ({"algorithm": METHOD}, True),
    "by an algorithm in a folder of its own": ({"other/algorithm": METHOD}, False),
    "to the host": ({"backend": 'import torch\n\ntorch.set_default_device("cpu")\n'}, False),
    "nowhere": ({}, False),
}  # fmt: skip


@pytest.mark.parametrize("where", SWITCHED)
def test_a_default_device_holds_for_the_files_that_run_with_it(where: str, tmp_path: Path) -> None:
    others, switched = SWITCHED[where]
    (tmp_path / "setup.py").write_text("")
    files = {"__init__": "", "net": STEPS.format(layers="layers"), "layers": LAYERS, **others}
    for name, source in files.items():
        path = tmp_path / "package" / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(source)
    layers = tmp_path / "package/layers.py"
    found = sites(layers.read_bytes(), str(layers), Project((tmp_path,)))
    sent = {site.place.line for site in found if site.op == "tensor_literal" and site.confidence > 1 and site.hot}
    assert sent == ({5, 6} if switched else set())


@pytest.mark.parametrize("default", ["set_default_tensor_type('torch.cuda.FloatTensor')", "set_default_device('cuda')"])
def test_only_a_default_type_says_where_the_old_constructor_makes_tensors(default: str, tmp_path: Path) -> None:
    program = f'import torch\nimport helpers\n\nif __name__ == "__main__":\n    torch.{default}\n    train()\n'
    (tmp_path / "program.py").write_text(program)
    (tmp_path / "setup.py").write_text("")
    helpers = tmp_path / "helpers.py"
    helpers.write_text("""
import torch

def training_step(x, net):
    loss = net(x) / torch.log(torch.Tensor([10.0]))
    return loss + torch.LongTensor([1]).sum()
""")
    found = sites(helpers.read_bytes(), str(helpers), Project((tmp_path,)))
    sent = [site.place.line for site in found if site.op == "tensor_literal" and site.confidence > 1]
    assert sent == ([5] if "type" in default else [])


def test_torch_that_a_backend_chooses_is_torch(tmp_path: Path) -> None:
    (tmp_path / "backend.py").write_text("import importlib\n\nglobals()['torch'] = importlib.import_module('torch')\n")
    source = b"from backend import torch\n\ndef step(rows):\n    return float(torch.ones(3, device='cuda').sum())\n"
    (tmp_path / "net.py").write_bytes(source)
    found = sites(source, str(tmp_path / "net.py"), Project((tmp_path,)))
    assert [(site.place.line, str(site.op)) for site in found] == [(4, "float")]
