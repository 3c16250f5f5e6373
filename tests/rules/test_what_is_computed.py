"""What a fix says of the numbers that are computed is what its words say: `syncscope verify` goes by it."""

import re

import pytest

pytest.importorskip("torch")

from rules.driver import findings
from test_rules import plain

from syncscope import discover, rewrites
from syncscope.model.finding import Safety

REWRITES = [name.replace("-", "_") for name in discover.names(rewrites)]


@pytest.mark.parametrize("name", REWRITES)
def test_who_says_that_last_bits_differ_or_that_others_are_drawn_has_it_as_a_value(name: str) -> None:
    for example in rewrites.named(name).EXAMPLES:
        for finding in findings(plain(example.code), *filter(None, [example.rule])):
            fix = finding.fix
            if fix is None or fix.safety is Safety.SAFE:
                continue
            assert fix.rounds or not re.search(r"last bits?|rounded", fix.changes)
            assert fix.redraws == bool(re.search(r"draws other numbers", fix.changes))
