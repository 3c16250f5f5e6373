"""What is made on the device part by part is what was made on the host and sent: value, dtype, and how it is laid out."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("hypothesis")

import torch
from effort import draws
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
    "torch.triu({a}, diagonal=1)",
    "({a}).tril()",
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


@settings(max_examples=draws(40), database=None, suppress_health_check=list(HealthCheck))
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


@settings(max_examples=draws(40), database=None, suppress_health_check=list(HealthCheck))
@given(tensors(2), tensors(2), st.sampled_from(("[:2]", "[:, 1:]", "[0, :2]", "[::2]")))
def test_what_slices_are_filled_with_is_made_on_the_device_too(made: str, part: str, place: str) -> None:
    head = f"import torch\n\n\ndef f(n: int, device):\n    y = {made}\n"
    code = f"{head}    z = {part}\n    y{place} = z{place}\n    y[1:] = 3\n    y = y.to(device)\n    return y\n"
    after = fixed(code, allowed={Safety.SAFE, Safety.UNSAFE})
    assert ".to(device" not in after, after
    try:
        before = last_function(code)(2, torch.device("cpu"))
    except RuntimeError:  # an expanded tensor is not written, or other shapes
        return
    assert torch.equal(before, last_function(after)(2, torch.device("cpu")))


USED_OTHERWISE = {
    "written by a number at a place": "y[0, 1] = 1\n    {}",
    "written afterwards": "{}\n    y[:1] = 1",
    "filled with a tensor of the device": "y[:2] = x\n    {}",
    "filled at a mask": "y[y > 0] = 1\n    {}",
    "read": "n = int(y.sum())\n    {}",
    "handed on": "show(y)\n    {}",
    "sent in a loop": "for _ in range(3):\n        y[:1] = 1\n        {}",
}


@pytest.mark.parametrize("name", USED_OTHERWISE)
def test_what_the_host_does_more_with_is_made_there(name: str) -> None:
    lines = USED_OTHERWISE[name].format("moved = y.to(x.device)")
    code = f"import torch\n\n\ndef f(x: torch.Tensor, show):\n    y = torch.zeros(3, 3)\n    {lines}\n    return moved, y\n"
    assert "device=x.device)\n" not in (
        after := fixed(code, "blocking-upload", allowed={Safety.SAFE, Safety.UNSAFE})
    ), after


@pytest.mark.parametrize("name", ["written afterwards", "sent in a loop"])
def test_what_is_written_after_it_was_sent_is_waited_for(name: str) -> None:
    lines = USED_OTHERWISE[name].format("moved = y.to(x.device)")
    code = f"import torch\n\n\ndef f(x: torch.Tensor):\n    y = torch.zeros(3, 3)\n    {lines}\n    return moved, y\n"
    assert "non_blocking" not in fixed(code, "blocking-upload")


def test_what_a_branch_makes_fills_and_sends_is_made_on_the_device() -> None:
    code = """import torch


def depth(x: torch.Tensor, layers: int, training: bool, count=None):
    count = count or layers
    if training:
        count = torch.ones((x.shape[0],)) * layers + 1
        dropped = torch.randint(1, layers + 1, (x.shape[0],))
        count[:2] = dropped[:2]
        count = count.to(x.device)
    return count
"""
    after = fixed(code, "blocking-upload")
    assert ".to(x.device)" not in after
    assert after.count("device=x.device)") == 2
    assert "device=x.device)" not in fixed(
        code.replace("count[:2] = ", "kept = count; count[:2] = "), "blocking-upload"
    )
