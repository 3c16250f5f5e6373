"""`# syncscope: allow[rule] reason`, noqa, --add-allow, and comments that silence nothing."""

import pytest
from calls import grows_at_most
from linter.conftest import LOOP, MASKS, READS

from syncscope.linter import suppressions
from syncscope.linter.source import SourceFile


def commented(comment: str) -> str:
    return READS.replace("print(loss.item())", f"print(loss.item())  {comment}")


@pytest.mark.parametrize(
    "comment",
    [
        "# syncscope: allow[host-read] once a step is fine",
        "# syncscope: allow[nonzero, host-read]",
        "#syncscope:allow[host-read]",
        "# syncscope: allow  everything here",
        "# noqa",
        "# NOQA: host-read",
        "# noqa: E501,host-read",
        "# type: ignore  # noqa",
        "# NoQA",
        "#NoQA because of the log",
        "# nOqA : host-read",
    ],
)
def test_a_comment_lets_a_finding_stand(door, comment):
    door.write("train.py", commented(comment))
    ran = door("lint", "--ignore", "unused-allow")
    assert ran.lines == []
    assert "1 allowed by comments" in ran.err


@pytest.mark.parametrize(
    "comment",
    [
        "# syncscope: allow[nonzero]",
        "# noqa: E501",
        "# synscope: allow",
        "# noqa:E501",
        "# NoQA : E501",
        "# nonoqa",
        "# against cancellation  # NoQA",
    ],
)
def test_a_comment_about_something_else_does_not(door, comment):
    door.write("train.py", commented(comment))
    assert ("train.py", 11, "host-read") in door("lint").lines


@pytest.mark.parametrize("above", ["# type: (Tensor) -> None # noqa", "# noqa"])
def test_a_bare_noqa_on_a_line_of_its_own_is_of_that_line(door, above):
    """As the comments of types in detr's `util/misc.py`; one that names a rule of ours is meant for the statement below."""
    code = READS.replace("print(loss.item())", f"{above}\n        print(loss.item())")
    door.write("train.py", code)
    assert ("train.py", 12, "host-read") in door("lint").lines
    door.write("train.py", code.replace("noqa", "noqa: host-read"))
    assert door("lint").lines == []


def test_statistics_list_what_comments_let_stand(door):
    door.write("train.py", commented("# noqa"))
    assert "allowed by comments:\ntrain.py:11: host-read\n" in door("lint", "--statistics").out


def test_words_in_a_string_are_no_comment(door):
    door.write("train.py", READS.replace("print(loss", 'print("# syncscope: allow[host-read]", loss'))
    assert door("lint").lines == [("train.py", 11, "host-read")]


def test_a_comment_speaks_of_the_whole_statement(door):
    before = READS.replace(
        "print(loss.item())", "print(\n            loss.item(),\n        )  # syncscope: allow[host-read]"
    )
    door.write("before.py", before)
    inside = READS.replace(
        "print(loss.item())", "print(  # syncscope: allow[host-read]\n            loss.item(),\n        )"
    )
    door.write("inside.py", inside)
    above = READS.replace(
        "print(loss.item())", "# syncscope: allow[host-read]\n        print(\n            loss.item())"
    )
    door.write("above.py", above)
    assert door("lint").lines == []


def test_a_comment_above_the_first_statement_of_a_block_speaks_of_that_statement(door):
    code = """\
    import torch

    def f(x: torch.Tensor):
        # syncscope: allow[host-read]
        if x.cuda().sum().item() > (
            3
        ):
            # syncscope: allow[host-read] more

            return x.cuda().item()
    """
    door.write("x.py", code)
    assert door("lint", "--all").lines == []


def test_an_allow_is_written_to_the_head_and_not_to_a_comment_below_it(door):
    code = "import torch\n\n\ndef f(x: torch.Tensor):\n    while x.cuda().item():\n        # go on\n        x = x - 1\n"
    path = door.write("x.py", code)
    door("lint", "--all", "--add-allow")
    assert "    while x.cuda().item():  # syncscope: allow[host-read" in path.read_text()
    assert door("lint", "--all").lines == []


def test_a_comment_at_the_head_of_a_loop_does_not_speak_of_its_body(door):
    door.write("train.py", READS.replace("in loader:", "in loader:  # syncscope: allow[host-read]"))
    assert door("lint").lines == [("train.py", 5, "unused-allow"), ("train.py", 11, "host-read")]


def test_an_unused_comment_is_reported_and_taken_away(door):
    path = door.write(
        "x.py", "import torch\n\n# syncscope: allow[nonzero]\nx = 1  # syncscope: allow[unique] why\ny = 2  # noqa\n"
    )
    assert door("lint").lines == [("x.py", 3, "unused-allow"), ("x.py", 4, "unused-allow")]
    door("lint", "--fix")
    assert path.read_text() == "import torch\n\nx = 1\ny = 2  # noqa\n"


def test_a_comment_is_not_called_unused_when_its_rule_was_not_asked(door):
    door.write("train.py", commented("# syncscope: allow[host-read]"))
    assert door("lint", "--select", "nonzero,unused-allow").lines == []


def test_a_comment_whose_finding_is_cold_or_unsure_is_not_unused(door):
    code = "import torch\n\n\ndef save(x):\n    return x.cuda().item()  # syncscope: allow[host-read]\n"
    door.write("x.py", code)
    assert door("lint", "--min-confidence", "high").lines == []


def test_add_allow_silences_all_and_says_why(door):
    path = door.write("train.py", READS)
    loss = door.write("loss.py", MASKS.replace("as_tuple=True)", "as_tuple=True)  # a mask"))
    ran = door("lint", "--add-allow", "--reason", "logged on purpose")
    assert "2 findings allowed" in ran.err
    assert "print(loss.item())  # syncscope: allow[host-read] logged on purpose\n" in path.read_text()
    assert "# a mask  # syncscope: allow[nonzero] logged on purpose\n" in loss.read_text()
    assert door("lint").lines == []


def test_add_allow_joins_a_comment_that_is_there(door):
    code = "import torch\n\n\ndef f(x: torch.Tensor):\n    x = x.cuda()\n    return x.nonzero().tolist()  "
    code += "# syncscope: allow[nonzero] k\n"
    path = door.write("x.py", code)
    door("lint", "--all", "--add-allow", "--ignore", "unused-allow")
    assert "# syncscope: allow[nonzero, host-read] k\n" in path.read_text()
    assert door("lint", "--all").lines == []


@pytest.mark.parametrize(
    "repeated",
    [
        "# syncscope: allow[",
        "# syncscope: allow[host-read] why ",
        "# noqa: host-read ",
        "x.item()  # syncscope: allow[\n",
    ],
)
def test_however_many_comments_take_time_in_proportion(repeated):
    def read(code: bytes) -> None:
        source = SourceFile.of("a.py", code)
        found = suppressions.comments(source)
        assert all(code[c.span.start : c.span.start + 1] == b"#" for c in found)

    assert grows_at_most(read, 500, lambda n: (repeated * n).encode())
    assert suppressions.ALLOW.pattern.count("[^") == 2, "neither reads past the next comment"


def test_one_add_allow_silences_what_the_first_finding_of_a_statement_had_hidden(door):
    code = """
        import torch

        def forward(x, labels, size: int):
            mask = torch.zeros(8, 8, device="cuda")
            mask[labels.cuda(), torch.arange(8)] = size
            return mask
    """
    path = door.write("x.py", code)
    assert len(door("lint").lines) == 1, "two rules are at this statement, and one is told"
    assert "2 findings allowed" in door("lint", "--add-allow", "--reason", "known").err
    assert "] = size  # syncscope: allow[number-at-positions, host-tensor-as-index] known\n" in path.read_text()
    assert door("lint").lines == []


def test_add_allow_leaves_alone_what_a_baseline_knows(door):
    path = door.write("train.py", READS)
    door("lint", "--write-baseline", "known.json")
    path.write_text(READS.replace("print(loss.item())", "print(loss.item())\n        print(labels.max().item())"))
    assert "1 finding allowed" in door("lint", "--add-allow", "--baseline", "known.json").err
    assert path.read_text().count("allow[") == 1
    assert door("lint", "--baseline", "known.json").code == 0


SHARED = """\
import torch


def step(x: torch.Tensor, y: torch.Tensor, idx: list[int]):
    x, y = x.cuda(), y.cuda()
    a = x[torch.tensor(idx, device=x.device)]
    b = y[torch.tensor(idx, device=x.device)]{}
    return a.sum() + b.sum()
"""


def test_no_command_takes_away_what_a_comment_lets_stand_in_another_statement(door):
    """One fix is made of both lines; the comment went with it."""
    door.write("a.py", SHARED.format(""))
    assert "it takes away" not in door("lint", "--all", "a.py").out
    code = SHARED.format("  # syncscope: allow[tensor-literal-on-device] small")
    path = door.write("a.py", code)
    ran = door("lint", "--all", "--fix", "--unsafe-fixes", "a.py")
    assert path.read_text() == code
    assert "fix (suggest, --diff)" in ran.out
    assert "it takes away what a comment lets stand in line 7" in ran.out


def test_an_allow_with_empty_brackets_silences_nothing(door):
    door.write("train.py", commented("# syncscope: allow[] logged"))
    ran = door("lint", "--ignore", "nonzero")
    assert [rule for _, _, rule in ran.lines] == ["host-read", "unused-allow"]
    assert "`allow[]` names no rule" in ran.out
    door("lint", "--fix")
    assert "allow[] logged" in (door.folder / "train.py").read_text(), "somebody meant something by it"
    door("lint", "--add-allow", "--ignore", "unused-allow")
    assert "# syncscope: allow[host-read] logged" in (door.folder / "train.py").read_text()
    door.write("a.cl", LOOP.replace("old != assumed);", "old != assumed);  // syncscope: allow[]"))
    assert "float-compare-and-swap" in door("lint", "--all", "a.cl").out


def test_a_misspelt_rule_in_an_allow_has_the_fix_that_names_the_one_that_is_meant(door):
    path = door.write("train.py", commented("# syncscope: allow[nonzero, host-raed] logged"))
    ran = door("lint")
    assert "no rule is called host-raed; did you mean 'host-read'?" in ran.out
    door("lint", "--fix")
    assert "host-raed" in path.read_text(), "it silences something: it is asked for"
    assert "+        print(loss.item())  # syncscope: allow[nonzero, host-read] logged\n" in door("lint", "--diff").out


@pytest.mark.parametrize("named", ["ALL", "data-dependent-shape", "copy, data-dependent-shape"])
def test_an_allow_may_name_what_select_takes(door, named):
    door.write("loss.py", MASKS.replace("as_tuple=True)", f"as_tuple=True)  # syncscope: allow[{named}]"))
    assert door("lint").lines == []
    door.write("loss.py", f"import torch\n\nx = 1  # syncscope: allow[{named}]\n")
    assert door("lint").lines == [("loss.py", 3, "unused-allow")]
    assert door("lint", "--ignore", "unique").lines == [], "of these some were not asked"


def test_a_rule_that_is_called_as_its_family_is_allowed_alone(door):
    door.write("train.py", commented("# syncscope: allow[host-read]").replace("print(loss.item())", "print(f'{loss}')"))
    assert [rule for _, _, rule in door("lint").lines] == ["formatted-tensor", "unused-allow"]


@pytest.mark.parametrize(
    "word", ["ignore[host-read]", "alow[host-read]", "Allow[host-read] logged", "disable", "skip # x"]
)
def test_another_word_than_allow_is_told_with_the_fix_that_says_it(door, word):
    path = door.write("train.py", commented(f"# syncscope: {word}"))
    ran = door("lint")
    assert ran.lines == [("train.py", 11, "host-read"), ("train.py", 11, "unused-allow")]
    assert f"`syncscope: {word.split('[')[0].split()[0]}` silences nothing: did you mean `allow`?" in ran.out
    door("lint", "--fix", "--unsafe-fixes", "--select", "unused-allow")
    assert "# syncscope: allow" in path.read_text()
    assert door("lint").lines == []


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("allow(copy)", "allow[copy]"),
        ("allow: copy", "allow[copy]"),
        ("allow copy", "allow[copy]"),
        ("allow[host-read", "allow[host-read]"),
        ("allow[host-read once a step", "allow[host-read] once a step"),
        ("allow host-read, nonzero once a step", "allow[host-read, nonzero] once a step"),
        ("allow(host_read) logged", "allow[host_read] logged"),
        ("allow-me", "allow"),
        ("allow[", "allow"),
    ],
)
def test_an_allow_without_its_square_brackets_is_not_heard_as_one_of_every_rule(door, written, meant):
    path = door.write("train.py", commented(f"# syncscope: {written}"))
    assert door("lint").lines == [("train.py", 11, "host-read"), ("train.py", 11, "unused-allow")]
    door("lint", "--fix", "--unsafe-fixes", "--select", "unused-allow")
    assert f"# syncscope: {meant}\n" in path.read_text()
    door.write("a.cl", LOOP.replace("old != assumed);", f"old != assumed);  // syncscope: {written}"))
    ran = door("lint", "a.cl")
    assert {rule for _, _, rule in ran.lines} >= {"float-compare-and-swap", "unused-allow"}


@pytest.mark.parametrize("reason", ["", " once a step", ": once a step", " (once a step)", ", since it is logged"])
def test_an_allow_of_every_rule_has_a_reason_in_any_words(door, reason):
    door.write("train.py", commented(f"# syncscope: allow{reason}"))
    assert door("lint").lines == []


def test_prose_and_other_tools_speak_of_us_without_being_told_of(door):
    for comment in ("# syncscope: see docs/lint.md", "# see syncscope: the docs", "# syncscope: none of it"):
        door.write("train.py", commented(comment))
        assert door("lint").lines == [("train.py", 11, "host-read")], comment


def test_another_word_than_allow_is_told_in_opencl_c(door):
    silent = "old != assumed);  // syncscope: {}[float-compare-and-swap]"
    door.write("a.cl", LOOP.replace("old != assumed);", silent.format("ignore")))
    ran = door("lint", "a.cl")
    assert {rule for _, _, rule in ran.lines} >= {"float-compare-and-swap", "unused-allow"}
    assert "`syncscope: ignore` silences nothing" in ran.out
    door.write("a.cl", LOOP.replace("old != assumed);", "old != assumed);  // syncscope: see the docs"))
    assert "unused-allow" not in door("lint", "a.cl").out


def test_a_name_that_is_like_no_rule_is_not_answered_with_all_of_them(door):
    door.write("train.py", commented("# syncscope: allow[nonsense]"))
    assert "no rule is called nonsense; `syncscope explain` lists them all" in door("lint").out


SENT = """import torch


def training_step(model, x: torch.Tensor):
    total = 0.0
    for row in x:
        loss = model(row).sum()
        loss.backward()
        total += loss.item()  # ALLOW the display needs it
    return total
"""


def test_a_line_whose_allow_is_misspelt_is_fixed_by_nobody(door):
    path = door.write("train.py", SENT.replace("ALLOW", "as"))
    door("lint", "--fix", "--unsafe-fixes", "train.py")
    assert "loss.item()" not in path.read_text()
    door.write("train.py", SENT.replace("ALLOW", "syncscope: allow[host-reed]"))
    ran = door("lint", "--fix", "train.py")
    assert path.read_text() == SENT.replace("ALLOW", "syncscope: allow[host-reed]")
    assert "did you mean 'host-read'?" in ran.out


def test_a_fix_deletes_no_comment(door):
    code = """import torch


def training_step(model, x: torch.Tensor):
    values = torch.tensor(REASON
        [1.0, 1.0], device=x.device
    )
    return model(x) * values
"""
    path = door.write("train.py", code.replace("REASON", ""))
    door("lint", "--fix", "--unsafe-fixes", "train.py")
    assert "torch.ones" in path.read_text() or "full" in path.read_text()
    door.write("train.py", code.replace("REASON", "  # as in the paper"))
    door("lint", "--fix", "--unsafe-fixes", "train.py")
    assert "# as in the paper" in path.read_text()
