// Elements that follow from where they are. T is an integer as wide as they are.

__kernel void fill(__global T *out, long at, T value, uint count) {
    const uint i = get_global_id(0);
    if (i < count) out[at + i] = value;
}

// Row-major matrices; beyond the diagonal, on the side that is not kept, there are zeros.
__kernel void triangle(__global const T *in, long at, __global T *out, long out_at, uint rows, uint columns, long count, long diagonal,
                       int upper) {
    const long i = get_global_id(0), across = i % columns - i / columns % rows;
    if (i < count) out[out_at + i] = (upper ? across >= diagonal : across <= diagonal) ? in[at + i] : (T)0;
}

__kernel void arange(__global T *out, long at, T start, T step, uint count) {
    const uint i = get_global_id(0);
    if (i < count) out[at + i] = start + (T)i * step;
}

// Zeros, but for every `step`-th of `size` along one dimension, `count` of them from `start` on, which come from `in`.
__kernel void amid_zeros(__global const T *in, long at, __global T *out, uint total, uint inner, uint size, int start, int step,
                         int count) {
    const uint i = get_global_id(0);
    if (i >= total) return;
    const uint row = i / inner, outer = row / size;
    const int along = (int)(row % size) - start, k = along / step;
    const int there = along >= 0 && k * step == along && k < count;
    out[i] = there ? in[at + ((long)outer * count + k) * inner + i % inner] : (T)0;
}

// Up to four tensors of one layout, of four dimensions at most, one behind the other.
__kernel void stacked(__global const T *a, long a_at, __global const T *b, long b_at, __global const T *c, long c_at,
                      __global const T *d, long d_at, __global T *out, uint total, uint each, uint n1, uint n2, uint n3, long s0, long s1,
                      long s2, long s3) {
    const uint i = get_global_id(0);
    if (i >= total) return;
    const uint which = i / each, own = i % each, q3 = own / n3, q2 = q3 / n2, q1 = q2 / n1;
    __global const T *const x = which < 2 ? (which ? b + b_at : a + a_at) : which == 2 ? c + c_at : d + d_at;
    out[i] = x[q1 * s0 + q2 % n1 * s1 + q3 % n2 * s2 + own % n3 * s3];
}
