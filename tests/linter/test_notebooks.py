"""Notebooks: findings name cell and line, fixes go back into the cell, and the rest of the JSON stays as it is."""

import json
import re

import pytest
from linter.conftest import MASKS, READS

from syncscope.linter import notebooks


def cell(source: str, kind: str = "code") -> dict:
    made = {"cell_type": kind, "metadata": {}, "source": source.splitlines(keepends=True)}
    return made | ({"execution_count": 1, "outputs": []} if kind == "code" else {})


def notebook(*cells: dict, **more) -> dict:
    return {"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5} | more


def text(*cells: dict, indent: int | None = 1, **more) -> str:
    return json.dumps(notebook(*cells, **more), indent=indent, ensure_ascii=False) + "\n"


MAGICS = "%matplotlib inline\n!pip install torch \\\n  numpy\nfiles = !ls\nimport torch\n%time print(1)\ntorch.add?\n"


def test_findings_name_cell_and_line(door):
    door.write(
        "x.ipynb", text(cell("# Training", "markdown"), cell(MAGICS), cell(READS.replace("import torch\n\n\n", "")))
    )
    ran = door("lint")
    assert ran.lines == [("x.ipynb:cell 3", 8, "host-read")]
    assert "  8 |         print(loss.item())\n" in ran.out
    (found,) = json.loads(door("lint", "--format", "json").out)
    assert (found["path"], found["cell"], found["line"], found["column"]) == ("x.ipynb", 3, 8, 15)


def of_github(out):
    return [int(line) for line in re.findall(r"file=x\.ipynb,line=(\d+)", out)]


def of_gitlab(out):
    return [issue["location"]["positions"]["begin"]["line"] for issue in json.loads(out)]


def of_sarif(out):
    places = [one["locations"][0]["physicalLocation"] for one in json.loads(out)["runs"][0]["results"]]
    return [place["region"]["startLine"] for place in places]


@pytest.mark.parametrize("indent", [None, 1, "\t"])
@pytest.mark.parametrize("lines_of", [of_github, of_gitlab, of_sarif])
def test_what_shows_the_file_is_told_the_line_of_the_file(door, lines_of, indent):
    """A cell's lines are strings of a list in JSON, or all of them one string."""
    one = {"cell_type": "code", "metadata": {}, "outputs": [], "source": READS}
    for cells in ([cell("# Training", "markdown"), cell(MAGICS), cell(READS)], [cell(MAGICS), one]):
        path = door.write("x.ipynb", text(*cells, indent=indent))
        (line,) = lines_of(door("lint", "--format", lines_of.__name__.removeprefix("of_")).out)
        assert "print(loss.item())" in path.read_text().split("\n")[line - 1]


@pytest.mark.parametrize("indent", [None, 1, 4, "\t"])
def test_a_fix_changes_the_lines_of_its_cell_and_nothing_else(door, indent):
    cells = [cell("Grüße", "markdown"), cell(MAGICS), cell(MASKS.rstrip("\n")), cell("print('ende')\n")]
    path = door.write("x.ipynb", text(*cells, indent=indent, odd=[1.50, {"b": 1, "a": []}]).replace("1.5", "1.50"))
    before = path.read_text().splitlines()
    door("lint", "--fix")
    after = json.loads(path.read_text())
    assert "".join(after["cells"][2]["source"]) == MASKS.rstrip("\n").replace(
        "    background = torch.nonzero(target == 9, as_tuple=True)\n    target[background] = -1\n",
        "    target.masked_fill_(target == 9, -1)\n",
    )
    if indent is not None:
        gone = [line for line in before if line not in path.read_text().splitlines()]
        assert [line.strip() for line in gone] == [
            '"    background = torch.nonzero(target == 9, as_tuple=True)\\n",',
            '"    target[background] = -1\\n",',
        ]
    assert '"odd"' in path.read_text()
    assert "1.50" in path.read_text()


def test_a_source_that_is_one_string_stays_one_and_escapes_stay_escapes(door):
    whole = notebook({"cell_type": "code", "source": "# ä\n" + MASKS})
    path = door.write("x.ipynb", json.dumps(whole))
    door("lint", "--fix")
    assert '"source": "# \\u00e4\\nimport torch\\n' in path.read_text()
    assert "masked_fill_" in path.read_text()


def test_a_cell_that_is_no_python_is_reported_and_the_others_are_linted(door):
    door.write("x.ipynb", text(cell("import torch\nthis is no python\n"), cell("%%bash\nls torch\n"), cell(READS)))
    assert door("lint").lines == [("x.ipynb:cell 1", 2, "syntax-error"), ("x.ipynb:cell 3", 11, "host-read")]


BESIDE = """\
def step(model, batches, seen):
    for x in batches:
        loss = model(x).sum()
        loss.backward()
        if loss > 3:
            seen.append(loss)
        seen.append(loss.item())
"""


@pytest.mark.parametrize("format_", ["text", "concise", "json", "sarif", "github"])
def test_another_line_is_named_with_its_cell_and_never_as_one_of_all_cells_together(door, format_):
    door.write("x.ipynb", text(cell("import torch\n" * 3), cell(BESIDE)))
    ran = door("lint", "--all", "--format", format_)
    assert "line 9" not in ran.out + door("lint", "--explain-finding").out, (
        "the second cell's line 5 in the joined text"
    )
    if format_ in ("text", "json"):
        assert "line 5 of cell 2 has just waited" in ran.out


def test_a_message_that_names_another_line_names_its_cell(door):
    imports = "import torch\nimport torch.nn.functional as F\n"
    loop = """\
def train(model, loader, optimizer):
    for x, y in loader:
        out, y = model(x.cuda()), y.cuda()
        keep = y != -1
        loss = out[keep].square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
    door.write("x.ipynb", text(cell(imports), cell(loop)))
    told = next(one for one in json.loads(door("lint", "--all", "--format", "json").out) if one["line"] == 7)
    assert "the gradient of `out[keep]`, line 5 of cell 2, looks for the positions again" in told["message"]


def test_a_timed_cell_is_linted(door):
    door.write("x.ipynb", text(cell("%%time\n" + READS)))
    assert door("lint").lines == [("x.ipynb:cell 1", 12, "host-read")]


def test_a_magic_stays_whatever_is_fixed_around_it(door):
    masks = MASKS.replace("    target[background] = -1\n", "    %time target[background] = -1\n")
    path = door.write("x.ipynb", text(cell(masks), cell("%matplotlib inline\n" + MASKS)))
    assert door("lint").lines == [("x.ipynb:cell 1", 6, "nonzero"), ("x.ipynb:cell 2", 7, "nonzero")]
    door("lint", "--fix")
    first, second = json.loads(path.read_text())["cells"]
    assert first["source"][-2].startswith("    %time target")
    assert second["source"][0] == "%matplotlib inline\n"
    assert "masked_fill_" in second["source"][-2]


def test_lines_in_a_string_that_look_like_magics_are_left_alone(door):
    code = "import torch\nhelp = '''\n%s items\n! important\n'''\n"
    door.write("x.ipynb", text(cell(code), cell(READS)))
    assert door("lint").lines == [("x.ipynb:cell 2", 11, "host-read")]


@pytest.mark.parametrize(
    "raw", ["{ torch", '{"cells": 3} torch', "[] torch", '["torch"]', '{"worksheets": [], "x": "torch"}']
)
def test_what_is_no_notebook_is_said_to_be_none(door, raw):
    door.write("x.ipynb", raw)
    door.write("y.py", READS)
    ran = door("lint")
    assert ran.code == 1
    assert {rule for _, _, rule in ran.lines} == {"syntax-error", "host-read"}


def test_a_notebook_of_another_language_is_left_alone(door):
    door.write("x.ipynb", text(cell("library(torch)\nx <- 3"), metadata={"kernelspec": {"language": "R"}}))
    assert door("lint").lines == []


def test_diff_names_the_cell(door):
    door.write("x.ipynb", text(cell("import torch"), cell(MASKS)))
    out = door("lint", "--diff").out
    assert "--- a/x.ipynb:cell 2\t\n" in out, "a tab ends a name with a space, for `patch`"
    places = [line.rpartition(": ")[0] for line in out.splitlines() if line.startswith("x.ipynb")]
    assert places
    assert places[0] == door("lint").out.split(": ")[0], (
        "the line is that of the cell, as it is where findings are listed"
    )


def test_add_allow_and_baseline_work_in_cells(door):
    path = door.write("x.ipynb", text(cell(READS)))
    door("lint", "--write-baseline", "known.json")
    assert door("lint", "--baseline", "known.json").lines == []
    door("lint", "--add-allow")
    assert "allow[host-read]" in path.read_text()
    assert door("lint").lines == []


@pytest.mark.parametrize("between", [",", ", ", ",\n    ", " , "])
def test_an_allow_leaves_the_other_lines_as_they_are_separated(door, between):
    source = between.join(json.dumps(line + "\n") for line in READS.splitlines())
    before = f'{{"cells":[{{"cell_type":"code","source":[{source}]}}]}}'
    path = door.write("x.ipynb", before.encode())
    assert "1 finding allowed" in door("lint", "--add-allow").err
    assert path.read_text() == before.replace(".item())", ".item())  # syncscope: allow[host-read]")


@pytest.mark.parametrize("blank", ["  \t", "a, ", "%", "? "])
def test_a_cell_that_is_no_python_takes_time_in_proportion(blank):
    """Of an expression nothing is seen but the time: these had it go back over each blank for each blank before."""
    text = ("for for\n" + blank * 25_000).encode()
    code, why = notebooks.as_python(text)
    assert why is not None
    assert len(code) == len(text)
    assert notebooks.MAGIC.pattern.startswith(rb"(?m)^([ \t]*+)")


def test_a_notebook_that_is_cold_for_its_name_is_said_to_be(door):
    trains = text(cell(READS))
    door.write("notebooks/demo.ipynb", trains)
    ran = door("lint")
    assert (ran.code, ran.lines) == (0, [])
    said = "not shown: 1 in cold code (--all), 1 of them for the name of notebooks/demo.ipynb or its folder\n"
    assert said in ran.err
    assert "cold (in a notebook that shows how something is used, as `demo` says)" in door("lint", "--all").out
    door.write("examples/train.ipynb", trains)
    door.write("mine.ipynb", trains)
    ran = door("lint")
    assert ran.lines == [("mine.ipynb:cell 1", 11, "host-read")]
    assert "2 of them for the name of examples/train.ipynb or its folder and of 1 more file\n" in ran.err


SENT = """\
net = torch.nn.Linear(4, 4).cuda()
total = 0.0
for x in loader:
    x = x.cuda()
    loss = net(x).sum()
    loss.backward()
    opt.step()
    total += loss.item()
print(total)
"""


@pytest.mark.parametrize("arguments", [[], ["--all"], ["--all", "--diff"]], ids=" ".join)
def test_what_keeps_a_fix_from_being_made_names_the_line_in_its_cell(door, arguments):
    """It named line 17 of a notebook whose cells have ten each."""
    opt = "opt = torch.optim.SGD(torch.nn.Linear(4, 4).parameters(), 0.1)\n"
    door.write("x.ipynb", text(cell("import torch\n" * 10 + opt), cell(SENT)))
    said = " ".join(door("lint", *arguments).out.split())
    assert "a step gains little by it: line 4 of cell 2 waits in the same step, and stays" in said
