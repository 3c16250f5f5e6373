"""What a fix leaves as it was: comments, line breaks, indentation, encodings, and code that it had better not touch."""

import ast
from pathlib import Path

import pytest
from effort import each_kind
from rules.driver import config, findings, fixed

from syncscope.linter.engine import check_source
from syncscope.linter.fixing import mend
from syncscope.model.finding import Safety

HEAD = "import torch\nimport torch.nn.functional as F\n\n\n"


def test_comments_and_line_breaks_stay() -> None:
    code = HEAD + (
        "def loss(logits: torch.Tensor, target: torch.Tensor):\n"
        "    keep = (\n"
        "        target\n"
        "        != -1  # nobody knows\n"
        "    )\n"
        "    # the loss proper\n"
        "    return F.cross_entropy(\n"
        "        logits[keep],  # scores\n"
        "        target[keep],\n"
        "        label_smoothing=0.1,  # gentle\n"
        "    )  # done\n"
    )
    assert fixed(code) == HEAD + (
        "def loss(logits: torch.Tensor, target: torch.Tensor):\n"
        "    # nobody knows\n"
        "    # the loss proper\n"
        "    return F.cross_entropy(\n"
        "        logits.flatten(0, -2),  # scores\n"
        "        target.flatten(),\n"
        "        label_smoothing=0.1,\n"
        "        ignore_index=-1,  # gentle\n"
        "    )  # done\n"
    )


def test_a_method_with_a_string_of_many_lines() -> None:
    code = (
        "import torch\n\n\nclass Loss(torch.nn.Module):\n"
        "\tdef forward(self, x: torch.Tensor):\n"
        '\t\ttext = """first\n  second\n\tthird"""\n'
        "\t\tif x.abs().max() > 3:\n"
        "\t\t\tx = x * 0.5  # ü halve\n"
        "\t\treturn x, text\n"
    )
    assert fixed(code) == code.replace(
        "\t\tif x.abs().max() > 3:\n\t\t\tx = x * 0.5  # ü halve\n",
        "\t\tx = torch.where(x.abs().max() > 3, x * 0.5, x)  # ü halve\n",
    )


def test_a_string_that_is_moved_keeps_its_lines() -> None:
    code = HEAD + (
        "def f(loader, model):\n"
        "    for i, x in enumerate(loader):\n"
        "        loss = model(x.cuda()).mean()\n"
        '        print(f"""{i}\n  {loss}\n""")\n'
    )
    assert fixed(code, "formatted-tensor").endswith(
        '        if i % 50 == 0:\n            print(f"""{i}\n  {loss}\n""")\n'
    )


def test_a_fix_keeps_windows_line_endings_and_the_byte_order_mark() -> None:
    code = (
        HEAD
        + "def f(x: torch.Tensor):\n    x = x.flatten()\n    i = (x > 1).nonzero(as_tuple=True)\n    x[i] = 0\n    return x"
    )
    raw = b"\xef\xbb\xbf" + code.replace("\n", "\r\n").encode()
    result = mend("example.py", raw, lambda s: check_source(s, config()).findings, set(Safety))
    want = code.replace("    i = (x > 1).nonzero(as_tuple=True)\n    x[i] = 0\n", "    x.masked_fill_(x > 1, 0)\n")
    assert result.raw == b"\xef\xbb\xbf" + want.replace("\n", "\r\n").encode()


@pytest.mark.parametrize(
    ("head", "called"),
    [
        ("import torch as th\n", "th.where"),
        ("import torch\n", "torch.where"),
        ("import torch.nn as nn\n", "torch.where"),
    ],
)
def test_modules_are_called_as_the_file_calls_them(head: str, called: str) -> None:
    module = called.partition(".")[0]
    code = head + f"def f(x: '{module}.Tensor', good: '{module}.BoolTensor'):\n    y = x > 1\n    return x[y].sum()\n"
    if head == "import torch.nn as nn\n":
        code = code.replace("'torch.Tensor'", "nn.Parameter").replace("'torch.BoolTensor'", "nn.Parameter")
        assert fixed(code).startswith("import torch\nimport torch.nn as nn\n")
    assert f"return {called}(y, x, 0).sum()" in fixed(code)


def test_a_module_that_another_function_imports_is_not_at_hand() -> None:
    code = (
        "from torch import Tensor\n\n\ndef g():\n    import torch\n\n    return torch.rand(3)\n\n\n"
        "def f(x: Tensor):\n    good = x > 1\n    return x[good].sum()\n"
    )
    assert fixed(code).startswith("import torch\nfrom torch import Tensor\n")


def test_no_fix_where_torch_is_something_else() -> None:
    code = "import torch\n\n\ndef f(torch, x: 'torch.Tensor'):\n    good = x > 1\n    return x[good].sum()\n"
    assert fixed(code) == code


def test_code_of_a_module() -> None:
    code = "import torch\n\nx = torch.rand(3).cuda()\nlow = x.min().item()\nhigh = x.max().item()\nprint(low, high)\n"
    assert fixed(code, "host-read") == (
        "import torch\n\nx = torch.rand(3).cuda()\nlow, high = torch.stack((x.min(), x.max())).tolist()\nprint(low, high)\n"
    )


def test_parentheses_where_they_are_needed() -> None:
    code = "import torch\n\n\ndef f(x: torch.LongTensor, y: torch.Tensor):\n    return y / torch.unique(x + 1).numel() - 1\n"
    after = fixed(code)
    assert "y / ((x + 1).flatten().sort().values.diff().count_nonzero() + 1) - 1" in after


@pytest.mark.parametrize(
    "body",
    [
        "    i = (x > 1).nonzero(as_tuple=True); x[i] = 0\n",  # one line
        "    i = (x > 1).nonzero(as_tuple=True)\n    x += 1\n    x[i] = 0\n",  # x is another when the mask is asked
        "    i = (x > 1).nonzero(as_tuple=True)\n    x[i] = 0\n    y = x[i]\n",  # used twice
        "    i = x.nonzero(as_tuple=True)\n    x[i] = 0\n",  # no mask
        "    i = (x > 1).nonzero(as_tuple=True)\n    x[i] = x.sum()\n",  # a tensor is written
        "    i = (x > 1).nonzero(as_tuple=True)\n    if x is None:\n        i = None\n    x[i] = 0\n",
        "    for _ in range(2):\n        i = (x > 1).nonzero(as_tuple=True)\n    x[i] = 0\n",
        "    v = x.view(-1)\n    i = (x > 1).nonzero(as_tuple=True)\n    v.zero_()\n    x[i] = 0\n",  # by another name
    ],
)
def test_no_fix_for_indices_that_are_more_than_a_mask(body: str) -> None:
    code = HEAD + "def f(x: torch.Tensor):\n" + body + "    return x\n"
    assert "nonzero" in {f.rule for f in findings(code)}
    assert fixed(code, "nonzero") == code


@pytest.mark.parametrize(
    "body",
    [
        "    return x[m].sum()\n",  # a mask of rows
        "    return x[x].sum()\n",  # perhaps indices
        "    y = x[x > 1]\n    return y, len(y)\n",  # the shape escapes
        "    return x[x > 1].sum(0)\n",
        "    return x.long()[x > 1].max()\n",  # of ints, which know no -inf
        "    return F.cross_entropy(x[m], y, reduction='none')\n",
        "    return F.cross_entropy(x[m], y[~m])\n",
        "    return F.dropout(x[x > 1]).sum()\n",
    ],
)
def test_no_fix_for_selections_whose_shape_is_not_proved(body: str) -> None:
    code = HEAD + "def f(x: torch.Tensor, y: torch.Tensor):\n    m = y.flatten() > 1\n" + body
    assert fixed(code, "boolean-mask-read", "masked-select", allowed={Safety.SAFE, Safety.UNSAFE}) == code


@pytest.mark.parametrize(
    "body",
    [
        "        total += x.item()\n        if total > 3:\n            break\n",  # asked on every pass
        "        total += x.item()\n        print(total)\n",
        "        total += f(total, x.item())\n",
        "        total += x.tolist()\n",
    ],
)
def test_no_total_on_the_device_that_is_read_at_once(body: str) -> None:
    code = (
        "import torch\n\n\ndef g(xs: list[torch.Tensor], f):\n    total = 0.0\n    for x in xs:\n"
        + body
        + "    return total\n"
    )
    assert fixed(code, "host-read") == code


def test_a_name_of_a_comprehension_is_not_the_name_outside() -> None:
    code = (
        HEAD + "def f(x: torch.Tensor, xs: list[torch.Tensor]):\n    m = x > 1\n    return [x[m].sum() for m in xs]\n"
    )
    assert fixed(code, "boolean-mask-read") == code


def test_what_is_written_later_in_a_loop_comes_round() -> None:
    code = HEAD + (
        "def f(x: torch.Tensor, n: int):\n"
        "    m = x > 1\n"
        "    for _ in range(n):\n"
        "        y = x[m] + x[m]\n"
        "        m[0] = False\n"
        "    return y\n"
    )
    assert fixed(code, "boolean-mask-read") == code


def test_all_examples_survive_all_rules_together() -> None:
    from test_rules import EXAMPLES, plain

    for parameter in each_kind(EXAMPLES, lambda one: one.values[0]):  # of each rule one
        code = plain(parameter.values[2].code)
        ast.parse(fixed(code))


def test_samples_are_still_python_after_their_fixes() -> None:
    for path in sorted((Path(__file__).parents[2] / "samples").glob("*.py")):
        ast.parse(fixed(path.read_text()))


def test_an_import_comes_after_the_encoding() -> None:
    code = """\
#!/usr/bin/env python
# coding: latin-1
class Reader:
    if True:
        import torch

        def history(x: torch.Tensor):
            seen = []  # \xe4
            for number in range(4):
                seen.append((x * number).sigmoid().detach().mean().item())
            return seen
"""
    lines = fixed(code).splitlines()
    assert lines[:3] == ["#!/usr/bin/env python", "# coding: latin-1", "import torch"]
    compile(fixed(code).encode("latin-1"), "reader.py", "exec")


def test_nothing_is_put_into_a_continued_line() -> None:
    code = HEAD + (
        "def train(x: torch.Tensor, steps: int):\n"
        "    seen = 0.0\n"
        "    for step in range(steps):\n"
        "        mean = (x * step).sigmoid().mean()\n"
        "        value = mean.item()\n"
        "        if step % 3 == 0: \\\n"
        "            seen = value\n"
        "    return seen\n"
    )
    assert findings(code, "host-read")
    assert fixed(code, "host-read") == code


def test_what_stands_between_two_reads_stays() -> None:
    code = HEAD + (
        "def f(x: torch.Tensor, total: float):\n"
        "    low = x.min().item()\n"
        "    total = total + x.mean().item() / 2\n"
        "    high = x.max().item()\n"
        "    return low + high, total, high\n"
    )
    assert len(findings(code, "host-read")) == 3
    assert "    total = total + x.mean().item() / 2\n" in fixed(code, "host-read")
    used_apart = code.replace("    return", "    print(low)\n    return")
    assert fixed(used_apart, "host-read") == used_apart


def test_a_number_in_the_place_of_a_tensor_is_put_in_parentheses() -> None:
    code = HEAD + "def f(x: torch.Tensor):\n    kept = x > 1\n    return 2[kept].max()\n"
    ast.parse(fixed(code, "boolean-mask-read"))


@pytest.mark.parametrize("end", ["", ".to(x)"])
def test_a_chain_in_its_own_brackets_gets_no_others(end: str) -> None:
    chain = "make(prompt)\n        .unsqueeze(0)\n        .cuda()"
    code = HEAD + f"def f(prompt, make):\n    ids = (\n        {chain}\n    ){end}\n    return ids\n"
    assert fixed(code) in (code, code.replace(".cuda()", ".cuda(non_blocking=True)"))


def test_an_argument_after_one_of_many_lines_has_its_own() -> None:
    code = (
        "import torch\nfrom torch.distributions import Categorical\n\n\ndef f(a: torch.Tensor, b: torch.Tensor):\n"
        "    return Categorical(\n        a.exp()\n        / b.exp()\n    ).sample()\n"
    )
    assert fixed(code) == code.replace("b.exp()\n", "b.exp(),\n        validate_args=False,\n")
