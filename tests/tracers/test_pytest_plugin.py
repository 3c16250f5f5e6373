import re
from pathlib import Path

import pytest
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
    assert re.search("4 failed, 4 passed, 1 warning", text), done.stderr
    assert "3 syncs, at most 1 is allowed:" in text
    (beyond,) = set(
        re.findall(r"test_marks_and_the_fixture.py:15: item, 3 times.*\n(.*)", text)
    )  # in CI it is told twice
    assert "host-read" in beyond
    assert beyond.endswith("syncscope explain host-read"), "each line beyond the limit names its rule"
    assert "hint: syncscope lint test_marks_and_the_fixture.py    shows what to write instead" in text
    assert "ValueError: the test's own" in text
    assert "max_syncs takes one number" in text
    assert text.count("max_syncs checked nothing") == 1
    assert "::test_of_the_host_alone" in text
    assert "lines that made the host wait" in text
    (waited,) = re.findall(r"test_marks_and_the_fixture.py:48: tolist, once.*\n(.*)", text)
    assert waited.endswith("syncscope explain host-read")
