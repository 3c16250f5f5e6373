"""What listens to some steps of a run, over and over in one process."""

import contextlib
from pathlib import Path
from types import SimpleNamespace

import pytest

from syncscope.tracers import dry_run
from syncscope.tracers.hooks import reads
from syncscope.tracers.hooks.patches import patches
from syncscope.verify.capture import Capture

torch = pytest.importorskip("torch")


def test_what_no_longer_listens_makes_room_also_while_others_hold_the_hooks(tmp_path: Path) -> None:
    run = SimpleNamespace(request=SimpleNamespace(program=SimpleNamespace(device="cpu")), folder=tmp_path, count=0)
    run.optimizers = {}
    item = torch.Tensor.item
    with patches.held():  # as where the program's device is another, to its end
        for _ in range(20):
            capture = Capture(run)
            with contextlib.ExitStack() as stack:
                capture.listen(stack)
                x = torch.ones((), requires_grad=True)
                (x * x).backward()
            assert len(capture._losses) == 1
        assert (
            len(capture.found()["losses"]) == 0
        )  # of no whole step; to look through all modules of a process takes long
    reads.local.inside = False  # as whoever asks for what was found goes on
    assert torch.Tensor.item is item


def test_a_choice_between_two_tensors_is_no_read(tmp_path: Path) -> None:
    """Its result was compared with the condition that stood there as written."""
    run = SimpleNamespace(request=SimpleNamespace(program=SimpleNamespace(device="cpu")), folder=tmp_path, count=0)
    run.optimizers = {}
    capture = Capture(run)
    with dry_run.mode(), contextlib.ExitStack() as stack:
        capture.listen(stack)
        x, positive = dry_run.mark(torch.ones(3)), dry_run.mark(torch.ones(3) > 0)
        torch.where(positive, x, -x)
        x.repeat_interleave(2)
        x.sum().item()
    assert [op for _, op, *_ in capture._reads] == ["item"]
