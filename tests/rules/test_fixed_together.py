"""What stands beside each other and waits alike is mended by one fix: a part of it would look forgotten, and wait as long."""

from rules.driver import findings, fixed

from syncscope.model.finding import Safety

COLLECTED = """
import torch

def train(loss_of, batches):
    losses, worst = [], []
    for batch in batches:
        loss, error = loss_of(batch).mean(), loss_of(batch).abs().max()
        losses.append(loss.item())
        worst.append(error.item())
    return losses, worst
"""
SLICED = """
import torch

def opponent(rgb: torch.Tensor):
    return rgb[:, [0]] - 2 * rgb[:, [1]] + rgb[:, [2]].abs()
"""
SPANS = """
import torch

def spans(x: torch.Tensor):
    begins, ends = (x * 4).long(), (x * 8).long()
    found = []
    for row in range(3):
        begin, end = int(begins[row, 0]), int(ends[row, 0])
        found.append(range(begin, end))
    return found
"""
UPLOADS = """
import torch
from torch.utils.data import DataLoader

def train(model, data, device):
    loader = DataLoader(data, batch_size=8)
    for batch in loader:
        x = batch[0].to(device)
        y = batch[1].to(device)
        (model(x) - y).square().mean().backward()
"""
WRITTEN = """
import torch

def projection(x: torch.Tensor, near, far):
    p = torch.zeros(4, 4, device="cuda")
    {}
    p[3, 2] = 1.0
    return x @ p
"""


def test_lists_that_are_filled_beside_each_other_are_read_together() -> None:
    (fix,) = {f.fix for f in findings(COLLECTED, "host-read")}
    assert fix is not None
    assert fix.safety is Safety.UNSAFE
    assert "losses and worst hold tensors" in fix.changes
    after = fixed(COLLECTED, "host-read")
    assert ".item()" not in after
    assert after.index("losses = torch.") < after.index("worst = torch.") < after.index("return")


def test_a_list_is_not_collected_by_command_where_one_beside_it_is_read_in_the_loop() -> None:
    looked_at = COLLECTED.replace("        worst.append", "        print(worst)\n        worst.append")
    assert {f.fix.safety for f in findings(looked_at, "host-read") if f.fix is not None} == {Safety.SUGGEST}


def test_slices_of_a_statement_are_taken_together() -> None:
    (fix,) = {f.fix for f in findings(SLICED, "list-as-index")}
    assert fix is not None
    assert "rgb[:, :1] - 2 * rgb[:, 1:2] + rgb[:, 2:3].abs()" in fixed(SLICED)


def test_an_element_beside_others_that_stay_is_not_filled_by_command() -> None:
    alone, beside = (WRITTEN.format(line) for line in ("pass", "p[0, 0] = near / far"))
    safeties = [{f.fix.safety for f in findings(code, "number-at-positions") if f.fix} for code in (alone, beside)]
    assert safeties[0] == {Safety.SAFE}
    assert Safety.SUGGEST in safeties[1] or Safety.UNSAFE in safeties[1]
    assert Safety.SAFE not in safeties[1]


def test_tensors_that_a_loop_reads_element_by_element_are_read_together() -> None:
    (fix,) = {f.fix for f in findings(SPANS, "host-read")}
    assert fix is not None
    assert fix.title == "read begins, ends once, before the loop"
    assert "begin, end = begins_list[row][0], ends_list[row][0]" in fixed(SPANS, "host-read")


def test_what_a_loader_gives_is_pinned_and_copied_together() -> None:
    (fix,) = {f.fix for f in findings(UPLOADS, "blocking-upload")}
    assert fix is not None
    after = fixed(UPLOADS, "blocking-upload")
    assert after.count("non_blocking=True") == 2
    assert after.count("pin_memory=True") == 1
