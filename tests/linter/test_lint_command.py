"""`syncscope lint` as people use it: what is found, how it is shown, what it exits with."""

import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from linter.conftest import MASKS, READS

from syncscope.cli import _progress

CLEAN = "import torch\n\n\ndef f(x):\n    return x + 1\n"


def test_findings_exit_with_one_and_a_clean_file_with_zero(door):
    door.write("train.py", READS)
    door.write("clean.py", CLEAN)
    found = door("lint", "train.py", "clean.py")
    assert (found.code, found.lines) == (1, [("train.py", 11, "host-read")])
    assert "1 finding in 1 of 2 files" in found.err
    clean = door("lint", "clean.py")
    assert (clean.code, clean.out) == (0, "")
    assert door("lint", "--exit-zero", "train.py").code == 0


def test_arrows_stand_under_the_expression_whatever_comes_before_it(door):
    door.write("train.py", READS.replace("print(loss", 'print("日本 é", loss'))
    line, arrows = door("lint", "train.py").out.splitlines()[1:3]
    assert line.endswith('print("日本 é", loss.item())')
    # each of the two wide letters takes two columns
    assert arrows.index("^") == line.index("loss.item") + 2
    assert arrows.count("^") == len("loss.item()")


def test_what_would_steer_a_terminal_is_not_printed(door):
    door.write("train.py", READS.replace("print(loss", 'print("\x1b[31m\a", loss'))
    assert "\x1b" not in door("lint", "train.py").out
    assert "\a" not in door("lint", "train.py").out


def test_colour_needs_a_terminal_or_force_and_no_color_wins(door, monkeypatch):
    door.write("train.py", READS)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[35mhost-read\x1b[0m" in door("lint", "train.py").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in door("lint", "train.py").out


def test_select_and_ignore_take_rules_families_and_all(door):
    door.write("train.py", READS)
    door.write("loss.py", MASKS)
    assert {rule for _, _, rule in door("lint").lines} == {"host-read", "nonzero"}
    assert {rule for _, _, rule in door("lint", "--select", "host-read").lines} == {"host-read"}
    assert {rule for _, _, rule in door("lint", "--select", "data-dependent-shape").lines} == {"nonzero"}
    assert {rule for _, _, rule in door("lint", "--select", "ALL", "--ignore", "nonzero,unique").lines} == {"host-read"}


@pytest.mark.parametrize("by", ["--select", "--ignore", "per-file-ignores"])
def test_a_rule_that_is_called_as_its_family_is_the_rule_wherever_rules_are_named(door, by):
    door.write(
        "train.py", READS.replace("print(loss.item())", "print(loss.item())\n        if loss > 3:\n            break")
    )

    def found(name):
        if by.startswith("--"):
            return {rule for _, _, rule in door("lint", "--all", by, name).lines}
        door.write("pyproject.toml", f'[tool.syncscope.lint]\nper-file-ignores = {{ "train.py" = ["{name}"] }}\n')
        return {rule for _, _, rule in door("lint").lines}

    every = {"host-read", "tensor-in-condition"}
    assert found("host-read") == ({"host-read"} if by == "--select" else {"tensor-in-condition"})
    assert found("host-read-family") == (every if by == "--select" else set())


@pytest.mark.parametrize("option", ["--select", "--ignore"])
def test_a_misspelt_rule_is_an_error_with_the_nearest_name(door, option):
    ran = door("lint", option, "host-raed")
    assert ran.code == 2
    assert "no rule is called 'host-raed'" in ran.err
    assert "did you mean 'host-read'?" in ran.err


def test_cold_code_is_counted_and_shown_when_asked_for(door):
    door.write(
        "evaluate.py",
        """\
        import torch

        @torch.no_grad()
        def evaluate(model, loader):
            for images, labels in loader:
                print(torch.cosine_similarity(model(images), labels.cuda(non_blocking=True)).sum().item())
        """,
    )
    usual = door("lint")
    assert usual.lines == []
    assert "1 in cold code (--all)" in usual.err
    assert door("lint", "--all").lines == [("evaluate.py", 6, "host-read")]


def test_json_is_a_list_with_the_promised_keys(door):
    door.write("loss.py", MASKS)
    (found,) = json.loads(door("lint", "--format", "json").out)
    assert {
        "path",
        "line",
        "column",
        "end_line",
        "end_column",
        "rule",
        "confidence",
        "severity",
        "message",
        "fix",
    } <= set(found)
    assert (found["path"], found["line"], found["column"]) == ("loss.py", 6, 18)
    assert (found["end_line"], found["end_column"]) == (6, 18 + len("torch.nonzero(target == 9, as_tuple=True)"))
    assert found["confidence"] in {"low", "medium", "high"}
    assert found["fix"]["safety"] == "safe"


def test_explain_finding_prints_how_it_is_known(door):
    door.write("train.py", READS)
    assert "known because" in door("lint", "--explain-finding").out
    assert "known because" not in door("lint").out


def test_statistics_count_by_rule_what_mends_findings_and_say_the_time(door, monkeypatch):
    door.write("train.py", READS + READS.replace("train(", "train_again(") + MASKS)
    found = json.loads(door("lint", "--all", "--format", "json").out)
    for _ in range(2):  # the second time from the cache
        told = door("lint", "--all", "--statistics").out
        head, *rows = told.split("\n\n")[0].splitlines()
        assert head.replace("by hand", "by-hand").split() == [
            "count", "safe", "unsafe", "by-hand", "none", "also", "rule"
        ]  # fmt: skip
        for *counts, rule in map(str.split, rows):
            count, safe, unsafe, hand, none, also = map(int, counts)
            of_rule = [f["fix"] for f in found if f["rule"] == rule]
            assert count == safe + unsafe + hand + none == len(of_rule) - also
            assert none + also == of_rule.count(None)
        assert re.search(r"^time: \d+\.\d s for 1 file$", told, re.MULTILINE)
        assert "in search of fixes" not in told, "who is not kept waiting by it has no use for it"
    monkeypatch.setattr("syncscope.cli._statistics.SLOW", 0.0)
    assert re.search(r"in search of fixes: .* most in `\w+`", door("lint", "--all", "--statistics").out)


def test_statistics_say_which_share_has_a_fix(door):
    door.write("train.py", MASKS)
    told = door("lint", "--statistics").out
    safe, unsafe, hand = map(int, re.search(r"\((\d+) safe, (\d+) unsafe\).*included: (\d+),", told).groups())
    found = json.loads(door("lint", "--format", "json").out)
    kinds = [f["fix"]["safety"] for f in found if f["fix"]]
    assert (safe, unsafe, hand) == (kinds.count("safe"), kinds.count("unsafe"), len(kinds))
    assert f"{safe + unsafe} of {len(found)}, {100 * (safe + unsafe) / len(found):.1f} %" in told
    assert door("lint", "--statistics", "--select", "nms").out == ""


def test_output_goes_to_a_file(door):
    door.write("train.py", READS)
    ran = door("lint", "--format", "json", "-o", "found.json")
    assert ran.out == ""
    assert len(json.loads((door.folder / "found.json").read_text())) == 1


def test_standard_input_is_linted_under_the_name_it_is_given(door):
    ran = door("lint", "-", "--stdin-filename", "src/train.py", stdin=READS)
    assert ran.lines == [("src/train.py", 11, "host-read")]
    assert ran.code == 1


def test_standard_input_is_fixed_onto_standard_output(door):
    ran = door("lint", "--fix", "-", stdin=MASKS)
    assert "masked_fill_" in ran.out
    assert "nonzero" not in ran.out
    assert ran.code == 0
    untouched = door("lint", "--fix", "-", stdin=CLEAN)
    assert untouched.out == CLEAN


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["nowhere.py"], "there is no 'nowhere.py'"),
        (["no/**/*.py"], "nothing matches 'no/**/*.py'"),
        (["--unsafe-fixes"], "pass --fix too"),
        (["--fix", "--interactive"], "do not go together"),
        (["--reason", "x"], "--reason belongs to --add-allow"),
        (["--stdin-filename", "x.py"], "pass - as the path"),
        (["-", "x.py"], "standard input comes alone"),
        (["--config", "none.toml"], "cannot read none.toml"),
        (["--format", "yaml"], "no format is called 'yaml'\n hint: choose from: text, concise"),
        (["--jobs", "0"], "0 is not in the range"),
    ],
)
def test_wrong_usage_is_told_and_exits_with_two(door, args, said):
    ran = door("lint", *args)
    assert ran.code == 2
    assert said in ran.err


def test_help_teaches_by_examples(door):
    ran = door("lint", "--help")
    assert "syncscope lint --fix src/" in ran.out
    assert "Exit code: 0 clean\n" in ran.out


def test_the_command_itself_exits_as_promised_and_imports_no_torch_and_no_libcst(door):
    code = (
        "import sys; sys.argv[0] = 'syncscope'\n"
        "from syncscope.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: code = end.code\n"
        "print(code, sorted({'torch', 'libcst', 'numpy', 'pyopencl', 'rich'} & set(sys.modules)))"
    )
    door.write("clean.py", CLEAN)
    run = subprocess.run([sys.executable, "-c", code, "lint", "clean.py"], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "0 []"


def test_quiet_is_the_findings_alone_and_ruffs_word_for_the_format_is_known(door):
    door.write("train.py", READS)
    ran = door("lint", "-q")
    assert ran.lines == [("train.py", 11, "host-read")]
    assert ran.err == ""
    assert json.loads(door("lint", "--output-format", "json").out)[0]["rule"] == "host-read"


def test_of_many_findings_those_like_another_are_told_with_it_unless_a_format_is_asked_for(door):
    reads = "".join(f"    y{n} = net(x[{n}]).sum().item() + n\n" for n in range(21))
    door.write("many.py", f"import torch\n\n\ndef f(x: torch.Tensor, net: torch.nn.Linear, n: int):\n{reads}")
    ran = door("lint", "many.py", "-q")
    assert ran.out.startswith("many.py:5:10: warning: `net(x[0]).sum().item()` waits for the device")
    assert "= and 20 like it: lines 6, 7, 8," in ran.out
    assert ran.out.count(" ^^^") == 1
    concise = door("lint", "many.py", "--format", "concise").out.splitlines()
    assert len(concise) == 21
    assert concise[0].startswith("many.py:5:10: host-read: `net(x[0]).sum().item()` waits for the device")
    assert door("lint", "many.py", "--format", "text").out.count(" ^^^") == 21
    assert "\x1b[" in door("lint", "many.py", "--color", "always").out


def test_a_fix_that_mends_several_is_told_once_and_the_next_step_is_said(door):
    made = "    a = torch.zeros(3).to(x.device)\n    b = torch.zeros(4).to(x.device)\n"
    code = f"import torch\n\n\ndef f(x: torch.Tensor):\n{made}    return a, b\n"
    door.write("two.py", code)
    ran = door("lint", "two.py")
    assert ran.out.count("make it on the device") == 1
    assert "the fix of line 5 mends this, too" in ran.out
    assert "next: `syncscope lint --fix two.py` makes the fixes that change nothing else" in ran.err
    door.write("one.py", code)
    both = door("lint", "two.py", str(Path("one.py").absolute())).err
    assert f"next: `syncscope lint --fix {Path('one.py').absolute()} two.py` makes" in both


def test_the_next_step_names_what_was_linted_and_says_what_was_asked(door, monkeypatch):
    code = "import torch\n\n\ndef f(x: torch.Tensor):\n    return x[x > 0].mean()\n"
    for name in ("here/one.py", "here/other.py", "there/one.py"):
        door.write(name, code)
    monkeypatch.chdir("here")
    both = door("lint", "--all", "--ignore", "nonzero,unique", "--diff", "one.py", "../there/one.py").err
    said = "`syncscope lint --fix --unsafe-fixes --all --ignore nonzero,unique ../there/one.py one.py` makes them"
    assert f"next: {said}" in both
    assert "next: `syncscope lint --diff .`" in door("lint", ".").err
    assert "next: `syncscope lint --diff ..`" in door("lint", "..").err


def test_the_next_step_does_not_name_each_of_the_files_that_a_shell_found(door):
    names = [f"part{number:02}.py" for number in range(12)]
    for name in names:
        door.write(name, "import torch\n\n\ndef f(x: torch.Tensor):\n    return x[x > 0].sum()\n")
    assert "next: `syncscope lint --diff part00.py part01.py part02.py ...` shows" in door("lint", *names).err


def test_after_a_diff_the_next_step_is_not_that_diff(door):
    door.write("mask.py", "import torch\n\n\ndef f(x: torch.Tensor):\n    return x[x > 0].sum()\n")
    assert "next: `syncscope lint --diff mask.py`" in door("lint", "mask.py").err
    assert "next: `syncscope lint --fix --unsafe-fixes mask.py` makes them" in door("lint", "--diff", "mask.py").err


def test_an_allow_that_names_no_rule_is_told_which_was_meant(door):
    door.write(
        "typo.py", "import torch\n\n\ndef f(x: torch.Tensor):\n    return x.item()  # syncscope: allow[host-raed]\n"
    )
    ran = door("lint", "typo.py")
    assert "no rule is called host-raed; did you mean 'host-read'?" in ran.out


def test_what_only_may_run_in_every_step_is_told_where_there_is_something_to_write_instead(door):
    door.write(
        "x.py",
        """
        import torch

        def kept(x: torch.Tensor, net):
            first = x.mean().item()
            rows = net(x)[x > first]
            return net(rows) * (x[x < 0]).sum()

        def forward(x: torch.Tensor):
            return x[x > 0] * 2
        """,
    )
    assert door("lint", "x.py").lines == [("x.py", line, rule) for line, rule in SHOWN]
    told = door("lint", "--all", "x.py")
    assert told.lines == [("x.py", line, rule) for line, rule in sorted([*SHOWN, (6, "boolean-mask-read")])]
    assert "no fix can be made here" in door("lint", "--all", "--format", "json", "x.py").out


SHOWN = [(5, "host-read"), (7, "boolean-mask-read"), (10, "boolean-mask-read")]


def test_what_only_the_host_has_is_sent_also_where_its_dtype_is_changed_before(door):
    door.write(
        "x.py",
        """
        import torch

        def forward(x: torch.Tensor, edges):
            first = torch.from_numpy(edges).float().to(x.device)
            return x + first + torch.zeros(3).float().to(x.device)
        """,
    )
    told = [line for line in door("lint", "x.py").out.splitlines() if "is made on the host" in line]
    assert ["non_blocking=True sends it" in line for line in told] == [True, False]


def test_a_long_run_says_in_a_log_how_far_it_is_every_ten_seconds(door, monkeypatch):
    """A file takes 4 s; where programs read, and where nobody wants it, nothing is said."""
    clock = itertools.count(0, 4)
    monkeypatch.setattr(_progress, "monotonic", lambda: next(clock))
    for number in range(6):
        door.write(f"x{number}.py", READS)
    lint = ("lint", "--no-cache", "-j", "1", "--exit-zero")
    assert re.findall(r"^lint: .*$", door(*lint, ".").err, re.MULTILINE) == [
        f"lint: {read} of 6 files" for read in (2, 5, 6)
    ]
    assert "lint: " not in door(*lint, "x0.py", "x1.py").err, "done before"
    assert "lint: " not in door(*lint, "--format", "json", ".").err
    assert door(*lint, "--quiet", ".").err == ""


@pytest.mark.parametrize(
    ("form", "variable", "shown"),
    [
        ("github", "GITHUB_WORKSPACE", "file=src/my%20net/train.py,line=11"),
        ("gitlab", "CI_PROJECT_DIR", '"path": "src/my net/train.py"'),
        ("sarif", "GITHUB_WORKSPACE", '"uri": "src/my%20net/train.py"'),
        ("sarif", "CI_PROJECT_DIR", '"uri": "src/my%20net/train.py"'),
    ],
)
def test_a_server_is_told_paths_from_the_root_of_the_repository(door, monkeypatch, form, variable, shown):
    shown = shown.replace("%20", " ") if form == "github" else shown
    door.write("src/my net/train.py", READS)
    monkeypatch.chdir(door.folder / "src")
    monkeypatch.setenv(variable, str(door.folder))
    assert shown in door("lint", "--format", form, "my net").out
    assert shown in door("lint", "--format", form, str(door.folder)).out, "named from the root of the machine"
    monkeypatch.setenv(variable, str(door.folder / "elsewhere"))
    assert shown not in door("lint", "--format", form, "my net").out


def test_an_output_that_ends_with_xml_is_junit(door):
    door.write("x.py", "import torch\n\n\ndef forward(x: torch.Tensor):\n    return x.exp()[x > 0]\n")
    door("lint", "--all", "-o", "all.xml", "x.py")
    assert (door.folder / "all.xml").read_text().startswith("<?xml")


def test_a_suffix_that_is_no_formats_is_written_as_text_and_says_so(door):
    door.write("train.py", READS)
    ran = door("lint", "-o", "found.foo", "train.py")
    assert "found.foo is written as text: no format has the suffix .foo" in ran.err
    assert "but .github, " in ran.err
    assert "[host-read]" in (door.folder / "found.foo").read_text()
    assert "written as text" not in door("lint", "-o", "found.txt", "train.py").err


def test_what_is_read_on_some_passes_is_not_said_to_be_read_on_every_one(door):
    code = """import torch


def training_step(model, batches: list[torch.Tensor]):
    for i, batch in enumerate(batches):
        loss = model(batch).sum()
        loss.backward()
        TEST
            print(loss.item())
"""
    door.write("train.py", code.replace("TEST", "if i % 100 == 0:"))
    assert "`loss.item()` waits for the device [host-read]" in door("lint", "--all", "train.py").out
    door.write("train.py", code.replace("TEST", "if True:"))
    assert "`loss.item()` waits for the device on every pass of the loop" in door("lint", "--all", "train.py").out


def test_of_a_chain_the_comparison_that_is_asked_is_quoted(door):
    door.write("x.py", "import torch\n\n\ndef forward(a: torch.Tensor, b: torch.Tensor):\n    return a < b < a + 1\n")
    assert ": tensor-in-condition: `a < b` is computed on the device" in door("lint", "--format", "concise", "x.py").out


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("import torch\nfrom __future__ import annotations\n", 2),
        ("import torch\n\nloss = torch.ones(1)\nreturn loss\n", 4),
        ("import torch\n\n\ndef f(x):\n    continue\n", 5),
    ],
)
def test_what_can_be_parsed_and_is_no_python_is_a_finding(door, code, line):
    door.write("train.py", code)
    ran = door("lint", "train.py")
    assert (ran.code, ran.lines) == (1, [("train.py", line, "syntax-error")])


def test_of_a_folder_that_is_asked_of_files_of_which_something_would_be_shown(door):
    broken = "import torch\n\n\ndef f(x: torch.Tensor):\n    continue\n\n\n"
    door.write("pkg/shown.py", broken + "def step(x: torch.Tensor):\n    return x.sum().item()\n")
    door.write("pkg/silent.py", broken + "def step(x: torch.Tensor):\n    return x.sum()\n")
    assert door("lint", "--all", "pkg").lines == [("pkg/shown.py", 5, "syntax-error")]
