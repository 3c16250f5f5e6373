"""Tuning a comprehension, explaining it, and arguments to try it with."""

import pytest
import torch
from comprehension_cases import ATTEND, close

from syncscope.errors import UserError
from syncscope.kernels import comprehension
from syncscope.kernels.comprehensions import on_ocl, schedules


def test_tuning_keeps_what_is_faster_for_this_size(monkeypatch, tmp_path):
    monkeypatch.setenv("SYNCSCOPE_CACHE_DIR", str(tmp_path))
    schedules.known.cache_clear()
    function = comprehension("def sums(float(N,M) X) -> (C) { C(n) +=! X(n,m) }")
    x = torch.randn(300, 200).to("ocl")
    said = function.tune(x, seconds=1, quiet=True)
    assert said.endswith("x  sums_C")
    close(function(x), x.cpu().sum(1), 1e-4)
    schedules.known.cache_clear()
    for schedule in schedules.known().values():
        assert function.made((x,)).plan.units[0].schedule == schedule
    schedules.known.cache_clear()


def test_ctrl_c_ends_a_search_and_keeps_what_was_found(monkeypatch, tmp_path):
    monkeypatch.setenv("SYNCSCOPE_CACHE_DIR", str(tmp_path))
    schedules.known.cache_clear()
    function = comprehension("def sums(float(N,M) X) -> (C) { C(n) +=! X(n,m) }")
    x = torch.randn(30, 20).to("ocl")
    made = function.made((x,))
    monkeypatch.setattr(on_ocl, "nest", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    assert function.tune(x, seconds=60, quiet=True) == " 1.00 x  sums_C"
    monkeypatch.undo()
    schedules.known.cache_clear()
    assert function.made((x,)) is not made


def test_tuning_wants_the_device():
    with pytest.raises(UserError, match="has no kernels"):
        comprehension("def f(float(N) A) -> (C) { C(i) = A(i) }").tune(torch.zeros(3))


def test_explain_says_which_statements_are_which_kernel():
    function = comprehension(ATTEND)
    q = torch.randn(1, 2, 16, 8).to("ocl")
    text = function.explain(q, q, q)
    assert "attend_M_E_Z: 32 points, 16 elements each" in text
    assert "[b 0:1, h 0:2, t 0:16, s 0:16, d 0:8]" in text
    assert "of what memory allows" in text
    assert "__kernel" in function.source(q, q, q)
    assert "by torch" in function.explain(q.cpu(), q.cpu(), q.cpu())


def test_the_example_has_the_sizes_it_is_told():
    function = comprehension(ATTEND, sizes={"H": 2, "T": 8, "D": 4})
    assert [list(x.shape) for x in function.example("cpu", 3)] == [[3, 2, 8, 4], [3, 2, 64, 4], [3, 2, 64, 64]]
    assert function(*function.example("cpu", 1)).shape == (1, 2, 8, 64)
