"""No file that Python can parse makes the inference fail, and none that it cannot."""

import ast
import sysconfig
from pathlib import Path

import pytest
from effort import draws
from hypothesis import given, settings
from hypothesis import strategies as st

from syncscope.tensors.interpret import sites

STDLIB = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
TAIL = b"\n# torch\n"  # past the prefilter


@pytest.mark.parametrize("slot", range(4))
def test_no_file_of_the_standard_library_makes_it_fail(slot: int) -> None:
    for path in STDLIB[slot::16]:
        assert isinstance(sites(path.read_bytes() + TAIL, str(path)), list)


@pytest.mark.parametrize(
    "source",
    [
        "x = " + "(" * 300 + "1" + ")" * 300,
        "x = " + "-" * 5000 + "1",
        "x = " + "+".join(["1"] * 5000),
        "x = a" + ".b" * 3000,
        "x = a" + "[0]" * 3000,
        "\n".join("    " * i + "if x:" for i in range(90)) + "\n" + "    " * 90 + "pass",
        "if a: pass\n" + "elif b: pass\n" * 1500,
        "print 'python 2'",
        "<<<<<<< HEAD\nx = 1\n=======\nx = 2\n>>>>>>> branch",
        "x = '\x00'",
        "",
        "def f(: pass",
    ],
    ids=lambda s: s[:12],
)
def test_odd_files_give_sites_or_a_syntax_error(source: str) -> None:
    try:
        found = sites(source.encode() + TAIL, "odd.py")
    except SyntaxError as error:
        where = error.filename
    else:
        where = "odd.py" if isinstance(found, list) else ""
    assert where == "odd.py"


NAMES = st.sampled_from(["x", "y", "torch", "self", "mask", "f"])
ATOMS = st.one_of(
    NAMES, st.integers(-2, 9).map(str), st.sampled_from(["None", "True", "'s'", "torch.ones(3)", "x.nonzero()", "..."])
)


def grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    two = st.tuples(inner, inner)
    return st.one_of(
        two.map(lambda p: f"({p[0]} + {p[1]})"),
        two.map(lambda p: f"({p[0]} < {p[1]})"),
        two.map(lambda p: f"({p[0]} and {p[1]})"),
        two.map(lambda p: f"({p[0]} if {p[1]} else {p[0]})"),
        two.map(lambda p: f"{p[0]}[{p[1]}]"),
        two.map(lambda p: f"{p[0]}({p[1]}, *{p[0]}, dim={p[1]})"),
        two.map(lambda p: f"{p[0]}.max({p[1]})"),
        two.map(lambda p: f"[{p[0]} for x in {p[1]} if x]"),
        two.map(lambda p: f"{{{p[0]}: {p[1]}, **{p[0]}}}"),
        two.map(lambda p: f"torch.where({p[0]}, {p[1]}, 0)"),
        two.map(lambda p: f"(lambda x, *y: {p[0]})({p[1]})"),
        inner.map(lambda p: f"f'{{{p}}}'" if "'" not in p and "{" not in p else p),
    )


@settings(max_examples=draws(60))
@given(st.lists(st.recursive(ATOMS, grown, max_leaves=8), min_size=1, max_size=4))
def test_any_expression_can_be_followed(expressions: list[str]) -> None:
    lines = [f"    x, (y, *mask) = {e}, {e}\n    x[{e}] = {e}\n    if {e}: return {e}" for e in expressions]
    source = "import torch\ndef f(self, x, y=1, *mask):\n" + "\n".join(lines)
    try:
        ast.parse(source)
    except SyntaxError:
        return
    assert isinstance(sites(source.encode(), "any.py"), list)
