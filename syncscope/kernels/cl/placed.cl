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
