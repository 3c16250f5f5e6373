"""A report as the last line of a cell."""

import pytest
from exporters.conftest import events

from syncscope import kineto
from syncscope.model.trace import Trace

STARTS = "import torch, syncscope, syncscope.kernels\nFILE = {!r}"
DEFINES = """
def train(model, batches, trace):
    total = 0.0
    for x in batches:
        loss = model(x).square().sum()
        loss.backward()
        total += loss.item()
        trace.step()
    return total
"""
RUNS = """
%time model = torch.nn.Linear(8, 8, device="ocl")
with syncscope.trace(FILE) as trace:
    train(model, [torch.ones(4, 8, device="ocl")] * 6, trace)
report = trace.report()
"""
SAYS = """
(line,) = report.lines
print(line.place, line.finding.fix.title)
print(syncscope.report(FILE).lines[0].place)
from syncscope.exporters import terminal
print(terminal.export(report))
try:
    with syncscope.forbid_syncs():
        train(model, [torch.ones(4, 8, device="ocl")], trace)
except syncscope.SyncError as error:
    print(error)
"""
READS = "report = syncscope.report({!r})\nreport"
REPORTS_ITSELF = """
with syncscope.trace({!r}) as trace:
    for _ in syncscope.steps(range(3)):
        pass
trace.report()
"""


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """What the cells of one notebook show, by what is in them: a kernel of Jupyter takes longer to start than they to run."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel", reason="pip install ipykernel")
    pytest.importorskip("pyopencl")
    folder = tmp_path_factory.mktemp("notebook")
    kineto.save(Trace.of(events(), origin_ns=0), folder / "read.json.gz")
    itself = REPORTS_ITSELF.format(str(folder / "steps.json"))
    texts = [STARTS.format(str(folder / "run.json.gz")), DEFINES, RUNS, SAYS]
    texts += [READS.format(str(folder / "read.json.gz")), itself, itself + "print('then')"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in texts])
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    names = ("starts", "defines", "runs", "says", "reads", "reports itself", "reports itself, and goes on")
    return {name: cell.outputs for name, cell in zip(names, notebook.cells, strict=True)}


def printed(outputs):
    return "".join(one.text for one in outputs if one.output_type == "stream" and one.name == "stdout")


def pages(outputs):
    return [one.data["text/html"] for one in outputs if "text/html" in one.get("data", {})]


def test_a_report_shows_itself_as_its_page_in_a_notebook(cells):
    (output,) = [one for one in cells["reads"] if "data" in one]
    assert output.data["text/html"].startswith("<iframe srcdoc=")
    assert "nonzero" in output.data["text/html"]
    assert len(output.data["text/plain"]) < 1000
    assert output.data["text/plain"].startswith("<Report of ")
    assert "text/plain" in output.data, "where the page cannot be shown, there is a line"


def test_a_cell_that_reports_its_own_recording_shows_the_page_once_and_no_table(cells):
    for outputs in (cells["reports itself"], cells["reports itself, and goes on"]):
        (page,) = pages(outputs)
        assert page.startswith("<iframe srcdoc=")
        assert len([one for one in outputs if "data" in one]) == 1, "no line about the report stands below its page"
        assert printed(outputs) in ("", "then\n"), "the table is for terminals"


def test_a_line_of_a_cell_is_named_by_the_cell_and_shown_with_its_source_and_its_rewrite(cells):
    said = printed(cells["says"])
    assert said.startswith("cell [2]:6 add up on the device, read once after the loop\ncell [2]:6\n")
    assert "cell [2]:6  item" in said
    assert "    total += loss.item()\n" in said
    assert "/tmp/ipykernel" not in said
    assert "cell [2]:6" in said.rpartition("\n\n")[2], "what is not to wait is named likewise"
    (page,) = pages(cells["runs"])
    assert "total += loss.item()" in page
    assert "ipykernel" not in page
