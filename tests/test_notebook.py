"""A report as the last line of a cell."""

import pytest
from exporters.conftest import events

from syncscope import kineto
from syncscope.model.trace import Trace


def test_a_report_shows_itself_as_its_page_in_a_notebook(tmp_path):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel", reason="pip install ipykernel")
    kineto.save(Trace.of(events(), origin_ns=0), tmp_path / "run.json.gz")
    cells = [
        nbformat.v4.new_code_cell(
            f"import syncscope\nreport = syncscope.report({str(tmp_path / 'run.json.gz')!r})\nreport"
        )
    ]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    (output,) = [one for one in notebook.cells[0].outputs if "data" in one]
    assert output.data["text/html"].startswith("<iframe srcdoc=")
    assert "nonzero" in output.data["text/html"]
    assert len(output.data["text/plain"]) < 1000
    assert output.data["text/plain"].startswith("<Report of ")
    assert "text/plain" in output.data, "where the page cannot be shown, there is a line"


def test_a_cell_that_reports_its_own_recording_shows_the_page_once_and_no_table(tmp_path):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel", reason="pip install ipykernel")
    recorded = (
        "import syncscope\n"
        f"with syncscope.trace({str(tmp_path / 'run.json')!r}) as trace:\n"
        "    for _ in syncscope.steps(range(3)):\n"
        "        pass\n"
    )
    cells = [nbformat.v4.new_code_cell(recorded + end) for end in ("trace.report()", "trace.report()\nprint('then')")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    for cell in notebook.cells:
        pages = [one for one in cell.outputs if "text/html" in one.get("data", {})]
        printed = "".join(one.text for one in cell.outputs if one.output_type == "stream" and one.name == "stdout")
        assert len(pages) == 1, [one.output_type for one in cell.outputs]
        assert pages == [one for one in cell.outputs if "data" in one], "no line about the report stands below its page"
        assert pages[0].data["text/html"].startswith("<iframe srcdoc=")
        assert printed in ("", "then\n"), "the table is for terminals"


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


def test_a_line_of_a_cell_is_named_by_the_cell_and_shown_with_its_source_and_its_rewrite(tmp_path):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel", reason="pip install ipykernel")
    starts = f"import torch, syncscope, syncscope.kernels\nFILE = {str(tmp_path / 'run.json.gz')!r}"
    cells = [nbformat.v4.new_code_cell(text) for text in (starts, DEFINES, RUNS, SAYS)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    said = "".join(
        one.text for one in notebook.cells[3].outputs if one.output_type == "stream" and one.name == "stdout"
    )
    assert said.startswith("cell [2]:6 add up on the device, read once after the loop\ncell [2]:6\n")
    assert "cell [2]:6  item" in said
    assert "      total += loss.item()" in said
    assert "/tmp/ipykernel" not in said
    assert "cell [2]:6" in said.rpartition("\n\n")[2], "what is not to wait is named likewise"
    (page,) = (one.data["text/html"] for one in notebook.cells[2].outputs if "text/html" in one.get("data", {}))
    assert "total += loss.item()" in page
    assert "ipykernel" not in page
