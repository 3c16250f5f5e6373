"""`syncscope ranks`, as it is typed."""

import json

import pytest
from cli.test_report import folder, ranks  # noqa: F401  a fixture
from click.testing import CliRunner

from syncscope.cli import commands
from syncscope.errors import UserError


def run(*args: str):
    return CliRunner(env={"COLUMNS": "100"}).invoke(commands, ["ranks", *args], standalone_mode=False)


def test_a_folder_or_its_files(folder):  # noqa: F811
    ranks(folder / "job")
    one = run("job")
    assert one.return_value == 0
    assert "2 ranks, 0 collectives, a step of 10.00 ms" in one.stdout
    assert "train.py:7" in one.stdout
    assert run("job/worker0.pt.trace.json", "job/worker1.pt.trace.json").stdout == one.stdout
    assert run("job/worker0.pt.trace.json").stdout.startswith("1 rank, 0 collectives, ")


def test_tables_are_kept_and_read_again(folder):  # noqa: F811
    pytest.importorskip("pyarrow")
    ranks(folder / "job")
    kept = run("job", "--tables", "tables")
    assert kept.return_value == 0
    assert run("tables").stdout == kept.stdout
    result = CliRunner().invoke(commands, ["report", "tables"], standalone_mode=False)
    assert result.return_value == 2
    assert "its tables are for `syncscope ranks tables`" in result.stderr


def test_json_names_what_could_not_be_read(folder):  # noqa: F811
    ranks(folder / "job")
    (folder / "job" / "worker2.pt.trace.json").write_text("{}")
    result = run("job", "--format", "json")
    assert result.return_value == 2
    (problem,) = json.loads(result.stdout)["problems"]
    assert "worker2.pt.trace.json" in problem
    assert "worker2.pt.trace.json" in result.stderr


@pytest.mark.parametrize(
    ("name", "said"),
    [("nowhere", "there is no 'nowhere'"), ("empty", "empty holds no trace"), ("bad.json", "bad.json")],
)
def test_what_the_user_can_mend(folder, name, said):  # noqa: F811
    (folder / "empty").mkdir()
    (folder / "bad.json").write_text("nonsense")
    error = run(name).exception
    assert isinstance(error, UserError)
    assert said in error.message
    assert error.hint


def test_the_ranks_of_a_real_job_are_named_shortly(shared):
    result = run(str(shared / "traces" / "multirank_dlrm8"))
    assert result.return_value == 0
    assert "8 ranks, 8 collectives" in result.stdout
    assert "  10  SendRecv_RING_SIMPLE_Sum_int8_t 2" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 100
