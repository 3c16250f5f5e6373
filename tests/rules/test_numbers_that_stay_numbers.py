"""A number that Python, a caller or a reader in the middle of a loop needs is not kept on the device."""

import re
from textwrap import dedent

import pytest
from effort import draws
from hypothesis import given, settings
from hypothesis import strategies as st
from rules.driver import EVERY, FIXES, HEAD, findings, fixed

from syncscope.model.finding import Safety

LOOP = "{indent}for x in loader:\n{indent}    loss = model(x.cuda()).mean()\n{indent}    {note}\n"
HALF_DONE = {  # what is known of a total, or of a history, in the middle of the loop
    "nested": "    def show():\n        print({name})\n\n{loop}    return {name}\n",
    "interrupted": "    try:\n{deep}    except KeyboardInterrupt:\n        pass\n    return {name}\n",
    "finally": "    try:\n{deep}    finally:\n        print({name})\n",
}


@pytest.mark.parametrize("rest", HALF_DONE.values(), ids=HALF_DONE)
@pytest.mark.parametrize(
    ("start", "note"), [("0.0", "seen += loss.item()"), ("[]", "seen.append(loss.item())")], ids=["total", "history"]
)
def test_what_others_may_see_within_a_loop_stays_a_number(start: str, note: str, rest: str) -> None:
    loop, deep = (LOOP.format(indent=indent, note=note) for indent in ("    ", "        "))
    code = f"{HEAD}def f(model, loader):\n    seen = {start}\n{rest.format(name='seen', loop=loop, deep=deep)}"
    assert fixed(code, allowed=FIXES) == code


@pytest.mark.parametrize(
    "head", ["def f(model, loader, float):\n", "from mine import float\n\n\ndef f(model, loader):\n"]
)
def test_a_name_of_python_that_is_another_here_is_not_called(head: str) -> None:
    loop = LOOP.format(indent="    ", note="total += loss.item()")
    code = f"{HEAD}{head}    total = 0.0\n{loop}    return total\n"
    assert fixed(code, allowed=FIXES) == code
    plain = code.replace(", float", "").replace("import float", "import other")
    assert "total = float(total)" in fixed(plain, allowed=FIXES)


ASKED_FOR = {  # a number that Python needs: kept on the device, the host would wait for it there, and at every further use
    "both ends of a condition": """
        def f(features: torch.Tensor, labels: torch.Tensor) -> float:
            found = len(torch.unique(labels))
            if found < 2 or found >= len(labels):
                return float("nan")
            rows = features.tolist()
            return sum(rows)
    """,
    "before what goes on": """
        def f(x: torch.Tensor):
            found = len(torch.unique(x))
            if found < 2:
                return x * 2
            show(x)
    """,
    "a slice": """
        def f(c: torch.Tensor):
            u, s, v = torch.linalg.svd(c)
            rank = torch.nonzero(s).size(0)
            return v[rank:, :]
    """,
    "the size of new tensors": """
        def f(x: torch.Tensor):
            return torch.zeros(len(torch.nonzero(x > 0)), 3)
    """,
    "an element of a list": """
        def f(x: torch.Tensor):
            return torch.tensor([max(1, row.sum().item()) for row in x])
    """,
}


@pytest.mark.parametrize("code", ASKED_FOR.values(), ids=ASKED_FOR)
def test_a_number_that_python_needs_is_not_kept_on_the_device(code: str) -> None:
    assert fixed(HEAD + dedent(code), allowed=FIXES) == HEAD + dedent(code)


@pytest.mark.parametrize("last", ["x", "x.square()", "0.0"])
def test_a_count_that_chooses_between_two_tensors_stays_there(last: str) -> None:
    code = f"{HEAD}def f(x: torch.Tensor):\n    if len(torch.unique(x)) < 2:\n        return x * 2\n    return {last}\n"
    assert "count_nonzero" in fixed(code, allowed=FIXES)


@pytest.mark.parametrize("after", ["isinstance(low, torch.Tensor)", "isinstance(low, (int, float))"])
def test_what_is_asked_later_whether_it_is_a_tensor_may_be_none(after: str) -> None:
    head = f"{HEAD}def f(places: torch.Tensor):\n    low = places[0] - 1\n    low = max(low, 0)\n"
    code = f"{head}    return low.item() if {after} else low\n"
    assert "clamp" not in fixed(code, allowed=FIXES)
    assert "clamp" in fixed(f"{head}    return low\n", allowed=FIXES)
    before = head.replace("    low = max", f"    known = {after}\n    low = max")
    assert "clamp" in fixed(f"{before}    return low, known\n", allowed=FIXES)


@pytest.mark.parametrize(("given", "told"), [("x", True), ("x: torch.Tensor", False)])
def test_a_clamp_of_what_may_be_an_array_says_so(given: str, told: bool) -> None:
    code = f"{HEAD}def f({given}):\n    low = x.argmax() - 1\n    return max(low, 0)\n"
    fixes = [f.fix for f in findings(code, "builtin-over-tensors") if f.fix is not None]
    assert [f.changes.startswith("low must be a tensor") for f in fixes] == [told]


def test_what_numpy_may_have_given_is_not_read_as_tensors() -> None:
    code = (
        "import numpy as np\nimport torch\n\n\ndef distinct(x):\n    {}return torch.unique(x)\n\n\ndef f(x, y):\n"
        "    low, high = distinct(x), distinct(y)\n    return int(low[0]), float(high[0])\n"
    )
    either = code.format("if isinstance(x, np.ndarray):\n        return np.unique(x)\n    ")
    assert fixed(either, allowed=EVERY) == either
    assert "torch.stack" in fixed(code.format(""), allowed=EVERY)


@pytest.mark.parametrize("asked", ['stats["loss"] > 3', "print(f\"{stats['loss']:.2f}\")"])
def test_a_number_that_is_asked_for_again_is_noted_as_a_number(asked: str) -> None:
    def written(after: str) -> str:
        noted = "stats['loss'] = x.mean().item()"
        return f"{HEAD}def f(x: torch.Tensor, stats: dict):\n    {noted}\n    {after}\n    return stats\n"

    assert ".detach()" in fixed(written("stats['seen'] = 1"), allowed={Safety.SUGGEST})
    assert ".detach()" not in fixed(written(asked), allowed={Safety.SUGGEST})


@pytest.mark.parametrize(
    "asked",
    [
        "{k: v for k, v in stats.items() if isinstance(v, torch.Tensor)}",
        "[k for k in stats if torch.is_tensor(stats[k])]",
        "json.dumps(stats)",
    ],
)
def test_a_number_among_what_is_sorted_by_its_kind_stays_one(asked: str) -> None:
    def written(after: str) -> str:
        noted = 'stats.update({"nested": {}, "mean": x.mean().item()})'
        return f"import json\n{HEAD}def f(x: torch.Tensor, stats: dict):\n    {noted}\n    return {after}\n"

    assert ".detach()" in fixed(written("stats"), allowed={Safety.SUGGEST})
    assert ".detach()" not in fixed(written(asked), allowed={Safety.SUGGEST})


@pytest.mark.parametrize("made", ["[[3] * 5] * 4", "[row] * 4", "4 * [[0, 1]]"])
def test_rows_are_no_number_to_fill_with(made: str) -> None:
    code = (
        HEAD
        + f"def f(x: torch.Tensor):\n    row = [3] * 5\n    return x + torch.tensor({made}, device=x.device), row\n"
    )
    assert "full" not in fixed(code)


def test_a_total_that_is_asked_for_whenever_it_grows_stays_a_number() -> None:
    code = (
        "import torch\n\n\ndef f(model, xs, log: dict):\n    total = 0.0\n    for x in xs:\n        loss = model(x).mean()\n"
        "        if loss is not None:\n            loss.backward()\n            total += loss.item()\n"
        "            log['loss'] = total / 3\n    return log\n"
    )
    assert "total += loss.item()" in fixed(code)
    rare = code.replace("            log['loss'] =", "            if len(log) > 3:\n                log['loss'] =")
    assert "float(total) / 3" in fixed(rare, allowed=FIXES)


@pytest.mark.parametrize(
    ("use", "kept"),
    [
        ("max(1, rms(x) / 2)", True),
        ("1 if rms(x) > 2 else 0", True),
        ("x / rms(x)", False),
    ],
)
def test_what_callers_compare_stays_a_number(use: str, kept: bool) -> None:
    code = (
        "import math\nimport torch\n\n\ndef rms(x):\n    return math.sqrt(torch.mean(x.pow(2)))\n\n\n"
        f"def step(x: torch.Tensor):\n    return {use}\n"
    )
    assert ("math.sqrt" in fixed(code, "numpy-crossing")) is kept


EITHER = {  # a number of Python's as well as a tensor: no function of torch takes it
    "an arm": "    return max(a.max() if len(a) else 0, b.max() if len(b) else 0)\n",
    "a name that begins as a number": """
    last = a.max() if len(a) else 0
    for row in b:
        last = min(last, row.max())
    return last
""",
    "read by int, and perhaps an int": """
    left, right = window(b[0])
    for i in range(3):
        low, high = left[i], right[i]
        yield a[int(low) : int(high)]


def window(p: int) -> tuple[list[int], list[int]]:
    most = max(0, p - 3)
    return [most, 0, p], [most + 3, 3, int(p) + 3]
""",
}


@pytest.mark.parametrize("body", EITHER.values(), ids=EITHER)
def test_what_may_be_a_number_is_given_to_no_function_of_tensors(body: str) -> None:
    after = fixed(f"{HEAD}def f(a: torch.Tensor, b: torch.Tensor):\n{body}", allowed=FIXES)
    assert not any(word in after for word in ("torch.maximum", "torch.minimum", "stack"))


COUNTS = ("len(torch.unique(x))", "torch.unique(x).numel()", "x[x > 0].shape[0]", "len(torch.nonzero(x > 0))")
HANDED_ON = {
    "to a function": "    n = {count}\n    return classes(x, n)\n",
    "to a method": "    return model.split(x, {count})\n",
    "through a minimum": "    k = min(k, {count})\n    return torch.topk(x, k)\n",
}


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("body", HANDED_ON.values(), ids=HANDED_ON)
def test_a_count_that_others_take_for_an_int_stays_one(body: str, count: str) -> None:
    code = f"{HEAD}def f(x: torch.Tensor, model, k: int):\n{body.format(count=count)}"
    assert fixed(code, allowed=FIXES) == code


@pytest.mark.parametrize("count", COUNTS)
def test_a_count_that_is_promised_to_be_a_number_stays_one(count: str) -> None:
    code = f"{HEAD}def f(x: torch.Tensor, k: int) -> bool:\n    return {count} < k\n"
    assert fixed(code, allowed=FIXES) == code
    assert fixed(code.replace(" -> bool", ""), allowed=FIXES) != code


def test_a_parameter_whose_default_is_a_number_may_be_a_tensor_where_as_tensor_takes_it() -> None:
    code = HEAD + "def f(x: torch.Tensor, rate{said}=1.0):\n    return x * torch.{made}(rate, device=x.device)\n"
    assert "full" not in fixed(code.format(said="", made="as_tensor"), allowed=FIXES)
    assert "full" not in fixed(code.format(said=": float", made="as_tensor"), allowed=FIXES)
    assert "full" in fixed(code.format(said="", made="tensor"), allowed=FIXES)


@pytest.mark.parametrize("library", ["mlx.core as mx", "paddle as mx", "oneflow as mx"])
def test_what_another_library_makes_is_not_joined_by_torch(library: str) -> None:
    code = f"import torch\nimport {library}\n\n\ndef f(x):\n    y = mx.zeros((3,))\n"
    code += "    return y.min().item(), y.max().item(), y[y > 0], x[y > 0]\n"
    assert fixed(code, allowed=FIXES) == code


def test_mean_and_deviation_of_complex_numbers_are_read_apart() -> None:
    code = (
        f"{HEAD}def f(z: torch.Tensor):\n    z = torch.view_as_complex(z)\n    return z.mean().item(), z.std().item()\n"
    )
    assert fixed(code, allowed={Safety.SAFE}) == code


def test_what_may_be_a_parameter_keeps_its_gradient() -> None:
    code = (
        f"{HEAD}class A(torch.nn.Module):\n    def __init__(self, x: float):\n        super().__init__()\n        self.x = x\n"
        "    def forward(self, z: torch.Tensor):\n        return z * torch.as_tensor(self.x, device=z.device)\n"
    )
    assert fixed(code, allowed=FIXES) == code


COMPUTED = """
import torch

def f(x: torch.Tensor, y: torch.Tensor, n: int):
    x = x.flatten()
    {}
"""


@pytest.mark.parametrize(
    ("before", "after", "safety"),
    [
        ("return x * {0.5}", "return x * 0.5", Safety.SAFE),
        ("return {-3} - x", "return -3 - x", Safety.SAFE),
        ("return x - {-3}", "return x - (-3)", Safety.SAFE),
        ("return x / {4.0}", "return x / 4.0", Safety.UNSAFE),
        ("return x * {0.7}", "return x * 0.7", Safety.UNSAFE),
        ("return y * {0.5}", "return y * 0.5", Safety.UNSAFE),
        ("return x / torch.sqrt({n})", "return x / math.sqrt(n)", Safety.UNSAFE),
        ("return x / {n}.sqrt()", "return x / math.sqrt(n)", Safety.UNSAFE),
        ("k = {0.5}\n    return x * k + y * k", "k = 0.5\n    return x * k + y * k", Safety.UNSAFE),
    ],
)
def test_what_is_only_computed_with_needs_no_tensor(before: str, after: str, safety: Safety) -> None:
    code = COMPUTED.format(re.sub(r"\{(.+?)\}", r"torch.tensor(\1, device=x.device)", before))
    fixes = [f.fix for f in findings(code, "tensor-literal-on-device") if f.fix is not None]
    assert [(fix.rewrite, fix.safety) for fix in fixes] == [("use_the_number", safety)]
    assert f"    {after}\n" in fixed(code, allowed=FIXES)


@pytest.mark.parametrize(
    "rest",
    [
        "return x @ {}",
        "return x * {}.expand(3)",
        "k = {}\n    return x * k, k",
        "k = {}\n    k += 1\n    return x * k",
        "return {} * {}",
        "return n * {}",
        "x *= {}\n    return x",
    ],
)
def test_a_tensor_that_serves_for_more_stays_one(rest: str) -> None:
    code = COMPUTED.format(rest.replace("{}", "torch.tensor(0.5, device=x.device)"))
    assert "use_the_number" not in {f.fix.rewrite for f in findings(code) if f.fix is not None}


@pytest.mark.parametrize("dtype", ["torch.long", "torch.float64", "y.dtype"])
def test_a_number_that_its_dtype_would_round_or_that_promotes_stays_a_tensor(dtype: str) -> None:
    code = COMPUTED.format(f"return x * torch.tensor([0.5], dtype={dtype}, device=x.device)")
    assert "use_the_number" not in {f.fix.rewrite for f in findings(code) if f.fix is not None}


@given(
    value=st.integers(-64 * 8, 64 * 8).map(lambda n: n / 8),
    dtype=st.sampled_from(["float16", "bfloat16", "float32", "float64", "int8", "int64", "bool"]),
    drawn=st.lists(st.integers(0, 5), min_size=1, max_size=4),
)
@settings(max_examples=draws(40), deadline=None)
def test_what_is_held_by_all_dtypes_gives_the_same_as_a_number(value: float, dtype: str, drawn: list[int]) -> None:
    torch = pytest.importorskip("torch")
    x = torch.tensor(drawn).to(getattr(torch, dtype))
    for number in (value, int(value)):
        tensor = torch.tensor(number)
        both = [(x * tensor, x * number), (x + tensor, x + number)]
        both += [(x - tensor, x - number), (tensor - x, number - x)] if dtype != "bool" else []
        for one, other in both:
            assert one.dtype is other.dtype
            assert torch.equal(one, other)


@pytest.mark.parametrize(("begins", "offered"), [("loss = 0.0", False), ("loss = x.new_zeros(())", True)])
def test_what_a_function_gives_as_a_number_in_one_way_is_not_given_to_where(begins: str, offered: bool) -> None:
    code = (
        "import torch\n\n\nclass Net(torch.nn.Module):\n"
        "    def forward(self, x: torch.Tensor, total: torch.Tensor):\n"
        "        loss, found = self.part(x)\n"
        "        total = total.mean() + loss if loss > 0 else total.mean()\n"
        "        return total\n\n"
        "    def part(self, x: torch.Tensor):\n"
        f"        {begins}\n"
        "        if self.training:\n"
        "            loss = torch.sum(x)\n"
        "        return loss, x\n"
    )
    assert ("torch.where" in fixed(code)) is offered
