"""A library that is another than the one we know, as a stub in its place is: the program that is watched goes on."""

import importlib
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch

import syncscope


def test_a_library_that_is_not_as_we_know_it_is_told_and_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "torchvision").mkdir()
    (tmp_path / "torchvision" / "__init__.py").write_text("")
    (tmp_path / "torchvision" / "ops.py").write_text("def box_area(boxes): return boxes\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in [x for x in sys.modules if x.partition(".")[0] == "torchvision"]:
        monkeypatch.delitem(sys.modules, name)
    try:
        with syncscope.watch(dry=True) as seen:
            assert importlib.import_module("torchvision.ops").box_area(3) == 3
            (torch.ones(3, requires_grad=True) * 2).sum().item()
    finally:
        for name in ("torchvision.ops", "torchvision"):
            sys.modules.pop(name, None)
    assert "what waits inside of torchvision.ops is not heard" in capsys.readouterr().err
    assert seen.count == 1  # what waits elsewhere is
