"""Which libraries are imported once for all runs."""

from pathlib import Path

import pytest

from syncscope.verify.own_files import imported_by, may_change_environment
from syncscope.verify.request import Program
from syncscope.verify.trial import LIBRARIES, TRAINERS

SOURCE = "import helper\nimport pytorch_lightning as pl\nfrom torchvision.ops import nms\n"


@pytest.mark.parametrize(
    ("helper", "may"),
    [("import os\n", False), ('import os\nos.environ["HF_HOME"] = "here"\n', True), ("import importlib\n", True)],
)
def test_what_reads_the_environment_is_not_imported_before_a_program_that_may_change_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, helper: str, may: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(SOURCE)
    (tmp_path / "helper.py").write_text(helper)
    program = Program("train.py")
    assert may_change_environment(program) is may
    for libraries, names in (
        (LIBRARIES, {"torchvision"}),
        ((*LIBRARIES, *TRAINERS), {"torchvision", "pytorch_lightning"}),
    ):
        assert {name.partition(".")[0] for name in imported_by(program, libraries)} == names
