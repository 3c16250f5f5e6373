"""--fix: whole fixes, until nothing changes, and not a byte outside of them."""

import json
import os
import shutil
import stat
import subprocess

import pytest
from linter.conftest import MASKS, READS

from syncscope.errors import UserError

FIXED = MASKS.replace(
    "    background = torch.nonzero(target == 9, as_tuple=True)\n    target[background] = -1\n",
    "    target.masked_fill_(target == 9, -1)\n",
)


def test_safe_fixes_are_made_and_a_second_run_changes_nothing(door):
    path = door.write("loss.py", MASKS)
    ran = door("lint", "--fix")
    assert path.read_text() == FIXED
    assert "loss.py:6: fill in place where the mask is true\nmade 1 fix" in ran.err
    assert ran.code == 0
    before = path.stat()
    assert "made 0 fixes" in door("lint", "--fix").err
    assert path.stat().st_mtime_ns == before.st_mtime_ns


LEFT = """\
from torch import (
    Tensor,
    %s,  # of numbers
)
from torch.nn.functional import relu


def zero(x: Tensor):
    return relu(x) + tensor(0.0, device=x.device)
"""


@pytest.mark.parametrize(
    ("imported", "more", "stays"),
    [
        ("tensor", "", False),
        ("as_tensor as tensor", "", False),
        ("tensor", "\n\ndef one():\n    return tensor(1.0)\n", True),
        ("tensor", '\n\n__all__ = ["tensor", "zero"]\n', True),
        ("tensor", '\n\ndef two():\n    """Two.\n\n    >>> tensor(2.0)\n    tensor(2.)\n    """\n', True),
        (
            "tensor",
            '\n\ndef two():\n    """Two.\n\n    >>> from torch import tensor\n    >>> tensor(2.0)\n    """\n',
            False,
        ),
    ],
)
def test_what_only_the_old_code_imported_goes_with_it(door, imported, more, stays):
    path = door.write("loss.py", LEFT % imported + more)
    door("lint", "--fix", "--all")
    after = path.read_text()
    assert "torch.zeros((), device=x.device)" in after
    assert "    Tensor," in after
    assert (f"    {imported}," in after) == stays
    package = door.write("__init__.py", LEFT % imported)
    door("lint", "--fix", "--all")
    assert imported in package.read_text()  # others may import it from there


@pytest.mark.parametrize("line", ["import os; from torch import tensor", "from torch import tensor; import os"])
def test_a_line_with_more_on_it_is_left(door, line):
    path = door.write("loss.py", f"{line}\n\n\ndef zero(x):\n    return x + tensor(0.0, device=x.device)\n")
    door("lint", "--fix", "--all", "--min-confidence", "low")
    after = path.read_text()
    assert "torch.zeros((), device=x.device)" in after
    assert f"{line}\n" in after


def test_diff_shows_a_fix_with_its_safety_and_writes_nothing(door):
    path = door.write("loss.py", MASKS)
    ran = door("lint", "--diff")
    assert "fix (safe, --fix): " in ran.out
    assert "+    target.masked_fill_(target == 9, -1)\n" in ran.out
    assert path.read_text() == MASKS


def test_fix_with_diff_is_a_patch_that_git_would_apply(door):
    door.write("loss.py", MASKS)
    ran = door("lint", "--fix", "--diff")
    assert ran.out.startswith("--- a/loss.py\n+++ b/loss.py\n@@ ")
    assert "would make 1 fix" in ran.err
    assert (door.folder / "loss.py").read_text() == MASKS


UNSAFE = """\
import torch


def labels(target: torch.LongTensor):
    return torch.unique(target).numel()
"""


def test_unsafe_fixes_need_their_own_flag_and_are_hinted_at(door):
    path = door.write("loss.py", UNSAFE)
    ran = door("lint", "--all", "--fix")
    assert path.read_text() == UNSAFE
    assert "1 hidden behind --unsafe-fixes" in ran.err
    door("lint", "--all", "--fix", "--unsafe-fixes")
    assert "count_nonzero" in path.read_text()


LINE_ENDS = {"lf": "\n", "crlf": "\r\n", "cr": "\r"}


@pytest.mark.parametrize("newline", LINE_ENDS.values(), ids=LINE_ENDS)
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"], ids=["plain", "bom"])
@pytest.mark.parametrize("last", [True, False], ids=["last newline", "no last newline"])
def test_bytes_outside_of_edits_stay(door, newline, bom, last):
    odd = "# tab\there, form feed\f, trailing blanks   \nx = '''two\n\nlines'''\n\f\n"
    written = (odd + MASKS + "s = 'Grüße, 世界'").replace("\n", newline)
    written += newline if last else ""
    path = door.write("loss.py", bom + written.encode())
    door("lint", "--fix")
    expected = (odd + FIXED + "s = 'Grüße, 世界'").replace("\n", newline) + (newline if last else "")
    if newline == "\r":  # what a fix removes ends with the line break that the analysis saw there
        assert path.read_bytes().replace(b"\r", b"\n") == bom + expected.replace("\r", "\n").encode()
    else:
        assert path.read_bytes() == bom + expected.encode()


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-8", "shift_jis", "gbk"])
def test_a_coding_cookie_is_kept_and_obeyed(door, encoding):
    word = "日本" if encoding in {"shift_jis", "gbk"} else "Grüße"
    code = f"#!/usr/bin/env python\n# -*- coding: {encoding} -*-\ncoding = '{word}'  # {word}\n"
    path = door.write("loss.py", (code + MASKS).encode(encoding))
    line = door("lint").lines[0][1]
    assert line == 3 + 6
    door("lint", "--fix")
    assert path.read_bytes() == (code + FIXED).encode(encoding)


def test_columns_count_characters_in_any_encoding(door):
    code = "# coding: latin-1\n" + MASKS.replace("background =", "öäü: object =")
    door.write("loss.py", code.encode("latin-1"))
    door.write("utf8.py", code.replace("latin-1", "utf-8"))
    columns = [
        line.split(":")[2] for line in door("lint", "--select", "nonzero").out.splitlines() if ": warning:" in line
    ]
    assert columns[0] == columns[1]


def test_mode_and_links_are_kept(door):
    path = door.write("real/loss.py", MASKS)
    path.chmod(0o750)
    link = door.folder / "loss.py"
    link.symlink_to(path)
    door("lint", "--fix", "loss.py")
    assert link.is_symlink()
    assert path.read_text() == FIXED
    assert stat.S_IMODE(path.stat().st_mode) == 0o750
    assert [p.name for p in path.parent.iterdir()] == ["loss.py"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_the_owner_is_kept(door):
    path = door.write("loss.py", MASKS)
    os.chown(path, 12345, 54321)
    door("lint", "--fix")
    assert path.read_text() == FIXED
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 54321)


def test_a_file_that_cannot_be_replaced_is_named_and_the_others_are_fixed(door, monkeypatch):
    door.write("a.py", MASKS)
    other = door.write("b.py", MASKS)
    real = os.replace

    def replace(source, target):
        if str(target).endswith("a.py"):
            raise PermissionError(13, "Permission denied")
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    ran = door("lint", "--fix")
    assert ran.code == 2
    assert "error: a.py cannot be written: Permission denied; choose another place, or " in ran.err
    assert "made 1 fix in 2 lines\n1 finding left in 1 of 2 files\n" in ran.err, "of what is in the files as they are"
    assert "a.py:" not in ran.err.replace("error: a.py", "")
    assert [path for path, _, _ in ran.lines] == ["a.py"]
    assert other.read_text() == FIXED
    assert sorted(p.name for p in door.folder.iterdir()) == ["a.py", "b.py"]


def test_interactive_asks_about_each_fix(door):
    path = door.write("loss.py", MASKS + MASKS.replace("import torch\n", "").replace("loss(", "other("))
    ran = door("lint", "--interactive", stdin="n\ny\n")
    assert path.read_text().count("torch.nonzero") == 1
    assert path.read_text().count("masked_fill_") == 1
    assert ran.out.count("make this fix?") == 2


def test_interactive_can_take_all_and_can_stop(door):
    twice = MASKS + MASKS.replace("import torch\n", "").replace("loss(", "other(")
    path = door.write("loss.py", twice)
    door("lint", "--interactive", stdin="q\n")
    assert path.read_text() == twice
    door("lint", "--interactive", stdin="a\n")
    assert "nonzero" not in path.read_text()


RULE = '''\
"""Says `item`.

Why it waits
------------
It reads.

Fix safety
----------
None.
"""

import itertools

from syncscope.model.finding import Edit, Fix, Safety
from syncscope.rules import Example, Severity

NUMBERS = itertools.count()

SEVERITY, OPS, SEEN_AS, EXAMPLES = Severity.WARNING, ("{op}",), (), ()


def message(site, view):
    return "seen"


def rewrite(site, function):
    return Fix("change", (Edit(site.span, {text}),), Safety.SAFE)
'''


def own_rule(door, text: str, op: str = "nonzero") -> None:
    """Replaces the built-in rule `nonzero` by one that writes `text`."""
    door.write("own/nonzero.py", RULE.replace("{op}", op).replace("{text}", text))
    door.write("pyproject.toml", '[tool.syncscope.lint]\nrules = ["own"]\n')
    assert door("trust").code == 0


def test_a_fix_that_would_not_parse_is_refused_and_named(door):
    own_rule(door, "'(('")
    path = door.write("loss.py", MASKS)
    ran = door("lint", "--fix", "loss.py")
    assert path.read_text() == MASKS
    assert "loss.py:6: the fix of nonzero was not made: it would leave code that does not parse" in ran.err


def test_fixes_that_never_settle_are_refused(door):
    own_rule(door, "f'torch.nonzero(target + {next(NUMBERS)}, as_tuple=True)'")
    path = door.write("loss.py", MASKS)
    ran = door("lint", "--fix", "loss.py")
    assert path.read_text() == MASKS
    assert "the fixes of nonzero undo one another" in ran.err


def test_ctrl_c_while_writing_leaves_the_old_file_and_no_other(door, monkeypatch):
    path = door.write("loss.py", MASKS)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises((KeyboardInterrupt, RuntimeError)):
        door("lint", "--fix")
    assert path.read_text() == MASKS
    assert [p.name for p in door.folder.iterdir()] == ["loss.py"]


def test_a_file_that_changed_meanwhile_is_left_alone(door, monkeypatch):
    from syncscope.linter import session

    path = door.write("loss.py", MASKS)
    real = session.write

    def late(name, raw, before):
        path.write_text(READS)
        real(name, raw, before)

    monkeypatch.setattr(session, "write", late)
    ran = door("lint", "--fix")
    assert path.read_text() == READS
    assert "it changed while it was linted" in ran.err
    assert ran.code == 2


def test_fixes_that_could_not_be_written_are_not_counted(door, monkeypatch):
    def write(path, raw, before=None):
        raise UserError(f"{path} cannot be written: No space left on device")

    monkeypatch.setattr("syncscope.linter.session.write", write)
    path = door.write("loss.py", MASKS)
    ran = door("lint", "--fix")
    assert ran.code == 2
    assert "made 0 fixes" in ran.err
    assert "loss.py cannot be written" in ran.err
    assert path.read_text() == MASKS


WRITTEN = """import torch


def forward(scores: torch.Tensor, labels: torch.Tensor):
    return torch.arange(scores.shape[0] + labels.shape[0], dtype=torch.int).to(scores.device)
"""


@pytest.mark.parametrize(
    ("settings", "folded"),
    [
        ("root = true\n[*]\nmax_line_length = 120\n", False),
        ("[*.{js,py}]\nMax_Line_Length=120\n[*.md]\nmax_line_length = 80\n", False),
        ("[*]\nmax_line_length = 120\n[*.py]\nmax_line_length = 80\n", True),
        ("[*]\nmax_line_length = 120\n[*.py]\nmax_line_length = off\n", True),
        ("[{*.md,*.rst}]\nmax_line_length = 120\n", True),
    ],
)
def test_lines_are_as_long_as_the_editorconfig_allows(door, settings, folded):
    path = door.write("written.py", WRITTEN)
    door.write(".editorconfig", settings)
    door("lint", "--fix", "--unsafe-fixes")
    rest = "scores.shape[0] + labels.shape[0], dtype=torch.int, device=scores.device"
    assert (f"(\n        {rest}\n    )" if folded else f"({rest})") in path.read_text()


MASKED = """\
import torch
import torch.nn.functional as F


def masked_loss(scores: torch.Tensor, coarse: torch.Tensor, fine: torch.Tensor, target: torch.Tensor):
    keep = target != 255
    if keep.sum() == 0:
        return scores.sum() * 0
    deep = F.cross_entropy(coarse[keep], target[keep]) + F.cross_entropy(fine[keep], target[keep])
    return deep + F.cross_entropy(scores[keep], target[keep])
"""


def test_what_can_be_made_is_counted_as_least_where_a_first_fix_may_bring_a_second(door):
    door.write("loss.py", MASKED)
    assert "fixes: at least 3 hidden behind --unsafe-fixes, 1 to be made by hand" in door("lint", "--all").err
    assert "made 4 fixes in " in door("lint", "--all", "--fix", "--unsafe-fixes").err
    door.write("loss.py", MASKS)
    assert "fixes: 1 with --fix; " in door("lint").err


def test_a_safe_fix_is_none_where_the_same_place_is_waited_for_all_the_same(door):
    """`e[t]` reads t, whether a number is written there or filled in."""
    code = """
    import torch


    def forward(v: torch.Tensor):
        t = torch.argmin(v)
        e = torch.zeros(v.shape[0], device=v.device)
        e[t] = 1.0
        return e
    """

    def fixes(text: str) -> list[str]:
        door.write("loss.py", text)
        told = json.loads(door("lint", "--all", "--format", "json", "loss.py").out)
        return [f["fix"] and f["fix"]["safety"] for f in told if f["rule"] == "number-at-positions"]

    assert fixes(code) == [None]
    assert fixes(code.replace("torch.argmin(v)", "0")) == ["safe"]


@pytest.mark.skipif(shutil.which("patch") is None, reason="no patch")
def test_patch_takes_the_diff_of_a_file_with_a_space_in_its_path(door):
    path = door.write("a b/loss file.py", MASKS)
    diff = door("lint", "--diff", "--all", "a b").out
    subprocess.run(["patch", "-p1", "-f"], input=diff, text=True, check=True, cwd=door.folder)
    assert path.read_text() != MASKS
