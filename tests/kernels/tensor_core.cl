// What generate/tensor_cores.py says in PTX, for devices without: a warp's items lay their words down and each reads what it needs. Two
// memories take turns, so that one barrier will do: who writes into one has seen all others leave it, at the barrier of the other.
#define MMA_BEGIN int mma_turn = 0; __local uint mma_words[2][256][6]; __local ushort *__local mma_rows[2][256];
#define MMA_ONCE(lo, hi, a0, a1, a2, a3, b0, b1) mma(lo, hi, a0, a1, a2, a3, b0, b1, mma_words[mma_turn ^= 1]);
#define TF32(x) (isnan(x) ? as_uint(x) : (as_uint(x) + 0x1000u) & 0xffffe000u)
#define COPY(to, from, valid) *(to) = (valid) ? *(from) : 0;
#define COPY4(to, from, valid) *(__local float4 *)(to) = (valid) ? *(__global const float4 *)(from) : 0;
#define COPY8(to, from, valid) for (int each = 0; each < 8; each++) (to)[each] = (valid) ? (from)[each] : 0;
#define MATRICES(a, b, c, d, at) MATRICES_AS(a, b, c, d, at, own, 2 * pair, own, 2 * pair + 1)
#define MATRICES_TURNED(a, b, c, d, at) MATRICES_AS(a, b, c, d, at, 2 * pair, own, 2 * pair + 1, own)
#define MATRICES_AS(a, b, c, d, at, row0, column0, row1, column1) {                                                    \
    const int me = get_local_id(0), first = me / 32 * 32, own = me % 32 / 4, pair = me % 4;                            \
    mma_turn ^= 1;                                                                                                     \
    mma_rows[mma_turn][me] = (at);                                                                                     \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                                      \
    __local ushort *__local *const rows = mma_rows[mma_turn] + first;                                                  \
    a = as_uint((ushort2)(rows[row0][column0], rows[row1][column1]));                                                  \
    b = as_uint((ushort2)(rows[8 + row0][column0], rows[8 + row1][column1]));                                          \
    c = as_uint((ushort2)(rows[16 + row0][column0], rows[16 + row1][column1]));                                        \
    d = as_uint((ushort2)(rows[24 + row0][column0], rows[24 + row1][column1])); }
#define EXCHANGE(x) EXCHANGE_BY(x, 1)
#define EXCHANGE_BY(x, apart) {                                                                                        \
    mma_turn ^= 1;                                                                                                     \
    mma_words[mma_turn][get_local_id(0)][0] = as_uint(x);                                                              \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                                      \
    x = as_float(mma_words[mma_turn][get_local_id(0) ^ apart][0]); }
#define POWER_OF_TWO(y, x) y = exp2(x);
#define BOTH(word, x, y) word = as_uint((ushort2)(JOIN(to_, STORED)(x), JOIN(to_, STORED)(y)));
#define COPIES_END
#define COPIES_WAIT(left)
#define PAIRS (sizeof(S) == 2)

// The sums are a function's, which is compiled once, and not for each of a kernel's many calls. It may neither wait nor ask which item
// it is: PoCL would have to inline it. And it may not know that all its calls give it the same memory: that one address would be
// written into it, and PoCL gives each thread local memory of its own only where the kernel itself names it. So the address is hidden.
__attribute__((noinline)) static void mma_sums(float *lo, float *hi, __local uint (*a)[6], __local uint (*b)[6]) {
    for (int i = 0; i < 4; i++) {
        float sum = 0;
        for (int word = 0; word < 8; word++) {
            const uint of_a = a[word % 4][word / 4 * 2 + i / 2];
            const uint of_b = b[i % 2 * 4 + word % 4][4 + word / 4];
            if (PAIRS) {
                const ushort first[2] = {of_a, of_b}, second[2] = {of_a >> 16, of_b >> 16};
                sum += LOAD((const S *)first, 0) * LOAD((const S *)first, 1);
                sum += LOAD((const S *)second, 0) * LOAD((const S *)second, 1);
            } else
                sum += as_float(of_a & 0xffffe000u) * as_float(of_b & 0xffffe000u);
        }
        (i < 2 ? lo : hi)[i % 2] += sum;
    }
}

__attribute__((always_inline)) static inline void mma(float *lo, float *hi, uint a0, uint a1, uint a2, uint a3, uint b0, uint b1,
                                                      __local uint (*words)[6]) {
    const int me = get_local_id(0), warp = me / 32 * 32, row = me % 32 / 4, pair = me % 4;
    const uint mine[6] = {a0, a1, a2, a3, b0, b1};
    for (int i = 0; i < 6; i++) words[me][i] = mine[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    __local uint(*a)[6] = words + warp + row * 4, (*b)[6] = words + warp + pair * 8;
    __asm__ volatile("" : "+r"(a), "+r"(b));
    mma_sums(lo, hi, a, b);
}
