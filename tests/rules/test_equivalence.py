"""Every rewrite is executed: the code as written and as fixed, on random tensors."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("hypothesis")

from effort import draws
from rules.equivalence import assert_equivalent
from test_rules import ADVISED, RUNNABLE, plain

from syncscope.model.finding import Safety
from syncscope.rules import Example, Rule


@pytest.mark.parametrize(("name", "rule", "example"), RUNNABLE)
def test_the_fixed_code_does_the_same(name: str, rule: Rule, example: Example) -> None:
    assert example.fixed is not None
    assert example.safety is not None
    examples = draws(20 if example.safety is Safety.SAFE else 12)
    assert_equivalent(plain(example.code), plain(example.fixed), example.inputs, example.safety, examples)


@pytest.mark.parametrize(("name", "rule", "example"), [p for p in ADVISED if p.values[2].inputs])
def test_what_to_write_instead_does_the_same(name: str, rule: Rule, example: Example) -> None:
    assert example.instead is not None
    assert_equivalent(plain(example.code), plain(example.instead), example.inputs, Safety.SUGGEST, draws(8))
