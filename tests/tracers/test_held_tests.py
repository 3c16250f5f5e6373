"""What a test is held to its mark for: cases of unittest, threads, hooks, and what is as large as its values say."""

import re
from pathlib import Path

import pytest
from warm import Python

pytest.importorskip("torch")

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
