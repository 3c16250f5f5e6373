"""`--since REV`: what was there where the branch left the revision is not told, wherever its code is now."""

import json

import pytest
from linter.conftest import MASKS, READS

SECOND = READS + "        print(loss.tolist())\n"
KEEPS = """\
import torch


def forward(x: torch.Tensor):
    return x.exp()[x > 0]
"""


def test_only_what_was_not_there_is_told(door, git):
    git.commit(train=READS, other=READS)
    door.write("train.py", SECOND)
    ran = door("lint", "--since", "main")
    assert (ran.code, ran.lines) == (1, [("train.py", 12, "host-read")])
    assert "1 finding in 1 of 1 file that changed since main (" in ran.err
    assert "1 there before, at main (" in ran.err
    door.write("train.py", "import math\n" + READS)
    ran = door("lint", "--since", "main")
    assert (ran.code, ran.lines) == (0, [])
    assert "no findings in 1 file that changed since main" in ran.err


def test_it_is_compared_with_where_the_branch_left_the_revision(door, git):
    git.commit(train=READS)
    git("checkout", "-q", "-b", "work")
    git.commit(train=SECOND)
    git("checkout", "-q", "main")
    git.commit(train="import torch\n")  # what main mended since is not brought back by this branch
    git("checkout", "-q", "work")
    assert door("lint", "--since", "main").lines == [("train.py", 12, "host-read")]


def test_untracked_files_are_new_and_ignored_ones_are_linted_by_name_alone(door, git):
    git.commit(train=READS)
    door.write(".gitignore", "mine.py\n")
    door.write("fresh.py", READS)
    door.write("mine.py", READS)
    assert door("lint", "--since", "HEAD").lines == [("fresh.py", 11, "host-read")]
    assert door("lint", "--since", "HEAD", "mine.py").lines == [("mine.py", 11, "host-read")]


def test_a_file_that_is_renamed_and_edited_brings_its_own_along(door, git):
    git.commit(lib__train=READS)
    git("mv", "lib", "src")
    door.write("src/train.py", SECOND)
    assert door("lint", "--since", "HEAD").lines == [("src/train.py", 12, "host-read")]
    assert door("lint", "--since", "HEAD", "src").lines == [("src/train.py", 12, "host-read")]


def test_a_function_that_moves_to_another_file_is_known_and_its_copy_is_new(door, git):
    git.commit(train=READS + KEEPS, ops="import torch\n")
    door.write("ops.py", KEEPS)
    assert door("lint", "--since", "HEAD").lines == [("ops.py", 5, "boolean-mask-read")]
    door.write("train.py", READS)
    assert door("lint", "--since", "HEAD").lines == []


@pytest.mark.parametrize("there", ["", "import torch\n\n\ndef other(x):\n    return x\n\n\n"], ids=["new", "there"])
def test_a_file_that_is_named_alone_is_told_what_moved_there_from_one_that_is_not(door, git, there):
    git.commit(train=READS + KEEPS, **({"ops": there} if there else {}))
    door.write("ops.py", there + KEEPS.replace("import torch\n\n\n", "") if there else KEEPS)
    assert len(door("lint", "--since", "HEAD", "ops.py").lines) == 1, "train.py has it, too"
    door.write("train.py", READS)
    assert door("lint", "--since", "HEAD", "ops.py").lines == []
    door.write("train.py", READS + KEEPS.replace("x.exp()[x > 0]", "x.exp()").replace("import torch", ""))
    assert len(door("lint", "--since", "HEAD", "ops.py").lines) == 1, "the function is still where it was"


def test_a_function_that_was_there_is_none_that_moved_there(door, git):
    quiet = READS.replace("        print(loss.item())\n", "")
    git.commit(old=READS, other=quiet)
    git("rm", "-q", "old.py")
    door.write("other.py", READS)
    assert door("lint", "--since", "HEAD").lines == [("other.py", 11, "host-read")]
    git("rm", "-q", "-f", "other.py")
    door.write("fresh.py", READS)
    assert door("lint", "--since", "HEAD").lines == []


COUNTS = "import torch\n\n\ndef count(x: torch.Tensor):\n    return x.sum().item()\n"
ASKS = READS.replace("import torch", "import torch\nfrom ops import count").replace("print(loss.item())", "count(loss)")


def test_a_line_that_the_steps_reach_now_is_new(door, git):
    """Heat is judged by the whole project on both sides: by what steps called then, and by what they call now."""
    idle = ASKS.replace("        count(loss)", "")
    git.commit(train=idle, ops=COUNTS)
    door.write("ops.py", COUNTS + "\n\nLIMIT = 3\n")
    assert door("lint", "--since", "HEAD").lines == []
    door.write("train.py", ASKS)
    assert door("lint", "--since", "HEAD").lines == [("ops.py", 5, "host-read")]
    git.commit()
    door.write("ops.py", "LIMIT = 3\n" + COUNTS)
    assert "ops.py:6:" in door("lint").out
    assert door("lint", "--since", "HEAD").lines == []


IDLE = ASKS.replace("        count(loss)", "")


def test_what_the_steps_reach_only_since_is_new_in_a_file_that_did_not_change(door, git):
    git.commit(train=IDLE, ops=COUNTS, other=COUNTS.replace("count", "unasked"))
    door.write("train.py", ASKS)
    for _ in range(2):  # the second time what was reached is kept
        ran = door("lint", "--since", "HEAD")
        assert (ran.code, ran.lines) == (1, [("ops.py", 5, "host-read")])
        assert "1 finding in 1 of 1 file that changed since HEAD (" in ran.err
        assert ") and 1 more that steps may reach more of\n" in ran.err
    assert door("lint", "--since", "HEAD", "ops.py").lines == [("ops.py", 5, "host-read")], "named alone"
    door("lint", "--since", "HEAD", "--add-allow")
    assert "return x.sum().item()  # syncscope: allow[host-read]" in (door.folder / "ops.py").read_text()


def test_what_the_steps_reach_only_since_is_named_where_it_is_not_linted(door, git):
    git.commit(train=IDLE, ops=COUNTS)
    door.write("train.py", ASKS)
    ran = door("lint", "--since", "HEAD", "train.py")
    assert (ran.code, ran.lines) == (0, [])
    assert "note: ops.py: steps may reach more there since HEAD (" in ran.err
    door.write("pyproject.toml", '[tool.syncscope.lint]\nexclude = ["ops.py"]\n')
    assert "ops.py" not in door("lint", "--since", "HEAD", "train.py").err


def test_what_the_steps_reached_before_is_not_new(door, git):
    git.commit(train=ASKS, ops=COUNTS, mine="LIMIT = 3\n")
    door.write("mine.py", ASKS)
    assert door("lint", "--since", "HEAD").lines == []
    git("rm", "-q", "-f", "train.py")
    ran = door("lint", "--since", "HEAD")
    assert (ran.code, ran.lines) == (0, []), "another file asks for it now"


def test_what_goes_from_one_file_reaches_nothing_anew_in_another(door, git):
    git.commit(train=ASKS, ops=COUNTS, deep__gone=COUNTS)
    git("rm", "-q", "-r", "deep")
    ran = door("lint", "--since", "HEAD")
    assert (ran.code, ran.lines) == (0, [])
    assert "no files to lint that changed since HEAD (" in ran.err
    assert "reach" not in ran.err


def test_of_equal_lines_those_are_new_that_were_added(door, git):
    body = "        optimizer.step()\n        print(loss.item())\n"
    git.commit(train=READS)
    door.write("train.py", READS.replace(body, f"        print(loss.item())\n{body}"))
    assert door("lint", "--since", "HEAD").lines == [("train.py", 10, "host-read")]
    door("lint", "--since", "HEAD", "--add-allow")
    assert "print(loss.item())  # syncscope: allow[host-read]\n" + body in (door.folder / "train.py").read_text()


ODD = "        if loss.isnan():\n            raise ValueError\n"


def test_a_function_that_is_renamed_and_edited_brings_its_own_along(door, git):
    git.commit(train=READS)
    edited = READS.replace("        loss.backward()\n", f"{ODD}        loss.backward()\n")
    door.write("train.py", edited.replace("def train", "def train_model"))
    assert door("lint", "--since", "HEAD").lines == [("train.py", 9, "tensor-in-condition")]
    other = "import torch\n\n\ndef train_model(model):\n    print(model(torch.ones(3, device='cuda')).sum().item())\n"
    door.write("train.py", other.replace("    print", "    while True:\n        print"))
    assert door("lint", "--since", "HEAD", "--all").lines, "half of its lines have to be the same"


def test_what_is_put_in_where_it_was_called_is_known(door, git):
    git.commit(train=ASKS, ops=COUNTS)
    door.write("train.py", ASKS.replace("from ops import count\n", "").replace("count(loss)", "loss.sum().item()"))
    door.write("ops.py", "import torch\n")
    assert door("lint", "--since", "HEAD").lines == []
    door.write("ops.py", COUNTS)
    assert door("lint", "--since", "HEAD").lines == [("train.py", 11, "host-read")], "there are two now"


def test_what_git_ignores_is_there_on_both_sides(door, git):
    """A script of one's own that no commit holds calls what is hot, then as now."""
    door.write(".gitignore", "mine/\n")
    git.commit(ops=COUNTS, train=READS)
    door.write("mine/own.py", ASKS)
    door.write("ops.py", "LIMIT = 3\n" + COUNTS)
    assert "ops.py:6:" in door("lint", "ops.py").out
    assert door("lint", "--since", "HEAD").lines == []


@pytest.mark.parametrize("most", [8, 100])
def test_a_project_that_is_too_large_now_was_too_large_then(door, git, monkeypatch, most):
    """Data lie in its folder, which no commit holds: of so many files nothing is said of what steps reach."""
    monkeypatch.setattr("syncscope.project.folders._MOST_FILES", most)
    door.write(".gitignore", "data/\n")
    idle = ASKS.replace("        count(loss)", "")
    git.commit(train=idle, ops=COUNTS)
    for number in range(10):
        door.write(f"data/{number}.bin", b"")
    door.write("ops.py", "LIMIT = 3\n" + COUNTS)
    assert ("ops.py:6:" in door("lint", "--all", "ops.py").out, door("lint", "--since", "HEAD").lines) == (True, [])
    assert ("1 in cold code" in door("lint", "ops.py").err) == (most == 100)


def test_the_configuration_of_today_holds_for_both_sides(door, git):
    door.write(
        "pyproject.toml", '[tool.syncscope.lint]\nignore = ["host-read"]\nper-file-ignores = { "src/old*" = ["ALL"] }\n'
    )
    git.commit(src__train=READS, src__old_train=READS)
    door.write("pyproject.toml", "[tool.syncscope.lint]\n")
    door.write("src/train.py", "import math\n" + READS)
    door.write("src/old_train.py", "import math\n" + READS)
    assert door("lint", "--since", "HEAD").lines == []


def test_what_waits_in_a_step_is_a_finding_where_it_is_new(door, git):
    waits = READS.replace("images.cuda(non_blocking=True)", "images.cuda()")
    git.commit(train=waits)
    door.write("train.py", waits.replace("labels.cuda(non_blocking=True)", "labels.cuda()"))
    assert door("lint").lines == [("train.py", 11, "host-read")], "the others are told in a line each"
    assert door("lint", "--since", "HEAD").lines == [("train.py", 7, "blocking-upload")]


def test_fix_mends_what_is_new_alone(door, git):
    git.commit(masks=MASKS)
    path = door.write("masks.py", MASKS + MASKS.replace("import torch", "").replace("def loss", "def forward"))
    ran = door("lint", "--fix", "--since", "HEAD")
    assert "made 1 fix" in ran.err
    text = path.read_text()
    assert text.startswith(MASKS)
    assert "nonzero" not in text.removeprefix(MASKS)


def test_a_baseline_holds_beside_it(door, git):
    git.commit(train=READS)
    door.write("train.py", SECOND)
    door("lint", "--write-baseline", "known.json")
    ran = door("lint", "--since", "HEAD", "--baseline", "known.json")
    assert (ran.code, ran.lines) == (0, [])
    assert "2 known to the baseline" in ran.err


@pytest.mark.parametrize("form", ["github", "gitlab", "sarif", "junit", "json"])
def test_what_a_ci_reads_has_only_what_is_new(door, git, form):
    git.commit(train=READS)
    door.write("train.py", SECOND)
    ran = door("lint", "--since", "HEAD", "--format", form)
    assert ran.code == 1
    assert "`loss.tolist()`" in ran.out
    assert "`loss.item()`" not in ran.out


def test_nothing_is_left_behind_and_the_second_run_reads_what_was_kept(door, git, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    git.commit(train=READS)
    door.write("train.py", SECOND)
    before = git("status", "--porcelain"), sorted(path.name for path in tmp_path.iterdir())
    first = door("lint", "--since", "HEAD", "--no-cache")
    assert (git("status", "--porcelain"), sorted(path.name for path in tmp_path.iterdir())) == before
    assert door("lint", "--since", "HEAD").out == first.out
    (kept,) = (tmp_path / "cache" / "since").iterdir()
    was = json.loads(kept.read_text())
    kept.write_text(json.dumps({**was, "found": {key: [] for key in was["found"]}}))
    assert len(door("lint", "--since", "HEAD").lines) == 2, "nothing was known, as it says"
    kept.write_text("{")
    assert door("lint", "--since", "HEAD").out == first.out


def test_a_hook_may_say_where_the_repository_is(door, git, monkeypatch):
    git.commit(lib__train=READS)
    door.write("lib/train.py", SECOND)
    monkeypatch.setenv("GIT_DIR", ".git")
    monkeypatch.setenv("GIT_INDEX_FILE", ".git/index")
    assert door("lint", "--since", "HEAD", "lib").lines == [("lib/train.py", 12, "host-read")]


def test_a_repository_within_is_left_out_and_named(door, git, tmp_path):
    git.commit(train=READS)
    git("clone", "-q", str(door.folder), str(tmp_path / "other"))
    git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(tmp_path / "other"), "within")
    git.commit()
    door.write("within/train.py", SECOND)
    ran = door("lint", "--since", "HEAD")
    assert (ran.code, ran.lines) == (0, [])
    assert "within is a repository of its own" in ran.err


def refused(ran) -> str:
    assert ran.code == 2, ran
    assert len(ran.err.strip().splitlines()) == 2, "what happened, and what to do"
    return str(ran.err)


def test_a_revision_that_is_not_there_is_an_error_that_says_what_to_do(door, git, tmp_path):
    git.commit(train=READS)
    git("branch", "topic")
    assert "git knows no such revision here\n hint: name a branch, a tag or a commit" in refused(
        door("lint", "--since", "nope")
    )
    assert "hint: name a branch" in refused(door("lint", "--since", "--help"))
    other = tmp_path / "other"
    git("clone", "-q", str(door.folder), str(other))
    assert "hint: did you mean 'origin/topic'?" in refused(door("lint", "--since", "topic", str(other)))
    git("checkout", "-q", "--orphan", "apart")
    git.commit(train=SECOND)
    said = refused(door("lint", "--since", "main"))
    assert "no commit is known from which both it and HEAD come\n hint: name a commit that is in" in said


def test_a_shallow_clone_is_told_to_fetch_its_history(door, git, tmp_path):
    first = git.commit(train=READS)
    git("checkout", "-q", "-b", "work")
    git.commit(train=SECOND)
    git("checkout", "-q", "main")
    git.commit(other="import torch\n")
    shallow = tmp_path / "shallow"
    git("clone", "-q", "--depth=1", "--no-single-branch", "-b", "work", f"file://{door.folder}", str(shallow))
    for said in (first, "origin/main"):  # not there; there, but not where both come from
        ran = door("lint", "--since", said, str(shallow))
        assert "`git fetch --unshallow`, or `fetch-depth: 0` for actions/checkout" in refused(ran)
    git("fetch", "-q", "--unshallow", within=shallow)
    assert [line for _, line, _ in door("lint", "--since", "origin/main", str(shallow)).lines] == [12]


def test_a_folder_in_no_repository_is_an_error(door):
    door.write("train.py", READS)
    assert "is in no git repository" in refused(door("lint", "--since", "main"))


@pytest.mark.parametrize(
    "other", [("--write-baseline", "a.json"), ("--prune-baseline",), ("--from-trace", "a.json"), ("-",)]
)
def test_what_makes_no_sense_beside_it_is_refused(door, git, other):
    assert "do not go together" in refused(door("lint", "--since", "main", *other, stdin=""))


def test_what_is_cold_may_be_new_or_old(door, git):
    """It is not compared with what was there, and is not counted as new."""
    cold = "\n\ndef evaluate(x: torch.Tensor):\n    return x.cuda().sum().item()\n"
    git.commit(train=READS + cold)
    door.write("train.py", SECOND + cold)
    ran = door("lint", "--since", "main")
    assert "not shown: 1 in cold code, new or old (--all), 1 there before, at main (" in ran.err
