"""A rule and a rewrite dropped into their folders are asked, explained and tested: the pages of docs/development.md, done."""

import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from syncscope import rewrites, rules
from syncscope.linter import engine, rulesets
from syncscope.linter.config import Config
from syncscope.linter.examples import failures, plain

DOCS = Path(__file__).parents[2] / "docs" / "development.md"
NAME = "summed-list"


@pytest.fixture
def dropped_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[rules.Rule]:
    """The two examples of the page, in their folders."""
    page = DOCS.read_text(encoding="utf-8")
    for room, file in (("rules", "summed_list"), ("rewrites", "add_before_reading")):
        (example,) = re.findall(rf"  ```python\n(  # syncscope/{room}/{file}\.py\n.*?)\n  ```", page, re.DOTALL)
        (tmp_path / room).mkdir()
        (tmp_path / room / f"{file}.py").write_text(textwrap.dedent(example))
    for package in (rules, rewrites):
        folder = tmp_path / package.__name__.rpartition(".")[2]
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(folder)])
    forget()
    yield rules.builtin()[NAME]
    for module in ("syncscope.rules.summed_list", "syncscope.rewrites.add_before_reading"):
        sys.modules.pop(module, None)
    forget()


def forget() -> None:
    for known in (rulesets.ruleset, rulesets.claimants, rewrites.named):
        known.cache_clear()


def test_its_examples_hold(dropped_in: rules.Rule) -> None:
    assert len(rules.examples(NAME, dropped_in)) == 2
    assert list(failures(NAME, dropped_in, Config())) == []


def test_its_page_shows_the_rewrite(dropped_in: rules.Rule) -> None:
    page = rules.sections(NAME, dropped_in)
    assert "return sum(x.exp().tolist())  # <-- here" in page["Example"]
    assert "return x.exp().sum().item()" in page["Use instead"]


def test_the_rewrite_is_run_as_those_of_the_house_are(dropped_in: rules.Rule) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("hypothesis")
    from rules.equivalence import assert_equivalent

    (example,) = (e for e in rules.examples(NAME, dropped_in) if e.fixed is not None)
    assert_equivalent(plain(example.code), plain(example.fixed), example.inputs, example.safety, 40)


def test_it_adds_to_the_rule_that_speaks_of_the_same_wait(dropped_in: rules.Rule) -> None:
    (example,) = (e for e in rules.examples(NAME, dropped_in) if e.fixed is not None)
    found = engine.check("example.py", plain(example.code).encode(), Config(all=True)).findings
    assert [f.rule for f in found] == ["host-read", NAME]
