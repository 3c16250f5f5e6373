// Random numbers that are functions of a seed, a stream and a place in it: Philox 4x32-10 (Salmon, Moraes, Dror and Shaw, 2011),
// counted as CUDA's cuRAND counts, and made into numbers as it makes them.
typedef struct { ulong seed, offset; } Draw;

// Four words: of stream `stream`, those from 4 * (offset / 4 + turn) on.
static inline uint4 philox(Draw from, ulong stream, ulong turn) {
    const ulong count = from.offset / 4 + turn;
    uint a = (uint)count, b = (uint)(count >> 32), c = (uint)stream, d = (uint)(stream >> 32);
    uint first = (uint)from.seed, second = (uint)(from.seed >> 32);
#pragma unroll
    for (int i = 0; i < 10; i++) {
        const uint high_a = mul_hi(0xD2511F53u, a), low_a = 0xD2511F53u * a;
        const uint high_c = mul_hi(0xCD9E8D57u, c), low_c = 0xCD9E8D57u * c;
        a = high_c ^ b ^ first;
        b = low_c;
        c = high_a ^ d ^ second;
        d = low_a;
        first += 0x9E3779B9u;
        second += 0xBB67AE85u;
    }
    return (uint4)(a, b, c, d);
}

// CUDA's fast functions, and its square root, which OpenCL has under other names.
#ifdef __NV_CL_C_VERSION
#define FAST(f) native_##f
static inline float root(float x) {
    float y;
    asm("sqrt.rn.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
#else
#define FAST(f) f
#define root(x) sqrt(x)
#endif

// Above 0 and up to 1.
static inline float4 uniform4(uint4 bits) { return convert_float4(bits) * 0x1p-32f + 0x1p-33f; }

static inline float2 normal2(uint x, uint y) { // Box and Muller, 1958
    const float angle = (float)y * (0x1p-32f * 6.2831855f) + 0x1p-33f * 6.2831855f;
    const float far = root(-2.0f * log((float)x * 0x1p-32f + 0x1p-33f));
    return (float2)(FAST(sin)(angle) * far, FAST(cos)(angle) * far);
}

static inline float4 normal4(uint4 bits) { return (float4)(normal2(bits.x, bits.y), normal2(bits.z, bits.w)); }

#ifdef cl_khr_fp64
static inline double2 uniform2_double(uint4 bits) {
    const ulong2 whole = convert_ulong2(bits.xz) ^ (convert_ulong2(bits.yw) << 21);
    return convert_double2(whole) * 0x1p-53 + 0x1p-54;
}

static inline double2 normal2_double(uint4 bits) {
    const double2 drawn = uniform2_double(bits);
    const double half_turns = drawn.y * 2, far = sqrt(-2.0 * log(drawn.x));
    return (double2)(sinpi(half_turns) * far, cospi(half_turns) * far);
}
#endif
