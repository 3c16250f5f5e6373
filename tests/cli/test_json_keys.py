"""docs/json.md and what is printed agree: no key without a meaning, no meaning without a key."""

import json
import re
from pathlib import Path

from cli.compared import recorded as two_recordings
from cli.recorded import ranks
from cli.test_bench import row
from cli.test_roofline_command import recorded as with_shapes
from click.testing import CliRunner

from syncscope.bench.results import Results
from syncscope.cli import commands
from syncscope.verify import results

DOCS = Path(__file__).parents[2] / "docs"


def told(page: str, heading: str) -> set[str]:
    """The keys in the first column of a table of a page, by that column's heading."""
    rows = (DOCS / page).read_text().partition(f"| {heading} |")[2].partition("\n\n")[0].splitlines()[2:]
    return {key for line in rows for key in re.findall(r"`([\w.]+)`", line.split("|")[1])}


def printed(*args: str):
    done = CliRunner().invoke(commands, [*args, "--format", "json"], standalone_mode=False)
    assert done.exception is None, done.output
    value = json.loads(done.stdout)
    assert value["schema"] == 1
    return value


def keys(value: dict, *opened: str) -> set[str]:
    """The keys of an object, and those of the objects that stand behind these of its keys."""
    found = set(value)
    for name in opened:
        inner = value[name][0] if isinstance(value[name], list) else value[name]
        found |= {f"{name}.{key}" for key in inner}
    return found


def test_every_key_of_a_report_is_on_the_page(folder):
    ranks(folder / "job")
    value = printed("report", "job/worker0.pt.trace.json")
    assert set(value) == told("json.md", "key")
    for part in ("reads", "lines"):
        assert set(value[part][0]) == told("json.md", "key of `reads`")


def test_every_key_of_diff_is_on_the_page(tmp_path):
    value = printed("diff", *two_recordings(tmp_path))
    assert keys(value, "before", "gone") == told("json.md", "key of `diff`")
    assert set(value["before"]) == set(value["after"])


def test_every_key_of_ranks_is_on_the_page(folder):
    ranks(folder / "job")
    assert keys(printed("ranks", "job"), "ranks", "lines") == told("json.md", "key of `ranks`")


def test_every_key_of_roofline_is_on_the_page(tmp_path):
    value = printed("roofline", with_shapes(tmp_path, "NVIDIA A100-SXM4-80GB"))
    assert keys(value, "rows") == told("json.md", "key of `roofline`")


def test_every_key_of_bench_is_on_the_page():
    value = json.loads(Results({"ocl": {"name": "a device"}}, [row("ocl", 50.0, dtype="float32")]).text())
    assert set(value) == {key for key in told("json.md", "key of `bench`") if "." not in key}


def test_every_field_of_verify_is_on_the_page():
    value = results.as_object(results.Verification(program="train.py"))
    assert value["schema"] == 1
    assert set(value) == told("verify.md", "field")
