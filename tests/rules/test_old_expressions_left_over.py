"""What a fix need not keep of the expression that was there: conversions, shapes said twice, brackets that held it together."""

from textwrap import dedent

import pytest

pytest.importorskip("libcst")

from rules.driver import HEAD, fixed

from syncscope.codemod.folding import folded
from syncscope.model.finding import Safety


def after(body: str, name: str = "x: torch.Tensor, a: int, b: int, device") -> str:
    """The body of a function after its fixes."""
    return fixed(f"{HEAD}\n\ndef f({name}):\n{body}").partition("device):\n")[2]


@pytest.mark.parametrize(
    ("before", "then"),
    [
        ("torch.ones(a).to(device).to(torch.bool)", "torch.ones(a, dtype=torch.bool, device=device)"),
        ("torch.zeros(a).cuda().long()", 'torch.zeros(a, dtype=torch.long, device="cuda")'),
    ],
)
def test_zeros_and_ones_are_made_in_the_dtype_that_they_are_given(before: str, then: str) -> None:
    assert then in after(f"    return x * {before}\n")


def test_a_name_that_is_sent_and_converted_is_made_so() -> None:
    body = "    m = torch.ones((a, b))\n    m = m.to(dtype=torch.bool, device=x.device)\n    return x * m\n"
    assert after(body) == "    m = torch.ones((a, b), dtype=torch.bool, device=x.device)\n    return x * m\n"


@pytest.mark.parametrize("between", ["    m[:1] = 0.5\n", "    print(m.dtype)\n"])
def test_what_is_written_or_looked_at_before_keeps_its_dtype_until_then(between: str) -> None:
    body = f"    m = torch.ones((a, b))\n{between}    m = m.to(dtype=torch.bool, device=x.device)\n    return x * m\n"
    assert "dtype=torch.bool, device" not in after(body) or body == after(body)


def test_a_range_is_counted_as_it_was() -> None:
    assert "dtype" not in after("    return x * torch.arange(a).to(device).to(torch.bool)\n")


@pytest.mark.parametrize("shape", ["x.shape", "x.size()"])
def test_what_is_drawn_in_the_shape_of_what_it_is_sent_to_is_drawn_like_it(shape: str) -> None:
    assert (
        after(f"    return x + (torch.rand({shape}) * 2 - 1).to(x)\n")
        == "    return x + (torch.rand_like(x) * 2 - 1)\n"
    )


def test_what_is_asked_of_what_is_drawn_is_converted_afterwards() -> None:
    assert "_like" not in after("    return x + (torch.rand(x.shape) > 0.5).to(x)\n")


def test_one_pair_of_brackets_holds_an_operation_over_lines() -> None:
    body = """
    def f(x: torch.Tensor, number_of_the_tokens: int, dimension: int):
        shift = (
            torch.arange(number_of_the_tokens, dtype=torch.long).view(1, 1, -1, 1)
            * (dimension // number_of_the_tokens) + number_of_the_tokens + dimension
        ).to(x.device)
        return x - shift
    """
    text = "".join(fixed(HEAD + dedent(body)).split())
    assert "device=x.device" in text
    assert "((torch" not in text


def test_the_last_brackets_are_opened_only_where_something_is_in_them() -> None:
    line = "    loss = torch.where(self.masks, losses, 0.0).sum() / self.masks.expand_as(losses).sum()"
    assert folded(line, 80).splitlines()[1:3] == [
        "        torch.where(self.masks, losses, 0.0).sum()",
        "        / self.masks.expand_as(losses).sum()",
    ]


def test_elements_of_a_tuple_that_count_are_all_made_on_the_device_by_safe_fixes() -> None:
    body = """
    def f(n: int, device):
        return (
            torch.arange(n * 2).to(device),
            2 * torch.arange(n, dtype=torch.long).unsqueeze(1).repeat(1, 2).view(-1, 1).squeeze().to(device),
        )
    """
    assert ".to(" not in fixed(HEAD + dedent(body), allowed={Safety.SAFE})


@pytest.mark.parametrize("made", ["torch.arange(n, dtype=torch.half)", "torch.arange(0.1, n, dtype=torch.long)"])
def test_a_range_that_may_be_rounded_is_no_safe_fix(made: str) -> None:
    body = f"    return x, {made}.unsqueeze(1).squeeze().to(device)\n"
    code = f"{HEAD}\n\ndef f(x: torch.Tensor, n: int, device):\n{body}"
    assert fixed(code, allowed={Safety.SAFE}) == code


@pytest.mark.parametrize(
    ("changed", "written"),
    [("+= 2.0 * width", "x + 2.0 * width"), ("-= width / 3", "x - width / 3"), ("*= width + 1", "x * (width + 1)")],
)
def test_a_product_in_a_sum_has_no_brackets(changed: str, written: str) -> None:
    code = HEAD + f"def f(x: torch.Tensor, width: float):\n    x = x.exp()\n    x[x < 0] {changed}\n    return x\n"
    assert f"x = torch.where(x < 0, {written}, x)" in fixed(code)


def test_a_condition_that_is_denied_is_not_denied_again_where_the_device_chooses() -> None:
    asked = "    if not (0 <= x.min() and x.max() <= 1):\n        x = x.sigmoid()\n"
    after = fixed(f"{HEAD}def f(x: torch.Tensor):\n    x = x.exp()\n{asked}    return x\n", "tensor-in-condition")
    assert "x = torch.where((0 <= x.min()) & (x.max() <= 1), x, x.sigmoid())" in after
