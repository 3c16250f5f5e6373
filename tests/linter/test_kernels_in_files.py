"""OpenCL C on the command line: in files of its own, in the strings of Python and C++, with comments, fixes and exit codes."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from in_c import in_c
from linter.conftest import LOOP

KERNEL = LOOP + "__kernel void total(__global float *sum, __global float *x) { add(sum, x[get_global_id(0)]); }\n"
RULE = "float-compare-and-swap"
LINE = "__kernel void fill(__global float *x) { ushort i = get_global_id(0); x[i] = 0; }"


def test_a_folder_of_kernels_is_linted_and_mended(door):
    door.write("k/a.cl", KERNEL)
    ran = door("lint")
    assert ran.code == 1
    assert (("k/a.cl", 6, RULE)) in ran.lines
    assert door("lint", "--fix", "--unsafe-fixes").code == 1  # the order of the additions is left
    assert "while (as_int(old) != as_int(assumed));" in (door.folder / "k/a.cl").read_text()
    assert door("lint", "--select", RULE).code == 0


def test_a_comment_of_c_lets_a_finding_stand_and_an_unused_one_is_told(door):
    door.write(
        "a.cl", KERNEL.replace("(old != assumed);", f"(old != assumed); // syncscope: allow[{RULE}] no NaN comes here")
    )
    assert door("lint", "--select", RULE).code == 0
    door.write("a.cl", KERNEL.replace("    } while (old", f"    // syncscope: allow[{RULE}]\n    }} while (old"))
    assert door("lint", "--select", RULE).code == 0
    door.write("a.cl", "/* syncscope: allow[narrowed-size-t] */\nint one(int x) { return x; }\n")
    assert [rule for _, _, rule in door("lint").lines] == ["unused-allow"]
    door("lint", "--fix")
    assert "allow" not in (door.folder / "a.cl").read_text()


def test_a_comment_behind_all_code_speaks_of_nothing_above(door):
    door.write("a.cl", f"{LINE}\n// syncscope: allow[narrowed-size-t]\n")
    assert {rule for _, _, rule in door("lint").lines} == {"narrowed-size-t", "unused-allow"}
    door.write("a.cpp", f'const char *text = R"(\n{LINE}\n)";\n// syncscope: allow[narrowed-size-t]\n')
    assert {rule for _, _, rule in door("lint").lines} == {"narrowed-size-t", "unused-allow"}


def test_allow_comments_are_written_in_c(door):
    door.write("a.cl", KERNEL)
    door("lint", "--select", RULE, "--add-allow", "--reason", "known")
    assert f"// syncscope: allow[{RULE}] known\n" in (door.folder / "a.cl").read_text()
    assert door("lint", "--select", RULE).code == 0


def test_a_string_of_python_is_linted_at_its_own_lines(door):
    door.write(
        "a.py",
        f'import pyopencl as cl\n\nADD = """\n{KERNEL}"""\n\n\ndef build(context):\n    return cl.Program(context, ADD)\n',
    )
    assert ("a.py", 9, RULE) in door("lint").lines
    door("lint", "--select", RULE, "--fix", "--unsafe-fixes")
    assert "while (as_int(old) != as_int(assumed));" in (door.folder / "a.py").read_text()


def test_texts_that_are_joined_formatted_and_escaped_are_one_program(door):
    door.write(
        "a.py",
        "import pyopencl as cl\n"
        "HEAD = '#define REAL float\\n'\n"
        "def build(context, n, name):\n"
        "    text = HEAD + f'''\n"
        "__kernel void {name}(__global REAL *x) {{\n"
        "    ushort i = get_global_id(0);\n"
        "    x[i] = {n};\n"
        "}}'''\n"
        "    other = ('__kernel void %(name)s(__global float *x) {\\n'\n"
        "             '    uchar j = get_global_id(0);\\n'\n"
        "             '    x[j] = 0; }' % {'name': name})\n"
        "    return cl.Program(context, text), cl.Program(context, other)\n",
    )
    assert [found for found in door("lint").lines if found[2] != "unused-allow"] == [
        ("a.py", 6, "narrowed-size-t"),
        ("a.py", 10, "narrowed-size-t"),
    ]


def test_strings_of_cpp_are_linted(door):
    door.write("a.cpp", f'const char *source = R"CLC(\n{KERNEL})CLC";\n')
    lines = "".join(f'    "{line}\\n"\n' for line in KERNEL.splitlines())
    door.write("b.cc", f"static const char *source =\n{lines};\n")
    assert {("a.cpp", 7, RULE), ("b.cc", 7, RULE)} <= set(door("lint").lines)


def test_a_file_that_is_included_as_a_string_is_linted(door):
    door.write("a.opencl", f'// a header\nR"(\n{KERNEL})"\n')
    assert ("a.opencl", 8, RULE) in door("lint").lines


def test_what_cannot_be_read_is_said_once_and_the_rest_is_linted(door):
    broken = "__kernel void one(__global int *x) { @ # $ ^ ( }\n__kernel void two(__global int *x) { ] ] ) }\n"
    door.write("a.cl", KERNEL + broken)
    ran = door("lint", "--select", f"{RULE},syntax-error")
    assert ran.code == 1
    assert sorted(rule for _, _, rule in ran.lines) == [RULE, "syntax-error"]
    assert "Traceback" not in ran.err


def test_any_bytes_are_taken(door):
    for number, raw in enumerate(
        (b"", b"\0\0", b"\xff\xfe__kernel void f(", b'R"(', b"#if\n" * 3000, b"(" * 20000, b"////\n" * 5000)
    ):
        (door.folder / f"{number}.cl").write_bytes(raw)
    assert door("lint").code in (0, 1)


DEEP = "__kernel void f(__global int *x, int a) {{ x[0] = a{}; int i = get_global_id(0){}; }}\n"
HOSTILE = {
    "a long sum": DEEP.format(" + a" * 8000, " * a" * 8000),
    "brackets of macros that are not closed": "__kernel void f() { @@ }\n" + "EACH(a," * 20_000,
    "a long macro that is used often": f"#define N {'9+' * 200_000}9\n"
    f"__kernel void f(__global int *x) {{ {'x[N] = N * 2; ' * 900} }}\n",
}


@pytest.mark.parametrize("code", HOSTILE.values(), ids=HOSTILE)
def test_what_is_meant_to_hold_the_linter_up_ends_in_an_answer(door, code):
    door.write("a.cl", code + KERNEL)
    before = time.process_time()
    ran = door("lint", "--all", "--min-confidence", "low")
    assert {rule for _, _, rule in ran.lines} & {RULE, "syntax-error"}
    assert time.process_time() - before < 100  # of a second or two


def test_a_comment_beside_the_calls_of_c_lets_a_finding_stand(door):
    rounds = (
        "void f(cl_command_queue q, cl_kernel k, cl_mem m, float *out, size_t n) {\n"
        "  for (int i = 0; i < 10; i++) {\n"
        "    clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);\n"
        "    clEnqueueReadBuffer(q, m, CL_TRUE, 0, 64, out, 0, NULL, NULL);\n"
        "  }\n}\n"
    )
    said = 'const char *text = "// syncscope: allow[wait-in-loop]";\n'
    door.write("a.cpp", said + rounds)
    assert door("lint").lines == [("a.cpp", 5, "wait-in-loop")]
    door("lint", "--add-allow", "--reason", "known")
    assert "NULL);  // syncscope: allow[wait-in-loop] known\n" in (door.folder / "a.cpp").read_text()
    assert door("lint").code == 0
    door.write("a.cpp", rounds.replace("    clEnqueueRead", "    // syncscope: allow[wait-in-loop]\n    clEnqueueRead"))
    assert door("lint").code == 0
    door.write("a.cpp", rounds.replace("    clEnqueueND", "    // syncscope: allow[wait-in-loop]\n    clEnqueueND"))
    assert {rule for _, _, rule in door("lint").lines} == {"wait-in-loop", "unused-allow"}


def test_a_fix_keeps_what_binds_less_than_what_it_writes_together(door):
    loop = LOOP.replace("old != assumed", "as_float(*(__global int *)sum & mask) != assumed")
    assert loop != LOOP
    door.write("a.cl", loop.replace("float value", "float value, int mask"))
    door.write("b.cl", "__kernel void f(__global float *x, int a, int b, int c) { size_t i = a / b * c; x[i] = 0; }\n")
    door("lint", "--fix", "--unsafe-fixes", "--min-confidence", "low")
    assert "while ((*(__global int *)sum & mask) != as_int(assumed));" in (door.folder / "a.cl").read_text()
    assert "size_t i = (size_t)(a / b) * c;" in (door.folder / "b.cl").read_text()


def test_a_program_of_the_host_is_linted_without_torch(door):
    door.write(
        "a.py",
        "import pyopencl as cl\n"
        "def run(queue, program, x, out, n):\n"
        "    device = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, 64)\n"
        "    for _ in range(n):\n"
        "        program.step(queue, (64,), None, device)\n"
        "        cl.enqueue_copy(queue, out, device)\n",
    )
    assert door("lint").lines == [("a.py", 6, "wait-in-loop")]
    assert door("lint", "--select", "host-program").lines == [("a.py", 6, "wait-in-loop")]


@in_c
def test_the_programs_of_a_recording_are_linted(door, tmp_path):
    pytest.importorskip("pyopencl")
    program = door.write(
        "run.py",
        "import sys\n"
        "import pyopencl as cl\n"
        f"sys.path.append({str(Path(__file__).parents[1])!r})\n"
        "from old_pocl import name_cpu\n"
        "context = cl.create_some_context(interactive=False)\n"
        "name_cpu(context.devices[0])\n"  # its compiler may be older than the processor
        "cl.Program(context, open('total.cl').read()).build()\n",
    )
    door.write("total.cl", KERNEL)
    environment = {**os.environ, "PYOPENCL_NO_CACHE": "1", "SYNCSCOPE_OCL_DEVICE": "off"}
    command = [sys.executable, "-m", "syncscope", "run", "-o", str(tmp_path / "out"), program.name]
    subprocess.run(command, cwd=door.folder, env=environment, check=True, capture_output=True, timeout=240)
    (recording,) = (tmp_path / "out").rglob("*.pt.trace.json*")
    ran = door("lint", "--from-trace", str(recording), "--select", RULE)
    assert ran.code == 1
    assert f"{recording}:program-1.cl:6:" in ran.out
    assert door("lint", "--from-trace", str(recording), "x.py").code == 2


def test_code_scanning_is_told_of_kernels_in_files_and_in_strings(door):
    door.write("a.cl", KERNEL)
    door.write("b.cpp", f'const char *source = R"CLC(\n{KERNEL})CLC";\n')
    (run,) = json.loads(door("lint", "--select", RULE, "--format", "sarif").out)["runs"]
    places = [result["locations"][0]["physicalLocation"] for result in run["results"]]
    assert [(p["artifactLocation"]["uri"], p["region"]["startLine"]) for p in places] == [("a.cl", 6), ("b.cpp", 7)]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == [RULE]
    assert "a NaN" in run["tool"]["driver"]["rules"][0]["shortDescription"]["text"]
