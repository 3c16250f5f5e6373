"""What is made on the device part by part is what was made on the host and sent: value, dtype, and how it is laid out."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("hypothesis")

import torch
from effort import EFFORT
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rules.driver import fixed
from rules.equivalence import last_function

from syncscope.model.finding import Safety

MADE = (
    "torch.zeros(n, 3)",
    "torch.ones([n, 3], dtype=torch.long)",
    "torch.arange(n * 3).view(n, 3)",
    "torch.arange(0, 3)[None, :].repeat(n, 1)",
    "torch.full((n, 3), 0.5)",
    "torch.eye(n, 3)",
    "torch.linspace(0, 1, 3).expand(n, 3)",
    "torch.LongTensor(n, 3).fill_(7)",
)
DONE = (
    "{a}.t().contiguous().t()",
    "{a}.unsqueeze(1)[:, 0]",
    "{a}[:, None].squeeze(1)",
    "{a}[:, :2].repeat(1, 2)[:, :3]",
    "{a}.long()",
    "{a}.clone().fill_(2)",
    "({a} * 2 + {b})",
    "-{a}",
    "{a}.t().reshape(n, 3)",
    "torch.cat([{a}, {b}])[:n]",
    "torch.cat(({a}, {b}), dim=1).view(2 * n, 3)[n:]",
    "torch.stack([{a}, {b}]).transpose(0, 1)[:, 1]",
)


@st.composite
def tensors(draw: st.DrawFn, deep: int = 3) -> str:
    """An expression of nothing but tensors that are made, n times 3 of them."""
    if not deep or draw(st.booleans()):
        return draw(st.sampled_from(MADE))
    return draw(st.sampled_from(DONE)).format(a=draw(tensors(deep - 1)), b=draw(tensors(deep - 1)))


def laid_out(code: str, device: str) -> tuple[object, ...] | str:
    try:
        made = last_function(code)(2, torch.device(device))
    except RuntimeError as error:
        return type(error).__name__
    return made.dtype, made.shape, made.stride(), made.device


@settings(max_examples=40 * EFFORT, database=None, suppress_health_check=list(HealthCheck))
@given(tensors(), st.booleans())
def test_what_is_made_of_parts_on_the_device_is_what_was_sent(made: str, named: bool) -> None:
    first = f"y = {made}\n    return y.to(device)" if named else f"return ({made}).to(device)"
    code = f"import torch\n\n\ndef f(n: int, device):\n    {first}\n"
    after = fixed(code, allowed={Safety.SAFE})
    every = fixed(code, allowed={Safety.SAFE, Safety.UNSAFE})
    assert ".to(device" not in every, every
    before, now = (last_function(each)(2, torch.device("cpu")) for each in (code, every))
    assert before.dtype == now.dtype
    assert torch.equal(before, now)
    if after != code:
        assert laid_out(code, "meta") == laid_out(after, "meta"), after
