"""A file that was edited since it was recorded: lines are found by their texts, and none is shown with the text of another."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from cli.recorded import READ, SOURCE, recording, report
from click.testing import CliRunner

from syncscope import kineto
from syncscope.cli import commands
from syncscope.model.commands import says_all
from syncscope.model.source import Place, text_hash

TEXT = SOURCE.split("\n")
LOSS = READ - 1


def recorded(path):
    """The loop, which waits for its loss and launches a line above it; with the hash of the line that waits."""
    trace = recording(path)
    launches = Place(path, LOSS)
    events = [replace(e, place=launches) if e.name == "clEnqueueNDRangeKernel" else e for e in trace]
    trace = type(trace).of(events, lines={path: {str(READ): text_hash(TEXT[READ - 1])}})
    return replace(trace, functions=tuple("train" for _ in trace.places))


@pytest.fixture
def edited(folder):
    """Writes `project/train.py` as it is now, and gives what `report` and `lint --trace` say of the recording from before."""
    kineto.save(recorded("project/train.py"), folder / "run.json")

    def ask(text, *options):
        Path("project/train.py").write_text(text)
        return report("run.json", *options).stdout

    return ask


@pytest.mark.parametrize(
    ("now", "line"),
    [
        ("# one\n# two\n# three\n# four\n" + SOURCE, READ + 4),
        (SOURCE.replace("import torch\n\n", "import torch\n"), READ - 1),
        ("def other(total, loss):\n    total += loss.item() + 1\n\n" + SOURCE, READ + 3),
        (
            SOURCE.replace("        total += loss.item()", "        if data:\n            total  +=  loss.item()"),
            READ + 1,
        ),
    ],
    ids=["below comments", "further up", "below another that waits", "indented"],
)
def test_a_line_that_moved_is_shown_where_it_stands_now(edited, now, line):
    told = edited(now)
    shown = now.split("\n")[line - 1].strip()
    words = " ".join(told.split())
    assert f"project/train.py:{line} item" in words
    assert f"    {shown}\n" in told
    assert "host-read" in told
    assert "project/train.py was edited since the recording: its lines stand where they are now" in words
    assert f"`project/train.py:{line}`" in edited(now, "--format", "markdown")
    (row,) = json.loads(edited(now, "--format", "json"))["lines"]
    assert (row["path"], row["line"], row["rule"]) == ("project/train.py", line, "host-read")


def test_a_line_that_is_not_there_any_more_has_neither_source_nor_rewrite(edited):
    now = "# one\n" + SOURCE.replace("total += loss.item()", "total += loss.detach().item()")
    told = edited(now, "--all")
    words = " ".join(told.split())
    assert f"project/train.py (as recorded):{READ} item" in words
    assert "none of its lines that wait is there any more" in words
    for line in now.split("\n")[5:]:
        assert not line.strip() or f"    {line.strip()}\n" not in told
    (row,) = json.loads(edited(now, "--format", "json"))["lines"]
    assert (row["line"], row.get("fix")) == (READ, None)
    assert f"train.py (as recorded):{READ}" in edited(now, "--format", "markdown")


def test_a_line_beside_one_that_moved_is_shown_where_it_stands_now_too(edited):
    told = edited("# one\n# two\n" + SOURCE, "--all")
    assert f"project/train.py:{LOSS + 2} loss" in " ".join(told.split())


def test_nothing_is_said_of_a_file_as_it_was_recorded(edited):
    assert "edited" not in edited(SOURCE)
    assert "edited" not in edited(SOURCE + "\n# more below\n"), "what waits stands where it stood"


def test_findings_are_priced_by_the_line_that_waited(edited):
    edited("def other(model):\n    return torch.mean(model).item()\n\n\n# one\n" + SOURCE)
    done = CliRunner().invoke(commands, ["lint", "--trace", "run.json", "project"], standalone_mode=False)
    assert f"project/train.py:{READ + 5}:" in done.stdout
    assert "project/train.py:2:" not in done.stdout
    assert "was edited since the recording" in done.stderr


@pytest.mark.parametrize("format", ["github", "gitlab", "sarif"])
def test_what_a_server_shows_is_in_a_file_that_is_there(edited, format):
    now = "# one\n" + SOURCE.replace("total += loss.item()", "total += loss.detach().item()")
    told = edited(now, "--max-syncs-per-step", "0", "--format", format)
    for known in {"github": ["file=project/train.py,title"], "gitlab": ['"path": "project/train.py"']}.get(
        format, ['"uri": "project/train.py"']
    ):
        assert known in told
    assert (f'"startLine": {READ}' in told, f"line={READ}" in told) == (False, False)


def test_a_command_names_a_file_that_is_there():
    assert says_all(["a b.py (as recorded)", "a b.py"]) == "`syncscope lint --all --min-confidence low 'a b.py'`"
