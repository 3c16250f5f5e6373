"""How fixed code is laid out: with its comments and imports, the quotes of its file, and names that nobody has."""

from textwrap import dedent

import pytest
from rules.driver import FIXES, HEAD, fixed

from syncscope.model.finding import Safety


def test_a_comment_on_an_early_return_stands_before_what_takes_its_place() -> None:
    code = """
    def f(x: torch.Tensor, y: torch.Tensor):
        total = y.sum()
        if total == 0:
            # nothing to divide by
            return torch.ones_like(total)
        return x.sum() / total
    """
    after = fixed(HEAD + dedent(code), allowed=set(Safety))
    assert "    # nothing to divide by\n    early = " in after


def test_a_constant_of_many_lines_is_indented_as_its_new_function_is() -> None:
    code = """
    def f(x: torch.Tensor):
        for _ in range(3):
            corners = torch.tensor(
                [[0.0, 1.0], [1.0, 0.0]],
                device=x.device,
            )
            x = x * corners
        return x
    """
    after = fixed(HEAD + dedent(code))
    assert "    return torch.tensor(\n        [[0.0, 1.0], [1.0, 0.0]],\n        device=device,\n    )\n" in after


def test_a_comma_behind_one_argument_on_its_line_goes_with_the_next() -> None:
    code = """
    def f(x: torch.Tensor):
        none = torch.zeros(1,).float()
        return x + none.to(x.device)
    """
    after = fixed(HEAD + dedent(code), allowed=FIXES)
    assert "torch.zeros(1, device=x.device).float()" in after


def test_numbers_are_called_by_words_with_one_line_between_them() -> None:
    code = """
    def f(values: list[torch.Tensor]):
        told = {}
        for i, q in enumerate(values):
            q = q.cuda()
            told |= {
                f"Q{i}_mean": q.mean().item(),
                f"Q{i}_std": q.std().item(),
                f"Q{i}_max": q.max().item(),
                f"Q{i}_min": q.min().item(),
            }
        return told
    """
    after = fixed(HEAD + dedent(code), allowed=set(FIXES) | {Safety.UNSAFE})
    assert "q_mean_value, q_std_value, q_max_value, q_min_value = torch.stack(" in after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from typing import Any\n\nimport torch\n", "import functools\nfrom typing import Any\n\nimport torch\n"),
        ("import abc\nimport math\n\nimport torch\n", "import abc\nimport functools\nimport math\n\nimport torch\n"),
        ("import sys\n\nimport torch\n", "import functools\nimport sys\n\nimport torch\n"),
    ],
)
def test_a_module_of_python_itself_is_imported_in_its_place(before: str, after: str) -> None:
    code = "\n\ndef f(x: torch.Tensor):\n    for _ in range(3):\n        x = x * torch.tensor([0.5, 2.0], device=x.device)\n"
    assert fixed(f"{before}{code}    return x\n").startswith(after)


def test_a_cache_is_not_emptied_in_vain_where_somebody_says_why_or_asks_for_free_memory() -> None:
    code = "def f(model, x: torch.Tensor):\n    torch.cuda.empty_cache()\n\n    return {}\n"
    assert (
        fixed(HEAD + code.format("model(x)"), allowed=set(Safety))
        == HEAD + "def f(model, x: torch.Tensor):\n    return model(x)\n"
    )
    assert "empty_cache" in fixed(HEAD + code.format("torch.cuda.mem_get_info()"), allowed=set(Safety))
    said = code.replace("    torch.cuda", "    # CuPy needs the memory\n    torch.cuda").format("model(x)")
    assert "empty_cache" in fixed(HEAD + said, allowed=set(Safety))


def test_an_argument_that_is_put_first_stands_beside_the_others() -> None:
    code = f"{HEAD}def f(x: torch.Tensor):\n    return x, torch.tensor(\n        0.5, device=x.device\n    )\n"
    assert "torch.full(\n        (), 0.5, device=x.device\n    )" in fixed(code)


LONG = "(label.long() + offset)"
NAMED = {  # a long expression that the new code has three times gets a name, where nothing is done before it
    "a condition": ("if {}.max() > limit():\n        return 1", True),
    "an argument": ("show({}, limit())", True),
    "the value of an entry": ("kept[limit()] = {}", False),
    "after a call": ("show(limit(), {})", False),
    "one way only": ("show({} if limit else 0)", False),
    "the end of a chain": ("show(0 < 1 < {}.max())", False),
    "another condition": ("if limit:\n        pass\n    elif {}.max() > 3:\n        return 1", False),
}


@pytest.mark.parametrize("name", NAMED)
def test_what_is_written_three_times_has_a_name_where_that_changes_no_order(name: str) -> None:
    line, has = NAMED[name]
    code = f"""import torch


def count(label: torch.LongTensor, offset: torch.LongTensor, limit, show, kept):
    {line.format(f"{LONG}.bincount(minlength=6)")}
"""
    after = fixed(code, "bincount")
    assert "index_add_" in after
    assert (f"values = {LONG[1:-1]}\n" in after) == has, after
    assert after.count(LONG[1:-1]) == (1 if has else 3)


QUOTED = "def f(x: torch.Tensor):\n    print({0}a{0}, {0}b{0})\n    return x.float()[x.isnan()].max(), torch.zeros(3).cuda()\n"


@pytest.mark.parametrize("quote", ["'", '"'])
def test_new_code_takes_the_quotes_of_its_file(quote: str) -> None:
    after = fixed(HEAD + QUOTED.format(quote), allowed=FIXES)
    assert f"torch.zeros(3, device={quote}cuda{quote})" in after


def test_what_is_added_to_a_call_of_many_lines_ends_no_line_with_a_blank() -> None:
    code = "def f(x: torch.Tensor):\n    return torch.zeros(\n        3, 4\n    ).to(\n        x.device\n    )\n"
    after = fixed(HEAD + code, allowed=FIXES)
    assert "torch.zeros(\n        3, 4, device=x.device\n    )" in after
    code = "def f(x: torch.Tensor):\n    return torch.tensor(1e-6,\n                        device=x.device)\n"
    assert "torch.full((), 1e-6,\n" in fixed(HEAD + code, allowed=FIXES)


def test_reads_in_a_row_stay_where_they_were() -> None:
    head = "def f(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, log):\n"
    reads = "a.mean().item(), b.mean().item(), c.mean().item()"
    stack = "*torch.stack((a.mean(), b.mean(), c.mean())).tolist()"
    for line in ('print("loss", {0})', 'log.info("%f %f %f", {0})', 'print("%d %f %f %f" % (3, {0}))'):
        assert line.format(stack) in fixed(f"{HEAD}{head}    {line.format(reads)}\n", allowed=FIXES)
    alone = fixed(f'{HEAD}{head}    print("%f %f %f" % ({reads}))\n', allowed=FIXES)
    assert f"% tuple({stack[1:]})" in alone


def test_two_reads_are_only_suggested_to_become_one() -> None:
    code = "def f(a: torch.Tensor, b: torch.Tensor):\n    print(a.mean().item(), b.mean().item())\n"
    assert fixed(HEAD + code, allowed=FIXES) == HEAD + code
    assert "torch.stack" in fixed(HEAD + code)


def test_a_name_that_is_taken_gets_a_word_before_it() -> None:
    body = "    x = x.flatten()\n    y = x.cos()\n    good = x > 0\n    return x[good] + y[good], good_index\n"
    code = f"def kept(x: torch.Tensor, good_index):\n{body}"
    assert "kept_good_index = good.nonzero" in fixed(HEAD + code, allowed=FIXES)


@pytest.mark.parametrize(
    ("beside", "name"),
    [
        (
            "def other(good):\n    good_index = good.nonzero()\n    return good_index\n",
            "good_index",
        ),  # no other function's
        ("class A:\n    good_index = 3\n", "kept_good_index"),
        ("good_index = 3\n", "kept_good_index"),
        ("def other():\n    global good_index\n    good_index = 3\n", "kept_good_index"),
    ],
)
def test_a_name_is_taken_where_it_could_be_meant(beside: str, name: str) -> None:
    body = "    x = x.flatten()\n    y = x.cos()\n    good = x > 0\n    return x[good] + y[good]\n"
    code = f"def kept(x: torch.Tensor):\n{body}"
    assert f"    {name} = good.nonzero" in fixed(f"{HEAD}{beside}\n\n{code}", allowed=FIXES)
    inner = f"    {code}".replace("\n    ", "\n        ")
    around = f"def outer(good_index):\n{inner}    return kept, good_index\n"
    assert "kept_good_index = good.nonzero" in fixed(HEAD + around, allowed=FIXES)


def test_a_chain_that_brackets_held_together_is_held_together_where_it_goes() -> None:
    code = (
        "def f(net, loader):\n    correct, count = 0, 0\n    for x, label in loader:\n        net(x).sum().backward()\n"
        "        correct += (\n            (net(x).argmax(dim=1) == label)\n            .float()\n            .sum()\n"
        "            .item()\n        )\n        count += label.numel()\n    return correct / count\n"
    )
    after = fixed(HEAD + code, allowed=FIXES)
    assert "correct = float(correct)" in after
    compile(after, "after", "exec")


def test_a_value_of_many_lines_stands_in_brackets_of_its_own_in_another_function() -> None:
    code = """
import numpy as np
import torch
from torch import nn

class Fields(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.offsets = np.array(
            (0, *np.cumsum(sizes)[:-1]), dtype=np.int64
        )

    def forward(self, x: torch.Tensor):
        return x + x.new_tensor(self.offsets)
"""
    buffer = """
        self.register_buffer(
            "offsets", torch.tensor(np.array((0, *np.cumsum(sizes)[:-1]), dtype=np.int64)), persistent=False
        )
"""
    assert buffer in fixed(code)


def test_a_chain_over_several_lines_stays_as_it_is_where_one_of_its_calls_is_given_more() -> None:
    code = """
    def f(x: torch.Tensor, times: list[float]):
        y = x * (
            torch.tensor(
                times,
                dtype=torch.float32,
            )
            .to(x.device)
            .unsqueeze(-1)
        )
        return y
    """
    before = HEAD + dedent(code)
    assert fixed(before, allowed=set(Safety)) == before.replace(".to(x.device)", ".to(x.device, non_blocking=True)")


def test_the_line_of_a_chain_that_moves_goes_and_the_rest_of_the_chain_stays() -> None:
    code = """
    def f(x: torch.Tensor, device):
        return x * (
            torch.arange(0, x.size(0))
            .unsqueeze(1)
            .to(device)
            + 1
        )
    """
    before = HEAD + dedent(code)
    expected = before.replace("        .to(device)\n", "").replace("x.size(0))", "x.size(0), device=device)")
    assert fixed(before, allowed=FIXES) == expected


def test_a_comment_in_a_chain_that_moves_is_not_lost() -> None:
    code = """
    def f(x: torch.Tensor, device):
        return x * (
            torch.arange(0, x.size(0))
            .unsqueeze(1)
            # where the rest is
            .to(device)
        )
    """
    after = fixed(HEAD + dedent(code), allowed=FIXES)
    assert "# where the rest is" in after
    assert "device=device" in after or after == HEAD + dedent(code)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "a = (\n        torch.zeros(x.size(0), 3)\n        .float()\n        .to(device)\n    )  # [n, 3]",
            "a = torch.zeros(x.size(0), 3, dtype=torch.float, device=device)  # [n, 3]",
        ),
        (
            "a = (  # of rows\n        torch.zeros(x.size(0), 3).to(device)\n    )",
            "a = (  # of rows\n        torch.zeros(x.size(0), 3, device=device)\n    )",
        ),
        ("a = (torch.zeros(3).to(device))", "a = (torch.zeros(3, device=device))"),
    ],
    ids=["only for the lines", "of a comment", "of the user"],
)
def test_parentheses_go_that_held_nothing_but_the_lines_of_a_chain(before: str, after: str) -> None:
    code = f"{HEAD}def f(x: torch.Tensor, device):\n    {before}\n    return x + a\n"
    assert fixed(code, allowed=FIXES) == code.replace(before, after)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_arguments_that_stood_on_a_line_of_their_own_stay_so_and_all_else_as_it_is(newline: str) -> None:
    code = BROKEN.replace("\n", newline)
    put = "torch.ones(\n        [x.shape[0], 1, 1, 1], device=x.device\n    ).detach()".replace("\n", newline)
    old = "torch.ones([x.shape[0], 1, 1, 1]).to(\n        x.device\n    ).detach()".replace("\n", newline)
    assert fixed(code, "created-on-host") == code.replace(old, put)


BROKEN = """import torch


def attacked(x: torch.Tensor, t: torch.Tensor, epsilon_of_this_attack: float):
    attacked_images_of_the_batch = x.detach() + epsilon_of_this_attack * torch.ones([x.shape[0], 1, 1, 1]).to(
        x.device
    ).detach() * t / (
        t.reshape([t.shape[0], -1])
        .abs()
        .max(dim=1, keepdim=True)[0]
    )
    return attacked_images_of_the_batch
"""


def test_a_statement_that_takes_the_place_of_a_choice_is_laid_out_anew_where_what_it_takes_was_broken() -> None:
    code = """import torch


def roots(v: torch.Tensor):
    kept = v > 0
    means = torch.zeros_like(v)
    if kept.any():
        means[kept] = ((v * v) * 3.0).exp()[kept] / v.to(
            v.dtype
        )[kept]
    return means
"""
    after = fixed(code, allowed=FIXES)
    assert ".any()" not in after
    assert "v.to(v.dtype)" in after
    assert all(len(line) <= 128 for line in after.splitlines())
