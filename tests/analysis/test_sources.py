from pathlib import Path

import pytest

from syncscope.analysis.sources import ambiguous, at_hand


@pytest.fixture
def project(tmp_path, monkeypatch):
    for name in ("train.py", "models/net.py", "eval/net.py", "models/loss.py", ".venv/train.py"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_path_of_this_machine_is_named_from_the_working_folder(project):
    assert at_hand([str(project / "train.py"), "models/net.py"]) == {
        str(project / "train.py"): Path("train.py"),
        "models/net.py": Path("models/net.py"),
    }


@pytest.mark.parametrize("path", ["/elsewhere/train.py", "<string>", "", "\0", "models"])
def test_what_is_not_here_is_left_out(project, path):
    assert at_hand([path]) == {}


@pytest.mark.parametrize(
    ("path", "file"),
    [
        ("/cluster/home/me/project/train.py", "train.py"),
        ("/cluster/project/models/net.py", "models/net.py"),
        ("C:\\project\\eval\\net.py", "eval/net.py"),
        ("loss.py", "models/loss.py"),
    ],
)
def test_with_a_root_the_longest_common_end_wins(project, path, file):
    assert at_hand([path], project) == {path: Path(file)}


def test_with_a_root_a_tie_is_no_answer(project):
    assert at_hand(["/cluster/other/net.py"], project) == {}


def test_files_that_tie_are_named(project):
    (said,) = ambiguous(["/cluster/other/net.py", "/cluster/project/models/loss.py"], project)
    assert said == (
        "/cluster/other/net.py may be eval/net.py or models/net.py, so none is taken",
        "`--source eval` names the first one's folder",
    )


def test_the_root_may_be_a_file(project):
    assert at_hand(["/a/train.py", "/a/net.py"], project / "train.py") == {"/a/train.py": Path("train.py")}


def test_a_root_above_the_working_folder_finds_the_very_path_among_copies(project, monkeypatch):
    """`--source ..`: as it is written it has no part in common with a recorded path but the file's name."""
    monkeypatch.chdir(project / "models")
    assert at_hand([str(project / "eval/net.py")], Path("..")) == {
        str(project / "eval/net.py"): project / "eval/net.py"
    }
