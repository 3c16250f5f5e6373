"""The documentation as pages: it is built without a warning, asks the network for nothing, and its sentences can be read."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").glob("*.md"))


def sentences(text: str) -> list[str]:
    """The sentences of a page without its code and tables; a heading or an item of a list is one, too."""
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    prose = "\n".join("" if line.lstrip().startswith(("|", "#")) else line for line in text.splitlines())
    blocks = re.split(r"\n\s*\n|\n\s*(?:[-*]|\d+\.)\s", prose)
    found = [one for block in blocks for one in re.split(r"(?<=[.?!])\s+", " ".join(block.split()))]
    return [one for one in found if len(one.split()) > 2]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_sentence_has_at_most_25_words_on_average(page):
    lengths = [len(one.split()) for one in sentences(page.read_text())]
    assert sum(lengths) / max(1, len(lengths)) <= 25


def test_measured_tables_are_of_the_data_that_is_here():
    done = subprocess.run([sys.executable, ROOT / "benchmarks" / "measured_page.py", "--check"], timeout=300)
    assert done.returncode == 0, "make docs"


def test_every_page_is_in_the_menu_once():
    named = re.findall(r"^\s+- (?:[^:\n]+: )?(\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert sorted(named) == [page.name for page in PAGES]


def test_the_glossary_has_at_most_twenty_words():
    rows = re.findall(r"^\| \*\*", (ROOT / "docs" / "glossary.md").read_text(), re.MULTILINE)
    assert 10 <= len(rows) <= 20


def test_it_is_built_without_a_warning_and_loads_nothing_from_others(tmp_path):
    pytest.importorskip("zensical", reason="not installed: pip install '.[views]'")
    for name in ("mkdocs.yml", "docs"):
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / name)
    built = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    pages = list((tmp_path / "build" / "site").glob("*.html"))
    assert {page.stem for page in PAGES} <= {page.stem for page in pages}
    for page in pages:
        assert not re.findall(
            r"<(?:script|link|img|iframe)[^>]+(?:src|href)=[\"']?(?:https?:)?//[^>]+", page.read_text()
        )
