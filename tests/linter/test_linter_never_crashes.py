"""Files as they are: nothing makes the linter crash, and one bad file does not stop the others."""

import ast
import cProfile
import io
import os
import sys
import sysconfig
import tokenize
import warnings
from pathlib import Path

import pytest
from linter.conftest import MASKS, READS

import syncscope
from syncscope.linter import engine, notebooks, run
from syncscope.linter.config import Config
from syncscope.model.finding import Safety

ALL = Config(all=True, min_confidence="low")
BROKEN = {
    "python2": ("import torch\nprint 'loss', loss\n", 2, "Python 2"),
    "python2_except": ("import torch\ntry:\n    pass\nexcept A, e:\n    pass\n", 4, "Python 2"),
    "merge": ("import torch\n<<<<<<< HEAD\nx = 1\n=======\nx = 2\n>>>>>>> other\n", 2, "merge conflict"),
    "unclosed": ("import torch\nx = (1,\n", 2, "never closed"),
    "null": ("import torch\nx = '\0'\n", 1, "null byte"),
    "indent": ("import torch\ndef f():\nreturn 1\n", 3, "indented block"),
    "cut": ("import torch\nx = '''abc\n", 2, "unterminated"),
    "tabs": ("import torch\nif 1:\n        a = 1\n\tb = 2\n", 4, "inconsistent use of tabs"),
    "bytes": (b"import torch\nx = '" + b"\xff\xfe'\n", 2, "not utf-8"),
    "cookie": ("# coding: klingon\nimport torch\n", 1, "unknown encoding: klingon"),
    "utf16": ("import torch\n".encode("utf-16") + b"torch", 1, "not utf-8"),
}
if sys.version_info >= (3, 14):
    del BROKEN["python2_except"]  # is Python again: both kinds are caught


@pytest.mark.parametrize(("code", "line", "said"), BROKEN.values(), ids=BROKEN)
def test_what_is_no_python_is_a_finding_with_its_line(door, code, line, said):
    door.write("bad.py", code if isinstance(code, bytes) else code.encode())
    door.write("good.py", READS)
    ran = door("lint")
    assert ran.lines == [("bad.py", line, "syntax-error"), ("good.py", 11, "host-read")]
    assert said in ran.out
    assert ran.code == 1
    assert door("lint", "--ignore", "syntax-error").lines == [("good.py", 11, "host-read")]


def test_what_is_no_python_is_told_whatever_is_selected(door):
    door.write("bad.py", "import torch\nx = (\n")
    door.write("bad.ipynb", "{")
    door.write("bad.cl", "__kernel void one(__global int *x) { @ # $ ^ ( }\n")
    ran = door("lint", "--select", "host-read,copy", "bad.py", "bad.ipynb", "bad.cl")
    assert (ran.code, {rule for _, _, rule in ran.lines}) == (1, {"syntax-error"})
    assert {path for path, _, _ in ran.lines} == {"bad.py", "bad.ipynb"}, "no rule of OpenCL C was asked"
    assert {path for path, _, _ in door("lint", "--select", "kernel", "bad.cl").lines} == {"bad.cl"}
    assert door("lint", "--select", "host-read", "--ignore", "syntax-error", "bad.py").code == 0


def test_bad_files_without_torch_are_none_of_our_business(door):
    door.write("bad.py", "print 'x'\n")
    assert door("lint").code == 0


DEEP = {
    "parentheses": "(" * 150 + "x" + ")" * 150,
    "lists": "[" * 90 + "x" + "]" * 90,
    "sum": "x" + " + x" * 50_000,
    "minus": "-" * 3000 + "x",
    "attributes": "x" + ".a" * 3000,
    "calls": "x" + "()" * 5000,
    "subscripts": "x" + "[0]" * 5000,
    "lambdas": "lambda: " * 80 + "x",
    "ternaries": "x if x else " * 800 + "x",
    "comparisons": "x" + " < x" * 5000,
    "strings": "'a' " * 5000,
    "fstring": "f'" + "{x}" * 5000 + "'",
}


def test_a_constant_that_is_made_a_view_of_itself_under_its_own_name_ends_in_an_answer():
    raw = (
        b"import torch\ndef f(x: torch.Tensor, n):\n    k = torch.tensor([[-1.0], [1.0]], device=x.device).view(1, 2)\n"
        b"    k = k.expand(n, 2)\n    return x + k\n"
    )
    found = [f for f in engine.check("view.py", raw, ALL).findings if f.rule == "tensor-literal-on-device"]
    assert [f.place.line for f in found] == [3]


@pytest.mark.parametrize("code", DEEP.values(), ids=DEEP)
def test_deep_expressions_end_in_an_answer(code):
    raw = f"import torch\ndef f(x: torch.Tensor):\n    x = x.cuda()\n    y = {code}\n    return x.item()\n".encode()
    checked = engine.check("deep.py", raw, ALL)
    assert {f.rule for f in checked.findings} & {"host-read", "syntax-error"}


STATEMENTS = {
    "elif": "if x.a:\n        pass\n" + "    elif x.b:\n        pass\n" * 900,
    "with": "".join("    " * (n + 1) + "with x.a:\n" for n in range(19))[4:] + "    " * 20 + "pass",
    "nested": "".join(" " * (4 + n) + "if x.a:\n" for n in range(95))[4:] + " " * 99 + "pass",
    "functions": "".join(" " * (4 + n) + "def g():\n" for n in range(80))[4:] + " " * 84 + "return x.item()",
    "wide": "y = x\n" + "    y = y + x\n" * 20_000,
}


@pytest.mark.parametrize("code", STATEMENTS.values(), ids=STATEMENTS)
def test_deep_and_long_blocks_end_in_an_answer(code):
    raw = f"import torch\ndef f(x: torch.Tensor):\n    x = x.cuda()\n    {code}\n    return x.item()\n".encode()
    checked = engine.check("deep.py", raw, ALL)
    assert {f.rule for f in checked.findings} & {"host-read", "syntax-error"}


def long(size: int) -> bytes:
    """A file with so many functions, one of twenty of which waits for what it gives back."""
    plain = "".join(f"\n\ndef f{n}(x: torch.Tensor):\n    y = x.cuda()\n    return y + {n}\n" for n in range(size))
    reads = "".join(f"\n\ndef g{n}(x: torch.Tensor):\n    return x.cuda().item()\n" for n in range(size // 20))
    return f"import torch\n{plain}{reads}".encode()


def test_the_work_grows_as_the_file_does():
    def calls(size: int) -> int:
        with cProfile.Profile() as profile:
            assert len(engine.check("long.py", long(size), ALL).findings) == size // 20
        return sum(entry.callcount for entry in profile.getstats())

    calls(20)  # once there is what is made once
    assert calls(800) < 5 * calls(200)


@pytest.mark.slow
def test_a_hundred_thousand_lines_are_linted():
    raw = long(20_000)
    assert raw.count(b"\n") > 100_000
    assert len(engine.check("long.py", raw, Config(all=True, select=("host-read",))).findings) == 1000


def sources() -> list[Path]:
    """The standard library and what is installed, but for what is large: that tells no more, and takes minutes."""
    found = []
    for root in map(sysconfig.get_path, ("stdlib", "purelib")):
        for folder, below, names in os.walk(root):
            below[:] = sorted(set(below) - {"__pycache__", "site-packages"})
            found += [Path(folder, name) for name in sorted(names) if name.endswith(".py")]
    return [path for path in found if path.stat().st_size < 100_000]


def test_files_of_the_standard_library_and_of_packages_are_linted_and_fixed_without_a_crash():
    """A sample; benchmarks/lint_everything.py takes them all. The word makes sure that every stage sees every file."""
    fixes = frozenset({Safety.SAFE, Safety.UNSAFE})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes in old code
        for path in sources()[::60]:
            raw = path.read_bytes() + b"\n# torch\n"
            done = run.mended(run.Job("sample.py", ALL, fixes), raw)
            if done.mended:
                ast.parse(done.mended.raw)
                again = run.mended(run.Job("sample.py", ALL, fixes), done.mended.raw)
                assert again.mended is None or again.mended.raw == done.mended.raw, path


def test_what_python_reads_is_read_the_same_way():
    """Cookies, marks and line ends: the text that is analysed is the one that Python's own tokenizer sees."""
    for cookie in (b"", b"# coding: latin-1\n", b"#!x\n# vim: set fileencoding=cp1252 :\n", b"\n# coding=utf8\n"):
        for newline in (b"\n", b"\r\n"):
            encoding = tokenize.detect_encoding(io.BytesIO(cookie + b"\n").readline)[0]
            raw = (cookie + "import torch\nx = 'ä'\n".encode(encoding)).replace(b"\n", newline)
            source = notebooks.source_of("x.py", raw)
            assert ast.dump(ast.parse(source.code)) == ast.dump(ast.parse(raw))
            assert source.edited([]) == raw


@pytest.mark.skipif(sys.platform == "win32", reason="names there are text")
def test_a_name_that_is_no_text_is_no_obstacle(door):
    name = os.fsdecode(b"tr\xffain.py")
    try:
        door.write(name, READS)
    except OSError:
        pytest.skip("this file system wants names to be text")
    ran = door("lint", "--format", "json")
    assert ran.code == 1
    assert "error" not in ran.err


def test_an_empty_file_and_a_file_of_nothing_but_torch_are_clean(door):
    door.write("empty.py", "")
    door.write("only.py", "torch")
    door.write("comment.py", "# torch")
    assert door("lint").code == 0


def test_masks_behind_a_form_feed_are_placed_right(door):
    door.write("x.py", "\f\n" + MASKS + "\f\n" + MASKS.replace("loss(", "again("))
    assert [line for _, line, _ in door("lint").lines] == [7, 16]


FOUND = {  # by tests/fuzz_lint.py
    "libcst wants a space that Python does not": """\
import torch

def train(x: torch.Tensor, steps):
    seen = 0.0
    for* step, in zip(range(steps)):
        loss = (x * step).sum()
        value = loss.item()
        if step % 3 == 0:
            seen = value
    return seen
""",
}


@pytest.mark.parametrize("code", FOUND.values(), ids=FOUND)
def test_what_fuzzing_found_stays_mended(code):
    import fuzz_lint

    assert fuzz_lint.check(code.encode()) != "broken"


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="this Python reads it")
@pytest.mark.parametrize("line", ["class Kept[T]:", "async def first[T](rows: list[T]):", "type Rows = list[int]"])
def test_what_a_newer_python_reads_is_said_to_be_that(door, line):
    door.write("new.py", f"import torch\n{line}\n    pass\n".encode())
    out = door("lint", "new.py").out
    assert "Python 3.12? " in out
    assert "in 3.11, which runs syncscope" in out


def test_python_warns_of_nothing_that_is_only_read(tmp_path):
    """From Python 3.12 on it warns of an escape that is none, on the terminal of whoever parses it."""
    file = tmp_path / "train.py"
    file.write_text('import torch\n\n\ndef step(x):\n    "to \\d"\n    if x.sum() > 0:\n        return "\\e"\n')
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        syncscope.lint(str(file))
    assert not told
