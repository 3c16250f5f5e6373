"""Patterns of .gitignore: what git says, and in time that grows no faster than pattern and path."""

import itertools
import os
import re
import shutil
import subprocess

import pytest
from calls import grows_at_most, lines_run
from effort import draws
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from linter.conftest import READS

from syncscope.linter import files, globs

NAMES = ("a", "b", "ab", "aab", "a.b", "*", "[a", "a b")
WORDS = [*"a b * ** **/ /** ? / [ ] [a-b] [!a] []a] [[:alpha:]] [/a] ! ^ - . #".split(), "\\", " "]


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """A repository with files and folders of these names, three deep, and all its paths (a folder's end in a slash)."""
    if not shutil.which("git"):
        pytest.skip("git is not installed")
    root = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", "."], cwd=root, check=True)
    paths = []
    for parts in itertools.product(NAMES[:5], NAMES[1:5], NAMES):
        (root / parts[0] / parts[1]).mkdir(parents=True, exist_ok=True)
        (root / "/".join(parts)).touch()
        paths += ["/".join(parts), "/".join(parts[:2]) + "/", parts[0] + "/"]
    for name in NAMES[5:]:
        (root / name).touch()
        paths.append(name)
    return root, sorted(set(paths))


def said_by_git(root, paths: list[str], lines: str) -> set[str]:
    (root / ".git/info/exclude").write_bytes(lines.encode())
    command = ["git", "check-ignore", "--no-index", "-z", "--stdin"]
    ran = subprocess.run(command, cwd=root, input="\0".join(p.rstrip("/") for p in paths).encode(), capture_output=True)
    assert ran.returncode in (0, 1), ran.stderr
    said = set(ran.stdout.decode().split("\0"))
    return {path for path in paths if path.rstrip("/") in said}


def said_by_us(root, paths: list[str], lines: str) -> set[str]:
    by = [files.Ignore(str(root), tuple(globs.patterns(lines.encode())))]
    left_out: set[str] = set()
    for path in sorted(paths):
        above = any(parent in left_out for parent in itertools.accumulate(p + "/" for p in path.split("/")[:-1]))
        if above or files.ignored(os.path.join(root, path.rstrip("/")), path.endswith("/"), by):
            left_out.add(path)
    return left_out


@settings(max_examples=draws(75), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(st.lists(st.sampled_from(WORDS), max_size=7).map("".join), min_size=1, max_size=3).map("\n".join))
@example(lines="a/**/**/b\n!a/b/")
@example(lines="*\n!*/\n!a*")
@example(lines="a \\ \nb\\\\ \r\na b\\")
@example(lines="/*/b/\n!/a/b")
@example(lines="**\\/b")
def test_what_is_left_out_is_what_git_leaves_out(repository, lines):
    """Git takes `**` for folders right after other text, too, as in `a**/b`, up to 2.39 at least, and no longer by 2.55."""
    assume(not re.search(r"[^/\n]\*\*/", lines))
    root, paths = repository
    assert said_by_us(root, paths, lines) == said_by_git(root, paths, lines)


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("*a" * 20 + "b", "a" * 120),
        ("[ab]*" * 20 + "c", "ab" * 60),
        ("**/a/" * 12 + "b", "a/" * 60 + "c"),
        ("x/" + "*a*/**/" * 8 + "b", "x/" + "aaa/" * 40 + "c"),
        ("?*" * 40 + "b", "a" * 120),
    ],
)
def test_a_pattern_takes_time_in_proportion(line, path):
    def match(times: int) -> None:
        for factor in (1, times):  # the pattern grows with the path
            pattern = globs.pattern((line[:-1] * factor + line[-1]).encode())
            assert pattern is None or not pattern.matches((path * times).encode(), False)

    # twice the pattern on twice the path is four times the work; a pattern that goes back takes 2**20 times as much
    assert lines_run(match, 2) < 6 * lines_run(match, 1)
    assert lines_run(match, 1) < 60_000


@pytest.mark.parametrize("key", ["exclude", "per-file-ignores", ".gitignore"])
def test_no_pattern_of_a_repository_holds_the_linter_up(door, key):
    (door.folder / ".git").mkdir()
    pattern = "*a" * 20 + "b"
    table = f'exclude = ["{pattern}"]' if key == "exclude" else f'per-file-ignores = {{"{pattern}" = ["host-read"]}}'
    if key == ".gitignore":
        door.write(".gitignore", pattern)
    else:
        door.write("pyproject.toml", f"[tool.syncscope.lint]\n{table}\n")
    name = "a" * 120 + ".py"
    door.write(name, READS)
    assert [path for path, _, _ in door("lint").lines] == [name]


def test_a_long_gitignore_is_read_in_time_that_grows_with_it():
    assert grows_at_most(lambda n: globs.patterns(b"*a?[b-d]**x/\n" * n), 2000)
