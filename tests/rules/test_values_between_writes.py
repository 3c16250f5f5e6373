"""A value is read again where it may have been written in between, and what others read is written in place."""

import pytest
from rules.driver import EVERY, FIXES, HEAD, fixed


def test_a_name_that_a_lambda_reads_is_read_where_it_was() -> None:
    code = (
        f"{HEAD}def f(x: torch.Tensor, step: int, hooks):\n    loss = x.mean()\n    value = loss.item()\n"
        "    if step % 2 == 0:\n        hooks.append(lambda: value)\n"
    )
    assert fixed(code, allowed=FIXES) == code


def test_an_element_of_what_a_call_may_replace_is_looked_at_after_the_call() -> None:
    code = """
class Node:
    def __init__(self, x: torch.Tensor):
        self.area = torch.zeros(3, device=x.device)

    def f(self, x: torch.Tensor, i: int):
        self.area[i] = {value}
"""
    assert "fill_" not in fixed(HEAD + code.format(value="float(self.g(i))"), allowed=FIXES)
    assert "fill_" in fixed(HEAD + code.format(value="2.0 * i"), allowed=FIXES)


@pytest.mark.parametrize(
    "between", ["x[0] = 7", "x.add_(1)", "view[0] = 7", "x = x + 1", "change(x)", "change()", "i += 1", "yield start"]
)
def test_numbers_that_serve_two_statements_are_read_again_where_they_may_have_changed(between: str) -> None:
    code = f"""
def f(x: torch.Tensor, y: torch.Tensor, i: int, change):
    view = x.view(-1)
    start = x[i].item() + y[i].item()
    {between}
    end = x[i].item() * y[i].item()
    return start, end
"""
    assert fixed(HEAD + code.replace(between, "i = i"), allowed=EVERY).count("tolist") == 2
    assert fixed(HEAD + code.replace(f"    {between}\n", ""), allowed=EVERY).count("tolist") == 1
    assert fixed(HEAD + code, allowed=EVERY).count("tolist") == 2


@pytest.mark.parametrize(
    "between", ["self.a = self.a + 1", "self.step()", "model.step()", "await model", "self.a += 1"]
)
def test_numbers_of_attributes_are_read_again_where_others_may_have_set_them(between: str) -> None:
    code = f"""
class Meter:
    def __init__(self, x: torch.Tensor):
        self.a, self.b = x.sum(), x.mean()

    async def f(self, model):
        start = self.a.item() + self.b.item()
        {between}
        return start, self.a.item() * self.b.item()
"""
    assert fixed(HEAD + code, allowed=EVERY).count("tolist") == 2
    assert fixed(HEAD + code.replace(f"        {between}\n", ""), allowed=EVERY).count("tolist") == 1


WRITTEN_FOR = {  # who else reads what is written in place
    "another name": "def f(x: torch.Tensor):\n    x = x.cos()\n    y = x\n    {line}\n    return x, y\n",
    "a view": "def f(x: torch.Tensor):\n    x = x.cos()\n    y = x[:1]\n    {line}\n    return x, y\n",
    "a list": "def f(x: torch.Tensor):\n    x = x.cos()\n    seen = [x]\n    {line}\n    return x, seen\n",
    "the caller": "def f(x: torch.Tensor):\n    {line}\n",
    "a name in a loop": (
        "def f(x: torch.Tensor):\n    x = x.cos()\n    y = x\n    for _ in y:\n        print(y)\n        {line}\n    return x\n"
    ),
}


@pytest.mark.parametrize("line", ["x[x > 1] = x[x > 1] * 0.5", "x[x < 0] += 1.5 * x[x < 0]"])
@pytest.mark.parametrize("code", WRITTEN_FOR.values(), ids=WRITTEN_FOR)
def test_what_others_read_is_written_in_place(code: str, line: str) -> None:
    assert "torch.where" not in fixed(HEAD + code.format(line=line), allowed=FIXES)
    alone = f"{HEAD}def f(x: torch.Tensor):\n    x = x.cos()\n    y = x.sin()\n    {line}\n    return x, y\n"
    assert "torch.where" in fixed(alone, allowed=FIXES)


@pytest.mark.parametrize("use", ["x[best].zero_()", "row = x[best]\n    row += 1", "row = x[best]\n    row[0] = 1.5"])
def test_a_row_that_is_written_is_no_copy(use: str) -> None:
    code = f"{HEAD}def f(x: torch.Tensor, y: torch.Tensor):\n    x = x.cos()\n    best = y.argmax()\n    {use}\n    return x\n"
    assert "[None]" not in fixed(code, allowed=FIXES)
