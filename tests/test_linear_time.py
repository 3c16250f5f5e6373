"""Nothing takes time that grows faster than what comes in: twice of it is less than three times the work, by count."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from calls import grows_at_most

import syncscope
from syncscope import kineto
from syncscope.linter import engine
from syncscope.linter.config import Config

EVERYTHING = Config(all=True, min_confidence="low")
ADDING = "import torch\ndef f(x: torch.Tensor):\n    t = {}\n    for i in range(9):\n"
STEP = "import torch\ndef f(x: torch.Tensor):\n    for i in range(9):\n"


@pytest.mark.parametrize(
    ("name", "code", "size"),
    [
        ("reads.py", lambda n: STEP + "        print(x.item())\n" * n, 40),
        (
            "tests.py",
            lambda n: STEP + "        if (y:=x.sum()) and y.item() > 0 or x.item():\n            pass\n" * n,
            40,
        ),
        (
            "pairs.py",
            lambda n: STEP + "        x, y = x.exp(), x.cos()\n        a, b = x.sum().item(), y.sum().item()\n" * n,
            40,
        ),
        (
            "totals.py",
            lambda n: ADDING.format("0.0") + "        x, y = x.exp(), x.sum()\n        t += y.item()\n" * n,
            40,
        ),
        (
            "lists.py",
            lambda n: ADDING.format("[]") + "        x, y = x.exp(), x.sum()\n        t.append(y.item())\n" * n,
            40,
        ),
        ("counts.py", lambda n: STEP + "        count = (x > 0).sum().item()\n" * n, 40),
        (
            "arrays.cl",
            lambda n: (
                "__kernel void f(__global int *a) {\n"
                + "".join(
                    f"__local int l{k}[64]; l{k}[get_local_id(0)] = a[{k}]; a[{k}] = l{k}[0];\n" for k in range(n)
                )
                + "}\n"
            ),
            40,
        ),
        (
            "loops.cl",
            lambda n: (
                "__kernel void f(__global int *a) { int g = get_global_id(0);\n"
                + "".join(f"for (int i{k} = 0; i{k} < g; i{k}++) {{\n" for k in range(n))
                + "barrier(CLK_LOCAL_MEM_FENCE);"
                + "}" * n
                + "}\n"
            ),
            25,
        ),
    ],
    ids=["reads", "tests", "pairs", "totals", "lists", "counts", "arrays", "loops"],
)
def test_a_source_takes_time_in_proportion(name, code, size):
    assert grows_at_most(lambda raw: engine.check(name, raw, EVERYTHING), size, lambda n: code(n).encode())


HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n"
NET = (
    "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.layer = nn.Linear(3, 3)\n"
)


def each(text: str) -> Callable[[int], str]:
    """A text so many times, `@` being the number of each."""
    return lambda n: "".join(text.replace("@", str(number)) for number in range(n))


def alike(body: str, before: str = "", after: str = "") -> Callable[[int], str]:
    """A file with one part of it so many times."""
    return lambda n: HEAD + before + each(body)(n) + each(after)(n)


FUNCTION = "def f@(x: torch.Tensor):\n    y = x.sum().item()\n    return g(y)\n\n"
PRIVATE = "def _f@(x: torch.Tensor):\n    return x.max().item()\n\n"
METHOD = "    def m@(self, x):\n        self.a@ = self.layer(x)\n        return self.a@.sum().item()\n\n"
HELPER = "    def _m@(self, x):\n        return x * x.max().item()\n\n"
STEP_OF_MANY = (
    "def train@(model, loader, optimizer):\n    for x, y in loader:\n        loss = F.cross_entropy(model(x), y)\n"
    "        loss.backward()\n        optimizer.step()\n        if loss.item() > 9:\n            break\n\n"
)
FILES = {
    "functions": alike(FUNCTION),
    "table": alike(PRIVATE, after="T@ = {'a': _f@}\n"),
    "methods": alike(METHOD, NET),
    "helpers": lambda n: alike(HELPER, NET + "    def forward(self, x):\n" + each("        x = self._m@(x)\n")(n))(n),
    "steps": alike(STEP_OF_MANY),
    "allows": alike("def f@(x: torch.Tensor):\n    return x.sum().item()  # syncscope: allow\n\n"),
    "buffers": lambda n: alike(
        "    def m@(self, x: torch.Tensor):\n        return x * self.a@.to(x.device)\n", NET + each(BUFFER)(n)
    )(n),
    "masks": alike("def f@(x: torch.Tensor):\n    x[x > @] = @\n    return x\n\n"),
    "comprehensions": alike("    y@ = [x.item() for x in xs]\n", "def f(xs: list[torch.Tensor]):\n"),
    "losses": alike(
        "        l@ = F.cross_entropy(model(x), y)\n        total += l@.item()\n",
        "def train(model, loader):\n    total = 0\n    for x, y in loader:\n",
    ),
    "generated": alike("    y@ = x[x > @].sum().item()\n", "def f(x: torch.Tensor):\n"),
}
BUFFER = "        self.a@ = torch.tensor([1.0, @])\n"


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_many_takes_time_in_proportion(name):
    """Of what one fix mends together each finding has the whole fix, up to so many in a function."""
    size, times = (16, 2.7) if name in ("buffers", "comprehensions", "generated") else (30, 2.3)

    def made(n: int) -> bytes:
        return FILES[name](n).encode()

    assert grows_at_most(lambda raw: engine.check("many.py", raw, EVERYTHING), size, made, times)


MODULE = """import torch
from torch import nn
import torch.nn.functional as F
from before@ import measure@

def evaluate@(model, x):
    return model(x).argmax(1)

checks@ = [evaluate@, measure@]

class Net@(nn.Module):
    def forward(self, x):
        for check in checks@:
            x = x + check(self, x)
        return self._normalize@(x)

    def _normalize@(self, x, debug=False):
        if debug:
            self.describe@(x)
        return x / x.max().item()

    def describe@(self, x):
        print(x.mean().item())

def train@(loader, optimizer):
    model = Net@()
    for step, (x, y) in enumerate(loader):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            model.describe@(loss)
"""
LETTERS = str.maketrans("0123456789", "abcdefghij")  # a word that numbers make another is no other word


def test_a_project_of_many_files_takes_time_in_proportion(tmp_path):
    def made(n: int) -> Path:
        folder = tmp_path / str(n)
        folder.mkdir()
        (folder / "pyproject.toml").touch()
        for number in range(n):
            this, before = (f"{each:03}".translate(LETTERS) for each in (number, max(number - 1, 0)))
            text = MODULE.replace("before@ import measure@", f"before{before} import evaluate{before} as measure@")
            (folder / f"before{this}.py").write_text(text.replace("@", this))
        return folder

    def lint(folder: Path) -> None:
        engine.project.cache_clear()
        for path in sorted(folder.glob("*.py")):
            engine.check_file(str(path), EVERYTHING)

    assert grows_at_most(lint, 8, made, 2.3)


def event(category: str, name: str, at: float, lasting: float, **args: object) -> dict[str, object]:
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": at, "dur": lasting, "args": args}


def streams(n: int) -> list[dict[str, object]]:
    """Each kernel on a stream of its own."""
    found = []
    for i in range(n):
        found.append(event("cuda_runtime", "cudaLaunchKernel", i * 10, 3, correlation=i + 1))
        found.append(event("kernel", "k", i * 10 + 5, 50, correlation=i + 1, device=0, stream=i))
    return found


def lines(n: int) -> list[dict[str, object]]:
    """Each read on a line of its own."""
    found = []
    for i in range(n):
        at, number, place = i * 100, 3 * i, f"train.py({i + 7}): f"
        found.append(event("cpu_op", "aten::item", at, 80, **{"External id": i + 1, "Call stack": place}))
        found.append(event("cuda_runtime", "cudaLaunchKernel", at + 1, 3, correlation=number + 1))
        found.append(event("kernel", "k", at + 5, 40, correlation=number + 1, device=0, stream=7))
        found.append(event("cuda_runtime", "cudaMemcpyAsync", at + 6, 3, correlation=number + 2))
        copy = "Memcpy DtoH (Device -> Pageable)"
        found.append(event("gpu_memcpy", copy, at + 46, 2, correlation=number + 2, device=0, stream=7, bytes=4))
        found.append(event("cuda_runtime", "cudaStreamSynchronize", at + 10, 45, correlation=number + 3))
    return found


def marked(n: int) -> list[dict[str, object]]:
    """Steps with four lines that read in each."""
    found = [event("user_annotation", f"ProfilerStep#{i}", i * 400, 398) for i in range(n)]
    for one in lines(4 * n):
        args = one["args"]
        assert isinstance(args, dict)
        if one["cat"] == "cpu_op":
            args["Call stack"] = f"train.py({args['External id'] % 4 + 7}): f"
        found.append(one)
    return found


@pytest.mark.parametrize(
    ("events", "size"), [(streams, 40), (lines, 64), (marked, 24)], ids=["streams", "lines", "steps"]
)
def test_a_recording_takes_time_in_proportion(events, size):
    def made(n: int) -> bytes:
        return json.dumps({"traceEvents": events(n)}).encode()

    assert grows_at_most(lambda raw: syncscope.report(io.BytesIO(raw)), size, made)


def test_numbers_whose_hashes_are_one_are_kept_as_text():
    """Python's hash of n * (2**61 - 1) is 0 for every n: a table of them looks through all of them for each."""
    events = [event("cpu_op", "aten::mm", i, 1) | {"pid": (2**61 - 1) * (i + 4)} for i in range(50)]
    trace = kineto.read(json.dumps({"traceEvents": events}).encode())
    assert len({hash(lane.process) for lane in trace.lanes}) == 50
