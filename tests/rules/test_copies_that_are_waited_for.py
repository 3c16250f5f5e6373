"""A copy stays one that is waited for wherever it may go to the host, or come from the device."""

from textwrap import dedent

import pytest
from rules.driver import EVERY, FIXES, HEAD, config, findings, fixed

from syncscope.linter.engine import check
from syncscope.model.finding import Safety

SENT_BEFORE = {  # what may be on the device already: sent back to the host without waiting, it is read before it is there
    "joined with what is unknown": """
        def as_tensor(v):
            try:
                return torch.from_numpy(v)
            except TypeError:
                return v

        def f(v, device):
            return as_tensor(v).to(device)
    """,
    "annotated, and empty on one path": """
        def area(boxes: list, kind: str) -> torch.Tensor:
            if not boxes:
                return torch.Tensor([])
            return area_of(torch.stack(boxes))

        def f(boxes, kind, x: torch.Tensor):
            return area(boxes, kind).to(x.device)
    """,
    "kept under a global name": """
        TABLE = torch.rand(3)

        def f(x: torch.Tensor):
            global TABLE
            TABLE = TABLE.to(x.device)
            return x @ TABLE
    """,
    "kept on self": """
        class Loss:
            def __init__(self):
                self.weight = torch.rand(3)

            def f(self, x: torch.Tensor):
                self.weight = self.weight.to(x)
                return x * self.weight
    """,
    "each kept on self": """
        class Anchors:
            def __init__(self):
                self.cells = [torch.rand(3), torch.rand(3)]

            def f(self, device: torch.device):
                self.cells = [cell.to(device=device) for cell in self.cells]
    """,
    "a buffer": """
        class Loss(torch.nn.Module):
            def __init__(self, weight):
                super().__init__()
                self.register_buffer("weight", torch.as_tensor(weight))

            def forward(self, x: torch.Tensor):
                if self.weight.ndim == 0:
                    self.weight = torch.as_tensor([1.0, 2.0])
                return x * self.weight.to(x)
    """,
}


@pytest.mark.parametrize("code", SENT_BEFORE.values(), ids=SENT_BEFORE)
def test_only_what_is_surely_on_the_host_is_sent_without_waiting(code: str) -> None:
    assert "non_blocking" not in fixed(HEAD + dedent(code), allowed=EVERY)
    of_host = "def f(x: torch.Tensor):\n    low = x.cpu() * 2\n    return low.to(x.device)\n"
    assert "non_blocking" in fixed(HEAD + of_host, allowed=EVERY)


COPIES = {
    "what a model gives": "def f(model, x: torch.Tensor, device):\n    y = model(x)\n    return y.to(device)\n",
    "a parameter": "def f(x: torch.Tensor, device):\n    return x.to(device)\n",
    "given, or made": (
        "def f(x: torch.Tensor, p):\n    if p is None:\n        p = torch.ones(3)\n    return x * p.to(x.device)\n"
    ),
    "in what is given, or made": (
        "def f(x: torch.Tensor, kept):\n    kept = kept or {'p': torch.tensor([1, 2])}\n    return x[kept['p'].to(x.device)]\n"
    ),
    "to Apple's": "def f(x: torch.Tensor):\n    x = x.cpu()\n    return x.to('mps')\n",
    "from the device": "def f(x: torch.Tensor, device):\n    x = x.cuda()\n    return x.to(device)\n",
    "a prediction": (
        "def f(model, loader, device):\n    for x, y in loader:\n        keep(model(x.cuda(non_blocking=True)).to(device))\n"
    ),
}


@pytest.mark.parametrize("code", COPIES.values(), ids=COPIES)
def test_a_copy_that_may_go_to_the_host_is_waited_for(code: str) -> None:
    assert fixed(HEAD + code, allowed=FIXES) == HEAD + code


@pytest.mark.parametrize(
    ("write", "said"),
    [("loop[:, 7] = 1", "make it there"), ("loop[:, 7] = value", "pin the memory"), ("fill(loop)", "pin the memory")],
)
def test_what_is_filled_with_numbers_is_made_on_the_device(write: str, said: str) -> None:
    code = (
        "import torch\n\n\ndef f(x: torch.Tensor, value, fill):\n    loop = torch.zeros(len(x), 9)\n"
        f"    {write}\n    loop = loop.to(x.device)\n    return torch.cat((x, loop))\n"
    )
    (found,) = findings(code, "blocking-upload")
    assert said in found.message


EMPTY = (
    "torch.Tensor()", "torch.Tensor([])", "torch.tensor([])", "torch.empty(0)", "torch.zeros(0, 3)", "torch.zeros((0, 3))",
    "torch.ones(size=(0,))", "torch.full((2, 0), 1.0)", "torch.LongTensor()", "torch.arange(0)", "torch.empty(0).long()",
)  # fmt: skip
FULL = "torch.Tensor([0])", "torch.tensor([0])", "torch.zeros(3)", "torch.full((2,), 0.0)", "torch.arange(0, 3)"


@pytest.mark.parametrize("made", [*EMPTY, *FULL])
def test_a_tensor_with_no_elements_is_copied_by_nobody(made: str) -> None:
    at_once = f"def f(x: torch.Tensor):\n    return torch.cat((x, {made}.to(x.device)))\n"
    named = f"def f(x: torch.Tensor):\n    y = {made}\n    y = y.to(x.device)\n    return torch.cat((x, y))\n"
    for code in (at_once, named):
        assert bool(findings(HEAD + code, "created-on-host", "blocking-upload")) == (made in FULL)


def test_what_is_empty_on_one_path_only_is_copied() -> None:
    code = "def f(x: torch.Tensor, n: int):\n    y = torch.zeros(n) if n else torch.zeros(0)\n    return x + y.to(x.device)\n"
    assert findings(HEAD + code, "created-on-host", "blocking-upload")


PINNED = """
import torch

def pinned(data):
    return torch.utils.data.DataLoader(data, pin_memory=True)

def train(model, train_loader, optimizer, device, augmented, criterion):
    for _ in range(100):
        X, y = next(train_loader)
        X = X.to(device)
        X = augmented(X)
        y = y.long().to(device)
        loss = criterion(model(X), y)
        loss.backward()
        optimizer.step()
"""


def test_what_a_loader_gives_is_sent_by_one_fix_converted_or_not() -> None:
    after = fixed(PINNED, "blocking-upload", allowed={Safety.UNSAFE})
    assert after == PINNED.replace("to(device)", "to(device, non_blocking=True)")
    (fix,) = {f.fix for f in findings(PINNED, "blocking-upload")}
    assert fix.changes.count("nothing may write") == 1


def test_what_an_extractor_gives_is_no_tensor_to_be_sent_without_waiting() -> None:
    code = (
        "import torch\n\ndef forward(extractor, wavs: list, device, loader: torch.utils.data.DataLoader):\n"
        "    for wav in loader:\n        wav = extractor(wav, return_tensors='pt').to(device)\n        yield wav\n"
    )
    assert "non_blocking" not in fixed(code, allowed=EVERY)


def test_what_is_computed_of_a_pinned_batch_is_not_pinned() -> None:
    code = """
import torch
from torch.utils.data import DataLoader

def train(model, data, device):
    for x, y in DataLoader(data, pin_memory=True):
        mask = (x != 0).float().to(device)
        loss = model({x}, mask)
        loss.backward()
"""
    alone = findings(code.replace("{x}", "x"), "blocking-upload")
    assert [f.fix.safety for f in alone if f.fix is not None] == [Safety.SUGGEST]
    both = findings(code.replace("{x}", "x.to(device)").replace("(x != 0).float().to(device)", "y"), "blocking-upload")
    assert [f.fix.safety for f in both if f.fix is not None] == [Safety.UNSAFE]


@pytest.mark.parametrize(
    ("sent", "safety"),
    [("x.float()", Safety.SUGGEST), ("x", Safety.UNSAFE), ("torch.autograd.Variable(x)", Safety.UNSAFE)],
)
def test_what_is_made_a_float_here_is_not_what_the_loader_has_pinned(sent: str, safety: Safety) -> None:
    code = (
        "import torch\nfrom torch.utils.data import DataLoader\n\n\ndef train(model, data, device):\n"
        "    for x in DataLoader(data, pin_memory=True):\n"
        f"        x = {sent}.to(device)\n        model(x).sum().backward()\n"
    )
    assert [f.fix.safety for f in findings(code, "blocking-upload") if f.fix is not None] == [safety]


def test_settings_in_sight_that_pin_nothing_are_told_to() -> None:
    code = (
        "import torch\nfrom torch.utils.data import DataLoader\n\n\ndef train(model, data, device):\n"
        "    settings = {'batch_size': 8, 'shuffle': True}\n    for x in DataLoader(data, **settings):\n"
        "        x = x.to(device)\n        model(x).sum().backward()\n"
    )
    assert "**settings, pin_memory=" in fixed(code, "blocking-upload", allowed={Safety.UNSAFE})
    pinned = code.replace("True}", "True, 'pin_memory': True}")
    assert "DataLoader(data, **settings)" in fixed(pinned, "blocking-upload", allowed={Safety.UNSAFE})
    given = code.replace("    settings = {'batch_size': 8, 'shuffle': True}\n", "").replace(
        "device)", "device, settings)", 1
    )
    assert "DataLoader(data, **settings)" in fixed(given, "blocking-upload", allowed={Safety.UNSAFE})


COLLATED = """\
import torch
from torch.utils.data import DataLoader, default_collate


def train(model, device, train_loader):
    for data, target in train_loader:
        data, target = data.to(device), target.to(device)
        model(data, target).mean().backward()


def main(model, device, rows):
    kwargs = {"batch_size": 4, "pin_memory": True, "collate_fn": lambda x: tuple(x_.to(device) for x_ in default_collate(x))}
    train(model, device, DataLoader(rows, **kwargs))
"""


def test_what_a_collate_fn_may_have_moved_is_left_to_people() -> None:
    def told(code: str) -> set[Safety]:
        return {f.fix.safety for f in check("x.py", code.encode(), config()).findings if f.fix}

    assert told(COLLATED) == {Safety.SUGGEST}
    assert told(COLLATED.replace("x_.to(device)", "x_")) == {Safety.UNSAFE}
