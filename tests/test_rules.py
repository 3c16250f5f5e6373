"""Every example of every rule: exactly the marked lines, the fixed text, and the same results before and after."""

import ast
import inspect
import re
import subprocess
import sys
from email.message import Message
from functools import cache
from pathlib import Path

import pytest
from rules.driver import findings, fixed

from syncscope import rewrites, rules
from syncscope.analysis.join import Join
from syncscope.discover import names
from syncscope.errors import UserError
from syncscope.linter.config import Config
from syncscope.linter.examples import failures_of
from syncscope.model.finding import Finding, Safety, Stays
from syncscope.model.heat import Reason
from syncscope.model.ops import Op
from syncscope.rules import Example, Rule

RULES = rules.builtin()
EXAMPLES = [
    pytest.param(name, rule, example, id=f"{name}-{number}")
    for name, rule in RULES.items()
    for number, example in enumerate(rules.examples(name, rule))
]
FIXABLE = [p for p in EXAMPLES if p.values[2].fixed is not None]
RUNNABLE = [p for p in FIXABLE if p.values[2].inputs]
ADVISED = [p for p in EXAMPLES if p.values[2].instead is not None]
MARK = re.compile(r"  # !$", re.MULTILINE)


@cache
def found_in(code: str, name: str) -> tuple[Finding, ...]:
    """What a rule finds in an example, of which each test below asks something else."""
    return tuple(findings(code, name))


def plain(code: str) -> str:
    return MARK.sub("", inspect.cleandoc(code)) + "\n"


def marked(code: str) -> list[int]:
    return [n for n, line in enumerate(inspect.cleandoc(code).splitlines(), 1) if line.endswith("  # !")]


@pytest.mark.parametrize(("name", "rule", "example"), EXAMPLES)
def test_exactly_the_marked_lines_are_flagged(name: str, rule: Rule, example: Example) -> None:
    found = sorted({f.place.line for f in found_in(plain(example.code), name)})
    if rules.family(rule) is rules.Family.FALLBACK and not found:
        pytest.skip("the inference does not speak of fallbacks")
    assert found == marked(example.code)


@pytest.mark.parametrize(("name", "rule", "example"), EXAMPLES)
def test_the_fix_is_as_shown(name: str, rule: Rule, example: Example) -> None:
    offered = {f.fix.safety for f in found_in(plain(example.code), name) if f.fix is not None}
    assert offered == ({example.safety} if example.safety else set())
    if example.fixed is not None:
        after = fixed(plain(example.code), name)
        assert after == plain(example.fixed)
        ast.parse(after)
        assert fixed(after, name) == after


@pytest.mark.parametrize(("name", "rule", "example"), [p for p in ADVISED if p.values[2].safety])
def test_what_is_offered_beside_a_fix_is_as_shown(name: str, rule: Rule, example: Example) -> None:
    offered = [f.fix.also for f in found_in(plain(example.code), name) if f.fix is not None]
    assert offered
    assert all(fix is not None and fix.safety is Safety.SUGGEST for fix in offered)
    assert not list(
        failures_of(example, Config(select=(name,), all=True, measured=True, min_confidence="low", backend="ocl"))
    )


@pytest.mark.parametrize(("name", "rule", "example"), FIXABLE)
def test_fixed_code_waits_less(name: str, rule: Rule, example: Example) -> None:
    assert example.fixed is not None
    assert waits(plain(example.fixed), name) < waits(plain(example.code), name)


@pytest.mark.parametrize(("name", "rule", "example"), ADVISED)
def test_what_to_write_instead_waits_less(name: str, rule: Rule, example: Example) -> None:
    assert example.fixed is None
    assert waits(plain(example.instead), name) < waits(plain(example.code), name)


def holds(node: ast.expr, line: int, column: int) -> bool:
    """Whether code begins there, in columns from 1, that is of an expression."""
    end = node.end_lineno or 0, node.end_col_offset or 0
    return (node.lineno, node.col_offset + 1) <= (line, column) <= end


def waits(code: str, name: str) -> int:
    """How often the host waits, if a loop runs ten times and an `if` in it once, as what is kept, or behind a flag or `%`."""
    repeats = (ast.ListComp, ast.DictComp, ast.SetComp, ast.GeneratorExp)
    count = 0
    for finding in found_in(code, name):
        line, times = finding.place.line, 1.0 if finding.heat.reason is Reason.MOVED else 10.0
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, repeats) and holds(node, line, finding.column):
                times *= 1 if holds(node.generators[0].iter, line, finding.column) else 10  # asked for once
            if isinstance(node, ast.FunctionDef) and node.lineno <= line <= (node.end_lineno or 0):
                times *= 0.1 if any("cache" in ast.unparse(d) for d in node.decorator_list) else 1
            first = ast.unparse(node.values[0]) if isinstance(node, ast.BoolOp) and node.lineno <= line else ""
            if " is " in first or " % " in first or (first and "(" not in first):  # or a flag
                times *= 0.1
            body = getattr(node, "body", None)
            if isinstance(body, list) and body[0].lineno <= line <= body[-1].end_lineno:
                times *= 10 if isinstance(node, (ast.For, ast.While)) else 0.1 if isinstance(node, ast.If) else 1
        count += round(times)
    return count


@pytest.mark.parametrize(("name", "rule", "example"), FIXABLE)
def test_what_is_not_safe_says_what_changes(name: str, rule: Rule, example: Example) -> None:
    for finding in found_in(plain(example.code), name):
        if finding.fix is not None:
            assert bool(finding.fix.changes) == (finding.fix.safety is not Safety.SAFE)
            assert finding.fix.title


@pytest.mark.parametrize(("name", "rule"), RULES.items())
def test_a_rule_explains_itself(name: str, rule: Rule) -> None:
    page = rules.sections(name, rule)
    assert page[""]
    assert page[""].endswith(".")
    assert page["Why it waits"]
    assert page["When a fix pays"], "and when it does not"
    assert "Example" in page
    assert "# !" not in page["Example"]
    assert "# <-- here" in page["Example"]
    assert ("Fix safety" in page) == any(e.fixed for e in rules.examples(name, rule))
    assert "Use instead" in page, "a page says what to do"
    assert any(marked(e.code) for e in rules.examples(name, rule))


def test_a_page_has_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    name, rule = "nonzero", RULES["nonzero"]
    rules.documentation.cache_clear()
    monkeypatch.setattr(rules, "metadata", lambda _: Message())
    assert rules.hazard(name, rule).address == ""
    assert rules.page_address(name, rule) == Path(rule.__file__ or "").as_uri(), "the file begins with the page"
    rules.documentation.cache_clear()
    told = Message()
    told["Project-URL"] = "Documentation, https://example.org/docs/"
    monkeypatch.setattr(rules, "metadata", lambda _: told)
    assert (
        rules.page_address(name, rule)
        == rules.hazard(name, rule).address
        == "https://example.org/docs/rules.md#nonzero"
    )
    rules.documentation.cache_clear()


def test_each_op_has_one_rule_that_comes_with_syncscope() -> None:
    claimed = [Op(op) for rule in RULES.values() for op in rule.OPS]
    assert len(claimed) == len(set(claimed))


def test_the_ops_of_a_rule_are_of_one_family() -> None:
    assert [name for name, rule in RULES.items() if len({Op(op).family for op in rule.OPS}) > 1] == []


def test_every_wait_has_a_rule() -> None:
    known = {op for name, rule in RULES.items() for op in rules.hazard(name, rule).seen_as}
    assert set(Op) - known == {Op.SYNC}  # of that one nothing is known


def test_each_rewrite_is_listed_and_each_of_its_examples_is_of_a_rule_that_lists_it() -> None:
    listed = {name: [*getattr(rule, "REWRITES", ())] for name, rule in RULES.items()}
    assert {each for names in listed.values() for each in names} == {n.replace("-", "_") for n in names(rewrites)}
    for each in names(rewrites):
        of = [name for name, found in listed.items() if each.replace("-", "_") in found]
        said = {e.rule for e in rewrites.named(each).EXAMPLES}
        assert said <= set(of) if len(of) > 1 else said <= {""}, each


def test_each_rewrite_is_shown() -> None:
    for each in names(rewrites):
        assert rewrites.named(each).EXAMPLES, f"{each} has no example"
        assert isinstance(getattr(rewrites.named(each), "STAYS", Stays.NONE), Stays), each


@pytest.mark.parametrize(
    ("op", "name"),
    [
        ("item", "host-read"),
        ("bool", "tensor-in-condition"),
        ("nonzero", "nonzero"),
        ("index", "boolean-mask-read"),
        ("mask_read", "boolean-mask-read"),
        ("index_put_", "boolean-mask-write"),
        ("to", "host-copy"),
        ("synchronize", "explicit-synchronize"),
        ("format", "formatted-tensor"),
        ("read_buffer", "host-copy"),
        ("write_image", "blocking-upload"),
    ],
)
def test_what_a_trace_shows_has_its_rule(op: str, name: str) -> None:
    hazards = [rules.hazard(name, rule) for name, rule in RULES.items()]
    assert Join((), hazards).rule(op, None) == name


def test_rules_cost_little_to_import() -> None:
    code = "import sys, syncscope.rules as r; r.builtin(); print({'libcst', 'torch', 'numpy'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


OWN = '''\
"""A call of `slow`.

Why it waits
------------
It is slow.
"""

from syncscope.rules import Example, Severity

SEVERITY = Severity.NOTE
OPS = ("synchronize",)
SEEN_AS = ()
EXAMPLES = (Example("slow()  # !"),)


def message(site, view):
    return f"{view.quote(site.node)} is slow"
'''


def test_a_folder_of_own_rules(tmp_path: Path) -> None:
    (tmp_path / "slow_call.py").write_text(OWN)
    (tmp_path / "_helper.py").write_text("raise RuntimeError")
    found = rules.from_folder(tmp_path)
    assert list(found) == ["slow-call"]
    assert rules.claims(RULES | found)["synchronize"] == ("explicit-synchronize", "slow-call")
    assert rules.hazard("slow-call", found["slow-call"]).summary == "A call of `slow`."
    page = rules.sections("slow-call", found["slow-call"])
    assert page["Why it waits"] == "It is slow."
    assert page["Example"] == "```python\nslow()  # <-- here\n```"
    assert "Use instead" not in page


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (OWN.replace("SEVERITY = Severity.NOTE\n", ""), "has no SEVERITY"),
        (OWN.replace("def message", "def mesage"), "has no message"),
        (OWN.replace('("synchronize",)', "()"), "names no wait"),
        (OWN.replace('("synchronize",)', '"synchronize"'), "names no wait"),
        (OWN.replace("synchronize", "syncronize"), "slow_call.py: OPS has 'syncronize', which is no wait"),
        ("def f(:", "slow_call.py:1: invalid syntax"),
    ],
)
def test_a_rule_that_is_none_is_named(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "slow_call.py").write_text(text)
    with pytest.raises(UserError) as error:
        rules.from_folder(tmp_path)
    assert said in error.value.message
    assert "slow_call" in error.value.message


def test_an_op_that_is_no_wait_is_told_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "slow_call.py").write_text(OWN.replace("synchronize", "syncronize"))
    with pytest.raises(UserError) as error:
        rules.from_folder(tmp_path)
    assert error.value.hint == "did you mean 'synchronize'?"


def test_a_folder_that_is_not_there() -> None:
    with pytest.raises(UserError, match="no such folder of rules"):
        rules.from_folder(Path("nowhere"))


def test_an_own_rule_on_a_known_op_comes_after_ours(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OWN.replace("synchronize", "nonzero"))
    assert rules.claims(RULES | rules.from_folder(tmp_path))["nonzero"] == ("nonzero", "mine")
