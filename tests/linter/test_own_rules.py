"""Rules that users bring: found in a folder or behind an entry point, tested by their examples, explained like ours."""

import json
import re
from importlib import metadata
from pathlib import Path

import pytest

RULE = '''\
"""`nonzero` of a tensor, in the house style of Example Inc.

Why it waits
------------
The host counts.

Fix safety
----------
Safe: the same rows.
"""

from syncscope.model.finding import Edit, Fix, Safety
from syncscope.rules import Example, Severity

SEVERITY = Severity.WARNING
OPS = ("OP",)
SEEN_AS = ("aten::nonzero",)
EXAMPLES = (
    Example(
        """
        import torch

        def f(x: torch.Tensor):
            y = x.cuda()
            return y.tolist()  # !
        """,
        fixed="""
        import torch

        def f(x: torch.Tensor):
            y = x.cuda()
            return y.house_list()
        """,
        safety=Safety.SAFE,
    ),
    Example("f = lambda x: x.tolist()"),
)


def message(site, view):
    return "the house says no"


def rewrite(site, function):
    return Fix("house style", (Edit(site.span, "y.house_list()"),), Safety.SAFE)
'''


def own(door, rule: str = RULE, name: str = "host_read") -> None:
    """A rule on the ops of our `host-read`, whose place it takes where it has its name."""
    from syncscope.rules import builtin

    ops = repr(tuple(map(str, builtin()["host-read"].OPS)))
    door.write(f"house/{name}.py", rule.replace('("OP",)', ops))
    door.write("pyproject.toml", '[tool.syncscope.lint]\nrules = ["house"]\n')
    assert door("trust").out == f"trusted house: {name}.py\n"


def test_a_folder_of_rules_is_used(door):
    own(door)
    door.write("x.py", "import torch\n\n\ndef f(x: torch.Tensor):\n    y = x.cuda()\n    return y.tolist()\n")
    assert "the house says no [host-read]" in door("lint", "--all", "x.py").out
    assert door("lint", "--all", "--fix", "x.py").code == 0
    assert "y.house_list()" in (door.folder / "x.py").read_text()
    assert "house style of Example Inc." in door("explain", "host-read").out


def test_a_rule_on_a_wait_that_ours_speak_of_adds_to_them(door):
    own(door, name="house_style")
    door.write("x.py", "import torch\n\n\ndef f(x: torch.Tensor):\n    y = x.cuda()\n    return y.tolist()\n")
    ran = door("lint", "--all", "x.py")
    assert [rule for _, _, rule in ran.lines if rule != "blocking-upload"] == ["host-read", "house-style"]
    alone = door("lint", "--all", "--select", "house-style", "x.py")
    assert [rule for _, _, rule in alone.lines] == ["house-style"]


def test_a_rule_has_rewrites_of_ours_and_drafts_its_own(door):
    drafted = RULE.replace(
        'return Fix("house style", (Edit(site.span, "y.house_list()"),), Safety.SAFE)',
        'draft = new_draft(function)\n    draft.replace(site.node, "y.house_list()")\n'
        '    return draft.fix("house style", Safety.SAFE)',
    )
    own(door, drafted.replace("import Example,", "import new_draft, Example,"), name="house_style")
    assert door("test-rules").out == "house-style: 2 examples hold\n"
    ours = 'REWRITES = ("add_up_on_device",)\nEXAMPLES = ('
    own(door, RULE.replace("EXAMPLES = (", ours), name="house_style")
    code = "    for x in xs:\n        total += x.cuda().mean().item()\n    return total\n"
    door.write("x.py", f"import torch\n\n\ndef f(xs: list[torch.Tensor]):\n    total = 0.0\n{code}")
    assert "add up on the device" in door("lint", "--all", "--select", "house-style", "x.py").out


def test_what_a_fix_of_ones_own_changes_may_be_one_text(door):
    own(door, RULE.replace("Safety.SAFE)\n", 'Safety.UNSAFE, "it is the house\'s; no other")\n'), name="house_style")
    door.write("x.py", "import torch\n\n\ndef f(x: torch.Tensor):\n    y = x.cuda()\n    return y.tolist()\n")
    assert "it is the house's; no other" in door("lint", "--all", "--select", "house-style", "x.py").out


def test_a_rewrite_that_is_none_of_ours_is_named_with_the_nearest(door):
    own(door, RULE.replace("EXAMPLES = (", 'REWRITES = ("add_up_on_devise",)\nEXAMPLES = ('), name="house_style")
    ran = door("test-rules")
    assert ran.code == 2
    assert "did you mean 'add-up-on-device'?" in ran.err


def test_examples_that_hold_are_said_to(door):
    own(door)
    ran = door("test-rules")
    assert (ran.code, ran.out) == (0, "host-read: 2 examples hold\n")
    assert door("test-rules", "house").code == 0


def test_examples_that_do_not_hold_are_shown_with_their_lines(door):
    own(door, RULE.replace("y.tolist()  # !", "y.tolist()").replace("y = x.cuda()", "y = x.cuda()  # !", 1))
    ran = door("test-rules")
    assert ran.code == 1
    assert "not flagged, though marked: line 4: y = x.cuda()" in ran.out
    assert "flagged, though not marked: line 5: return y.tolist()" in ran.out


def test_a_fix_that_is_not_as_shown_is_a_diff(door):
    own(door, RULE.replace('"y.house_list()"', '"y.other()"'))
    ran = door("test-rules")
    assert ran.code == 1
    assert "-    return y.house_list()\n" in ran.out
    assert "+    return y.other()\n" in ran.out


def test_a_rule_without_its_parts_is_named_by_file(door):
    own(door, RULE.replace("SEVERITY = ", "SEVERE = "))
    ran = door("test-rules")
    assert ran.code == 2
    assert "host_read.py: the rule 'host-read' has no SEVERITY" in ran.err


def test_without_rules_there_is_nothing_to_test(door):
    assert "no rules to test" in door("test-rules").err


def test_an_entry_point_brings_rules(door, monkeypatch):
    own(door)
    (door.folder / "pyproject.toml").unlink()
    (door.folder / "house").rename(door.folder / "housepkg")
    monkeypatch.syspath_prepend(str(door.folder))
    point = metadata.EntryPoint("host_read", "housepkg.host_read", "syncscope.rules")
    monkeypatch.setattr("syncscope.rules.entry_points", lambda group: [point] if group == "syncscope.rules" else [])
    door.write("x.py", "import torch\n\n\ndef f(x: torch.Tensor):\n    return x.cuda().tolist()\n")
    assert "the house says no" in door("lint", "--all", "x.py").out


def test_a_rule_that_cannot_be_imported_is_the_users_to_mend(door):
    own(door, RULE.replace("SEVERITY =", "import no_such_module\n\nSEVERITY ="))
    door.write("x.py", "import torch\n\n\ndef f(x: torch.Tensor):\n    return x.cuda().item()\n")
    ran = door("lint")
    line = RULE[: RULE.index("SEVERITY =")].count("\n") + 1
    assert ran.code == 2
    assert f"house/host_read.py:{line}: ModuleNotFoundError: No module named 'no_such_module'" in ran.err


@pytest.mark.parametrize(
    ("severity", "said"),
    [
        ("Severity.ERROR", "AttributeError: ERROR; choose from: WARNING, NOTE"),
        ("'error'", "SEVERITY of the rule 'host-read' is 'error'; it is Severity.WARNING or Severity.NOTE"),
    ],
)
def test_a_rule_that_cannot_be_asked_hides_what_the_others_find(door, severity, said):
    own(door, RULE.replace("Severity.WARNING", severity))
    door.write("x.py", HOT)
    ran = door("lint", "x.py")
    assert ran.code == 2
    assert said in ran.err
    assert [rule for _, _, rule in ran.lines] == ["host-read"]


RAISES = RULE.replace('    return "the house says no"', '    return {}["boo"]')
HOT = (
    "import torch\n\n\ndef forward(x: torch.Tensor):\n    y = x.cuda()\n    print(y.tolist())\n    return y.tolist()\n"
)


def line_of(text: str, rule: str) -> int:
    return rule[: rule.index(text)].count("\n") + 1


def test_a_rule_that_raises_is_named_by_file_and_line_and_the_others_are_asked(door):
    own(door, RAISES, name="house_style")
    for name in ("a.py", "b.py"):
        door.write(name, HOT)
    at = f"house/house_style.py:{line_of('{}[', RAISES)}"
    for args in (("lint", "a.py"), ("lint", "a.py"), ("lint", "--fix", "a.py"), ("lint", "--no-cache", "a.py")):
        ran = door(*args)
        assert ran.code == 2
        assert f"error: {at}: KeyError: 'boo': your rule house-style failed at a.py:6\n" in ran.err
        assert "host-read" in [rule for _, _, rule in ran.lines], "the other rules are asked"
        assert "please report" not in ran.err
    assert ran.err.count("KeyError") == 1
    assert "KeyError: 'boo': your rule house-style failed at a.py:6, and in 1 more file\n" in door("lint").err
    ran = door("lint", "-", stdin=HOT)
    assert (ran.code, "failed at -:6" in ran.err, "host-read" in ran.out) == (2, True, True)


def test_a_rewrite_that_raises_leaves_its_finding(door):
    rule = RULE.replace('    return Fix("house', '    site.nothing\n    return Fix("house')
    own(door, rule, name="house_style")
    door.write("a.py", HOT)
    ran = door("lint", "a.py")
    assert f"house/house_style.py:{line_of('site.nothing', rule)}: AttributeError: " in ran.err
    assert "house-style" in [rule for _, _, rule in ran.lines]


def test_a_rule_that_gives_something_else_is_named(door):
    own(door, RULE.replace('return "the house says no"', "return True"), name="house_style")
    door.write("a.py", HOT)
    assert "house_style.py: TypeError: message gave True, which is no str: your rule" in door("lint", "a.py").err


def test_a_rule_that_raises_at_its_examples_fails_there(door):
    own(door, RAISES, name="house_style")
    ran = door("test-rules")
    assert ran.code == 1
    assert (
        f"house_style.py:{line_of('{}[', RAISES)}: KeyError: 'boo': your rule house-style failed at example" in ran.out
    )


QUIET = '''\
"""No `if` on a tensor in this house."""

from syncscope.rules import Example, Op, Severity

SEVERITY = Severity.WARNING
OPS = (Op.CONDITION,)
SEEN_AS = ("aten::is_nonzero",)
EXAMPLES = (Example("import torch\\n\\ndef f(x: torch.Tensor):\\n    if x.sum() > 0:  # !\\n        return x"),)


def message(site, view):
    return "the house says no"
'''


def test_a_rule_without_rewrites_fails_by_its_severity(door):
    """Ours would be told in a line: the value is needed where it is, and there is no fix."""
    own(door, QUIET, "no_if")
    door.write(
        "x.py", "import torch\n\n\ndef helper(x: torch.Tensor):\n    if x.cuda().sum() > 0:\n        print('so')\n"
    )
    ran = door("lint", "--select", "no-if", "x.py")
    assert ran.code == 1, ran.out
    assert "also waits" not in ran.out
    assert [(line, rule) for _, line, rule in ran.lines] == [(5, "no-if")]
    sarif = json.loads(door("lint", "--select", "no-if", "--format", "sarif", "x.py").out)
    assert [(r["ruleId"], r["level"]) for r in sarif["runs"][0]["results"]] == [("no-if", "warning")]


def test_a_rule_of_ones_own_may_be_a_note(door):
    own(door, QUIET.replace("Severity.WARNING", "Severity.NOTE"), "no_if")
    door.write(
        "x.py", "import torch\n\n\ndef helper(x: torch.Tensor):\n    if x.cuda().sum() > 0:\n        print('so')\n"
    )
    ran = door("lint", "--select", "no-if", "x.py")
    assert "[no-if]" in ran.out


def test_seen_as_may_be_left_out(door):
    own(door, QUIET.replace('SEEN_AS = ("aten::is_nonzero",)\n', ""), "no_if")
    assert door("test-rules").out == "no-if: 1 example holds\n"
    assert "no `if` on a tensor" in door("explain", "no-if").out.lower()


def test_a_marked_line_that_waits_otherwise_says_how(door):
    own(door, QUIET.replace("Op.CONDITION", "Op.ITEM"), "no_if")
    ran = door("test-rules")
    assert ran.code == 1
    assert "line 4 waits by `condition`: is that in OPS?" in ran.out


def test_all_waits_are_listed(door):
    from syncscope.rules import Op

    listed = door("test-rules", "--ops").out
    assert all(f"  {op} " in listed and op.words in listed for op in Op)


def test_what_the_document_promises_is_public():
    import re
    from pathlib import Path

    from syncscope import rules

    page = (Path(__file__).parents[2] / "docs" / "lint.md").read_text()
    (said,) = re.findall(r"and so are (.*?) as names of `syncscope.rules`", page, re.DOTALL)
    names = re.findall(r"`(\w+)`", said)
    assert {"Op", "around", "seen", "Fix"} <= {*names} <= {*rules.__all__}


def test_the_rule_that_the_documents_show_keeps_what_its_examples_promise(door):
    """What was shown was a rule of ours, whose rewrite a user has not."""
    page = (Path(__file__).parents[2] / "docs" / "how-do-i.md").read_text()
    (shown,) = re.findall(r"```python\n# lint_rules/(\w+\.py)\n(.*?)```", page, re.DOTALL)
    door.write(f"lint_rules/{shown[0]}", shown[1])
    (said,) = re.findall(r"\$ syncscope test-rules lint_rules\n(.+)", page)
    tested = door("test-rules", "lint_rules")
    assert (tested.code, tested.out.strip()) == (0, said)
    door.write("train.py", "import torch\n\n\ndef forward(x: torch.Tensor):\n    return sum(x.exp().tolist())\n")
    assert "summed-list" in door("lint", "--rules", "lint_rules", "train.py").out
