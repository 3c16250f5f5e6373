"""What the page on hot and cold shows of its example is what is printed, and each row of its table is so."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from syncscope.cli import commands

PAGE = (Path(__file__).parents[2] / "docs" / "hot-and-cold.md").read_text()
METRICS, TRAIN = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(autouse=True)
def example(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, code in {"pyproject.toml": "", "metrics.py": METRICS, "train.py": TRAIN}.items():
        Path(name).write_text(code)


def printed(*args: str) -> str:
    return CliRunner().invoke(commands, ["lint", "--no-cache", *args, "train.py", "metrics.py"]).stdout


def test_what_is_printed():
    shown = re.search(r"```console\n\$ syncscope lint (\S+ \S+) train.py metrics.py\n(.*?)```", PAGE, re.DOTALL)
    assert shown is not None
    assert printed(*shown[1].split()) == shown[2]


def test_each_row():
    rows = re.findall(r"^\| `(\w+\.py):(\d+)` \| (hot|cold)(, told in a line)?", PAGE, re.MULTILINE)
    found = json.loads(printed("--all", "--format", "json"))
    assert {(path, int(line), kind == "hot") for path, line, kind, _ in rows} == {
        (each["path"], each["line"], each["hot"]) for each in found
    }
    told = json.loads(printed("--format", "json"))
    assert {(path, int(line)) for path, line, _, short in rows if short} == {
        (each["path"], each["line"]) for each in told if each["also"]
    }
