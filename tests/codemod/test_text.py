"""A file as text: how wide its lines are."""

import pytest

from syncscope.codemod.text import SHORTEST, Text

FORMULA = "Efron's " + r"\theta_i \log \sum_j \exp " * 9  # an apostrophe that ends nowhere, and many backslashes


@pytest.mark.parametrize("before", ["", "x = 'a' + "])
def test_a_formula_in_a_docstring_is_gone_through_once(before: str) -> None:
    code = f'{before}r"""\n{FORMULA}\n"""\n'
    assert Text(code.encode()).width == SHORTEST
