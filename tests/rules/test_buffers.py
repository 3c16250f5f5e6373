"""A tensor that a module keeps and sends in every step is made a buffer, where that changes nothing else."""

import textwrap

import pytest
from rules.driver import findings, fixed

from syncscope.model.finding import Safety

torch = pytest.importorskip("torch")

HEAD = """
import torch
from torch import nn

class Blur(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        self.kernel = torch.ones(size) / size
"""
FORWARD = """
def forward(self, x: torch.Tensor):
    return x * self.kernel.repeat(2).to(x.device)
"""
NOT = {
    "the class has one": "kernel = None",
    "it is read on the host": "def names(self):\n    return self.kernel.tolist()",
    "it is set again": "def load(self, kernel):\n    self.kernel = kernel",
    "it is handed on": "def parts(self):\n    return self.kernel",
    "its class looks attributes up by itself": "def __getattr__(self, name):\n    return self.__dict__[name]",
    "it is computed with where it is": "def scaled(self):\n    return self.kernel * 2",
}


def offered(code: str) -> set[Safety]:
    return {f.fix.safety for f in findings(code, "blocking-upload") if f.fix is not None}


def whole(*methods: str) -> str:
    return HEAD + "".join(textwrap.indent(method, "    ") + "\n" for method in methods)


def test_a_buffer_goes_where_its_module_goes_and_is_not_saved() -> None:
    code = whole(FORWARD, "def size(self):\n    return self.kernel.shape")
    assert offered(code) == {Safety.UNSAFE}
    space: dict[str, object] = {}
    exec(fixed(code, "blocking-upload", allowed=(Safety.SAFE, Safety.UNSAFE)), space)
    blur = space["Blur"](3)
    assert "kernel" in dict(blur.named_buffers())
    assert not blur.state_dict()
    assert blur(torch.ones(2, 6)).shape == (2, 6)
    assert blur.to("meta").kernel.device.type == "meta"


@pytest.mark.parametrize("why", NOT)
def test_it_stays_an_attribute_where(why: str) -> None:
    assert Safety.UNSAFE not in offered(whole(FORWARD, NOT[why]))


def test_it_stays_an_attribute_where_the_module_is_not_set_up_yet() -> None:
    code = (
        whole(FORWARD)
        .replace("        super().__init__()\n", "")
        .replace("/ size\n", "/ size\n        super().__init__()\n")
    )
    assert Safety.UNSAFE not in offered(code)


def test_it_stays_an_attribute_of_what_is_no_module() -> None:
    assert Safety.UNSAFE not in offered(
        whole(FORWARD).replace("(nn.Module)", "").replace("        super().__init__()\n", "")
    )


def test_it_stays_an_attribute_where_a_class_above_sets_it_and_one_that_is_not_seen_may() -> None:
    base = "class Base(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.kernel = None\n"
    above = f"\n{base}\nclass Blur(Base)"
    assert Safety.UNSAFE not in offered(whole(FORWARD).replace("\nclass Blur(nn.Module)", above))
    code = (
        whole(FORWARD)
        .replace("import nn", "import nn\nfrom lightning.pytorch import LightningModule")
        .replace("nn.Module", "LightningModule")
    )
    said = [f.fix.changes for f in findings(code, "blocking-upload") if f.fix is not None]
    assert any("no class above may set it" in each for each in said)
    with pytest.raises(KeyError):  # which is why
        torch.nn.Module.register_buffer(type("Has", (torch.nn.Module,), {"kernel": None})(), "kernel", torch.ones(1))
