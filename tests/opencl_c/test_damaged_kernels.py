"""Texts that nobody wrote: bytes at random, kernels damaged at random, and very large ones. All end in an answer, in time."""

from __future__ import annotations

import time

import pytest
from effort import draws
from hypothesis import given, settings
from hypothesis import strategies as st

from syncscope.linter.config import Config
from syncscope.linter.engine import check
from syncscope.linter.examples import plain
from syncscope.opencl_c.rules import builtin

EVERYTHING = Config(select=(*builtin(), "syntax-error"), min_confidence="low", all=True)
KERNELS = [plain(example.code).encode() for rule in builtin().values() for example in rule.EXAMPLES]
PIECES = [
    b"#define A(x) __kernel void f##x(",
    b"\\\n",
    b'R"(',
    b"${T}",
    b"%T",
    b"/*",
    b"barrier(",
    b"#if 0\n",
    b"#undef N\n#define N sizeof(struct N)\n",
    b"struct N { struct N n[sizeof(N)]; };",
    b"^{",
    b"template <typename T> ",
    b"STRINGIFY(",
    b"KERNEL(1) ",
    b"goto a; a: ",
    b"#define A(x) do { A(x); return x; } while (0)\n",
    b"int g(int *x) { *x = g(x); return get_local_id(0); } ",
    b"\0",
    b"\xff",
]
DAMAGE = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 30), st.sampled_from(PIECES)))
SUFFIX = st.sampled_from([".cl", ".cpp", ".py"])


@settings(max_examples=draws(60))
@given(st.binary(max_size=400), SUFFIX)
def test_any_bytes_end_in_an_answer(raw: bytes, suffix: str) -> None:
    check(f"a{suffix}", b"__kernel clEnqueue pyopencl " + raw, EVERYTHING)


@settings(max_examples=draws(60))
@given(
    st.sampled_from(KERNELS), st.lists(st.tuples(st.floats(0, 1), st.integers(0, 30), st.sampled_from(PIECES))), SUFFIX
)
def test_a_damaged_kernel_ends_in_findings_that_lie_in_it(code, damage, suffix):
    for share, length, piece in damage:
        at = int(share * len(code))
        code = code[:at] + piece + code[at + length :]
    for finding in check(f"a{suffix}", code, EVERYTHING).findings:
        assert 1 <= finding.place.line <= code.count(b"\n") + 1 + code.count(b"\r")


@pytest.mark.slow
@pytest.mark.parametrize("many", [20, 80_000])
def test_five_megabytes_are_read_to_the_end(many: int) -> None:
    line = "    t[l] = x[l] * 2 + t[63 - l]; barrier(CLK_LOCAL_MEM_FENCE);\n"
    head = "__kernel void f(__global float *x) {\n    __local float t[64]; int l = get_local_id(0);\n"
    code = (head + line * many + "}\n") * (80_000 // many)
    before = time.process_time()
    assert check("a.cl", code.encode(), EVERYTHING).findings
    assert time.process_time() - before < 300
