"""[tool.syncscope.lint]: the nearest table wins, every key is checked, the command line has the last word."""

import re
import tomllib
from pathlib import Path

import pytest
from linter.conftest import MASKS, READS

from syncscope.linter.config import KEYS, parsed


def table(text: str) -> str:
    return f'[project]\nname = "x"\n\n[tool.syncscope.lint]\n{text}\n'


def test_the_nearest_table_wins(door):
    door.write("pyproject.toml", table('ignore = ["host-read"]'))
    door.write("inner/pyproject.toml", table('ignore = ["nonzero"]'))
    door.write("inner/deep/pyproject.toml", '[project]\nname = "no table of ours"\n')
    for folder in (".", "inner", "inner/deep"):
        door.write(f"{folder}/train.py", READS)
        door.write(f"{folder}/loss.py", MASKS)
    assert sorted(door("lint").lines) == [
        ("inner/deep/train.py", 11, "host-read"),
        ("inner/train.py", 11, "host-read"),
        ("loss.py", 6, "nonzero"),
    ]
    assert len(door("lint", "--isolated").lines) == 6


def test_the_command_line_wins_over_the_table(door):
    door.write("pyproject.toml", table('select = ["nonzero"]\nmin-confidence = "high"'))
    door.write("train.py", READS)
    assert door("lint").lines == []
    assert door("lint", "--select", "host-read", "--min-confidence", "low").lines == [("train.py", 11, "host-read")]


def test_a_table_can_be_named(door):
    door.write("strict/ci.toml", table('ignore = ["host-read"]'))
    door.write("train.py", READS)
    assert door("lint", "--config", "strict/ci.toml").lines == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            'selct = ["nonzero"]',
            "pyproject.toml:5: unknown key 'selct' in [tool.syncscope.lint]\n hint: did you mean 'select'",
        ),
        ('[tool.syncscope]\nselect = ["nonzero"]', "pyproject.toml:6: unknown key 'select' in [tool.syncscope]\n"),
        ("[tool.syncscope.lnt]\nselect = []", "unknown key 'lnt' in [tool.syncscope]\n hint: the table is [tool.sync"),
        ("select = 3", "pyproject.toml:5: select is a list of strings, not 3"),
        ('all = "yes"', "all is true or false, not 'yes'"),
        ('min-confidence = "hihg"', "did you mean 'high'?"),
        ('per-file-ignores = ["x"]', "per-file-ignores maps patterns to lists of rules"),
        ('ignore = ["nonzeros"]', "no rule is called 'nonzeros'"),
        ("select = [", "pyproject.toml: "),
        ('rules = ["nowhere"]', "pyproject.toml:5: no such folder of rules: nowhere"),
        ('exclude = ["build", "!"]', "pyproject.toml:5: exclude: '!' is no pattern"),
        ('backend = "cuda"', "pyproject.toml:5: backend is one of ocl, not 'cuda'"),
    ],
)
def test_a_mistake_names_file_line_and_what_was_meant(door, text, said):
    door.write("pyproject.toml", table(text))
    door.write("train.py", READS)
    ran = door("lint")
    assert ran.code == 2
    assert said in ran.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            'select = [\n  "nonzero",\n  "hots-read",\n]',
            "7: no rule is called 'hots-read'\n hint: did you mean 'host-read'",
        ),
        ('per-file-ignores = {"*.py" = ["nonzeros"]}', "5: no rule is called 'nonzeros'"),
        ("selct = []", "5: unknown key 'selct'"),
        ('rules = ["nowhere"]', "5: no such folder of rules: inner/deep/nowhere"),
        ("select = [", "Invalid value (at end of document)"),
    ],
)
def test_a_mistake_in_a_nested_table_names_that_file(door, text, said):
    door.write("pyproject.toml", table('ignore = ["host-read"]'))
    door.write("inner/deep/pyproject.toml", table(text))
    door.write("inner/deep/train.py", READS)
    ran = door("lint")
    assert ran.code == 2
    assert ran.err.startswith("error: inner/deep/pyproject.toml:")
    assert said in ran.err


def test_a_mistake_on_the_command_line_names_no_file(door):
    door.write("pyproject.toml", table('ignore = ["host-read"]'))
    door.write("train.py", READS)
    assert door("lint", "--select", "hots-read").err.startswith("error: no rule is called 'hots-read'")


def test_per_file_ignores_are_patterns_of_gitignore(door):
    door.write(
        "pyproject.toml",
        table('per-file-ignores = {"scripts/**" = ["host-read"], "loss.py" = ["nonzero", "number-at-positions"]}'),
    )
    for name in ("scripts/deep/train.py", "src/train.py"):
        door.write(name, READS)
    door.write("src/loss.py", MASKS)
    assert door("lint").lines == [("src/train.py", 11, "host-read")]


OFFERED = """import torch


class Sphere:
    def dist(self, x: torch.Tensor):
        if x is None:
            raise ValueError(x.min().item())
        return x.sum().item()

    def save_to(self, x: torch.Tensor):
        return x.max().item()
"""


@pytest.mark.parametrize(
    ("hot", "lines"),
    [
        ([], set()),
        (["geo/*.py:dist"], {8}),
        (["geo/math.py:Sphere.*"], {8, 11}),
        (["geo"], {8, 11}),
        (["other/*.py"], set()),
    ],
)
def test_hot_names_what_the_steps_of_others_call(door, hot, lines):
    door.write("pyproject.toml", table(f"hot = {hot}"))
    door.write("geo/__init__.py", "")
    door.write("geo/math.py", OFFERED)
    door.write("other/__init__.py", "")
    ran = door("lint", "geo")
    assert {line for _, line, _ in ran.lines} == lines
    assert ("`Sphere.dist` runs in every step, as the configuration says" in ran.out) == bool(lines)


@pytest.mark.parametrize(("cold", "lines"), [([], {5, 9}), (["steps.py:*_scores"], {5}), (["steps.py"], set())])
def test_cold_names_what_runs_in_no_step_though_it_is_called_so(door, cold, lines):
    door.write("pyproject.toml", table(f"cold = {cold}\nhot = ['steps.py']"))
    door.write(
        "steps.py",
        """\
        import torch


        def training_step(x: torch.Tensor):
            return x.sum().item()


        def loss_of_scores(x: torch.Tensor):
            return x.max().item()
        """,
    )
    ran = door("lint", "steps.py")
    assert {line for _, line, _ in ran.lines} == lines
    if cold:
        why = door("lint", "--explain-finding", "steps.py:9").out
        assert "`loss_of_scores` runs in no step, as the configuration says" in why


@pytest.mark.parametrize("hot", [[], ["geo/math.py:dist"]])
def test_what_the_functions_call_that_are_hot_is_as_if_a_step_called_it(door, hot):
    door.write("pyproject.toml", table(f"hot = {hot}"))
    door.write("geo/__init__.py", "from geo.math import dist\n")
    door.write(
        "geo/math.py",
        """
        import torch

        from geo.parts import Frame, largest


        def dist(x: torch.Tensor):
            return Frame(x).setup() + largest(x)
        """,
    )
    door.write(
        "geo/parts.py",
        """
        import torch


        class Frame:
            def __init__(self, x: torch.Tensor):
                self.x = x

            def setup(self):
                return self.x.sum().item()

            def save(self):
                return self.x.min().item()


        def largest(x: torch.Tensor):
            return x.max().item()


        def smallest(x: torch.Tensor):
            return x.min().item()
        """,
    )
    door.write(
        "train.py",
        """
        import torch


        def train(model: torch.nn.Module, loader, optimizer):
            for x in loader:
                model(x.to("cuda", non_blocking=True)).mean().backward()
                optimizer.step()
        """,
    )
    told = re.findall(r"^geo/parts.py:(\d+):\d+: also waits in a step", door("lint", ".").out, re.MULTILINE)
    assert told == (["10", "17"] if hot else [])


@pytest.mark.parametrize(
    "said",
    [["--select", "copy", "--ignore", "copy"], ["--select", "host-read", "--ignore", "ALL"], ["--ignore", "ALL"]],
)
def test_a_gate_on_no_rule_does_not_pass(door, said):
    door.write("train.py", READS)
    for ran in (door("lint", *said), door("lint", *said, "-", stdin=READS)):
        assert (ran.code, "no rule is on" in ran.err) == (2, True)
    assert door("lint", "--select", "syntax-error", "--ignore", "copy").code == 0
    assert door("lint", "--select", "unused-allow").code == 0


def test_one_folder_of_several_may_have_no_rule_on(door):
    door.write("pkg/train.py", READS)
    door.write("old/train.py", READS)
    door.write("old/pyproject.toml", table('ignore = ["ALL"]'))
    assert door("lint").lines == [("pkg/train.py", 11, "host-read")]
    assert door("lint", "old").code == 2


@pytest.mark.parametrize("name", ["ALL", "data-dependent-shape"])
def test_per_file_ignores_take_families_and_all(door, name):
    door.write("pyproject.toml", table(f'per-file-ignores = {{"tests/**" = ["{name}"]}}'))
    for folder in ("tests", "src"):
        door.write(f"{folder}/loss.py", MASKS.replace("nonzero", "unique"))
    assert {path for path, _, _ in door("lint").lines} == {"src/loss.py"}


def test_exclude_leaves_out_what_is_named_where_that_is_wanted(door):
    door.write("pyproject.toml", table('exclude = ["vendored"]'))
    for name in ("vendored/train.py", "train.py"):
        door.write(name, READS)
    named = ("lint", "vendored/train.py", "train.py")
    assert len(door(*named).lines) == 2
    assert [path for path, _, _ in door(*named, "--force-exclude").lines] == ["train.py"]
    said = "vendored/train.py: linted for being named, though `exclude` has it (--force-exclude leaves it out)"
    assert (said in door(*named).err, said in door(*named, "--force-exclude").err) == (True, False)
    door.write("pyproject.toml", table('exclude = ["vendored"]\nforce-exclude = true'))
    assert [path for path, _, _ in door(*named).lines] == ["train.py"]


def test_exclude_leaves_out_what_is_found_but_not_what_is_named(door):
    door.write("pyproject.toml", table('exclude = ["vendored", "*_old.py"]'))
    for name in ("vendored/train.py", "train_old.py", "train.py"):
        door.write(name, READS)
    assert [path for path, _, _ in door("lint").lines] == ["train.py"]
    assert [path for path, _, _ in door("lint", "train_old.py", "vendored/train.py").lines] == [
        "train_old.py",
        "vendored/train.py",
    ]


def test_the_docs_show_every_key_and_only_these():
    text = (Path(__file__).parents[2] / "docs" / "lint.md").read_text()
    shown = next(block for block in re.findall(r"```toml\n(.*?)```", text, re.DOTALL) if "tool.syncscope" in block)
    table = tomllib.loads(shown)["tool"]["syncscope"]["lint"]
    assert set(table) == set(KEYS)
    assert parsed(table, "pyproject.toml", shown).min_confidence == "medium"


def test_a_pattern_whose_folder_is_not_there_is_named(door):
    patterns = ("nothere/**", "scripts/**", "src/gone.py", "src/train.py", "gone.py", "*/other/*.py", "src/ol[d]/x.py")
    door.write(
        "pyproject.toml", table("per-file-ignores = { " + ", ".join(f'"{p}" = ["ALL"]' for p in patterns) + " }")
    )
    for name in ("scripts/a.py", "src/train.py"):
        door.write(name, READS)
    ran = door("lint")
    assert ran.code == 0
    assert "note: pyproject.toml:5: per-file-ignores has 'nothere/**', and there is no nothere\n" in ran.err
    assert "per-file-ignores has 'src/gone.py', and there is no src/gone.py\n" in ran.err
    assert ran.err.count("per-file-ignores") == 2


def test_a_pattern_to_exclude_that_is_misspelt_is_named_and_one_of_what_may_come_is_not(door):
    door.write("pyproject.toml", table('exclude = ["tset", "build", "src/gone/", "*_pb2.py", "scripts"]'))
    for name in ("scripts/a.py", "test/train.py", "src/b.py"):
        door.write(name, READS)
    ran = door("lint")
    assert "note: pyproject.toml:5: exclude has 'tset': did you mean 'test'?\n" in ran.err
    assert "note: pyproject.toml:5: exclude has 'src/gone/', and there is no src/gone/\n" in ran.err
    assert ran.err.count("exclude has") == 2


def test_a_folder_of_imports_that_is_not_there_is_named(door):
    door.write("pyproject.toml", table('src = ["nope", "src"]'))
    door.write("src/train.py", READS)
    ran = door("lint")
    assert "note: pyproject.toml:5: src has 'nope', and there is no such folder\n" in ran.err
    assert ran.err.count("src has") == 1
