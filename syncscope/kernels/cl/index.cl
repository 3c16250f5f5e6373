// Reading and writing by index. A tensor is (before, indexed..., after), row-major; an index counts from the end if negative,
// and one that is out of range is skipped (the element stays, or reads as zero): the host could only hear of it by waiting.

// Adding where several items may meet: compare-and-swap of bit patterns, since no NaN equals itself.
#define ADD_BITS(A, BITS, SWAP)                                         \
    volatile __global BITS *cell = (volatile __global BITS *)(p);      \
    union { BITS bits; A value; } was, now;                            \
    do {                                                               \
        was.bits = *cell;                                              \
        now.value = was.value + (value_);                              \
    } while (SWAP(cell, was.bits, now.bits) != was.bits);
static inline void add_float(__global float *p, float value_) { ADD_BITS(float, int, atomic_cmpxchg) }
#if defined(cl_khr_fp64) && defined(cl_khr_int64_base_atomics)
static inline void add_double(__global double *p, double value_) { ADD_BITS(double, long, atom_cmpxchg) }
#endif
static inline void add_int(__global int *p, int value) { atomic_add(p, value); }
#ifdef cl_khr_int64_base_atomics
static inline void add_long(__global long *p, long value) { atom_add((volatile __global long *)p, value); }
#endif
#define PUT_set(p, v) (*(p) = (v))
#define PUT_add(p, v) JOIN(add_, T)(p, v)
#define PUT JOIN(PUT_, MODE)
// Where no two items meet.
#define ONCE_set(p, v) (*(p) = (v))
#define ONCE_add(p, v) (*(p) += (v))
#define PUT_ONCE JOIN(ONCE_, MODE)

#ifdef INDICES
static inline long place(uint j, __global const long *const *indices, const long *sizes, const long *steps) {
    long at = 0;
    for (int d = 0; d < INDICES; d++) {
        long k = indices[d][j];
        if (k < 0) k += sizes[d];
        if (k < 0 || k >= sizes[d]) return -1;
        at += k * steps[d];
    }
    return at;
}

#define INDEX_ARRAYS                                            \
    __global const long *const indices[4] = {i0, i1, i2, i3};  \
    const long sizes[4] = {n0, n1, n2, n3}, steps[4] = {s0, s1, s2, s3};

__kernel void index_gather(__global const T *in, long in_at, __global const long *i0, __global const long *i1,
                           __global const long *i2, __global const long *i3, long n0, long n1, long n2, long n3, long s0, long s1,
                           long s2, long s3, long before_step, uint count, uint after, __global T *out, uint total) {
    const uint i = get_global_id(0);
    if (i >= total) return;
    INDEX_ARRAYS
    const uint a = i % after, j = i / after % count, b = i / after / count;
    const long at = place(j, indices, sizes, steps);
    out[i] = at < 0 ? (T)0 : in[in_at + b * before_step + at + a];
}

__kernel void index_put(__global T *out, long out_at, __global const long *i0, __global const long *i1, __global const long *i2,
                        __global const long *i3, long n0, long n1, long n2, long n3, long s0, long s1, long s2, long s3,
                        long before_step, uint count, uint after, __global const T *values, long values_at, int value_step,
                        uint total) {
    const uint i = get_global_id(0);
    if (i >= total) return;
    INDEX_ARRAYS
    const uint a = i % after, j = i / after % count, b = i / after / count;
    const long at = place(j, indices, sizes, steps);
    if (at >= 0) PUT(out + out_at + b * before_step + at + a, values[values_at + (long)i * value_step]);
}
#endif

// What a mask selects, in order. `sums` is how many it selects before each chunk; the tensor is (before, length, after).
__kernel void mask_gather(__global const T *in, long in_at, __global const uchar *mask, long mask_at, __global const long *sums,
                          __global T *out, uint before, uint length, uint after, long count, uint chunk, uint chunks) {
    const uint i = get_global_id(0);
    if (i >= chunks) return;
    long place = sums[i];
    const uint end = min(i * chunk + chunk, length);
    for (uint k = i * chunk; k < end; k++) {
        if (!mask[mask_at + k]) continue;
        if (place >= count) return;
        for (uint b = 0; b < before; b++)
            for (uint a = 0; a < after; a++)
                out[((long)b * count + place) * after + a] = in[in_at + ((long)b * length + k) * after + a];
        place++;
    }
}

__kernel void mask_put(__global T *out, long out_at, __global const uchar *mask, long mask_at, __global const long *sums,
                       __global const T *values, long values_at, uint before, uint length, uint after, long count, uint chunk,
                       uint chunks) {
    const uint i = get_global_id(0);
    if (i >= chunks) return;
    long place = sums[i];
    const uint end = min(i * chunk + chunk, length);
    for (uint k = i * chunk; k < end; k++) {
        if (!mask[mask_at + k]) continue;
        if (place >= count) return;
        for (uint b = 0; b < before; b++)
            for (uint a = 0; a < after; a++) {
                __global T *p = out + out_at + ((long)b * length + k) * after + a;
                const T value = values[values_at + ((long)b * count + place) * after + a];
                PUT_ONCE(p, value);
            }
        place++;
    }
}

// gather and scatter: one index per element, along one dimension (its size `limit`, its step `step`) of a strided tensor.
__kernel void gather_along(__global const T *in, long in_at, __global const long *index, long index_at, __global T *out, uint total,
                           uint n0, uint n1, uint n2, uint n3, uint n4, uint n5, long s0, long s1, long s2, long s3, long s4,
                           long s5, long limit, long step) {
    const uint i = get_global_id(0);
    if (i >= total) return;
    const uint sizes[6] = {n0, n1, n2, n3, n4, n5};
    const long steps[6] = {s0, s1, s2, s3, s4, s5};
    long k = index[index_at + i], at = in_at;
    uint rest = i;
    for (int d = 5; d >= 0; d--) {
        at += rest % sizes[d] * steps[d];
        rest /= sizes[d];
    }
    if (k < 0) k += limit;
    out[i] = k < 0 || k >= limit ? (T)0 : in[at + k * step];
}

__kernel void scatter_along(__global T *out, long out_at, __global const long *index, long index_at, __global const T *values,
                            long values_at, int value_step, uint total, uint n0, uint n1, uint n2, uint n3, uint n4, uint n5, long s0,
                            long s1, long s2, long s3, long s4, long s5, long limit, long step) {
    const uint i = get_global_id(0);
    if (i >= total) return;
    const uint sizes[6] = {n0, n1, n2, n3, n4, n5};
    const long steps[6] = {s0, s1, s2, s3, s4, s5};
    long k = index[index_at + i], at = out_at;
    uint rest = i;
    for (int d = 5; d >= 0; d--) {
        at += rest % sizes[d] * steps[d];
        rest /= sizes[d];
    }
    if (k < 0) k += limit;
    if (k >= 0 && k < limit) PUT(out + at + k * step, values[values_at + (long)i * value_step]);
}
