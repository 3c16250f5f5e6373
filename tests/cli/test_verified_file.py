"""`report --verified` is given what is no result of verify: it says so in two lines, and never draws half a page."""

import json

import pytest
from click.testing import CliRunner

from syncscope.cli import commands
from syncscope.verify.results import Verification, as_object

WHOLE = as_object(Verification("train.py"))
FIX = {
    "path": "train.py",
    "line": 3,
    "rule": "host-read",
    "safety": "safe",
    "kept": True,
    "values": "equal",
    "why": "",
    "title": "read once",
    "changes": "",
    "ratio": 0.9,
    "low": 0.8,
    "high": 1.0,
}


def asked(folder, text, *args):
    (folder / "result.json").write_text(text)
    command = ["report", "run.pt.trace.json.gz", "--verified", "result.json", "-o", "page.html", *args]
    return CliRunner().invoke(commands, command, standalone_mode=False)


def without(*names):
    return json.dumps({name: value for name, value in WHOLE.items() if name not in names})


SPOILED = {
    "NaN": (json.dumps({**WHOLE, "ratio": float("nan")}), "malformed"),
    "brackets": ("[" * 200_000 + "]" * 200_000, "Expected `object`"),
    "brackets inside": (
        json.dumps(WHOLE)[:-1] + ', "more": ' + "[" * 200_000 + "]" * 200_000 + "}",
        "nested too deeply",
    ),
    "a key too few": (without("notes"), "missing required field `notes`"),
    "no numbers": (json.dumps({**WHOLE, "step_ms_before": "nine"}), "$.step_ms_before"),
    "a fix without a line": (json.dumps({**WHOLE, "fixes": [{**FIX, "line": None}]}), "$.fixes[0].line"),
    "cut off": (json.dumps(WHOLE)[:-30], "truncated"),
    "another version": (json.dumps({**WHOLE, "schema": 2}), "another version"),
    "a list": ("[]", "Expected `object`"),
    "nothing": ("", "truncated"),
}


@pytest.mark.parametrize("name", SPOILED)
def test_what_is_no_result_is_told(folder, name):
    text, words = SPOILED[name]
    done = asked(folder, text)
    assert (done.exception, done.return_value) == (None, 2)
    assert "result.json is no result of syncscope verify" in done.output
    assert words in done.output
    assert "hint: write one with syncscope verify -o result.json" in done.output
    assert not (folder / "page.html").exists()


@pytest.mark.parametrize("result", [WHOLE, {**WHOLE, "fixes": [FIX]}, {**WHOLE, "of a newer version": [1]}])
def test_what_verify_wrote_is_shown(folder, result):
    done = asked(folder, json.dumps(result))
    assert done.exception is None, done.exception
    assert "train.py" in (folder / "page.html").read_text()


def said_with(folder, result):
    (folder / "result.json").write_text(json.dumps(result))
    done = CliRunner().invoke(commands, ["report", "run.pt.trace.json.gz", "--verified", "result.json"])
    return " ".join(done.stdout.split())


def test_the_answer_is_what_was_measured(folder):
    """Whatever the replay had foretold."""
    together = {"ratio": 0.55, "low": 0.5, "high": 0.6, "values": "equal", "decided": True}
    said = said_with(folder, {**WHOLE, **together, "fixes": [{**FIX, **together}]})
    assert "answer fix measured: with the rewrites that stay a step is 45 % shorter (40 to 50 %)" in said
    assert "likely" not in said.partition("recorded")[0]


def test_rewrites_that_gained_nothing_are_no_ground_to_say_fix(folder):
    nothing = {"ratio": 1.0, "low": 0.99, "high": 1.01, "values": "equal", "decided": True}
    assert "answer fix" in said_with(folder, WHOLE)
    said = said_with(folder, {**WHOLE, **nothing, "fixes": [{**FIX, **nothing, "kept": False}]})
    assert "answer try" in said
    assert "its rewrites were tried, and with them a step is 1.000 (0.990 to 1.010) of what it was" in said


@pytest.mark.parametrize(("compared", "said"), [(8, "bit for bit, in the 8 steps compared"), (None, "bit for bit")])
def test_of_equal_values_it_is_said_in_how_many_steps(folder, compared, said):
    """A result that an earlier version wrote does not say."""
    alone = {"ratio": 0.55, "low": 0.5, "high": 0.6, "values": "equal", "line": 7, "path": "project/train.py"}
    result = {**WHOLE, "compared_steps": compared, "fixes": [{**FIX, **alone}]}
    (folder / "result.json").write_text(json.dumps(result))
    command = ["report", "run.pt.trace.json.gz", "--verified", "result.json", "--format", "json"]
    lines = json.loads(CliRunner().invoke(commands, command).stdout)["lines"]
    assert any(str(line["answer"]).count(f"values are equal, {said}'") for line in lines if line["answer"]), lines
