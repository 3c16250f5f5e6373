"""Every rewrite is executed: the code as written and as fixed, on random tensors."""

import pytest

pytest.importorskip("torch")
hypothesis = pytest.importorskip("hypothesis")

from hypothesis import HealthCheck, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from rules.equivalence import arguments, assert_same, last_function, run  # noqa: E402
from test_rules import RUNNABLE, plain  # noqa: E402

from syncscope.rules import Example, Rule  # noqa: E402


@pytest.mark.parametrize(("name", "rule", "example"), RUNNABLE)
def test_the_fixed_code_does_the_same(name: str, rule: Rule, example: Example) -> None:
    assert example.fixed is not None
    assert example.safety is not None
    safety = example.safety
    written, fixed = last_function(plain(example.code)), last_function(plain(example.fixed))

    @settings(max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def same(data: st.DataObject) -> None:
        values = data.draw(arguments(example.inputs))
        assert_same(run(written, values), run(fixed, values), safety)

    same()
