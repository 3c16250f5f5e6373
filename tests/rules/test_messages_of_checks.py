"""A check that the device makes says what the check on the host said; one that could not is not offered."""

from textwrap import dedent

import pytest
from rules.driver import HEAD, fixed

from syncscope.codemod.patterns.checks import LATER
from syncscope.linter.config import Config
from syncscope.linter.engine import check
from syncscope.model.finding import Safety


@pytest.mark.parametrize(
    "said",
    ['f"{name} is gone"', '"{} is gone".format(name)', '"%s is gone" % name', '"it " + "is gone"', '"it is gone"'],
)
@pytest.mark.parametrize(
    "written",
    [
        "assert x.isfinite().all(), {said}",
        "if x.isnan().any():\n        raise ValueError({said})",
        "if x.isnan().any().item():\n        raise ValueError({said})",
        "assert torch.equal(x, y), {said}",
    ],
)
def test_a_message_of_the_host_is_kept(said: str, written: str) -> None:
    code = f"def f(x: torch.Tensor, y: torch.Tensor, name: str):\n    {written.format(said=said)}\n    return x\n"
    assert f", {said})\n" in fixed(HEAD + code, allowed=set(Safety))


@pytest.mark.parametrize(
    "written",
    [
        'assert x.isfinite().all(), f"gone: {x}"',
        'assert torch.equal(x, y), "gone: {}".format(x.max())',
        "assert x.isfinite().all(), why",
        'value = x.mean().item()\n    if math.isnan(value):\n        raise ValueError(f"gone: {value}")',
        'value = x.mean().item()\n    if math.isnan(value):\n        print("gone", value)\n        sys.exit(1)',
    ],
)
def test_a_check_whose_message_would_be_lost_stays(written: str) -> None:
    assert not offered(f"def f(x: torch.Tensor, y: torch.Tensor, why):\n    {written}\n")


@pytest.mark.parametrize("written", ["assert x.isfinite().all()", "if x.isnan().any():\n        raise ValueError"])
def test_a_check_without_a_message_says_what_it_asks(written: str) -> None:
    code = f"def f(x: torch.Tensor):\n    {written}\n    return x\n"
    assert offered(code) == ["; ".join(LATER)]
    assert "torch._assert_async(" in fixed(HEAD + code, allowed=set(Safety))


def offered(code: str) -> list[str]:
    """What the fixes for a file change, in words."""
    whole = f"import math\nimport sys\nimport torch\n\n{dedent(code)}".encode()
    return [
        f.fix.changes
        for f in check("x.py", whole, Config(all=True)).findings
        if f.fix and f.fix.title == "let the device check"
    ]
