"""What nothing in a project names is told in a line, and what is for the host: nobody who looks after it gains by a fix."""

import pytest

LOSSES = """
import torch
from torch import nn


class Focal(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor):
        floor = torch.tensor(0.5, device=x.device)
        return torch.maximum((x - y).square().mean(), floor)


def dice(x: torch.Tensor, y: torch.Tensor):
    return Helper()(x * y)


class Helper(nn.Module):
    def forward(self, x: torch.Tensor):
        return torch.maximum(x.mean(), torch.tensor(0.25, device=x.device))

    def aside(self, x: torch.Tensor):
        return torch.maximum(x.sum(), torch.tensor(0.75, device=x.device))
"""
TRAIN = """
from net.losses import {names}


def train(model, loader, optimizer):
    for x, y in loader:
        loss = {call}(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
"""
FOCAL, HELPER, ASIDE = 8, 18, 21


def fixed(door, **files):
    for name, text in files.items():
        door.write(f"net/{name}.py", text)
    return [line for _, line, _ in door("lint", "net").lines if (_, line)]


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"train": TRAIN.format(names="Focal", call="Focal()")}, {FOCAL}),
        ({"train": TRAIN.format(names="dice", call="dice")}, {HELPER}),
        ({"train": TRAIN.format(names="Focal as F", call="F()")}, {FOCAL}),
        ({"train": TRAIN.format(names="Focal, dice", call="Focal()")}, {FOCAL}),
        ({"__init__": "from .losses import *\n"}, {FOCAL, HELPER}),
        ({"__init__": "from . import losses\n"}, {FOCAL, HELPER}),
        ({"__init__": "from .losses import dice\n"}, {HELPER}),
        ({"find": "from net import losses\n\n\ndef find(name):\n    return getattr(losses, name)\n"}, {FOCAL, HELPER}),
    ],
)
def test_what_no_file_names_is_told_in_a_line(door, files, told):
    door.write("pyproject.toml", "[project]\nname = 'net'\n")
    written = {"__init__": "", "losses": LOSSES, "other": "import torch\n"} | files
    found = fixed(door, **written)
    assert {line for line in found if line in (FOCAL, HELPER, ASIDE)} == told


def test_a_page_names_it(door):
    door.write("pyproject.toml", "[project]\nname = 'net'\n")
    door.write("README.md", "Use `net.losses.Focal`.\n")
    assert fixed(door, __init__="from .losses import dice\n", losses=LOSSES) == [FOCAL, HELPER]


def test_a_library_of_which_nothing_is_imported_is_for_others_to_import(door):
    door.write("pyproject.toml", "[build-system]\n")
    assert fixed(door, __init__="", losses=LOSSES, other="import torch\n") == [FOCAL, HELPER]


@pytest.mark.parametrize(("script", "told"), [(None, {FOCAL}), ("tools.py", {FOCAL, HELPER})])
def test_a_package_without_init_is_one_if_its_files_import_it_by_its_name(door, script, told):
    door.write("lib/net/parts/losses.py", LOSSES)
    door.write("lib/net/train.py", TRAIN.format(names="Focal", call="Focal()").replace("net.", "net.parts."))
    if script is not None:
        door.write(f"lib/{script}", "import net.parts.losses\n")
    assert {line for _, line, _ in door("lint", "lib/net/parts").lines} - {ASIDE} == told


def test_who_uses_a_class_starts_its_training_loop(door):
    code = """
    import torch


    class Tuner:
        def absorb(self, model, loader, device):
            total = 0.0
            for x in loader:
                loss = model(x.to(device, non_blocking=True)).sum()
                loss.backward()
                self.optimizer.step()
                total += loss.item()
            return total

        def aside(self, x: torch.Tensor):
            return torch.maximum(x.sum(), torch.tensor(0.75, device=x.device))
    """
    door.write("pyproject.toml", "[project]\nname = 'net'\n")
    assert fixed(door, __init__="from .tuner import Tuner\n", tuner=code, other="import torch\n") == [12]


def test_what_is_for_the_host_is_told_in_a_line(door):
    code = """
    import torch


    def loss_cpu(x: torch.Tensor):
        return torch.maximum(x.mean(), torch.tensor(0.25, device=x.device))


    def loss(x: torch.Tensor):
        return torch.maximum(x.mean(), torch.tensor(0.25, device=x.device))
    """
    door.write("losses.py", code)
    ran = door("lint", "losses.py")
    assert [line for _, line, _ in ran.lines] == [10]


@pytest.mark.parametrize(("device", "told"), [("", []), ("device = 'cuda'", [5])])
def test_a_program_that_knows_no_device_has_its_tensors_on_the_host(door, device, told):
    door.write(
        "loss.py",
        """
    import torch

    def loss(x: torch.Tensor, y: torch.Tensor):
        return (x - y)[y > 0].mean()
    """,
    )
    door.write(
        "train.py",
        f"""
    from loss import loss

    {device}

    def train(model, loader, optimizer):
        for x, y in loader:
            loss(model(x), y).backward()
            optimizer.step()
    """,
    )
    door.write("pyproject.toml", "")
    assert [line for _, line, _ in door("lint", "loss.py").lines] == told


AGENT = """
import numpy as np
import torch


class Agent{base}:
    def __init__(self, rows):
        self.rows = rows
        self.model = torch.nn.Linear(4, 1)
        self.optimizer = torch.optim.Adam(self.model.parameters())

    def train(self, steps):
        total = 0.0
        for _ in range(steps):
            x = {given}
            loss = self.model(x{sent}).square().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total
"""
DEFAULT = "import torch\n\n\ndef use():\n    torch.set_default_device('cuda')\n"


@pytest.mark.parametrize(
    ("base", "given", "sent", "other", "told"),
    [
        ("", "torch.as_tensor(self.rows)", "", "device = 'cuda'", False),
        ("(torch.nn.Module)", "torch.randn(8, 4)", "", "device = 'cuda'", False),
        ("", "next(self.rows)", "", "device = 'cuda'", True),  # whoever gives it moves the network, too
        ("", "torch.as_tensor(self.rows)", ".to(self.where)", "device = 'cuda'", True),
        ("(Trained)", "torch.as_tensor(self.rows)", "", "device = 'cuda'", True),
        ("", "torch.as_tensor(self.rows)", "", DEFAULT, True),
    ],
)
def test_what_makes_its_network_and_its_batches_and_moves_neither_trains_on_the_host(
    door, base, given, sent, other, told
):
    door.write("agent.py", AGENT.format(base=base, given=given, sent=sent))
    door.write("other.py", other)
    door.write("pyproject.toml", "")
    assert bool(door("lint", "agent.py").lines) is told


@pytest.mark.parametrize(("more", "told"), [("", False), (".cuda()", True)])
def test_a_program_that_moves_nothing_trains_on_the_host(door, more, told):
    code = f"""
    import torch


    def train(model, x, y):
        optimizer = torch.optim.Adam(model.parameters())
        total = 0.0
        for _ in range(9):
            loss = (model(x) - y).square().mean()
            loss.backward()
            optimizer.step()
            total += loss.item()
        return total


    if __name__ == "__main__":
        model = torch.nn.Linear(4, 1){more}
        train(model, torch.randn(8, 4), torch.randn(8, 1))
    """
    door.write("program.py", code)
    door.write("other.py", "device = 'cuda'")
    door.write("pyproject.toml", "")
    assert bool(door("lint", "program.py").lines) is told


def test_a_number_that_an_object_keeps_is_converted_once(door):
    code = """
    import torch
    from torch import nn


    class Loss(nn.Module):
        def forward(self, x: torch.Tensor):
            if type(self.eps) is float:
                self.eps = torch.tensor(0.5, device=x.device)
            return x.mean() - self.eps
    """
    door.write("losses.py", code)
    assert door("lint", "losses.py").lines == []
