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
