"""`syncscope config` prints a table that the linter reads back as what it has."""

import tomllib

import pytest
from click.testing import CliRunner

from syncscope.cli import commands
from syncscope.linter.config import KEYS, Config, Configs

TABLE = """[tool.syncscope.lint]
select = ["host-read", "copy"]
per-file-ignores = { "tests/**" = ["ALL"], "a \\"b\\".py" = ["host-read"] }
exclude = ["*_pb2.py", "ältere"]
src = ["src"]
baseline = "known.json"
all = true
"""


@pytest.fixture
def shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda: CliRunner().invoke(commands, ["config"], catch_exceptions=False).output


def test_every_key_is_there_and_a_default_is_commented_out(shown):
    said = shown()
    assert said.startswith("# no pyproject.toml has this table: these are the defaults\n[tool.syncscope.lint]\n")
    assert [line.split(" = ")[0] for line in said.splitlines()[2:]] == [f"# {key}" for key in KEYS]
    assert tomllib.loads(said) == {"tool": {"syncscope": {"lint": {}}}}


def test_with_every_default_written_out_it_means_the_same(shown, tmp_path):
    whole = shown().replace("\n# ", "\n").replace('backend = ""', '# backend = ""')
    written = tmp_path / "elsewhere" / "pyproject.toml"
    written.parent.mkdir()
    written.write_text(whole)
    assert Configs().of(str(written.parent)) == Config(root=str(written.parent), file=str(written))


def test_what_a_file_says_is_read_back_as_the_same(shown, tmp_path):
    (tmp_path / "pyproject.toml").write_text(TABLE)
    said = shown()
    assert said.startswith("# from pyproject.toml\n")
    assert tomllib.loads(said) == tomllib.loads(TABLE)
