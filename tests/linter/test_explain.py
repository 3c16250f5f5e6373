"""`syncscope explain`: one text, on the terminal and in the docs."""

from pathlib import Path

import pytest

from syncscope import rules

DOCS = Path(__file__).parents[2] / "docs"


def test_a_rule_is_explained_with_its_example_and_the_fix_as_a_diff(door):
    out = door("explain", "nonzero").out
    assert out.startswith("# nonzero\n")
    assert "## Why it waits\n" in out
    assert "```python\n" in out
    assert "```diff\n" in out
    assert "In a trace: `aten::nonzero`" in out


def test_without_a_name_every_rule_is_listed_with_its_summary(door):
    out = door("explain").out
    for name, rule in rules.builtin().items():
        assert f"  {name} " in out
        assert rule.__doc__.partition("\n")[0] in out
    assert "unused-allow" in out


def test_what_the_engine_reports_is_explained_too(door):
    assert "silences nothing" in door("explain", "unused-allow").out
    assert "cannot be parsed" in door("explain", "syntax-error").out


@pytest.mark.parametrize(
    ("word", "pages"),
    [
        ("mask_read", ["boolean-mask-read"]),
        ("ocl_fallback", ["cpu-fallback"]),
        ("bool", ["host-read", "tensor-in-condition"]),
        ("number_write", ["number-at-positions"]),
        ("cpu", ["host-copy"]),
    ],
)
def test_a_word_of_a_table_leads_to_the_pages_of_its_rules(door, word, pages):
    out = door("explain", word).out
    assert [page for page in rules.builtin() if f"# {page}\n" in out.splitlines(keepends=True)] == sorted(pages)


def test_an_operator_that_many_rules_speak_of_lists_them(door):
    out = door("explain", "aten::item").out
    assert "  host-read " in out
    assert "  tensor-as-size " in out
    assert "  unique " not in out
    assert "# host-read" not in out


def test_a_misspelt_rule_is_told_the_nearest(door):
    ran = door("explain", "nonzeros")
    assert ran.code == 2
    assert "did you mean 'nonzero'?" in ran.err


def test_the_reference_has_every_rule_once_and_every_link_a_place():
    reference = (DOCS / "rules.md").read_text()  # which is what the command says: below
    for name in rules.builtin():
        assert reference.count(f"\n### {name}\n") == 1
        assert reference.count(f"(#{name})") == 1


def test_the_reference_in_the_docs_is_up_to_date(door):
    assert (DOCS / "rules.md").read_text() == door("explain", "--all").out, "run `make docs`"


def test_a_family_lists_its_rules(door):
    ran = door("explain", "copy")
    assert ran.out.startswith("copy:\n")
    listed = [line.split()[0] for line in ran.out.splitlines()[1:]]
    assert "blocking-upload" in listed
    assert "nonzero" not in listed
    assert door("explain", "host-read").out.startswith("# host-read\n"), "the rule, not its family"
    assert door("explain", "host-read-family").out.startswith("host read:\n")
    assert door("explain", "--all", "copy").code == 2
