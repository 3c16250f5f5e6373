"""Barriers that all items reach, however it is said, beside barriers that some do not reach: exactly the marked lines."""

import pytest
from opencl_c.marked import flagged, marks

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
}


@pytest.mark.parametrize("code", CASES.values(), ids=CASES)
def test_exactly_the_marked_lines_are_flagged(code: str) -> None:
    found = flagged(code)
    assert [line for line, _ in found] == marks(code), found
