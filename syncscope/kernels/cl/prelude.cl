#pragma OPENCL FP_CONTRACT ON
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#ifdef cl_khr_int64_base_atomics
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#endif
// What sums of many are kept in. An item of a CPU adds up what a whole team adds up on a GPU, by a tree.
#define WIDE JOIN(WIDE_, T)
#define WIDE_double double
#if defined(cl_khr_fp64) && !ON_GPU
#define WIDE_float double
#else
#define WIDE_float float
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

// How an element lies in memory: as a T (`plain`), or as 16 bits, which a load widens and a store rounds to the nearest, ties to
// even. STORED says which of these the tensors read are, and MADE which those written; S and O are the types in memory.
#define LOAD(p, i) JOIN(LOAD_, STORED)(p, i)
#define STORE(x, p, i) JOIN(STORE_, MADE)(x, p, i)
#define LOAD_plain(p, i) ((p)[i])
#define STORE_plain(x, p, i) ((p)[i] = (x))
#define LOAD_bfloat16(p, i) as_float((uint)(p)[i] << 16)
#define STORE_bfloat16(x, p, i) ((p)[i] = to_bfloat16(x))

static inline ushort to_bfloat16(float x) {
    const uint bits = as_uint(x);
    return x != x ? (ushort)0x7fc0 : (ushort)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

#if ON_GPU
#define LOAD_half(p, i) vload_half(i, (__global const half *)(p))
#define STORE_half(x, p, i) vstore_half_rte(x, i, (__global half *)(p))
#else
// PoCL's wheel leaves vload_half and vstore_half as calls; loops over these become vectors.
#define LOAD_half(p, i) from_half((p)[i])
#define STORE_half(x, p, i) ((p)[i] = to_half(x))

static inline float from_half(ushort x) {
    const uint bits = (uint)(x & 0x7fff) << 13;  // the exponent is 112 too small
    return as_float(as_uint(as_float(bits) * 0x1p112f) | (bits >= 0x0f800000u ? 0x7f800000u : 0u) | (uint)(x & 0x8000) << 16);
}

static inline ushort to_half(float x) {
    const uint bits = as_uint(x) & 0x7fffffffu, small = as_uint(as_float(bits) * 0x1p-112f);
    const uint normal = (small + 0xfffu + ((small >> 13) & 1u)) >> 13;
    const uint tiny = as_uint(as_float(bits) + 0.5f) - 0x3f000000u;  // a step of 0.5f is one of these
    const uint huge = bits > 0x7f800000u ? 0x7e00u : 0x7c00u;
    return (ushort)((bits < 0x38800000u ? tiny : bits < 0x47800000u ? normal : huge) | ((as_uint(x) >> 16) & 0x8000u));
}
#endif

// Four neighbours at once on a GPU, at a multiple of four elements, or two of two; eight at any address on a CPU.
#define LOAD4(p) JOIN(LOAD4_, STORED)(p)
#define STORE4(x, p) JOIN(STORE4_, MADE)(x, p)
#define LOAD4_plain(p) (*(__global const JOIN(T, 4) *)(p))
#define STORE4_plain(x, p) (*(__global JOIN(T, 4) *)(p) = (x))
#define LOAD4_half(p) vloada_half4(0, (__global const half *)(p))
#define STORE4_half(x, p) vstorea_half4_rte(x, 0, (__global half *)(p))
#define LOAD4_bfloat16(p) as_float4(convert_uint4(*(__global const ushort4 *)(p)) << 16)
#define STORE4_bfloat16(x, p) bfloat16_4(x, p)
#define STORE2(x, p) JOIN(STORE2_, MADE)(x, p)
#define STORE2_plain(x, p) (*(__global JOIN(T, 2) *)(p) = (x))
#define STORE2_half(x, p) vstorea_half2_rte(x, 0, (__global half *)(p))
#define STORE2_bfloat16(v, p) (*(__global ushort2 *)(p) = (ushort2)(to_bfloat16((v).x), to_bfloat16((v).y)))
#define LOAD8(p) JOIN(LOAD8_, STORED)(p)
#define LOAD8_plain(p) LD8(p)

static inline void bfloat16_4(float4 x, __global ushort *p) {
    *(__global ushort4 *)p = (ushort4)(to_bfloat16(x.x), to_bfloat16(x.y), to_bfloat16(x.z), to_bfloat16(x.w));
}

#if !ON_GPU
typedef __fp16 half8u __attribute__((ext_vector_type(8), aligned(2)));
typedef ushort ushort8u __attribute__((ext_vector_type(8), aligned(2)));
#define LOAD8_half(p) __builtin_convertvector(*(__global const half8u *)(p), float8)
#define LOAD8_bfloat16(p) as_float8(__builtin_convertvector(*(__global const ushort8u *)(p), uint8) << 16)
#define STORE8(x, p) JOIN(STORE8_, MADE)(x, p)
#define STORE8_plain(x, p) ST8(x, p)
#define STORE8_half(x, p) (*(__global half8u *)(p) = __builtin_convertvector(x, half8u))
#define STORE8_bfloat16(x, p) bfloat16_8(x, p)

static inline void bfloat16_8(float8 x, __global ushort *p) {
    const float *lanes = (const float *)&x;
    for (int j = 0; j < 8; j++) p[j] = to_bfloat16(lanes[j]);
}
#endif
