#pragma OPENCL FP_CONTRACT ON
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#ifdef cl_khr_int64_base_atomics
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#endif
// Eight elements of T at any address. PoCL's wheel leaves vload8 as a slow call and miscompiles wider vectors: there we
// dereference, and nowhere go beyond eight. T8 is the type in registers.
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define T8 JOIN(T, 8)
#if ON_GPU
#define LD8(p) vload8(0, p)
#define ST8(v, p) vstore8(v, 0, p)
#define FMA(x, y, z) fma(x, y, z)
#else
#define FMA(x, y, z) ((x) * (y) + (z))
typedef float float8u __attribute__((ext_vector_type(8), aligned(4)));
typedef int int8u __attribute__((ext_vector_type(8), aligned(4)));
typedef long long8u __attribute__((ext_vector_type(8), aligned(8)));
#ifdef cl_khr_fp64
typedef double double8u __attribute__((ext_vector_type(8), aligned(8)));
#endif
#define T8U JOIN(T8, u)
#define LD8(p) (*(__global const T8U *)(p))
#define ST8(v, p) (*(__global T8U *)(p) = (v))
#endif

// Rounds to the nearest, ties to even.
static inline ushort to_bfloat16(float x) {
    const uint bits = as_uint(x);
    return x != x ? (ushort)0x7fc0 : (ushort)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
