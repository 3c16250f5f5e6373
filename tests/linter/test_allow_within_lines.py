"""`--add-allow` makes no line longer than the project's tools let it be: the comment then stands above, and goes whole."""

import pytest

CODE = """import torch


def training_step(self, batch, batch_idx):
    loss = self.model(batch)
    if batch_idx:
        self.history.append(loss.detach().item()); self.others.append(float(batch_idx))
    return loss


def compute_loss(self, x: torch.Tensor):
    self.log(x.item())  # noqa: E501
"""
RUFF, BLACK = "[tool.ruff]\nline-length = 90\n", "[tool.black]\n"
REASON = ("--reason", "read once in a step, which is what the history needs, and nobody minds")


@pytest.mark.parametrize(
    ("name", "text", "longest"),
    [
        ("pyproject.toml", RUFF, 90),
        ("pyproject.toml", BLACK, 88),
        ("ruff.toml", "line-length = 100\n", 100),
        ("setup.cfg", "[flake8]\nmax-line-length = 95\n", 95),
        (".flake8", "[flake8]\n", 79),
        (".editorconfig", "root = true\n[*.py]\nmax_line_length = 92\n", 92),
    ],
)
def test_a_comment_that_would_make_a_line_too_long_stands_above_it(door, name, text, longest):
    door.write(name, text)
    file = door.write("pkg/train.py", CODE)
    assert door("lint", "--add-allow", *REASON, ".").code == 0
    rows = file.read_text().splitlines()
    assert all(len(row) <= longest or row in CODE for row in rows), rows
    at = next(n for n, row in enumerate(rows) if "self.history" in row)
    assert rows[at] in CODE
    assert any(row.startswith("        # syncscope: allow[host-read] read once") for row in rows[at - 3 : at])
    assert door("lint", ".").lines == []
    assert "2 allowed by comments" in door("lint", ".").err


def test_it_goes_whole_where_it_silences_nothing_any_more(door):
    door.write("pyproject.toml", RUFF)
    file = door.write("train.py", CODE)
    door("lint", "--add-allow", *REASON, ".")
    file.write_text(file.read_text().replace("loss.detach().item()", "1").replace("x.item()", "1"))
    assert door("lint", "--fix", ".").code == 0
    assert file.read_text() == CODE.replace("loss.detach().item()", "1").replace("x.item()", "1")


def test_where_no_tool_is_configured_it_stays_at_the_end_of_its_line(door):
    file = door.write("train.py", CODE)
    door("lint", "--add-allow", *REASON, ".")
    assert len(file.read_text().splitlines()) == len(CODE.splitlines())


def test_an_allow_that_was_there_is_not_moved(door):
    door.write("pyproject.toml", RUFF)
    kept = "        print(loss.item())  # syncscope: allow[host-read] " + "because it is so, " * 5
    code = CODE.replace("    if batch_idx:\n", f"    if batch_idx:\n{kept.rstrip()}\n")
    file = door.write("train.py", code)
    door("lint", "--add-allow", ".")
    assert kept.rstrip() in file.read_text()
