"""A baseline holds what a project lives with; moved lines stay known, new findings do not."""

import json

import pytest
from linter.conftest import MASKS, READS


def test_a_baseline_hides_what_it_holds_and_nothing_else(door):
    path = door.write("train.py", READS)
    ran = door("lint", "--write-baseline", "known.json")
    assert ran.code == 0
    assert "1 finding written to known.json" in ran.err
    ran = door("lint", "--baseline", "known.json")
    assert (ran.code, ran.lines) == (0, [])
    assert "1 known to the baseline" in ran.err
    path.write_text(READS + "        print(loss.sum().item())\n")
    assert door("lint", "--baseline", "known.json").lines == [("train.py", 12, "host-read")]


def test_moved_and_indented_lines_stay_known(door):
    path = door.write("train.py", READS)
    door("lint", "--write-baseline", "known.json")
    moved = READS.replace("import torch\n", "import math\nimport torch\n\nX = math.pi\n")
    path.write_text(moved.replace("print(loss.item())", "if True:\n            print( loss.item())".replace("( ", "(")))
    assert door("lint", "--baseline", "known.json").lines == []


def test_a_second_finding_with_the_same_text_is_new(door):
    path = door.write("train.py", READS)
    door("lint", "--write-baseline", "known.json")
    path.write_text(READS + "        print(loss.item())\n")
    assert len(door("lint", "--baseline", "known.json").lines) == 1


def test_a_renamed_file_brings_its_own_along(door):
    path = door.write("train.py", READS)
    door("lint", "--write-baseline", "known.json")
    path.rename(door.folder / "main.py")
    assert door("lint", "--baseline", "known.json").lines == []


def test_a_copied_file_does_not(door):
    door.write("train.py", READS)
    door("lint", "--write-baseline", "known.json")
    door.write("copy.py", READS)
    assert door("lint", "--baseline", "known.json").lines == [("copy.py", 11, "host-read")]


def test_the_table_names_a_baseline_relative_to_itself(door, monkeypatch):
    door.write("pyproject.toml", '[tool.syncscope.lint]\nbaseline = "lint/known.json"\n')
    door.write("lint/x.txt", "")
    door.write("src/train.py", READS)
    door("lint", "--isolated", "--write-baseline", "lint/known.json")
    assert door("lint").lines == []
    monkeypatch.chdir(door.folder / "src")
    assert door("lint").lines == []


def test_a_baseline_can_be_read_and_has_no_lines_that_change_with_every_edit(door):
    door.write("loss.py", MASKS)
    door("lint", "--write-baseline", "known.json")
    told = json.loads((door.folder / "known.json").read_text())
    assert told["version"] == 5
    (entry,) = told["findings"]["loss.py"]
    assert entry["rule"] == "nonzero"
    assert entry["code"] == "background = torch.nonzero(target == 9, as_tuple=True)"
    assert entry["function"] == "loss"
    assert set(entry) == {"rule", "code", "function", "wait"}
    assert set(told["functions"]["loss.py"]) == {"", "loss"}


def test_what_is_no_baseline_is_said_to_be_none(door):
    door.write("train.py", READS)
    door.write("bad.json", "[]")
    door.write("new.json", '{"version": 99, "findings": {}}')
    assert "cannot read the baseline none.json" in door("lint", "--baseline", "none.json").err
    for text, why in (("[]", "it is JSON of another shape"), ("{}", "it has no 'version'")):
        door.write("bad.json", text)
        assert f"bad.json: not a baseline ({why})" in door("lint", "--baseline", "bad.json").err
    assert "a baseline of version 99" in door("lint", "--baseline", "new.json").err


CONFIGURED = '[tool.syncscope.lint]\nbaseline = "known.json"\n'
BROKEN_UP = """\
        print(
            (
                loss.item()
            ),
        )  # type: ignore
"""


def held(door, name="known.json"):
    return [
        entry["code"]
        for entries in json.loads((door.folder / name).read_text())["findings"].values()
        for entry in entries
    ]


@pytest.mark.parametrize("how", ["key", "option"])
def test_a_baseline_that_is_written_anew_holds_all_that_is_found_whatever_it_held(door, how):
    door.write("train.py", READS)
    options = ["--baseline", "known.json"] if how == "option" else []
    door("lint", "--write-baseline", "known.json")
    if how == "key":
        door.write("pyproject.toml", CONFIGURED)
    door.write("train.py", READS + "        print(loss.sum().item())\n")
    ran = door("lint", *options, "--write-baseline", "known.json")
    assert "1 finding and 1 more that waits in a step written to known.json" in ran.err
    assert ("pass it as --baseline" in ran.err) == (how == "option"), "where the key names it nothing is to be passed"
    assert sorted(held(door)) == ["print(loss.item())", "print(loss.sum().item())"]
    assert door("lint", *options).lines == []


def test_comments_and_line_breaks_bring_nothing_back(door):
    door.write("train.py", READS)
    door("lint", "--write-baseline", "known.json")
    row = "        print(loss.item())\n"
    for other in (BROKEN_UP, row.replace("\n", "  # once a step\n"), row.replace("(loss", "( loss")):
        door.write("train.py", READS.replace(row, other))
        assert len(door("lint").lines) == 1, "it is found as before"
        assert door("lint", "--baseline", "known.json").lines == []
    door.write("train.py", READS.replace(row, row.replace("loss.", "loss[0].")))
    assert len(door("lint", "--baseline", "known.json").lines) == 1, "another statement is new"


def test_each_finding_and_each_function_with_one_has_a_line_of_its_own(door):
    door.write("a.py", READS)
    door.write("b.py", MASKS)
    door.write("c.py", READS + READS.partition("\n\n\n")[2].replace("def train", "def tune"))
    door("lint", "--write-baseline", "known.json")
    lines = (door.folder / "known.json").read_text().splitlines()
    told = [json.loads(line.strip().removesuffix(",")) for line in lines if '"rule"' in line]
    assert len(told) == sum(map(len, json.loads("\n".join(lines))["findings"].values())) > 3
    assert door("lint", "--baseline", "known.json").lines == []
    door.write("b.py", "import torch\n")
    door("lint", "--write-baseline", "known.json")
    now = (door.folder / "known.json").read_text().splitlines()
    assert [line for line in now if line not in lines] == [], "what is mended is taken out, and no more"


def test_a_fix_is_made_of_what_is_new_alone(door):
    door.write("loss.py", MASKS)
    door("lint", "--write-baseline", "known.json")
    two = MASKS + MASKS.partition("\n\n\n")[2].replace("loss", "other_loss").replace("9", "8")
    path = door.write("loss.py", two)
    assert "made 1 fix in 2 lines\n" in door("lint", "--baseline", "known.json", "--fix").err
    now = path.read_text()
    assert now.startswith(MASKS), "what is known stays as it is"
    assert "nonzero" not in now.removeprefix(MASKS)
    assert "made 1 fix in 2 lines\n" in door("lint", "--fix").err, "without the baseline it is mended, too"


def test_what_is_mended_is_said_to_be_gone_and_can_be_taken_out(door):
    door.write("pyproject.toml", CONFIGURED)
    path = door.write("train.py", READS)
    door.write("other.py", READS)
    door("lint", "--write-baseline", "known.json")
    assert "gone" not in door("lint").err
    path.write_text(READS.replace("print(loss.item())", "optimizer.zero_grad()"))
    assert "1 known is gone: --prune-baseline takes it out of the baseline" in door("lint").err
    assert "gone" not in door("lint", "other.py").err, "of a file that was not looked at nothing is known"
    assert "gone" not in door("lint", "--select", "nonzero").err, "nor of rules that nobody asked"
    ran = door("lint", "--prune-baseline")
    assert (ran.code, ran.lines) == (0, [])
    assert "1 known finding taken out of" in ran.err
    assert held(door) == ["print(loss.item())"]
    path.write_text(READS)
    assert door("lint").lines == [("train.py", 11, "host-read")], "what was mended may not come back"
    ran = door("lint", "--prune-baseline", "--select", "nonzero")
    assert (ran.code, "--prune-baseline and --select do not go together" in ran.err) == (2, True)
    ran = door("lint", "--isolated", "--prune-baseline")
    assert (ran.code, "no baseline is named" in ran.err) == (2, True)
    ran = door("lint", "--baseline", "", "--prune-baseline")
    assert (ran.code, "no baseline is named" in ran.err) == (2, True)


@pytest.mark.parametrize(
    "off", ['ignore = ["host-read"]', 'per-file-ignores = { "src/**" = ["ALL"] }', 'select = ["nonzero"]']
)
def test_what_a_rule_would_find_that_is_switched_off_is_not_gone(door, off):
    door.write("pyproject.toml", CONFIGURED)
    door.write("src/train.py", READS)
    door("lint", "--write-baseline", "known.json")
    door.write("pyproject.toml", CONFIGURED + off)
    ran = door("lint")
    assert (ran.code, ran.lines, "gone" in ran.err) == (0, [], False)
    assert "0 known findings taken out of" in door("lint", "--prune-baseline").err
    door.write("pyproject.toml", CONFIGURED)
    assert door("lint").lines == [], "it is known when the rule comes back"


def test_of_a_file_that_is_gone_the_baseline_can_forget_all(door):
    door.write("pyproject.toml", CONFIGURED)
    path = door.write("src/train.py", READS)
    door.write("other.py", "import torch\n")
    door("lint", "--write-baseline", "known.json")
    path.unlink()
    assert "gone" not in door("lint", "other.py").err
    assert "1 known finding taken out of" in door("lint", "--prune-baseline").err
    assert held(door) == []


FIRST_FORM = {
    "version": 1,
    "findings": {
        "loss.py": [{"rule": "nonzero", "fingerprint": "0f563dac1c7255a9", "code": "background = ..."}],
        "train.py": [{"rule": "host-read", "fingerprint": "dcdcadc35f346459", "code": "print(loss.item())"}],
    },
}


def test_a_baseline_of_the_first_form_is_read_and_pruned(door):
    door.write("train.py", READS)
    door.write("loss.py", MASKS)
    door.write("known.json", json.dumps(FIRST_FORM))
    assert door("lint", "--baseline", "known.json").lines == []
    door.write("loss.py", "import torch\n")
    door("lint", "--baseline", "known.json", "--prune-baseline")
    assert json.loads((door.folder / "known.json").read_text()) == {
        "version": 1,
        "findings": {"train.py": FIRST_FORM["findings"]["train.py"]},
    }


KERNELS = """\
void add(__global float *at, float more) {
    float old = *at, assumed;
    do {
        assumed = old;
        old = as_float(atomic_cmpxchg((volatile __global int *)at, as_int(assumed), as_int(assumed + more)));
    } while (old != assumed);
}
__kernel void fill(__global float *x) {
    ushort i = get_global_id(0);
    if (i < 4) { barrier(CLK_LOCAL_MEM_FENCE); }
    x[i] = 0;
}
"""
OF_CPP = """\
void f(cl_command_queue q, cl_kernel k, cl_mem m, float *out, size_t n) {
    for (int i = 0; i < 10; i++) {
        clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
        clEnqueueReadBuffer(q, m, CL_TRUE, 0, 64, out, 0, NULL, NULL);
    }
}
"""
OF_PYTHON = """\
import pyopencl as cl


def f(queue, program, x):
    for i in range(10):
        program.fill(queue, (64,), None, x)
        queue.finish()
"""
WRAPPED = {
    "a.cl": "{}",
    "a.py": 'import pyopencl as cl\n\nADD = """\n{}"""\n',
    "a.cpp": 'const char *text = R"(\n{})";\n',
}
SAME_KERNELS = [
    ("get_global_id(0);", "get_global_id(/* the first */ 0);  // once"),
    ("ushort i =", "ushort i =\n       "),
    ("while (old != assumed)", "while (\n        old\n        != assumed)"),
    ("if (i < 4) { barrier", "if (i < 4)\n    {\n        barrier"),
    ("__kernel void", "// fills\n\n__kernel void"),
]


@pytest.mark.parametrize("name", WRAPPED)
def test_findings_of_opencl_c_stay_known_as_those_of_python_do(door, name):
    def written(kernels):
        door.write(name, WRAPPED[name].replace("{}", kernels))

    def found(*options):
        return {rule for _, _, rule in door("lint", "--all", "--min-confidence", "low", *options).lines}

    written(KERNELS)
    every = {"divergent-barrier", "float-compare-and-swap", "narrowed-size-t", "unordered-float-atomics"}
    assert found() == every
    door("lint", "--all", "--min-confidence", "low", "--write-baseline", "known.json")
    for before, after in SAME_KERNELS:
        written(KERNELS.replace(before, after))
        assert found() == every
        assert found("--baseline", "known.json") == set(), after
    written(KERNELS.replace("get_global_id(0)", "get_global_id(1)"))
    assert found("--baseline", "known.json") == {"narrowed-size-t"}, "another statement is new"
    written(KERNELS.replace("old != assumed", "assumed != old"))
    assert found("--baseline", "known.json") == {"float-compare-and-swap"}


@pytest.mark.parametrize(
    ("name", "code", "rule", "changes"),
    [
        ("a.cpp", OF_CPP, "wait-in-loop", [("(q, m, CL", "(q, m,\n  CL"), ("0, 64", "0 /* all */, 64")]),
        (
            "a.py",
            OF_PYTHON,
            "finish-after-launch",
            [("finish()", "finish()  # all"), (".finish()", ".finish(\n        )")],
        ),
    ],
)
def test_findings_of_what_enqueues_kernels_stay_known_too(door, name, code, rule, changes):
    asked = ("lint", "--min-confidence", "low")
    door.write(name, code)
    assert {found for _, _, found in door(*asked).lines} == {rule}
    door(*asked, "--write-baseline", "known.json")
    for before, after in changes:
        door.write(name, code.replace(before, after))
        assert len(door(*asked).lines) == 1, "it is found as before"
        assert door(*asked, "--baseline", "known.json").lines == [], after
    other = {"a.cpp": ("0, 64", "0, 32"), "a.py": ("queue", "other_queue")}[name]
    door.write(name, code.replace(*other))
    assert len(door(*asked, "--baseline", "known.json").lines) == 1, "another statement is new"


def test_a_baseline_of_the_second_form_knows_opencl_c_by_its_lines(door):
    entry = {"rule": "narrowed-size-t", "fingerprint": "d4562fc6b104b36b", "code": "ushort i = get_global_id(0);"}
    door.write("known.json", json.dumps({"version": 2, "findings": {"a.cl": [entry]}}))
    asked = ("lint", "--select", "narrowed-size-t", "--baseline", "known.json")
    door.write("a.cl", KERNELS)
    assert len(door("lint", "--select", "narrowed-size-t").lines) == 1
    assert door(*asked).lines == []
    door.write("a.cl", KERNELS.replace("get_global_id(0);", "get_global_id(0);  // once"))
    assert len(door(*asked).lines) == 1, "as the version that wrote it had it"


RECURSIVE = "def total(tree, x: torch.Tensor):\n    n = x.cuda().sum().item()\n    return n + total(tree, x)\n"
METHOD = (
    "class Tree:\n    def total(self, x: torch.Tensor):\n        return x.cuda().sum().item() + self.left.total(x)\n"
)


@pytest.mark.parametrize("code", [RECURSIVE, METHOD])
def test_a_renamed_function_that_calls_itself_brings_its_own_along(door, code):
    path = door.write("train.py", "import torch\n\n\n" + code)
    door("lint", "--all", "--write-baseline", "known.json")
    path.write_text(path.read_text().replace("total", "summed_up"))
    assert door("lint", "--all", "--baseline", "known.json").lines == []
