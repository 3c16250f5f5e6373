"""A division that a condition kept from running on nothing: chosen on the device, its gradient is as before and not NaN."""

import pytest
from rules.driver import HEAD, fixed

torch = pytest.importorskip("torch")

GUARDED = {
    "an expression": "    return x.sum() * 0.0 if keep.sum() == 0 else total / count\n",
    "a return": "    if keep.sum() == 0:\n        return x.sum() * 0.0\n    return total / count\n",
    "an assignment": (
        "    if keep.sum() > 0:\n        mean = total / count\n    else:\n        mean = x.sum() * 0.0\n    return mean\n"
    ),
}
LOSS = """def loss(x: torch.FloatTensor, margin: float):
    keep = x > margin
    total = (x.log() * 0 + x * keep).sum()
    count = keep.sum()
"""


@pytest.mark.parametrize("code", GUARDED.values(), ids=GUARDED)
def test_what_is_divided_behind_where_has_a_finite_gradient_where_nothing_is_left(code: str) -> None:
    before = HEAD + LOSS + code
    after = fixed(before, "tensor-in-condition")
    assert "total / torch.where(count != 0, count, 1)" in after
    for margin in (0.5, 9.0):
        results = []
        for text in (before, after):
            space: dict[str, object] = {}
            exec(text, space)
            x = torch.tensor([0.2, 0.7, 1.5], requires_grad=True)
            value = space["loss"](x, margin)
            value.backward()
            results.append((value.item(), x.grad.tolist()))
        assert results[0] == results[1]
