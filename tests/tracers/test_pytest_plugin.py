import re
from pathlib import Path

import pytest
from in_c import in_c
from warm import Python

pytest.importorskip("torch")

TESTS = """
import pytest
import torch

x = torch.ones(2, requires_grad=True)


@pytest.mark.max_syncs(2)
def test_enough():
    x.sum().item(), x.tolist()


@pytest.mark.max_syncs(1)
def test_too_many():
    for _ in range(3):
        x.sum().item()


@pytest.mark.max_syncs(0)
def test_own_failure():
    raise ValueError("the test's own")


@pytest.mark.max_syncs
def test_wrong_use():
    pass


@pytest.mark.max_syncs(-1)
def test_fewer_than_none():
    pass


@pytest.mark.max_syncs(1)
def test_of_the_host_alone():
    plain = torch.ones(5)
    for i in range(5):
        plain[i].item()


@pytest.mark.max_syncs(1)
def test_of_a_batch():
    for batch in torch.utils.data.DataLoader(torch.ones(4)):
        batch + 1


def test_counts(sync_trace):
    x.tolist()
    assert sync_trace.count == 1
    assert sync_trace.lines[0].op == "tolist"


def test_prints_the_lines(sync_trace):
    x.tolist()
    assert not sync_trace.count
"""


def test_marks_and_the_fixture(forked: Python, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "test_marks_and_the_fixture.py").write_text(TESTS.lstrip())
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    # by its module, whether or not the package in use is installed with its entry point
    plugin = ["-p", "no:syncscope", "-p", "syncscope.pytest_plugin", "--strict-markers", "-p", "no:cacheprovider"]
    done = forked("-c", f"import pytest, sys; sys.exit(pytest.main({plugin}))")
    text = done.stdout
    assert re.search("5 failed, 4 passed, 1 warning", text), done.stderr
    assert "3 syncs, at most 1 is allowed:" in text
    (beyond,) = set(
        re.findall(r"test_marks_and_the_fixture.py:15: item, 3 times.*\n(.*)", text)
    )  # in CI it is told twice
    assert "host-read" in beyond
    assert beyond.endswith("syncscope explain host-read"), "each line beyond the limit names its rule"
    command = "syncscope lint --explain-finding test_marks_and_the_fixture.py:15"
    assert f"hint: {command}    shows these lines, and a rewrite where one fits" in text
    assert "ValueError: the test's own" in text
    assert text.count("max_syncs takes one number, 0 or more") >= 2
    assert text.count("max_syncs checked nothing") == 1
    assert "::test_of_the_host_alone" in text
    assert "lines that made the host wait" in text
    (waited,) = re.findall(r"test_marks_and_the_fixture.py:53: tolist, once.*\n(.*)", text)
    assert waited.endswith("syncscope explain host-read")


FAILS = """
import pytest
import torch

@pytest.fixture
def x():
    return torch.nn.Linear(4, 4)(torch.ones(2, 4))

def test_of_a_fixture(sync_trace, x):
    x.sum().item()
    assert sync_trace.count == 0

def test_of_a_value(sync_trace, x):
    assert x.max() == 100
"""


def test_what_pytest_reads_to_tell_of_a_failure_is_none_of_the_tests(
    forked: Python, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It prints fixtures, and what stood in an assertion."""
    (tmp_path / "test_fails.py").write_text(FAILS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    plugin = ["-p", "no:syncscope", "-p", "syncscope.pytest_plugin", "-p", "no:cacheprovider"]
    text = forked("-c", f"import pytest, sys; sys.exit(pytest.main({plugin}))").stdout
    assert "x = tensor(" in text
    assert text.count("lines that made the host wait") == 2
    assert re.findall(r"^\S*test_fails.py:(\d+): (\w+), once", text, re.MULTILINE) == [("10", "item"), ("14", "bool")]
    assert "saferepr" not in text


MADE_BY_FIXTURES = """
import pytest
import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Levels(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("levels", torch.ones(3))
        self.count = int(self.levels.sum())  # on the host still
        self.frozen = torch.nn.Parameter(torch.ones(3), requires_grad=False)

    def training_step(self, given):
        return given * self.levels[1:].prod().item()


@pytest.fixture(scope="module")
def module():
    return Levels().to(DEVICE)


@pytest.fixture(scope="module")
def sent():
    with torch.overrides.BaseTorchFunctionMode():
        yield torch.ones(3).to(DEVICE)


@pytest.fixture
def plain():
    return torch.ones(3)


def test_that_counts_nothing(module, sent):
    assert torch.overrides._len_torch_function_stack() == 1
    module.training_step(sent)


@pytest.mark.max_syncs(0)
def test_buffer(module):
    module.training_step(torch.ones(3))


@pytest.mark.max_syncs(1)
def test_made_here():
    Levels().training_step(torch.ones(3))


@pytest.mark.max_syncs(0)
def test_listed(module):
    for value in [*module.buffers(), *module.parameters()]:
        value.sum().item()


@pytest.mark.max_syncs(0)
def test_sent(sent):
    sent.sum().item()


@pytest.mark.max_syncs(0)
def test_mask_of_the_host():
    x = torch.ones(3).to(DEVICE)
    x[torch.randn(3) > 0].sum()


@pytest.mark.max_syncs(0)
def test_nothing_sent(plain):
    plain.sum().item()


def test_counts_too(sync_trace, sent):
    sent.tolist()
    assert sync_trace.count == 1
"""


@in_c
def test_what_fixtures_sent_and_modules_hold_is_the_devices(
    forked: Python, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "test_made_by_fixtures.py").write_text(MADE_BY_FIXTURES.lstrip())
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    plugin = ["-p", "no:syncscope", "-p", "syncscope.pytest_plugin", "--strict-markers", "-p", "no:cacheprovider"]
    done = forked("-c", f"import pytest, sys; sys.exit(pytest.main({plugin}))")
    text = done.stdout
    assert re.search("4 failed, 4 passed, 1 warning", text), text + done.stderr
    assert re.findall("FAILED test_made_by_fixtures.py::(\\w+) - Failed: (\\d) sync", text) == [
        ("test_buffer", "1"),
        ("test_listed", "2"),
        ("test_sent", "1"),
        ("test_mask_of_the_host", "1"),
    ]
    assert text.count("max_syncs checked nothing") == 1
    assert "::test_nothing_sent" in text
    assert re.search(r": mask_read, once.*\n +host-tensor-as-index", text), "the rule that `lint` names there"


OF_UNITTEST = """
import unittest

import pytest
import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
x = torch.ones(2, requires_grad=True)


@pytest.mark.max_syncs(0)
class TestMarked(unittest.TestCase):
    def test_waits(self):
        x.sum().item()

    @pytest.mark.max_syncs(1)
    def test_enough(self):
        x.sum().item()

    def test_own_failure(self):
        x.sum().item()
        self.assertEqual(1, 2)

    def test_skipped(self):
        self.skipTest("of another machine")

    def test_nothing(self):
        pass


class TestMarkedMethod(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.of_class = torch.ones(3).to(DEVICE)

    def setUp(self):
        self.sent = torch.ones(3).to(DEVICE)

    @pytest.mark.max_syncs(0)
    def test_sent_before(self):
        self.sent.sum().item(), self.of_class.tolist()


@pytest.mark.max_syncs(0)
class TestTasks(unittest.IsolatedAsyncioTestCase):
    async def test_task(self):
        x.sum().item()

    def test_beside_tasks(self):
        x.sum().item()
"""


def test_a_case_of_unittest_is_held_to_the_mark_as_a_function_is(
    forked: Python, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _outcomes(OF_UNITTEST, forked, tmp_path, monkeypatch) == {
        "test_waits": "1 sync",
        "test_own_failure": "its own",
        "test_sent_before": "2 syncs",
        "test_task": "1 sync",
        "test_beside_tasks": "1 sync",
        "test_nothing": "checked nothing",
    }


OF_THREADS = """
import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

x = torch.ones(2, requires_grad=True)
pytestmark = pytest.mark.max_syncs(0)


def test_thread():
    thread = threading.Thread(target=lambda: x.sum().item())
    thread.start()
    thread.join()


def test_pool():
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: x.sum().item(), range(3)))


def test_task_aside():
    async def aside():
        await asyncio.to_thread(x.sum().item)

    asyncio.run(aside())


def test_sent_before():
    sent = torch.ones(2).to(torch.device("cuda" if torch.cuda.is_available() else "cpu"))
    thread = threading.Thread(target=sent.tolist)
    thread.start()
    thread.join()
"""


def test_what_the_threads_of_a_test_wait_for_counts_too(
    forked: Python, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _outcomes(OF_THREADS, forked, tmp_path, monkeypatch) == {
        "test_thread": "1 sync",
        "test_pool": "3 syncs",
        "test_task_aside": "1 sync",
        "test_sent_before": "1 sync",
    }


SIZED_BY_VALUES = """
import pytest
import torch

x = torch.ones(2, 3, requires_grad=True)
pytestmark = pytest.mark.max_syncs(0)


def test_to_sparse():
    (x * 2).to_sparse().to_sparse()


def test_to_sparse_coo():
    (x * 2).to_sparse_coo()


def test_combinations():
    torch.combinations(x.sum(0))


def test_of_the_host():
    x.sum()
    torch.ones(3).to_sparse()
    torch.combinations(torch.ones(3))
"""


def test_what_is_as_large_as_its_values_say_counts_on_the_cpu_as_a_device_tells_it(
    forked: Python, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _outcomes(SIZED_BY_VALUES, forked, tmp_path, monkeypatch) == {
        "test_to_sparse": "1 sync",
        "test_to_sparse_coo": "1 sync",
        "test_combinations": "1 sync",
    }


OF_HOOKS = """
import pytest
import torch

pytestmark = pytest.mark.max_syncs(0)
model = torch.nn.Linear(4, 4)


def test_of_a_tensor():
    out = model(torch.ones(2, 4))
    out.register_hook(lambda grad: print(grad.sum().item()))
    out.sum().backward()


def test_of_a_parameter():
    hook = model.weight.register_hook(lambda grad: grad * (1 if grad.norm().item() < 1 else 0.5))
    model(torch.ones(2, 4)).sum().backward()
    hook.remove()
    model(torch.ones(2, 4)).sum().backward()


def test_after_it_is_added():
    hook = model.weight.register_post_accumulate_grad_hook(lambda weight: print(weight.grad.norm().item()))
    model(torch.ones(2, 4)).sum().backward()
    hook.remove()


def test_of_the_host():
    hook = model.weight.register_hook(lambda grad: print(torch.ones(3).sum().item()))
    model(torch.ones(2, 4)).sum().backward()
    hook.remove()
"""


def test_what_a_hook_of_a_gradient_waits_for_counts_too(
    forked: Python, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _outcomes(OF_HOOKS, forked, tmp_path, monkeypatch) == {
        "test_of_a_tensor": "1 sync",
        "test_of_a_parameter": "1 sync",
        "test_after_it_is_added": "1 sync",
    }


def _outcomes(tests: str, forked: Python, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What is told of these tests, by their names: of each that does not just pass."""
    (tmp_path / "test_told.py").write_text(tests.lstrip())
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    plugin = ["-p", "no:syncscope", "-p", "syncscope.pytest_plugin", "--strict-markers", "-p", "no:cacheprovider"]
    text = forked("-c", f"import pytest, sys; sys.exit(pytest.main({plugin}))").stdout
    failed = dict(re.findall(r"FAILED test_told.py::(?:\w+::)?(\w+) - (\w+: \d syncs?|\w+)", text))
    told = {name: said.removeprefix("Failed: ").replace("AssertionError", "its own") for name, said in failed.items()}
    return told | dict.fromkeys(re.findall(r"^test_told.py::(?:\w+::)?(\w+)$", text, re.MULTILINE), "checked nothing")
