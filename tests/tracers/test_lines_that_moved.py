"""Lines that moved within their file are known by their text, of which a recording keeps a hash: no comment breaks a gate."""

import json
import os
import re

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
    """The exit code, and what is said of the limit where it does not hold."""
    done = CliRunner().invoke(commands, ["diff", *paths, "--max-new-syncs", "0"], standalone_mode=False)
    return done.return_value, "".join(line for line in done.stderr.splitlines(True) if " holds: " not in line)


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


STEP = """\
def step(x):
    loss = x * 2
    print("loss", loss.item())
    worst = x.max()
    print("worst", worst.item())
    grown = x + 1
"""


def test_a_wait_that_another_of_its_kind_took_the_place_of_is_not_passed_in_silence(recorded):
    before = recorded("before", STEP)
    elsewhere = STEP.replace('    print("loss", loss.item())\n', "") + '    print("grown", grown.item())\n'
    code, said = gate(before, recorded("elsewhere", elsewhere))
    assert code == 1, "one is gone, but another came below what stayed"
    assert said.splitlines()[0] == "1 sync per step is new, more than the 0 allowed:"
    assert "train.py:6: item: +1 per step" in said
    here = recorded("here", STEP.replace("loss.item()", "grown_less.item()").replace("loss =", "grown_less ="))
    assert gate(before, here) == (0, ""), "it may be the same, by another name"
    done = CliRunner().invoke(commands, ["diff", before, here], standalone_mode=False)
    words = " ".join(done.stdout.split())
    assert re.search(
        r"The item at \S*here/train.py:3 is where that at \S*before/train.py:3 was, of another expr", words
    )
    done = CliRunner().invoke(commands, ["diff", before, here, "--format", "github"], standalone_mode=False)
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["::notice"]


@pytest.mark.parametrize(
    "after",
    [
        STEP.replace('print("loss", loss.item())', "told = [loss.item()]"),
        STEP.replace('    print("loss", loss.item())\n', "") + '    log = {"loss": loss.item()}\n',
        STEP.replace('print("worst", worst.item())', "print(\n        'worst',\n        worst.item(),\n    )"),
    ],
    ids=["rewritten", "moved and rewritten", "formatted"],
)
def test_the_same_expression_is_the_same_wait_whatever_is_written_around_it(recorded, after):
    before, now = recorded("before", STEP), recorded("after", after)
    assert gate(before, now) == (0, "")
    done = CliRunner().invoke(commands, ["diff", before, now], standalone_mode=False)
    assert "another expression" not in " ".join(done.stdout.split())


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
