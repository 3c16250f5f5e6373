"""A fill of what an index selects, where that may be a copy: by flags, masks, several positions."""

from collections.abc import Callable

import pytest

pytest.importorskip("torch")
pytest.importorskip("hypothesis")

import torch
from effort import draws
from hypothesis import given, settings
from hypothesis import strategies as st
from rules.driver import fixed

from syncscope.model.finding import Safety

HELD = {
    "a number": "i = len(t) - 1",
    "a flag": "i = len(t) > 1",
    "one or the other": "i = len(t) and True",
    "numbers": "for i in t.tolist():",
    "flags": "for i in (t > 0).tolist():",
    "flags beside numbers": "for i, j in zip((t > 0).tolist(), t.tolist()):",
    "an element": "for i in t:",
    "an element of the host": "for i in t.cpu():",
    "one looked for": "for i in torch.where(t > 0)[0].cpu():",
    "a row": "for i in t[:, None]:",
    "a byte": "for i in t.byte():",
    "an element of a mask": "for i in t > 0:",
    "the best": "i = t.argmax()",
    "a position of numpy": "for i in np.arange(2):",
    "a sum": "i = (t > 0).sum()",
}
INDICES_OF = {
    "torch.ones(3, device=x.device)": ("i",),
    "torch.ones(3, 4, device=x.device)": ("0, i", "i, 0", "i, i", "i"),
}


@pytest.mark.parametrize("held", HELD)
@settings(max_examples=draws(4), deadline=None)
@given(st.data())
def test_no_safe_fix_fills_a_copy(held: str, data: st.DataObject) -> None:
    """`x[i].fill_(0)` writes nothing where `i` selects by a mask, a flag or several positions: that is no safe fix."""
    made = data.draw(st.sampled_from(sorted(INDICES_OF)))
    index, number = data.draw(st.sampled_from(INDICES_OF[made])), data.draw(st.sampled_from(("0", "1", "True")))
    inner = "        " if HELD[held].endswith(":") else "    "
    code = (
        "import numpy as np\nimport torch\n\n\ndef f(x: torch.Tensor, t: torch.LongTensor):\n"
        f"    x = {made}\n    {HELD[held]}\n{inner}x[{index}] = {number}\n    return x\n"
    )
    after = fixed(code, allowed={Safety.SAFE})
    values = torch.arange(3.0), torch.tensor(data.draw(st.lists(st.integers(0, 2), min_size=1, max_size=3)))
    assert written(after, *values) == written(code, *values), after


def written(code: str, *given: object) -> object:
    """What the function of a piece of code gives, or the name of its error."""
    names: dict[str, Callable[..., object]] = {}
    exec(code, names)
    try:
        return names["f"](*given).tolist()
    except (IndexError, RuntimeError, TypeError) as error:
        return type(error).__name__
