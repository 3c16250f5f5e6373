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
    (output,) = [one for one in notebook.cells[0].outputs if one.output_type == "execute_result"]
    assert output.data["text/html"].startswith("<iframe srcdoc=")
    assert "nonzero" in output.data["text/html"]
    assert len(output.data["text/plain"]) < 1000
    assert output.data["text/plain"].startswith("<Report of ")
    assert "text/plain" in output.data, "where the page cannot be shown, there is a line"
