"""Lines that moved within their file are known by their text, of which a recording keeps a hash: no comment breaks a gate."""

import json
import os

import pytest
import torch
from click.testing import CliRunner

import syncscope
from syncscope.cli import commands

pytest.importorskip("pyopencl")
import syncscope.kernels

LOOP = """\
def step(x):
    both = x.item() + x.item()
    y = x + 1
    one = x.item()
    z = y + 1
    other = z.item()
"""


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """Records steps of a program with this text, and gives the path of the recording."""
    monkeypatch.chdir(tmp_path)
    x = torch.ones((), device="ocl")

    def record(name, text, edited=False):
        path = tmp_path / name / "train.py"
        path.parent.mkdir()
        path.write_text(text)
        os.utime(path, None if edited else (1, 1))
        space = {}
        exec(compile(text, str(path), "exec"), space)
        if edited:
            os.utime(path, (2**32, 2**32))
        with syncscope.trace(str(tmp_path / name / "runs"), whole=True) as trace:
            for _ in range(5):
                space["step"](x)
                trace.step()
        return f"{name}/runs"

    return record


def gate(*paths):
    done = CliRunner().invoke(commands, ["diff", *paths, "--max-new-syncs", "0"], standalone_mode=False)
    return done.return_value, done.stderr


def test_what_moved_or_was_cut_in_two_is_not_new_and_what_came_is(recorded):
    before = recorded("before", LOOP)
    moved = "# one\n# two\n" + LOOP
    shift = recorded("shift", moved)
    assert gate(before, shift) == (0, ""), "the second read is where the first was"
    done = CliRunner().invoke(commands, ["diff", before, shift, "--format", "json"], standalone_mode=False)
    told = json.loads(done.stdout)
    assert (told["new"], told["gone"]) == ([], [])
    assert all(c["after"]["line"] == c["before"]["line"] + 2 for c in told["changed"]), told["changed"]
    two = moved.replace("both = x.item() + x.item()", "both = x.item()\n    both += x.item()")
    assert gate(before, recorded("two", two)) == (0, "")
    code, said = gate(
        before, recorded("worse", two.replace("    z = y", "    if y.item() > 0:\n        pass\n    z = y"))
    )
    assert code == 1
    assert said.startswith("1 sync per step is new, more than the 0 allowed:\n")


def test_where_the_text_is_not_known_a_gate_says_so(recorded):
    """A file that was written after the recording had begun says nothing of what ran."""
    before = recorded("before", LOOP)
    code, said = gate(before, recorded("shift", "# one\n# two\n" + LOOP, edited=True))
    assert code == 2
    assert "1 sync per step is new if no line has moved, 0 if lines have" in said
    more = LOOP + "    last = y.item()\n"
    assert gate(before, recorded("more", more, edited=True))[0] == 1, "there are more of them, wherever they stand"


def test_lines_that_lead_to_one_line_of_a_library_are_told_apart_when_they_move(recorded, tmp_path, monkeypatch):
    """Each is known by its own text, whichever line stands where it stood."""
    library = tmp_path / "site-packages" / "reads"
    library.mkdir(parents=True)
    (library / "__init__.py").write_text("def number(x):\n    return x.item()\n")
    os.utime(library / "__init__.py", (1, 1))
    monkeypatch.syspath_prepend(str(library.parent))
    calls = "import reads\n\n\ndef step(x):\n    two = reads.number(x) + reads.number(x)\n    one = reads.number(x)\n"
    before = recorded("before", calls)
    shift = recorded("shift", calls.replace("def step", "# one\ndef step"))
    done = CliRunner().invoke(commands, ["diff", before, shift, "--format", "json"], standalone_mode=False)
    told = json.loads(done.stdout)
    assert len(told["same"]) + len(told["changed"]) == 2
    assert all(c["after"]["count"] == c["before"]["count"] for c in told["changed"])
    assert gate(before, shift) == (0, "")
