"""The loss of a segmentation network, as people write it: found, rewritten, and still the same loss."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("hypothesis")

from rules.driver import findings, fixed
from rules.equivalence import assert_equivalent

from syncscope.model.finding import Safety

WRITTEN = '''\
import torch
import torch.nn.functional as F

IGNORE = -1


def criterion(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Cross-entropy over the labelled foreground."""
    target = target.clone()
    rows, high, wide = torch.nonzero(target == 9, as_tuple=True)  # the sky
    target[rows, high, wide] = IGNORE
    if torch.unique(target).numel() < 2:
        return logits.sum() * 0.0
    keep = target != IGNORE
    kept = logits.permute(0, 2, 3, 1)[keep]
    loss = F.cross_entropy(kept, target[keep], reduction="mean")
    return loss
'''
FIXED = '''\
import torch
import torch.nn.functional as F

IGNORE = -1


def criterion(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Cross-entropy over the labelled foreground."""
    target = target.clone()
    # the sky
    target.masked_fill_(target == 9, IGNORE)
    ordered = target.flatten().sort().values
    early = (ordered[1:] != ordered[:-1]).count_nonzero() + 1 < 2
    loss = F.cross_entropy(logits, target, reduction="mean", ignore_index=IGNORE)
    return torch.where(early, logits.sum() * 0.0, loss)
'''


def test_every_wait_is_found() -> None:
    found = [(f.place.line, f.rule) for f in findings(WRITTEN)]
    assert found == [
        (10, "nonzero"),  # line 11 waits, too, and goes away with it
        (12, "unique"),
        (15, "boolean-mask-read"),
        (16, "boolean-mask-read"),
    ]


def test_it_is_rewritten_in_fixed_shapes() -> None:
    assert fixed(WRITTEN) == FIXED
    assert findings(FIXED) == []


def test_nothing_is_safe_about_tensors_of_unknown_dimensions() -> None:
    assert fixed(WRITTEN, allowed={Safety.SAFE}) == WRITTEN


def test_it_is_the_same_loss() -> None:
    assert_equivalent(
        WRITTEN,
        fixed(WRITTEN),
        "logits: finite[n + 1, 4, h + 1, w + 1]; target: label[n + 1, h + 1, w + 1] < 4",
        Safety.UNSAFE,
        examples=60,
    )


def test_it_is_the_same_loss_with_the_sky_left_out() -> None:
    def sunny(code: str) -> str:
        return code.replace("== 9", "== 3")  # a label that the random targets have

    assert_equivalent(
        sunny(WRITTEN),
        sunny(fixed(WRITTEN)),
        "logits: finite[n + 1, 4, h + 1, w + 1]; target: label[n + 1, h + 1, w + 1] < 4",
        Safety.UNSAFE,
        examples=60,
    )
