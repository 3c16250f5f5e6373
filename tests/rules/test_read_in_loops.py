"""Elements of a tensor that a loop reads one by one: all at once, where nothing changes them."""

import pytest
from rules.driver import findings, fixed

GOES_THROUGH = """import torch


def f(x: torch.Tensor, other: torch.Tensor):
    ts = x.flatten()
    found = []
{}    return found
"""
THROUGH = {  # the name of an element is more than a number, or its value changes
    "used as a tensor": "    for t in ts:\n        found.append((t.item(), t * 2))\n",
    "written": "    for t in ts:\n        found.append(abs(t.item()))\n        ts.mul_(2)\n",
    "written by another name": "    same = ts[1:]\n    for t in ts:\n        found.append(abs(int(t)))\n        same[:] = 0\n",
    "seen after the loop": "    for t in ts:\n        found.append(abs(t.item()))\n    found.append(t)\n",
    "bound again": "    for t in ts:\n        t = t + 1\n        found.append(abs(t.item()))\n",
    "rows": "    for t in x.view(2, 2):\n        found.append(abs(int(t.sum())))\n",
    "a list": "    for t in [x.sum(), x.mean()]:\n        found.append(abs(t.item()))\n",
    "captured": "    for t in ts:\n        found.append(lambda: t.item())\n",
    "a grid": "    found = [int(t) for t in x.view(2, 2)]\n",
}
READS = {
    "a loop": (
        "    for t in ts:\n        found.append(abs(t.item()))\n",
        "    for t in ts.tolist():\n        found.append(abs(t))\n",
    ),
    "pairs": (
        "    for t, n in zip(ts, range(9)):\n        found.append(abs(float(t)) + n)\n",
        "    for t, n in zip(ts.tolist(), range(9)):\n        found.append(abs(float(t)) + n)\n",
    ),
    "two reads": (
        "    found = {t.item(): abs(t.item()) for t in ts}\n",
        "    found = {t: abs(t) for t in ts.tolist()}\n",
    ),
    "a name that serves twice": (
        "    for t in ts:\n        found.append(abs(t.item()))\n    for t in other:\n        found.append(t)\n",
        "    for t in ts.tolist():\n        found.append(abs(t))\n    for t in other:\n        found.append(t)\n",
    ),
    "from 1 on": ("    for n, t in enumerate(ts, 1):\n        found.append(n * t.item())\n",) * 2,
}
ENTRIES = {  # read in every pass, as what they hold may be another
    "written": "    for i in range(len(ts)):\n        found.append(abs(ts[i].item()))\n        ts[i:] = 0\n",
    "made in the loop": "    for i in range(3):\n        ts = x.flatten() + i\n        found.append(abs(ts[i].item()))\n",
    "trained": "    for i in range(3):\n        other.step()\n        found.append(abs(ts[i].item()))\n",
    "rows": "    for i in range(3):\n        found.append(ts[i : i + 1].item())\n",
    "not in a loop": "    i = len(found)\n    found.append(abs(ts[i].item()))\n",
    "by a tensor": "    for i in other:\n        found.append(abs(ts[i].item()))\n",
    "what is gone through": "    for i in range(int(other[0])):\n        found.append(i)\n",
    "in a function": "    for i in range(3):\n        found.append(lambda i=i: abs(ts[i].item()))\n",
}


@pytest.mark.parametrize("name", THROUGH)
def test_a_loop_stays_whose_elements_are_more_than_numbers(name: str) -> None:
    code = GOES_THROUGH.format(THROUGH[name])
    assert ".tolist()" not in (after := fixed(code, "host-read")), after


@pytest.mark.parametrize("name", READS)
def test_a_loop_over_numbers_goes_through_a_list(name: str) -> None:
    before, after = map(GOES_THROUGH.format, READS[name])
    assert fixed(before, "host-read") == after


@pytest.mark.parametrize("name", ENTRIES)
def test_an_entry_that_may_change_is_read_where_it_is(name: str) -> None:
    code = GOES_THROUGH.format(ENTRIES[name])
    assert ".tolist()" not in (after := fixed(code, "host-read")), after


def test_entries_of_several_dimensions_and_in_inner_loops_are_read_before_the_outermost() -> None:
    code = (
        "    table = x.view(3, 3)\n    for i in range(3):\n        for j in range(3):\n"
        "            found.append(max(table[i, j].item(), int(ts[-1]), 0))\n"
    )
    assert fixed(GOES_THROUGH.format(code), "host-read") == GOES_THROUGH.format(
        "    table = x.view(3, 3)\n    table_list = table.tolist()\n    ts_list = ts.tolist()\n    for i in range(3):\n"
        "        for j in range(3):\n            found.append(max(table_list[i][j], int(ts_list[-1]), 0))\n"
    )


def test_elements_that_are_collected_are_copied_where_the_whole_is_written() -> None:
    code = GOES_THROUGH.format("    for t in ts:\n        found.append(t.item())\n        ts.mul_(2)\n")
    assert "found.append(t.detach().clone())" in fixed(code, "host-read")
    assert "found.append(t.detach())" in fixed(code.replace("in ts:", "in map(other, ts):"), "host-read")


def test_a_loop_that_may_be_shorter_than_its_tensor_says_that_it_waits_all_the_same() -> None:
    loop = "    for t, n in zip(ts, found):\n        other.add_(abs(t.item()) + n)\n"
    (fix,) = (f.fix for f in findings(GOES_THROUGH.format(loop), "host-read"))
    assert fix is not None
    assert "where no pass reads" in fix.changes
