"""Code that fixes once broke, each with its class: what must not be offered there, or what is offered instead."""

import pytest

pytest.importorskip("libcst")

from rules.driver import FIXES, findings, fixed

from syncscope.model.finding import Safety

HEAD = "import numpy as np\nimport torch\nfrom torch import nn\n\n\n"


def offered(code: str) -> set[str]:
    """The safe and unsafe fixes of some code, as titles of their rewrites."""
    fixes = [f.fix for f in findings(HEAD + code)]
    return {fix.rewrite for fix in fixes if fix is not None and fix.safety in FIXES}


def after(code: str, *safeties: Safety) -> str:
    """Some code after its fixes, without the imports."""
    return fixed(HEAD + code, allowed=safeties or FIXES).removeprefix(HEAD)


@pytest.mark.parametrize(
    ("asked", "made"),
    [
        ("isinstance(sigma, (list, tuple))", "torch.tensor([sigma] * b, device=x.device)"),
        ("isinstance(sigma, list)", "x.new_tensor(sigma)"),
        ("not isinstance(sigma, float)", "torch.tensor(sigma, device=x.device)"),
        ("len(sigma) > 1", "torch.tensor([sigma] * b, device=x.device)"),
        ("isinstance(sigma, str) or sigma[0] > 1", "torch.tensor([sigma], device=x.device)"),
    ],
)
def test_what_a_test_says_is_several_is_not_filled_as_one_number(asked, made):
    code = (
        f"def f(x: torch.Tensor, b: int, sigma=0.5):\n    if {asked}:\n        sigma = {made}\n    return x * sigma\n"
    )
    assert "fill_tensor_on_device" not in offered(code)


def test_an_arm_for_numbers_takes_the_fill():
    code = (
        "def f(x: torch.Tensor, b: int, sigma):\n"
        "    if isinstance(sigma, (float, int)):\n"
        "        return torch.tensor([sigma] * b, device=x.device)\n"
        "    return torch.tensor([s for s in sigma], device=x.device)\n"
    )
    assert "torch.full((b,), sigma, device=x.device)" in after(code)


@pytest.mark.parametrize("asked", ["category is not None", "category", "isinstance(category, torch.Tensor)"])
def test_what_may_be_none_is_not_read_before_the_loop(asked):
    code = (
        "def f(boxes: torch.Tensor, category: torch.LongTensor):\n"
        "    out = []\n"
        "    for i in range(len(boxes)):\n"
        f"        if {asked}:\n"
        "            out.append(boxes[i] * category[i].item())\n"
        "    return out\n"
    )
    assert not offered(code)


def test_what_is_none_by_default_is_read_before_the_loop_where_that_was_asked():
    code = (
        "def f(boxes: torch.Tensor, category: torch.LongTensor = None):\n"
        "    out = []\n"
        "    {guard}for i in range(len(boxes)):\n"
        "        out.append(boxes[i] * category[i].item())\n"
        "    return out\n"
    )
    assert not offered(code.format(guard=""))
    left = code.format(guard="if category is None:\n        return out\n    ")
    assert "category_list = category.flatten().tolist()" in after(left)


@pytest.mark.parametrize(
    "loop",
    [
        "for k in t:\n        if k is None:\n            continue\n",
        "for k in t:\n        if t is not None:\n            pass\n",
    ],
)
def test_a_loop_over_what_may_be_none_goes_through_tensors(loop):
    code = f"def f(t: torch.LongTensor, names):\n    out = []\n    {loop}        out.append(names[k.item()])\n    return out\n"
    assert ".tolist()" not in after(code)


def test_a_tensor_with_device_in_its_name_is_no_device():
    code = (
        "class Net(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        '        self.register_buffer("one_device", torch.ones(3))\n'
        "        self.on_device = nn.Parameter(torch.ones(3))\n"
        "        self.device = torch.device(0)\n\n"
        "    def forward(self, on_device_logits: torch.Tensor, first_device: torch.Tensor):\n"
        "        x = torch.zeros(3).to(on_device_logits) + torch.zeros(3).to(first_device)\n"
        "        x = x + torch.zeros(3).to(self.one_device) + torch.zeros(3).to(self.on_device)\n"
        "        return x + torch.zeros(3).to(self.device)\n"
    )
    fixed_code = after(code, Safety.SAFE)
    assert "on_device_logits.new_zeros(3)" in fixed_code
    assert "first_device.new_zeros(3)" in fixed_code
    assert "self.one_device.new_zeros(3)" in fixed_code
    assert "self.on_device.new_zeros(3)" in fixed_code
    assert "torch.zeros(3, device=self.device)" in fixed_code


def test_numbers_like_a_tensor_of_another_layout_say_so():
    code = "def f(x: torch.Tensor):\n    s = x.to_sparse()\n    return s.new_tensor(0.0)\n"
    assert after(code, Safety.SAFE) == code
    changes = [f.fix.changes for f in findings(HEAD + code) if f.fix is not None]
    assert any("must be dense" in said for said in changes)


@pytest.mark.parametrize(
    "index", ["np_idx, np_idx", "torch.arange(n), torch.arange(n)", "[0, 1]", "np.arange(n)", "0, list(range(n))"]
)
@pytest.mark.parametrize("number", ["1.0", "0", "n"])
def test_a_number_is_not_made_on_the_device_where_its_index_is_copied_anyway(index, number):
    code = (
        "def f(x: torch.Tensor, n: int):\n    x = x.clone()\n    np_idx = np.arange(n)\n"
        f"    x[{index}] = {number}\n    return x\n"
    )
    assert "make_number_on_device" not in offered(code)


@pytest.mark.parametrize(
    "line",
    [
        "if count.sum() > 3: y = x[dead] + fresh[dead]; z = count[dead] + fresh[dead]",
        "if dead.any(): self.book[dead] = x[dead].cumsum(0); self.count[dead] = x[dead].sum(1)",
        "for i in range(3): a = x.sum().item(); b = fresh.sum().item(); print(a, b)",
        "a = x.sum().item(); b = fresh.sum().item(); print(a, b)",
    ],
)
def test_a_statement_behind_another_on_its_line_gets_none_before_it(line):
    code = (
        "class Net(nn.Module):\n"
        "    def f(self, x: torch.Tensor, fresh: torch.Tensor, count: torch.Tensor):\n"
        f"        dead = count < 1\n        y = z = 0\n        {line}\n        return x, y, z\n"
    )
    assert after(code) == code


@pytest.mark.parametrize(
    ("tensor", "between"),
    [
        ("model.scale", "opt.step()"),
        ("self.log_alpha", "self.alpha_optimizer.step()"),
        ("x[0]", "opt.step()"),
        ("x.detach()[0]", "self.update()"),
        ("x[0]", "x.mul_(2)"),
    ],
)
def test_what_is_written_between_two_reads_is_read_twice(tensor, between):
    code = (
        "class Agent:\n"
        "    def learn(self, model: nn.Module, x: torch.Tensor, opt):\n"
        f"        before = {tensor}.item()\n        {between}\n        after = {tensor}.item()\n"
        "        print(before, after, x.sum().item())\n"
    )
    assert f"before = {tensor}.item()\n        {between}" in after(code)


def test_a_count_is_not_read_as_a_float_beside_a_loss():
    code = (
        "def f(loss: torch.Tensor, label: torch.LongTensor):\n    loss = loss.mean()\n"
        "    return {'loss': loss.item(), 'tokens': (label > 0).sum().item()}\n"
    )
    assert after(code) == code


@pytest.mark.parametrize("number", ["1e39", "-1e39", "1e300"])
def test_a_number_larger_than_any_dtype_is_not_filled(number):
    code = f"def f(x: torch.Tensor):\n    return x * torch.tensor({number}, device=x.device) + x.new_tensor({number})\n"
    assert "fill_tensor_on_device" not in offered(code)


def test_a_mask_without_dimensions_is_chosen_by_where():
    code = (
        "def f(result: torch.Tensor, other: torch.Tensor, kind: torch.Tensor):\n"
        "    mask = kind == 1\n    result[mask] = other[mask]\n    return result\n"
    )
    assert "index_once" not in offered(code)
    assert "torch.where(" in fixed(HEAD + code)


def test_a_safe_fix_is_not_offered_where_its_line_waits_all_the_same():
    waits = (
        "def f(x: torch.Tensor, n: torch.Tensor, out):\n    out[n.unique()] = {other} + torch.zeros(3).to(x.device)\n"
    )
    assert "create_on_device" not in offered(waits.format(other="x"))
    alone = "def f(x: torch.Tensor, n, out):\n    out[n] = x + torch.zeros(3).to(x.device)\n"
    assert "create_on_device" in offered(alone)
    either = "def f(x: torch.Tensor, n: torch.Tensor, k: int):\n    return n.unique() if k else torch.zeros(3).to(x.device)\n"
    assert "create_on_device" in offered(either)


def test_what_is_made_a_tensor_by_as_tensor_may_be_one():
    code = (
        "def biquad(x: torch.Tensor, b0: float):\n    return x * torch.as_tensor(b0, dtype=x.dtype, device=x.device)\n"
    )
    assert "fill_tensor_on_device" not in offered(code)


def test_who_is_given_a_bool_gets_one():
    head = "def f(masks: list[torch.Tensor]):\n"
    assert after(f"{head}    return any(m.any() for m in masks)\n") == (
        f"{head}    return torch.stack([m.any() for m in masks]).any().item()\n"
    )
    assert "if torch.stack([m.any() for m in masks]).any():" in after(
        f"{head}    if any(m.any() for m in masks):\n        return 1\n    return 2\n"
    )


def test_a_way_that_divides_is_not_taken_for_its_gradient():
    code = (
        "def f(x: torch.Tensor):\n    x = x.relu()\n    n, total = (x > 1).sum(), x.sum()\n"
        "    return 0.0 if n == 0 else total / n\n"
    )
    assert after(code) == code


DIVIDED = ["pos.sum()", "pos.sum().clamp(min=1)", "max(pos.sum(), 1)", "(pos.sum() + 1e-6)"]


@pytest.mark.parametrize("summed", ["x[pos].abs().sum()", "x[pos].sum()", "(x[pos] - t[pos]).abs().sum()"])
@pytest.mark.parametrize("count", DIVIDED)
def test_who_divides_by_how_many_a_mask_keeps_may_have_summed_rows(count, summed):
    code = f"def loss(x: torch.Tensor, t: torch.Tensor, y: torch.Tensor):\n    pos = y > 0\n    return {summed} / {count}\n"
    assert "torch.where(" not in after(code)
    same_shape = code.replace("y > 0", "x > 0").replace("t[pos]", "0")
    assert "torch.where(pos, " in after(same_shape)
