"""A fix after which the same pass waits for something else as long is no fix by command, or is one with that."""

import pytest
from rules.driver import FIXES, findings, fixed

from syncscope.model.finding import Safety

LOOP = (
    "import torch\n\n\ndef train(model, optimizer, loader, bar, log):\n    total, sizes, seen = 0.0, 0.0, []\n"
    "    for x in loader:\n        loss = model(x).mean()\n        size = loss.std()\n        loss.backward()\n"
    "        optimizer.step()\n{}    return total, sizes, seen\n"
)
ADDED = "        total += loss.item()\n"


def fixes(body: str) -> set[tuple[str, Safety]]:
    found = (f.fix for f in findings(LOOP.format(body), "host-read") if f.fix is not None)
    return {(fix.rewrite, fix.safety) for fix in found}


@pytest.mark.parametrize("body", [f"{ADDED}        bar(loss=loss.item())\n", f"        bar(loss.item())\n{ADDED}"])
def test_a_number_that_is_added_up_and_shown_is_read_once(body: str) -> None:
    assert ("read_once", Safety.SAFE) in fixes(body)
    assert "add_up_on_device" not in {rewrite for rewrite, _ in fixes(body)}


@pytest.mark.parametrize(
    "beside",
    [
        "",
        "        if len(seen) > 3:\n            bar(loss.item())\n",
        "        sizes += size.item()\n",
        "        for y in x:\n            log(y)\n",
    ],
)
def test_a_sum_is_kept_on_the_device_where_each_pass_reads_nothing_else(beside: str) -> None:
    assert ("add_up_on_device", Safety.UNSAFE) in fixes(ADDED + beside)


@pytest.mark.parametrize("beside", ["bar(size.item())", "bar(x.whatever.item())", "rate = size.item(); log(rate)"])
def test_a_sum_beside_which_each_pass_reads_is_suggested(beside: str) -> None:
    assert ("add_up_on_device", Safety.SUGGEST) in fixes(f"{ADDED}        {beside}\n")


def test_what_is_added_up_and_what_is_collected_are_one_fix() -> None:
    after = fixed(LOOP.format(f"{ADDED}        seen.append(loss.item())\n"), "host-read", allowed=FIXES)
    assert (
        "        total += loss.detach().float()\n        seen.append(loss.detach())\n    total = float(total)\n"
        in after
    )
    assert len({f.fix for f in findings(LOOP.format(f"{ADDED}        seen.append(size.item())\n"), "host-read")}) == 1


def test_what_one_statement_sends_is_made_buffers_together() -> None:
    code = (
        "import torch\nfrom torch import nn\n\n\nclass Blur(nn.Module):\n    def __init__(self, n: int):\n"
        "        super().__init__()\n        self.kernel = torch.ones(n, 3)\n        self.turned = torch.zeros(n, 3)\n\n"
        "    def forward(self, x):\n        return x * self.kernel.to(x.device) * self.turned.to(x.device)\n"
    )
    (fix,) = {f.fix for f in findings(code, "blocking-upload")}
    assert fix is not None
    assert [edit.text.startswith("self.register_buffer") for edit in fix.edits] == [True, True]


@pytest.mark.parametrize(
    ("made", "safety"),
    [
        ("    return x.sum() / max(n.item(), 1)\n", Safety.UNSAFE),
        ("    k = max(n.item(), 1)\n    return x.sum() / k\n", Safety.UNSAFE),
        ("    return {'kept': max(n.item(), 1)}\n", Safety.SUGGEST),
        ("    k = max(n.item(), 1)\n    return k\n", Safety.SUGGEST),
        ("    k = max(n.item(), 1)\n    return {'share': y.sum().item() / k}\n", None),
        ("    k, s = max(n.item(), 1), y.sum().item()\n    share = s / k\n    return {'share': share}\n", None),
    ],
)
def test_a_divisor_of_numbers_stays_one(made: str, safety: Safety | None) -> None:
    code = f"import torch\n\n\ndef f(x: torch.Tensor, y: torch.Tensor, n: torch.LongTensor):\n{made}"
    found = {f.fix.safety for f in findings(code, "host-read") if f.fix and f.fix.rewrite == "clamp_on_device"}
    assert found == ({safety} if safety is not None else set())


def test_numbers_that_are_read_together_are_no_longer_converted_and_laid_out() -> None:
    code = (
        "import torch\n\n\ndef f(x: torch.Tensor, y: torch.Tensor):\n    x = x.float()\n    q = x.quantile(y)\n    return {\n"
        '        "a": float(x.mean().item()),\n        "b": float(x.std().item()),\n'
        '        "c": ((x > 0) & (y > 0))\n        .float()\n        .mean()\n        .item(),\n    }\n'
    )
    after = fixed(code, "host-read", allowed=FIXES)
    assert "float(a_value)" not in after
    assert '"a": a_value,\n        "b": b_value,\n        "c": c_value,\n' in after
    assert "((x > 0) & (y > 0)).float().mean())" in after


@pytest.mark.parametrize(
    ("made", "read", "after"),
    [
        ("argmax(1)", "int({})", "sizes_list[i]"),
        ("argmax(1)", "float({})", "float(sizes_list[i])"),
        ("float().mean(1)", "float({})", "sizes_list[i]"),
        ("float().mean(1)", "int({})", "int(sizes_list[i])"),
    ],
)
def test_elements_that_are_read_before_a_loop_are_not_converted_to_what_they_are(
    made: str, read: str, after: str
) -> None:
    code = (
        f"import torch\n\n\ndef f(x: torch.Tensor, take):\n    sizes = x.{made}\n    for i in range(len(x)):\n"
        f"        take({read.format('sizes[i].item()')})\n"
    )
    assert f"take({after})\n" in fixed(code, "host-read", allowed=FIXES)


def test_a_number_that_is_called_as_its_tensor_is_called_its_item() -> None:
    code = (
        "import torch\n\n\ndef f(q_value: torch.Tensor, y: torch.Tensor):\n    return {\n"
        "        'q_value': q_value.std().item(),\n        'low': y.min().item(),\n        'high': y.max().item(),\n    }\n"
    )
    assert "'q_value': q_value_item," in fixed(code, "host-read", allowed=FIXES)


@pytest.mark.parametrize(("again", "rest"), [(".to(x.device)", ""), (".to(y.device)", ".to(y.device)"), ("", "")])
def test_what_is_made_where_it_belongs_is_not_sent_there(again: str, rest: str) -> None:
    code = (
        "import torch\n\n\ndef f(x: torch.Tensor, y: torch.Tensor, n: int):\n"
        f"    return x * (torch.ones(n, n) / n).type_as(x){again}\n"
    )
    after = f"    return x * (torch.ones(n, n, device=x.device) / n).to(x.dtype){rest}\n"
    assert fixed(code, "blocking-upload", allowed=FIXES).endswith(after)


@pytest.mark.parametrize(
    ("begin", "counts"),
    [("", True), ("2, ", True), ("i + 1, ", True), ("i, ", True), ("i - 1, ", False), ("-1, ", False)],
)
def test_what_a_loop_within_a_loop_counts_is_a_slice_beside_what_that_counts(begin: str, counts: bool) -> None:
    code = (
        "import torch\n\n\ndef pairs(x: torch.Tensor, take):\n    for i in range(9):\n"
        f"        for j in range({begin}9):\n            a = take(x[:, [i]])\n            b = take(x[:, [j]])\n"
    )
    after = fixed(code, "list-as-index", allowed=FIXES)
    assert ("x[:, j : j + 1]" in after) is counts
    assert "x[:, i : i + 1]" in after


@pytest.mark.parametrize(
    ("line", "safety"),
    [
        ("group['gamma'] = 1.0 / math.sqrt(x.sigmoid().sum())", Safety.SUGGEST),
        ("group['gamma'] = 0.0 if n == 0 else math.sqrt(x.sigmoid().sum())", Safety.SUGGEST),
        ("group['gamma'] = x * math.sqrt(x.sigmoid().sum())", Safety.UNSAFE),
        ("x.mul_(1.0 / math.sqrt(x.sigmoid().sum()))", Safety.UNSAFE),
    ],
)
def test_what_math_computes_for_a_dict_is_suggested(line: str, safety: Safety) -> None:
    code = f"import math\nimport torch\n\n\ndef step(group: dict, x: torch.FloatTensor, n: int):\n    {line}\n"
    assert {f.fix.safety for f in findings(code, "numpy-crossing") if f.fix is not None} == {safety}


FETCHED = """
import torch

def evaluate(model, loader: torch.utils.data.DataLoader, device):
    total, preds = 0.0, None
    for x, y in loader:
        out = model(x.to(device))
        total += torch.nn.functional.cross_entropy(out, y.to(device)).item()
        if preds is None:
            preds = {}
        else:
            preds = preds + {}
    return total, preds
"""


@pytest.mark.parametrize(("first", "by_hand"), [("out.cpu().numpy().tolist()", True), ("[]", False)])
def test_a_sum_is_by_hand_where_whichever_arm_fetches_something_in_each_pass(first: str, by_hand: bool) -> None:
    code = FETCHED.format(first, "out.cpu().numpy().tolist()")
    found = [f.fix for f in findings(code, "host-read") if f.fix is not None and "add up" in f.fix.title]
    assert [fix.safety is Safety.SUGGEST for fix in found] == [by_hand]


def test_what_a_tensor_is_made_of_is_read_all_the_same() -> None:
    code = (
        "import torch\n\ndef forward(x: torch.Tensor):\n    x = x.cuda()\n    n = x.long().sum(1)\n"
        "    return torch.LongTensor([max(each, 0) for each in n])\n"
    )
    assert "clamp" not in fixed(code, allowed=set(Safety))


@pytest.mark.parametrize(
    ("value", "offered"),
    [
        ("chosen.min() * 0.5 if len(chosen) else x.sum()", False),
        ("chosen.min() / len(chosen)", True),
        ("chosen.mean() if len(chosen) else torch.zeros(())", True),
    ],
)
def test_what_a_mask_selects_is_no_sum_over_all_where_python_asks_how_many_that_are(value: str, offered: bool) -> None:
    code = f"import torch\n\n\ndef radius(x: torch.Tensor):\n    chosen = x[x > 0]\n    return {value}\n"
    (found,) = findings(code, "boolean-mask-read")
    assert (found.fix is not None) is offered
