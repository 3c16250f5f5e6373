"""The loss of a segmentation network, as people write it: found, rewritten, and still the same loss."""

import pytest

pytest.importorskip("torch")
hypothesis = pytest.importorskip("hypothesis")

from hypothesis import HealthCheck, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from rules.driver import findings, fixed  # noqa: E402
from rules.equivalence import arguments, assert_same, last_function, run  # noqa: E402

from syncscope.model.finding import Safety  # noqa: E402

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
        (10, "nonzero"),
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
    written, rewritten = last_function(WRITTEN), last_function(fixed(WRITTEN))

    @settings(max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def same(data: st.DataObject) -> None:
        inputs = "logits: finite[n + 1, 4, h + 1, w + 1]; target: label[n + 1, h + 1, w + 1] < 4"
        values = data.draw(arguments(inputs))
        sky = data.draw(st.sampled_from((-5, 0, 3)))  # the class that is made the background: none, one, one
        values["target"] = values["target"].masked_fill(values["target"] == sky, 9)
        assert_same(run(written, values), run(rewritten, values), Safety.UNSAFE)

    same()
