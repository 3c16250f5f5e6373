"""What real kernels do that looks like a hazard and is none, beside what looks like it and is one: exactly the marked lines."""

from __future__ import annotations

import textwrap

import pytest

from syncscope.linter.config import Config
from syncscope.linter.engine import check

CASES = {
    "one name stands for several variables": """
        __kernel void f(__global float *x, int rows) {
            __local float t[64];
            int l = get_local_id(0);
            for (int i = l; i < rows; i += 64)
                x[i] = 0;
            for (int i = 0; i < rows; i++)
                barrier(CLK_LOCAL_MEM_FENCE);
            for (int i = l; i < rows; i++)
                barrier(CLK_LOCAL_MEM_FENCE);  // !
        }
    """,
    "a shared scalar is the same for all": """
        __kernel void f(__global int *x, int n) {
            __local int row;
            while (true) {
                if (get_local_id(0) == 0)
                    row = atomic_inc(x);
                barrier(CLK_LOCAL_MEM_FENCE);
                if (row >= n)
                    return;
                barrier(CLK_LOCAL_MEM_FENCE);
            }
        }
    """,
    "two that are apart by the same leave a loop together": """
        __kernel void f(__global float *b) {
            b += get_local_id(0);
            __global float *last = b + 128, *mine = b + get_local_id(0);
            do {
                barrier(CLK_LOCAL_MEM_FENCE);
                b += 16;
            } while (b < last);
            while (b < mine) {
                barrier(CLK_LOCAL_MEM_FENCE);  // !
                b += 16;
            }
        }
    """,
    "a bound that is a multiple of the group": """
        __kernel void f(__global float *x, int n) {
            int end = (n / get_local_size(0) + 1) * get_local_size(0);
            for (int i = get_local_id(0); i < end; i += get_local_size(0))
                barrier(CLK_LOCAL_MEM_FENCE);
            for (int i = get_local_id(0); i < n; i += get_local_size(0))
                barrier(CLK_LOCAL_MEM_FENCE);  // !
        }
    """,
    "who returns in one branch does not come to the other": """
        __kernel void f(__global float *x, int n, int tail) {
            if (tail) {
                if (get_global_id(0) >= n)
                    return;
                x[get_global_id(0)] = 0;
            } else {
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            barrier(CLK_LOCAL_MEM_FENCE);  // !
        }
    """,
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
    "a half in a header, which others include": """
        float wide(half x) {
            return x;
        }
    """,
    "a product beside a larger one that is wide": """
        __kernel void f(__global float *x, int w, int h, int y, int b, int c) {
            x[get_global_id(2) * w * h + y * w] = 0;
            size_t offset = b * c;  // !
            x[offset] = 0;
        }
    """,
    "who it is, said by macros, functions and pointers": """
        #define L get_local_id(0)
        #define LANE(d) ((int)get_local_id(d))
        #define GROUP (get_global_id(0) / get_local_size(0))
        int lane(void) { return get_local_id(0); }
        int group(int size) { return get_group_id(0) * size; }
        void both(int *item, int *first) { *item = get_global_id(0); *first = get_group_id(0); }
        __kernel void f(__global float *x, int n) {
            int item, first;
            both(&item, &first);
            if (L < n)
                barrier(CLK_LOCAL_MEM_FENCE);  // !
            if (LANE(0) < n)
                barrier(CLK_LOCAL_MEM_FENCE);  // !
            if (lane() < n)
                barrier(CLK_LOCAL_MEM_FENCE);  // !
            if (item < n)
                barrier(CLK_LOCAL_MEM_FENCE);  // !
            if (get_sub_group_id() < n)
                barrier(CLK_LOCAL_MEM_FENCE);  // !
            if (GROUP < n && group(64) < n && first < n)
                barrier(CLK_LOCAL_MEM_FENCE);
        }
    """,
    "a barrier that an argument decides over": """
        void rounds(int n) { for (int i = 0; i < n; i++) barrier(CLK_LOCAL_MEM_FENCE); }
        void again(int n) { again(n - 1); rounds(n); }
        __kernel void f(__global float *x, int n) {
            rounds(n);
            rounds(get_local_id(0));  // !
        }
    """,
    "who returns in a macro, by a goto or in a loop": """
        #define SKIP(i, n) if ((i) >= (n)) return
        __kernel void f(__global float *x, int n) {
            int i = get_global_id(0);
            SKIP(get_group_id(0), n);
            barrier(CLK_LOCAL_MEM_FENCE);
            SKIP(i, n);
            barrier(CLK_LOCAL_MEM_FENCE);  // !
        }
        __kernel void g(__global float *x, int n) {
            if (get_global_id(0) >= n)
                goto out;
            barrier(CLK_LOCAL_MEM_FENCE);  // !
            x[get_global_id(0)] = 0;
        out:
            return;
        }
        __kernel void h(__global float *x, int n) {
            for (int i = 0; i < n; i++) {
                barrier(CLK_LOCAL_MEM_FENCE);  // !
                if (x[get_global_id(0)] == i)
                    return;
            }
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
    "a size that the group divides": """
        __kernel __attribute__((reqd_work_group_size(16, 4, 1)))
        void f(__global float *x) {
            const int rows = 64;
            for (int i = get_local_id(1); i < rows; i += get_local_size(1))
                barrier(CLK_LOCAL_MEM_FENCE);
            for (int i = get_local_id(1); i < 50; i += get_local_size(1))
                barrier(CLK_LOCAL_MEM_FENCE);  // !
        }
    """,
    "swaps in a macro, in a function, and by exchange": r"""
        #define LARGEST(p, v) do { \
            float old = *(p), was; \
            do { \
                was = old; \
                old = as_float(atomic_cmpxchg((volatile __global int *)(p), as_int(was), as_int(fmax(was, v)))); \
            } while (old != was);  /* ! */ \
        } while (0)
        float swap(volatile __global float *p, float old, float new) {
            return as_float(atomic_cmpxchg((volatile __global int *)p, as_int(old), as_int(new)));
        }
        __kernel void f(volatile __global float *p, __global float *x) {
            float v = x[get_global_id(0)], old;
            LARGEST(p, v);
            do
                old = *p;
            while (swap(p, old, old * v) != old);  // !
            do
                old = *p;
            while (as_int(swap(p, old, old * v)) != as_int(old));
            while ((v = atomic_xchg(p, atomic_xchg(p, 0.0f) + v)) != 0.0f);  // !
        }
    """,
    "casts whose operand stands in brackets": """
        __kernel void f(__global float *x, int w) {
            int i = get_global_id(0), j = get_global_id(1);
            x[(ulong)(i * w) + j] = 0;  // !
            x[(ulong)(i) * w + j] = 0;
            ushort k = (uint)(get_global_id(0));
            x[k] = (float)(convert_double(x[k]));  // !
        }
    """,
    "names that a macro pastes, and macros that stand alone": """
        #define CAT(a, b) a##b
        #define FOLD(n) if (l < n) t[l] += t[l + n]; barrier(CLK_LOCAL_MEM_FENCE);
        __kernel void CAT(fill_, TYPE)(__global TYPE *x, __local TYPE *t) {
            ushort i = get_global_id(0);  // !
            int l = get_local_id(0);
            x[i] = 0;
            FOLD(32) FOLD(16)
            FOLD(8)
            EACH(k, 8) {
                x[k] = 0;
            }
            t[l] = x[l];
            x[l] = t[63 - l];  // !
        }
    """,
    "what macros of other files say": """
        #include "platform.h"
        KERNEL_FQ KERNEL_FA void f (KERN_ATTR_RULES ()) {
            const uint lid = get_local_id(0);
            double scale = 2;
            LOCAL_VK uint s[256], t[64];
            s[lid] = x[lid] * scale;
            SYNC_THREADS();
            t[lid] = s[255 - lid];
            x[lid] = t[63 - lid];  // !
            if (lid < n)
                SYNC_THREADS();  // !
        }
        KERNEL(256) g(P(T2) x, int n) {
            ushort i = get_global_id(0);  // !
            x[i] = ROUND(0_, 17) PLUS_OP n;
        }
    """,
    "blocks, which are kernels of their own": """
        void all(__global int *x) { barrier(CLK_GLOBAL_MEM_FENCE); }
        __kernel void f(__global int *x) {
            void (^again)(void) = ^{ all(x); };
            if (get_global_id(0) == 0)
                enqueue_kernel(get_default_queue(), 0, ndrange_1D(64), ^{ all(x); });
            if (get_global_id(0) == 0)
                all(x);  // !
            x[0] ^= x[1] ^ (x[2]);
        }
    """,
    "C++ for OpenCL": """
        namespace own { template <typename T> struct Sum { T all; void add(T one) { all += one; } }; }
        template <typename T, int N>
        __kernel void f(__global T *x, int n) {
            __local T t[N];
            auto l = get_local_id(0);
            if (l < n)
                barrier(CLK_LOCAL_MEM_FENCE);  // !
            else
                own::Sum<T>().add(x[l]);
        }
    """,
    "sizes of structs, and macros that are defined anew": """
        typedef struct { float4 p; int k[3]; } Node;
        struct Loop { struct Loop next; };
        #define N 16
        __kernel void f(__global float *x) {
            __local Node a[512];
            __local struct Loop c[1024];
            __local uchar d[sizeof(float) * N * 16];
            a[get_local_id(0)].k[0] = d[0] = 0;
        }
        #undef N
        #define N 1024
        #ifdef WIDE
        #define M 1024
        #define real4 double4
        #else
        #define real4 float4
        #define M 16384
        #endif
        __kernel void g(__global float *x) {
            __local float4 a[N];
            __local real4 b[N];
            __local float c[M];
            a[get_local_id(0)] = b[get_local_id(0)] = c[0] = 0;
        }
        __kernel void h(__global float *x) {
            __local Node a[N + 1];  // !
            a[get_local_id(0)].k[0] = 0;
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
    "names of several types, and types of macros": """
        #define GID get_global_id(0)
        #define LANE(d) ((int)get_local_id(d))
        __kernel void f(__global float *x) {
            for (int i = 0; i < 4; i++)
                x[i] = LANE(0);
            ushort i = GID;  // !
            {
                size_t i = GID;
                x[i] = 0;
            }
            ushort lane = LANE(0);
            x[i] = lane;
        }
    """,
    "a kernel that a macro is defined as": r"""
        #define FILL(T) \
            __kernel void fill_##T(__global T *x) { \
                uchar i = get_global_id(0);      /* ! */ \
                x[i] = 0; \
            }
        FILL(int)
    """,
}


@pytest.mark.parametrize("code", CASES.values(), ids=CASES)
def test_exactly_the_marked_lines_are_flagged(code: str) -> None:
    text = textwrap.dedent(code)
    marked = [n for n, line in enumerate(text.split("\n"), 1) if "// !" in line or "/* ! */" in line]
    found = check("a.cl", text.encode(), Config(min_confidence="medium", all=True)).findings
    assert [f.place.line for f in found] == marked, [f"{f.place.line}: {f.message}" for f in found]
