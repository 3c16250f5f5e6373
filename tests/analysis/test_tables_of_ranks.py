"""The tables of ranks, as the page describes them and other programs read them."""

import re
from pathlib import Path

import pytest
from drawn_ranks import ranks_of

from syncscope.analysis import fleet

PAGE = (Path(__file__).parents[2] / "docs" / "price.md").read_text()


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """A folder of tables, in the folder of the test; as a string, as people name them."""
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    for rank in ranks_of(0, 0, 700_000):
        fleet.store(rank, "tables")
    return "tables"


@pytest.mark.parametrize("table", fleet.TABLES)
def test_the_page_names_every_column(tables, table):
    parquet = pytest.importorskip("pyarrow.parquet")
    (row,) = re.findall(rf"^\| `{table}` \| (.*) \|$", PAGE, re.MULTILINE)
    (file, *_) = sorted(Path(tables, table).iterdir())
    assert re.findall(r"`(\w+)`", row.partition(": the")[0]) == parquet.read_schema(file).names


def test_the_question_on_the_page_is_answered(tables):
    duckdb = pytest.importorskip("duckdb")
    (question,) = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    found = duckdb.sql(question).fetchall()
    assert [(rank, kind, times) for rank, kind, times, _ in found[-1:]] == [(2, "ncclKernel_AllReduce", 3)]


def test_a_folder_may_be_a_string(tables):
    pytest.importorskip("duckdb")
    assert [rank.number for rank in fleet.load(tables)] == [0, 1, 2]
    assert fleet.stragglers(tables) == fleet.stragglers(Path(tables))
    assert fleet.lines(tables) == []
