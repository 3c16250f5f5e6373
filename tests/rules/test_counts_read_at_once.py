"""A count of what a mask selects that a condition reads at once: one wait is as good as another."""

import pytest

pytest.importorskip("libcst")

from rules.driver import findings, fixed

HEAD = "import torch\n\n\ndef f(x: torch.Tensor, y: torch.Tensor):\n    keep = x > 0\n"


@pytest.mark.parametrize(
    "code",
    [
        "    if y is not None and x[keep].numel() != y.numel():\n        raise ValueError\n    return x\n",
        "    if len(x[keep]) == 0:\n        raise ValueError('none')\n    return x\n",
        "    found = x[keep].numel()\n    if found > 3:\n        raise ValueError(found)\n    return x\n",
        "    assert x[keep].shape[0] > 0\n    return x\n",
    ],
)
def test_a_count_that_a_condition_reads_is_told_and_not_rewritten(code: str) -> None:
    assert any(f.rule == "boolean-mask-read" for f in findings(HEAD + code))
    assert ".sum()" not in fixed(HEAD + code)


def test_a_count_that_is_computed_with_is_counted_on_the_device() -> None:
    assert "y.sum() / keep.sum()" in fixed(HEAD + "    return y.sum() / x[keep].numel()\n")
