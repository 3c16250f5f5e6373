"""Sizes, types, casts and names behind macros that are as they should be, beside those that are not: exactly the marked
lines."""

import pytest
from opencl_c.marked import flagged, marks

CASES = {
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
    found = flagged(code)
    assert [line for line, _ in found] == marks(code), found
