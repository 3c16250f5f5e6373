"""A wait without a line is named by its region, in the terminal once, and whole."""

from dataclasses import replace

import pytest

from syncscope.exporters import _waiting
from syncscope.model.report import Line, Report

LONG = "region all2all_id_list_score_data:init"


@pytest.mark.parametrize("module", ["region data", LONG])
def test_a_region_stands_once_and_is_not_cut(report: Report, module: str) -> None:
    without = replace(report, lines=(Line("item", None, 1, 1e6, 1e6, module=module),), plan=(), groups=())
    shown = "\n".join(text.plain for text in _waiting.table(without, 62))
    assert shown.count(module) == 1
    assert "…" not in shown
    assert ("no line known" in shown) is (module == LONG)
