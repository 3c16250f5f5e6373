"""Rules of a repository are code: they run only where the user has said so, and as they were then."""

import json
import os
import subprocess
import sys

import pytest
from linter.conftest import READS

import syncscope
from syncscope import kineto
from syncscope.linter import config, rulesets, trust
from syncscope.model.source import Place
from syncscope.model.trace import Event, Kind, Lane, Trace

EVIL = "from pathlib import Path\nPath(__file__).with_name('ran').touch()\n"
TABLE = '[tool.syncscope.lint]\nrules = ["rules"]\n'
LINE = "the rules in rules were not loaded: it is code that you have not said you trust; read it, then `syncscope trust rules`"


@pytest.fixture
def evil(door):
    """A repository whose rules leave a file behind when they run."""
    door.write("rules/zz.py", EVIL)
    door.write("pyproject.toml", TABLE)
    door.write("train.py", READS)
    return door


def ran(door) -> bool:
    return (door.folder / "rules" / "ran").exists()


@pytest.mark.parametrize(
    "args",
    [
        ("lint",),
        ("lint", "train.py"),
        ("lint", "--config", "pyproject.toml"),
        ("lint", "--fix", "--diff"),
        ("lint", "--format", "sarif"),
        ("explain",),
    ],
    ids=" ".join,
)
def test_rules_of_a_stranger_do_not_run_and_one_line_says_so(evil, args):
    said = evil(*args)
    assert not ran(evil)
    assert said.err.count(LINE) == 1
    assert said.code in (0, 1)


def test_the_findings_of_our_own_rules_are_there_all_the_same(evil):
    evil.write("pyproject.toml", TABLE + 'select = ["zz", "host-read"]\n')
    assert evil("lint").lines == [("train.py", 11, "host-read")]


@pytest.mark.parametrize("by", ["option", "table"])
def test_a_gate_on_rules_that_are_not_trusted_alone_does_not_pass(evil, by):
    evil.write("pyproject.toml", TABLE + ('select = ["zz"]\n' if by == "table" else ""))
    said = evil("lint", *(["--select", "zz"] if by == "option" else []))
    assert (said.code, "no rule is on" in said.err, LINE in said.err) == (2, True, True)
    assert not ran(evil)


def test_standard_input_runs_none(evil):
    assert LINE in evil("lint", "-", "--stdin-filename", "train.py", stdin=READS).err
    assert not ran(evil)


def test_a_trace_leads_to_no_rules(evil, tmp_path):
    host = Lane(1, 1)
    place = Place(str(evil.folder / "train.py"), 11)
    trace = Trace.of([Event(Kind.READ, "item", host, 0, 5, place=place), Event(Kind.KERNEL, "k", Lane(1, 7, 0), 0, 4)])
    kineto.save(trace, tmp_path / "run.json")
    report = syncscope.report(str(tmp_path / "run.json"))
    assert not ran(evil)
    assert [f.rule for f in report.findings] == ["host-read"]
    assert any("were not loaded" in note for note in report.notes)
    assert evil("report", str(tmp_path / "run.json")).code == 0
    assert evil("lint", "--trace", str(tmp_path / "run.json")).code in (0, 2)
    assert not ran(evil)


def test_the_editor_runs_none_and_says_so(evil, monkeypatch):
    from syncscope.linter import lsp
    from syncscope.linter.lsp_documents import of_text

    server, told = lsp.Server(), []
    monkeypatch.setattr(server, "window_show_message", told.append)
    document = of_text("file:///x/train.py", str(evil.folder / "train.py"), READS)
    for _ in range(2):
        assert [f.rule for f in server.findings(document)] == ["host-read"]
    assert not ran(evil)
    assert [message.message.startswith(f"syncscope: {LINE}") for message in told] == [True], "once"


def test_the_python_function_warns(evil):
    with pytest.warns(UserWarning, match="were not loaded"):
        syncscope.lint("train.py")
    assert not ran(evil)


def test_who_trusts_a_folder_is_asked_again_when_it_changes(evil):
    assert evil("trust").out == "trusted rules: zz.py\n"
    assert not ran(evil), "to trust is not to run"
    assert "has no" in evil("lint").err, "it is no rule"
    assert ran(evil)
    (evil.folder / "rules" / "ran").unlink()
    for name in ("rules/_more.py", "rules/data.txt"):
        evil.write(name, "1")
        assert "has changed since you trusted it" in evil("lint").err
        assert not ran(evil)
        evil("trust", "rules")
        assert "has no" in evil("lint").err
        (evil.folder / "rules" / "ran").unlink()
    assert evil("trust", "--list").out == f"{evil.folder / 'rules'}\n"
    assert evil("trust", "--forget", "rules").out == "rules is trusted no more\n"
    assert LINE in evil("lint").err
    assert not ran(evil)


def test_what_the_command_line_names_runs(evil):
    assert "has no" in evil("lint", "--rules", "rules").err
    assert ran(evil)


def test_a_repository_cannot_trust_itself(evil, monkeypatch):
    evil("trust")
    forged = trust.store().read_bytes()
    trust.store().unlink()
    for name in ("trusted-rules.json", ".config/syncscope/trusted-rules.json", "rules/trusted-rules.json"):
        evil.write(name, forged)
    assert LINE in evil("lint").err
    os.chmod(trust.store().parent, 0o777)
    trust.store().write_bytes(forged)
    assert LINE in evil("lint").err, "others could have written it"
    assert not ran(evil)


def test_bytecode_beside_a_rule_is_not_run(evil):
    import importlib._bootstrap_external as boot
    import importlib.util

    evil.write("rules/zz.py", "X = 1\n")
    cached = importlib.util.cache_from_source(str(evil.folder / "rules" / "zz.py"))
    os.makedirs(os.path.dirname(cached))
    code = compile(EVIL.replace("__file__", repr(str(evil.folder / "rules" / "zz.py"))), "zz.py", "exec")
    source_hash = importlib.util.source_hash(b"whatever")
    with open(cached, "wb") as file:
        file.write(boot._code_to_hash_pyc(code, source_hash, False))  # which Python takes unchecked
    evil("trust")
    assert "has no" in evil("lint").err
    assert not ran(evil)


def test_trust_ends_where_a_folder_holds_no_files(evil):
    if not hasattr(os, "mkfifo"):
        pytest.skip("no pipes here")
    os.mkfifo(evil.folder / "rules" / "pipe")
    assert "not a regular file" in evil("trust").err


def test_the_module_does_not_import_from_the_folder_it_is_called_in(door):
    door.write("click.py", "raise SystemExit('owned')\n")
    door.write("libcst.py", "raise SystemExit('owned')\n")
    door.write("x.py", READS)
    done = subprocess.run([sys.executable, "-m", "syncscope", "lint"], capture_output=True, text=True, timeout=300)
    assert "owned" not in done.stderr
    assert done.returncode == 1


def test_toml_that_is_nested_or_no_utf8_is_an_error_in_two_lines(door):
    door.write("x.py", READS)
    door.write("pyproject.toml", "[tool.syncscope.lint]\nselect = " + "[" * 100_000)
    assert "nested too deeply" in door("lint").err
    door.write("pyproject.toml", "[tool.syncscope.lint]\nselect = []".encode("utf-16"))
    assert "pyproject.toml is UTF-16" in door("lint").err
    door.write("pyproject.toml", json.dumps("x") * 2_000_000)
    config.read.cache_clear()
    rulesets.ruleset.cache_clear()
    assert door("lint").code == 1, "what is too large to be one is none"


@pytest.mark.parametrize("deep", ["rules/helpers", "rules/below/helpers"])
def test_a_folder_with_a_link_to_a_folder_is_not_trusted(evil, deep):
    """What lies behind the link may change, and would run without anybody being asked."""
    evil.write("tools/h/__init__.py", "")
    link = evil.folder / deep
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(evil.folder / "tools" / "h")
    said = evil("trust").err
    assert f"{deep}: a link to a folder" in said
    assert "hint: " in said
    assert LINE in evil("lint").err
    assert not ran(evil)


def test_a_link_that_appears_later_ends_the_trust(evil):
    evil("trust")
    (evil.folder / "elsewhere").mkdir()
    (evil.folder / "rules" / "more").symlink_to(evil.folder / "elsewhere")
    assert "has changed since you trusted it" in evil("lint").err
    assert not ran(evil)
