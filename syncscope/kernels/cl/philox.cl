// Random numbers that are functions of a seed, a stream and a place in it: Philox 4x32-10 (Salmon, Moraes, Dror and Shaw, 2011),
// counted as CUDA's cuRAND counts, and made into numbers as it makes them. An item draws for LANES streams that are neighbours: eight
// on a CPU, where each of its instructions does so much, one on a GPU.
typedef struct { ulong seed, offset; } Draw;

#if ON_GPU
#define LANES 1
#define L(type) type
#define CONVERT(type, x) convert_##type(x)
#define LANE_NUMBERS 0
#define LANE(x, k) (x)
#define HIGH(x, y) mul_hi(x, y)
#else
#define LANES 8
#define L(type) JOIN(type, 8)
#define CONVERT(type, x) __builtin_convertvector(x, JOIN(type, 8))
#define LANE_NUMBERS ((uint8)(0, 1, 2, 3, 4, 5, 6, 7))
#define LANE(x, k) ((x)[k])
#define HIGH(x, y) CONVERT(uint, CONVERT(ulong, y) * (ulong)(x) >> 32)
#endif
typedef L(uint) Words;
typedef struct { Words a, b, c, d; } Four;

// Four words for each lane: of stream `stream` and its neighbours, those from 4 * (offset / 4 + turn) on.
static inline Four philox(Draw from, ulong stream, ulong turn) {
    const ulong count = from.offset / 4 + turn;
    Words a = (uint)count, b = (uint)(count >> 32), c = (uint)stream + LANE_NUMBERS, d = (uint)(stream >> 32);
    uint first = (uint)from.seed, second = (uint)(from.seed >> 32);
#pragma unroll
    for (int i = 0; i < 10; i++) {
        const Words high_a = HIGH(0xD2511F53u, a), low_a = 0xD2511F53u * a;
        const Words high_c = HIGH(0xCD9E8D57u, c), low_c = 0xCD9E8D57u * c;
        a = high_c ^ b ^ first;
        b = low_c;
        c = high_a ^ d ^ second;
        d = low_a;
        first += 0x9E3779B9u;
        second += 0xBB67AE85u;
    }
    const Four made = {a, b, c, d};
    return made;
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

// Four of each lane, or of what takes 64 bits two.
static inline void words4(Four bits, Words *x) { x[0] = bits.a, x[1] = bits.b, x[2] = bits.c, x[3] = bits.d; }

static inline void words2(Four bits, L(ulong) *x) {
    x[0] = CONVERT(ulong, bits.a) << 32 | CONVERT(ulong, bits.b);
    x[1] = CONVERT(ulong, bits.c) << 32 | CONVERT(ulong, bits.d);
}

static inline L(float) unit(Words x) { return CONVERT(float, x) * 0x1p-32f + 0x1p-33f; } // above 0 and up to 1

static inline void uniform4(Four bits, L(float) *x) {
    x[0] = unit(bits.a), x[1] = unit(bits.b), x[2] = unit(bits.c), x[3] = unit(bits.d);
}

static inline void pair(Words x, Words y, L(float) *made) { // Box and Muller, 1958
    const L(float) angle = CONVERT(float, y) * (0x1p-32f * 6.2831855f) + 0x1p-33f * 6.2831855f;
    const L(float) far = root(-2.0f * log(unit(x)));
    made[0] = FAST(sin)(angle) * far;
    made[1] = FAST(cos)(angle) * far;
}

static inline void normal4(Four bits, L(float) *x) {
    pair(bits.a, bits.b, x);
    pair(bits.c, bits.d, x + 2);
}

#ifdef cl_khr_fp64
static inline L(double) unit_double(Words x, Words y) {
    return CONVERT(double, CONVERT(ulong, x) ^ (CONVERT(ulong, y) << 21)) * 0x1p-53 + 0x1p-54;
}

static inline void uniform2_double(Four bits, L(double) *x) {
    x[0] = unit_double(bits.a, bits.b), x[1] = unit_double(bits.c, bits.d);
}

static inline void normal2_double(Four bits, L(double) *x) {
    const L(double) half_turns = unit_double(bits.c, bits.d) * 2, far = sqrt(-2.0 * log(unit_double(bits.a, bits.b)));
    x[0] = sinpi(half_turns) * far;
    x[1] = cospi(half_turns) * far;
}
#endif
