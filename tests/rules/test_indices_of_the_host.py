"""An index or a mask that may live on the host: brackets take it from there, and what fills or chooses does not."""

import pytest

pytest.importorskip("libcst")

from rules.driver import FIXES, findings, fixed

from syncscope.model.finding import Safety

HEAD = "import torch\nimport torch.nn.functional as F\n\n\n"
GIVEN = "    if given is not None:\n        {name} = given\n    else:\n        {name} = {made}\n"


def forward(name: str, made: str, rest: str) -> str:
    """A function that was given an index, or makes one on the host."""
    head = "def forward(x: torch.Tensor, y: torch.Tensor, given: torch.Tensor | None = None):\n    x = x.sigmoid()\n"
    return HEAD + head + GIVEN.format(name=name, made=made) + rest


def fixes(code: str) -> dict[str, Safety]:
    """The fixes that are offered, by rewrite."""
    found = (f.fix for f in findings(code))
    return {fix.rewrite: fix.safety for fix in found if fix is not None}


def test_an_index_that_one_line_sends_is_sent_where_the_next_writes():
    code = forward(
        "classes",
        "torch.randint(0, 8, (len(x),))",
        "    out = x - x[torch.arange(len(x)), classes].view(-1, 1)\n"
        "    out[torch.arange(len(x)), classes] = -1.0\n"
        "    return out\n",
    )
    after = fixed(code, allowed=FIXES)
    assert "out.scatter_(1, classes.to(out.device, non_blocking=True)[:, None], -1.0)" in after
    assert "classes.to(x.device, non_blocking=True)" in after
    assert after.count("classes") == code.count("classes")


@pytest.mark.parametrize(
    "rest",
    [
        "    return F.cross_entropy(x[keep], y[keep])\n",
        "    return F.mse_loss(x[keep], y[keep])\n",
        "    return x[keep].mean()\n",
        "    x[keep] = x.max()\n    return x\n",
        "    x[keep] = 1 - y[keep] * 2\n    return x\n",
    ],
)
def test_a_mask_that_may_be_of_the_host_is_given_to_nothing_that_takes_none(rest):
    of_host = fixes(forward("keep", "torch.rand(len(x)) > 0.5", rest))
    assert set(of_host) <= {"index_once"}
    plain = f"{HEAD}def forward(x: torch.Tensor, y: torch.Tensor):\n    x = y * 2\n    keep = y > 0\n{rest}"
    assert set(fixes(plain)) - {"index_once"}, "a mask of the device has such a fix"


def test_an_index_that_is_handed_over_must_live_where_it_writes():
    code = (
        HEAD + "def forward(x: torch.Tensor, rows: torch.LongTensor):\n    x = x * 2\n    x[{}] = 0.0\n    return x\n"
    )
    for index, said in (("rows", True), ("x.argmax(1)", False), ("rows.flatten()", True)):
        (found,) = findings(code.format(index), "number-at-positions")
        assert found.fix is not None
        assert (f"{index} must live where x does" in found.fix.changes) is said


@pytest.mark.parametrize(
    ("made", "safety"),
    [
        ("rss = x.sum(0)\n    tss = y.sum(dim=0) - rss * x.mean(0)", Safety.SUGGEST),
        ("rss = torch.sum(x, dim=0)\n    tss = rss / x.size(0)", Safety.SUGGEST),
        ("rss = x.sum(1)\n    tss = y.sum(1)", Safety.UNSAFE),
        ("rss = x.exp()\n    tss = rss - rss.mean()", Safety.UNSAFE),
    ],
)
@pytest.mark.parametrize("apart", [False, True])
def test_a_mask_of_sums_that_may_be_one_number_is_left_to_people(made, safety, apart):
    used = "    good = ~torch.isclose(tss, torch.zeros_like(tss)) & (rss > 0)\n"
    used += "    return rss[good].exp() + tss[good].cumsum(0)\n"
    code = HEAD + f"def training_step(x: torch.Tensor, y: torch.Tensor):\n    {made}\n{used}"
    if apart:  # the function that selects is given the sums by another, which has them of a third
        code = (
            f"{HEAD}def update(x: torch.Tensor, y: torch.Tensor):\n    {made}\n    return len(x), rss, tss\n\n\n"
            f"def training_step(rss: torch.Tensor, tss: torch.Tensor):\n{used}\n\n"
            "def score(x, y):\n    n, rss, tss = update(x, y)\n    return training_step(rss, tss)\n"
        )
    assert fixes(code) == {"index_once": safety}


@pytest.mark.parametrize(
    ("asked", "offered"),
    [
        ("p >= least", False),
        ("p > 0.7", False),
        ("0.1 < p", False),
        ("p == 255", True),
        ("p > 0.5", True),
        ("p in (1, 2)", True),
        ("p == wanted", True),
        ("p > wanted", False),
    ],
)
def test_numbers_are_not_compared_in_another_precision(asked, offered):
    code = (
        f"{HEAD}def training_step(precision: torch.Tensor, ks, wanted, least: float):\n"
        f"    return [k for p, k in zip(precision, ks) if {asked}]\n"
    )
    assert ("go_through_numbers" in fixes(code)) is offered
