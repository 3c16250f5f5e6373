"""What items of a group do in the same memory, right and wrong: what looks like a race and is none, beside one: exactly the
marked lines."""

import pytest
from opencl_c.marked import flagged, marks

CASES = {
    "pointers that are swapped, and pointers of one's own": """
        __kernel void f(__global float *x) {
            __local float one[64], two[64];
            __local float *from = one, *own = two + get_local_id(0) * 4;
            int l = get_local_id(0);
            for (int s = 1; s < 64; s *= 2) {
                barrier(CLK_LOCAL_MEM_FENCE);
                float sum = from[l] + (l >= s ? from[l - s] : 0);
                from = from == one ? two : one;
                from[l] = sum;
            }
            for (int k = 0; k < 3; k++)
                own[k] = own[k + 1];
        }
    """,
    "a barrier behind a macro, which may be nothing": """
        #ifdef CPU
        #define SYNC // nothing
        #else
        #define SYNC barrier(CLK_LOCAL_MEM_FENCE)
        #endif
        __kernel void f(__global float *x) {
            __local float t[64];
            int l = get_local_id(0);
            t[l] = x[l];
            SYNC;
            x[l] = t[63 - l];
            t[l] = x[l];  // !
        }
    """,
    "butterflies, rows and steps": """
        __kernel void f(__global float *x, int n, int s) {
            __local float a[64], b[64], c[1024];
            int l = get_local_id(0);
            float low = a[l], high = a[l + s];
            a[l] = low + high;
            a[l + s] = low - high;
            for (int k = 1; k < 64; k *= 2) {
                if (l % (2 * k) == 0)
                    b[l] += b[l + k];
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            for (int i = l; i < 4 * n; i += 64)
                c[i] += c[i + n * 4];
        }
    """,
    "items in step, a size, and whom a guard lets in": """
        __kernel void f(__global float *x) {
            __local float a[64], b[8][64], c[64];
            int l = get_local_id(0);
            a[l] = x[l];
            if (l < 16)
                a[l] += a[l + 16];
            if (l < 8)
                a[l] += a[l + 8];
            for (int i = 0; i < 7; i++)
                if (l > i)
                    for (int j = 0; j < i + 1; j++)
                        b[i + 1][l] -= b[i + 1][j];
            c[l] = sizeof(c) / sizeof(c[0]);
            x[l] = c[l] + c[0];  // !
        }
    """,
    "a transposed index, and a reduction without its barrier": """
        __kernel void f(__global float *x) {
            __local float t[16][16], u[16][16];
            int i = get_local_id(0), j = get_local_id(1);
            t[j][i] = u[j][i] = x[i];
            x[i] = t[i][j] + u[j][i];  // !
        }
        __kernel void g(__global float *x, __local float *t) {
            int l = get_local_id(0);
            t[l] = x[l];
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int s = get_local_size(0) / 2; s > 0; s >>= 1) {
                if (l < s)
                    t[l] += t[l + s];
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            if (l == 0) {
                x[0] = t[0];
                t[0] = 0;
            }
        }
        __kernel void h(__global float *x, __local float *t) {
            int l = get_local_id(0);
            t[l] = x[l];
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int s = get_local_size(0) / 2; s > 0; s >>= 1)
                if (l < s)
                    t[l] += t[l + s];  // !
            if (l == 0)
                x[0] = t[0];
        }
    """,
    "the first item alone overwrites what only it has read": """
        __kernel void f(__global float *x, __local float *t, __local float *u) {
            int l = get_local_id(0), m = l + 64;
            x[l] = t[l] + u[0];
            x[m] = t[m];
            if (0 == l) {
                t[0] = 0;
                u[0] = 0;  // !
            }
        }
    """,
    "a variable of the group, written by one and read by all": """
        typedef struct { int a; } Pair;
        __kernel void f(__global float *x, int n) {
            __local float s, t;
            int l = get_local_id(0);
            if (l == 0)
                s = t = x[0];
            if (l == 0)
                x[1] = t;
            x[l + 2] = s;  // !
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int i = 0; i < n; i++) {
                if (l == 0)
                    t = x[i];
                barrier(CLK_LOCAL_MEM_FENCE);
                x[l + i] = t;
                barrier(CLK_LOCAL_MEM_FENCE);
            }
        }
    """,
}


@pytest.mark.parametrize("code", CASES.values(), ids=CASES)
def test_exactly_the_marked_lines_are_flagged(code: str) -> None:
    found = flagged(code)
    assert [line for line, _ in found] == marks(code), found
