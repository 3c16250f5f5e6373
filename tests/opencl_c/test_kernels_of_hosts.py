"""Kernels in texts of C++ and Python, and the launches, buffers and waits around them: what is told, and what is not."""

from __future__ import annotations

import pytest

from syncscope.linter.config import Config
from syncscope.linter.engine import check


def test_a_program_that_cpp_puts_together_is_read_at_its_own_lines() -> None:
    code = """
void source(std::string &text, const std::string &real, bool wide) {
  text.append("__kernel void turn(__global "); text.append(real); text.append(" *x) { \\n");
  text.append("  __local float t[64]; int l = get_local_id(0);");
  text.append("  t[l] = x[l];");
  if (wide)
    text.append("  x[l] = t[63 - l];");
  else
    text.append("  barrier(CLK_LOCAL_MEM_FENCE);");
  text.append("}");
}
std::string other(const std::string &real) {
  return "__kernel void fill(__global " + real + " *x) {"
         " uchar i = get_global_id(0); x[i] = 0; }";
}
"""
    found = check("a.cpp", code.encode(), Config(min_confidence="medium", all=True)).findings
    assert [(f.place.line, f.rule) for f in found] == [(7, "missing-barrier"), (14, "narrowed-size-t")]


STRINGIFIED = """
#define STRINGIFY(...) #__VA_ARGS__ "\\n"
const char *kernels = "#define N 64\\n" STRINGIFY(
float own(float x) { return x; /* ) */ }
) STRINGIFY(
__kernel void f(__global float *x) {
  ushort i = get_global_id(0);
  x[i] = own(x[i]);
})
;
const char *lines[] = {
  NL, "__kernel void g(__global float *x) {"
  NL, "  ushort i = get_global_id(0);"
  NL, "  x[i] = 0; }"
};
const char *apart[] = {"__kernel void g(__global float *x) { x[0] = 0; }", "__kernel void h(__global float *x) { x[1] = 0; }"};
"""


def test_texts_that_a_macro_or_a_list_makes_are_programs() -> None:
    found = check("a.cpp", STRINGIFIED.encode(), Config(min_confidence="medium", all=True)).findings
    assert [(f.place.line, f.rule) for f in found] == [(7, "narrowed-size-t"), (13, "narrowed-size-t")]


def test_what_documents_a_function_of_python_is_no_program() -> None:
    kernel = '"""__kernel void f(__global float *x) { ushort i = get_global_id(0); x[i] = 0; }"""'
    code = f"def f():\n    {kernel}\n\nF = {kernel}\n"
    assert [f.place.line for f in check("a.py", code.encode(), Config(min_confidence="medium", all=True)).findings] == [
        4
    ]


GUARDED = """
import pyopencl as cl

KERNEL = '''
__kernel void twice(__global float *x, int n) {
    int i = get_global_id(0);
    BODY
}
'''


def twice(queue, x, n):
    again = cl.Program(queue.context, KERNEL).build().twice
    kernel = cl.Kernel(cl.Program(queue.context, KERNEL).build(), "twice")
    kernel.set_args(x, n)
    cl.enqueue_nd_range_kernel(queue, kernel, ((n + 63) // 64 * 64,), (64,))
"""


@pytest.mark.parametrize(
    ("body", "is_told"),
    [
        ("if (i >= n) return; x[i] *= 2;", False),
        ("x[clamp(i, 0, n - 1)] = x[0];", False),
        ("x[i < n ? i : 0] *= 2;", False),
        ("x[select(0, i, i < n)] *= 2;", False),
        ("for (int j = i; j < n; j += get_global_size(0)) x[j] *= 2;", False),
        ("bool ok = i < n; if (ok) x[i] *= 2;", False),
        ("x[i] *= 2;", True),
        ("if (i > 0) x[i] = x[i - 1];", True),
        ("x[i] = 1; if (i < n) x[i] = 2;", True),
    ],
)
def test_a_guard_bounds_the_id_before_it_is_used(body: str, is_told: bool) -> None:
    found = check("a.py", GUARDED.replace("BODY", body).encode(), Config(min_confidence="medium", all=True)).findings
    assert [f.rule for f in found] == ["missing-bounds-guard"] * is_told


def test_memory_of_the_rounded_size_needs_no_guard() -> None:
    code = GUARDED.replace("BODY", "x[i] *= 2;").replace("((n + 63) // 64 * 64,)", "(wide,)")
    config = Config(min_confidence="medium", all=True)
    wide = "    wide = (n + 63) // 64 * 64\n    kernel.set"
    padded = wide.replace("\n", "\n    x = np.concatenate((x, np.zeros(wide - n)))\n")
    found = [check("a.py", code.replace("    kernel.set", text).encode(), config).findings for text in (wide, padded)]
    assert [[f.rule for f in each] for each in found] == [["missing-bounds-guard"], []]


def test_kernels_under_other_names_have_the_size_that_is_required() -> None:
    code = """
import pyopencl as cl
text = "__kernel __attribute__((reqd_work_group_size(8, 8, 1))) void f(__global float *x) { x[0] = 1; }"
def run(queue, x):
    program = cl.Program(queue.context, text).build()
    same, other = program.f, cl.Kernel(program, "f")
    kept = program.f
    again = cl.Kernel(program, "f")
    kept(queue, (64, 64), (4, 8), x)
    cl.enqueue_nd_range_kernel(queue, again, (64, 64), (8, 4))
    cl.enqueue_nd_range_kernel(queue, program.f, (64, 64), (8, 4))
    kept(queue, (64, 64), (8, 8), x)
"""
    found = check("a.py", code.encode(), Config(all=True, select=("work-group-size",))).findings
    assert [f.place.line for f in found] == [9, 10, 11]


def test_a_queue_called_q_and_a_buffer_that_is_declared_in_a_loop() -> None:
    in_python = """
import pyopencl as cl
def run(q, program, out, chunks):
    device = cl.Buffer(q.context, cl.mem_flags.READ_WRITE, 64)
    for chunk in chunks:
        program.f(q, chunk.shape, None, device)
        cl.enqueue_copy(q, out, device)
    for a, b in chunks:
        solve(q, a, b)
        cl.enqueue_copy(q, out, device)
"""
    in_cpp = """
void run(cl::CommandQueue &queue, cl::Kernel &kernel, cl::Context &context, int n) {
  for (int i = 0; i < n; i++) {
    cl::Buffer same(context, CL_MEM_READ_WRITE, 1024);
    cl::Buffer other(context, CL_MEM_READ_WRITE, 4 * i);
    cl::Buffer kept(context, CL_MEM_READ_WRITE, 1024);
    list.push_back(kept);
    queue.enqueueNDRangeKernel(kernel, cl::NullRange, cl::NDRange(64), cl::NullRange);
  }
}
"""
    config = Config(min_confidence="medium", all=True, select=("wait-in-loop", "buffer-in-loop"))
    assert [f.place.line for f in check("a.py", in_python.encode(), config).findings] == [7]
    assert [f.place.line for f in check("a.cpp", in_cpp.encode(), config).findings] == [4]


def test_who_waits_for_the_event_of_a_launch_waits_for_the_launch() -> None:
    in_python = """
import pyopencl as cl
def run(queue, program, x, n):
    for _ in range(n):
        program.f(queue, (64,), None, x).wait()
    for _ in range(n):
        event = program.f(queue, (64,), None, x)
        event.wait()
    for _ in range(n):
        event = program.f(queue, (64,), None, x)
        cl.wait_for_events([event])
    last = event
    last.wait()
"""
    in_cpp = """
void run(cl_command_queue q, cl_kernel k, cl::CommandQueue queue, cl::Kernel kernel, int n) {
  cl_event event; cl::Event other;
  for (int i = 0; i < n; i++) {
    clEnqueueNDRangeKernel(q, k, 1, NULL, &g, NULL, 0, NULL, &event);
    clWaitForEvents(1, &event);
  }
  for (int i = 0; i < n; i++) {
    queue.enqueueNDRangeKernel(kernel, cl::NullRange, global, local, nullptr, &other);
    other.wait();
  }
}
"""
    config = Config(min_confidence="low", all=True, select=("finish-after-launch",))
    assert [f.place.line for f in check("a.py", in_python.encode(), config).findings] == [5, 8, 11]
    assert [f.place.line for f in check("a.cpp", in_cpp.encode(), config).findings] == [6, 10]


def test_sizes_of_c_that_are_set_element_by_element_are_known() -> None:
    code = """
const char *text = R"(__attribute__((reqd_work_group_size(16, 4, 1))) __kernel void f(__global float *x) { x[0] = 0; })";
void f(cl_command_queue q, cl_program p) {
  cl_kernel k = clCreateKernel(p, "f", NULL);
  size_t global[2] = {64, 64}, local[2], given[2] = {GIVEN};
  local[0] = 16;
  local[1] = 4;
  clEnqueueNDRangeKernel(q, k, 2, NULL, global, local, 0, NULL, NULL);
  clEnqueueNDRangeKernel(q, k, 2, NULL, global, given, 0, NULL, NULL);
  clEnqueueNDRangeKernel(q, k, 2, NULL, global, NULL, 0, NULL, NULL);
}
"""
    for given, lines in (("16, 4", [10]), ("4, 16", [9, 10]), ("n, 4", [10])):
        found = check(
            "a.cpp", code.replace("GIVEN", given).encode(), Config(all=True, select=("work-group-size",))
        ).findings
        assert [f.place.line for f in found] == lines


def test_a_functor_of_the_bindings_launches() -> None:
    code = """
const char *text = R"(__attribute__((reqd_work_group_size(16, 4, 1))) __kernel void f(__global float *x) { x[0] = 0; })";
void f(cl::CommandQueue queue, cl::Program program, cl::Buffer x) {
  cl::make_kernel<cl::Buffer> fill(program, "f");
  for (int i = 0; i < 9; i++) {
    fill(cl::EnqueueArgs(queue, cl::NDRange(64, 64), cl::NDRange(16, 4)), x);
    fill(cl::EnqueueArgs(queue, cl::NDRange(64, 64), cl::NDRange(8, 8)), x);
    queue.enqueueReadBuffer(x, CL_TRUE, 0, 4, &first);
  }
}
"""
    found = check("a.cpp", code.encode(), Config(min_confidence="medium", all=True)).findings
    assert [(f.place.line, f.rule) for f in found] == [(7, "work-group-size"), (8, "wait-in-loop")]
