"""Commands typed wrongly, and by somebody who sees them for the first time."""

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner
from linter.conftest import READS

from syncscope import discover
from syncscope.cli import commands
from syncscope.errors import UserError


def said(*args: str, stdin: bytes | None = None) -> str:
    """The error in the two lines that `main` prints."""
    error = CliRunner().invoke(commands, list(args), input=stdin, standalone_mode=False).exception
    assert isinstance(error, UserError)
    return str(error)


def test_the_overview_shows_every_command_whole():
    shown = CliRunner().invoke(commands, ["--help"]).output
    path, more = shown[shown.index("Commands:") :].rstrip().split("\n\n")
    path, more = ([line.split()[0] for line in listed.splitlines()[1:]] for listed in (path, more))
    assert path == ["lint", "run", "report", "verify", "diff"]
    assert sorted(path + more) == discover.names(sys.modules["syncscope.cli"])
    assert "..." not in shown[shown.index("Commands:") :]


@pytest.mark.parametrize("name", discover.names(sys.modules["syncscope.cli"]))
def test_every_command_has_help(name):
    result = CliRunner().invoke(commands, [name, "--help"])
    assert result.exit_code == 0
    assert f" {name} [OPTIONS]" in result.output.splitlines()[0]
    assert CliRunner().invoke(commands, [name, "--no-such-option"]).exit_code != 0


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("lnit",), "did you mean 'lint'?"),
        (("explain", "frobnicate"), "no rule is called 'frobnicate'\n hint: `syncscope explain` lists them all"),
        (("lint", "--select", "frobnicate", "."), "hint: `syncscope explain` lists them all"),
        (("lint", "--diff", "--format", "json", "."), "--diff and --format json do not go together"),
        (("lint", "--statistics", "--format", "sarif", "."), "--statistics and --format sarif do not go together"),
        (("lint", "--add-allow", "-"), "--add-allow writes into files"),
        (("lint", "--watch", "-"), "--watch lints files again and again"),
        (("report", "--format", "docx", "x.json"), "no format is called 'docx'\n hint: choose from: collapsed"),
        (("run", "."), ". is a directory\n hint: give a script, or a module"),
        (
            ("report", "--max-wait-for-rank", "5%", "."),
            "`syncscope report` has no --max-wait-for-rank\n hint: `syncscope ranks`",
        ),
        (("ranks", "nowhere"), "there is no 'nowhere'"),
        (("diff", "nowhere", "nowhere"), "nowhere: no such file"),
        (("roofline", "."), ". is a directory"),
        (("diff", "project/train.py", "nowhere"), "`syncscope run project/train.py` makes one"),
        (("verify", "run.pt.trace.json.gz"), "run.pt.trace.json.gz is a recording, and verify takes the program"),
    ],
    ids=str,
)
def test_a_mistake_is_told_with_what_to_do(folder, args, words):
    assert words in said(*args)


@pytest.mark.parametrize(
    "args",
    [("ranks", "--tables", "/proc/nowhere"), ("report", "--format", "tensorboard", "-o", "/proc/nowhere")],
    ids=str,
)
def test_a_folder_that_cannot_be_written_is_said(folder, args):
    done = subprocess.run(
        [sys.executable, "-m", "syncscope", *args, "run.pt.trace.json.gz"], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 2
    assert "/proc/nowhere cannot be written: " in done.stderr
    assert " hint: choose another " in done.stderr


def test_limits_below_zero_are_refused(folder):
    result = CliRunner().invoke(commands, ["report", "run.pt.trace.json.gz", "--max-reads-per-step", "-1"])
    assert result.exit_code == 2


def test_a_recording_comes_through_a_pipe(folder):
    raw = (folder / "run.pt.trace.json.gz").read_bytes()
    result = CliRunner().invoke(commands, ["report", "-"], input=raw)
    assert result.exit_code == 0
    assert "standard input" in result.output
    assert "train.py:7  item" in result.output


def test_a_report_of_no_findings_is_empty_and_text_is_the_terminals(folder):
    assert CliRunner().invoke(commands, ["report", "run.pt.trace.json.gz", "--format", "github"]).stdout == ""
    plain = CliRunner().invoke(commands, ["report", "run.pt.trace.json.gz"]).output
    assert CliRunner().invoke(commands, ["report", "run.pt.trace.json.gz", "--format", "text"]).output == plain


def test_the_folder_of_an_output_is_made(folder):
    (folder / "train.py").write_text(READS)
    CliRunner().invoke(commands, ["lint", "--format", "json", "-o", "out/found.json", "."], standalone_mode=False)
    assert "train.py" in (folder / "out" / "found.json").read_text()


def test_a_program_that_an_error_ended_is_not_told_how_to_use_a_device(tmp_path):
    (tmp_path / "train.py").write_text("import torch\n\nraise OSError('no data')\n")
    command = [sys.executable, "-m", "syncscope", "run", "--device", "cpu", "train.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert "before OSError ended the program" in done.stderr
    assert "hint" not in done.stderr


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("print('hello')", ["syncscope: nothing to record: "]),
        pytest.param("def f(:", ['train.py", line 1\n', "SyntaxError: invalid syntax"], marks=pytest.mark.slow),
        ("import json\njson.loads('x')", ['train.py", line 2, in <module>', "JSONDecodeError"]),
        ("import syncscope\nfor _ in syncscope.steps(range(2)): pass", ["no device worked", "--device cpu"]),
    ],
)
def test_a_program_that_uses_no_device_is_told_so(tmp_path, code, words):
    (tmp_path / "train.py").write_text(code)
    command = [sys.executable, "-m", "syncscope", "run", "train.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=300)
    alone = subprocess.run([sys.executable, "train.py"], capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert (done.returncode, done.stdout) == (alone.returncode, alone.stdout)
    assert all(word in done.stderr for word in words)
    assert "syncscope/" not in done.stderr
    assert done.stderr.startswith(alone.stderr)


def test_a_script_that_stays_on_the_cpu_is_told_to_ask_for_cuda_where_another_device_was_lent(tmp_path):
    (tmp_path / "train.py").write_text("import syncscope\nfor _ in syncscope.steps(range(2)): pass")
    command = [sys.executable, "-m", "syncscope", "run", "--device", "ocl", "train.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert "syncscope run --device ocl train.py --device cuda" in done.stderr
    assert 'one without it must send its model and its batches there: `.to("cuda")`' in done.stderr


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        (
            "dev = torch.device('cpu')\nprint(torch.ones(3, device=dev).sum().item())",
            "train.py:2 names the CPU; name cuda there",
        ),
        ("print(torch.ones(3).sum().item())", "the program asked for no cuda"),
        (
            "d = 'cuda' if False else 'cpu'\nprint(torch.ones(3, device=d).sum().item())",
            "the program asked for no cuda",
        ),
    ],
)
def test_of_a_script_that_leaves_nothing_to_record_it_is_said_what_to_change(tmp_path, code, hint):
    (tmp_path / "train.py").write_text(f"import torch\n{code}\n")
    command = [sys.executable, "-m", "syncscope", "run", "--device", "ocl", "train.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert "nothing to record" in done.stderr
    assert f"hint: {hint}" in done.stderr


def test_a_module_that_is_not_there_is_one_line_as_from_python(tmp_path):
    command = [sys.executable, "-m", "syncscope", "run", "-m", "nowhere"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert done.returncode == 1
    assert "No module named nowhere\n" in done.stderr
    assert "Traceback" not in done.stderr


def numbers() -> list[tuple[str, str]]:
    """Every option of a command that is a number with a point, and each command that has it."""
    return [
        (name, max(param.opts, key=len))
        for name in discover.names(sys.modules["syncscope.cli"])
        for param in commands.get_command(None, name).params
        if isinstance(param.type, click.types.FloatParamType)
    ]


def test_a_limit_is_among_the_numbers() -> None:
    assert {("report", "--max-syncs-per-step"), ("ranks", "--max-syncs-per-step")} <= set(numbers())


@pytest.mark.parametrize(("command", "option"), numbers())
@pytest.mark.parametrize("value", ["nan", "inf"])
def test_no_number_is_nan_or_without_end(command: str, option: str, value: str) -> None:
    """Nothing is more than nan, and so every gate held."""
    done = CliRunner().invoke(commands, [command, "a", "b", option, value])
    assert done.exit_code == 2
    assert f"{option}" in done.output
    assert f"'{value}' is no number to compare with" in done.output
