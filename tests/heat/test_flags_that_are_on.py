"""What a loop tells of itself unless somebody says otherwise is read in every step; what is asked beside that is seldom."""

import pytest
from heat.hot_lines import heat

LOOP = """import torch

class Base:
    def __init__(self, model, {given}):
        self.model = model
        self.verbose = verbose

class Trainer(Base):
    def train(self, loader, bar):
        for step, x in enumerate(loader):
            loss = self.model(x).sum()
            loss.backward()
            if {test}:
                bar.set_postfix(loss=loss.item())
"""
FUNCTION = """import torch

def train(model, loader, bar, {given}):
    for step, x in enumerate(loader):
        loss = model(x).sum()
        loss.backward()
        if {test}:
            bar.set_postfix(loss=loss.item())
"""


@pytest.mark.parametrize("source", [LOOP, FUNCTION])
@pytest.mark.parametrize(
    ("given", "test", "told"),
    [
        ("verbose=True", "verbose", "hot"),
        ("verbose: int = 1", "verbose", "hot"),
        ("verbose=False", "verbose", "cold"),
        ("verbose", "verbose", "cold"),
        ("verbose=True", "verbose and step % 50 == 0", "cold"),
        ("verbose=2", "verbose > 1", "cold"),
    ],
)
def test_what_is_told_unless_somebody_says_otherwise_is_hot(source: str, given: str, test: str, told: str) -> None:
    asked = test.replace("verbose", "self.verbose") if source is LOOP else test
    assert list(heat(source.format(given=given, test=asked).encode(), "trainer.py").values()) == [told]


def test_a_flag_that_a_method_sets_too_stays_seldom() -> None:
    source = (
        LOOP.format(given="verbose=True", test="self.verbose")
        + "\n    def quiet(self):\n        self.verbose = False\n"
    )
    assert list(heat(source.encode(), "trainer.py").values()) == ["cold"]


def test_a_flag_that_asks_for_more_than_words_stays_seldom() -> None:
    source = FUNCTION.format(given="debug=True", test="debug")
    assert list(heat(source.encode(), "trainer.py").values()) == ["cold"]
