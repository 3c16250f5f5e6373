// What generate/tensor_cores.py says in PTX, for devices without: a warp's items lay their words down and each reads what it needs.
#define MMA_BEGIN __local uint mma_words[256][6]; __local ushort *__local mma_rows[256];
#define MMA_ONCE(lo, hi, a0, a1, a2, a3, b0, b1) mma(lo, hi, a0, a1, a2, a3, b0, b1, mma_words);
#define TF32(x) (isnan(x) ? as_uint(x) : (as_uint(x) + 0x1000u) & 0xffffe000u)
#define COPY(to, from, valid) *(to) = (valid) ? *(from) : 0;
#define COPY4(to, from, valid) *(__local float4 *)(to) = (valid) ? *(__global const float4 *)(from) : 0;
#define COPY8(to, from, valid) for (int each = 0; each < 8; each++) (to)[each] = (valid) ? (from)[each] : 0;
#define MATRICES(a, b, c, d, at) MATRICES_AS(a, b, c, d, at, own, 2 * pair, own, 2 * pair + 1)
#define MATRICES_TURNED(a, b, c, d, at) MATRICES_AS(a, b, c, d, at, 2 * pair, own, 2 * pair + 1, own)
#define MATRICES_AS(a, b, c, d, at, row0, column0, row1, column1) {                                                    \
    const int me = get_local_id(0), first = me / 32 * 32, own = me % 32 / 4, pair = me % 4;                            \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                                      \
    mma_rows[me] = (at);                                                                                               \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                                      \
    a = as_uint((ushort2)(mma_rows[first + row0][column0], mma_rows[first + row1][column1]));                            \
    b = as_uint((ushort2)(mma_rows[first + 8 + row0][column0], mma_rows[first + 8 + row1][column1]));                    \
    c = as_uint((ushort2)(mma_rows[first + 16 + row0][column0], mma_rows[first + 16 + row1][column1]));                  \
    d = as_uint((ushort2)(mma_rows[first + 24 + row0][column0], mma_rows[first + 24 + row1][column1])); }
#define EXCHANGE(x) EXCHANGE_BY(x, 1)
#define EXCHANGE_BY(x, apart) {                                                                                        \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                                      \
    mma_words[get_local_id(0)][0] = as_uint(x);                                                                        \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                                      \
    x = as_float(mma_words[get_local_id(0) ^ apart][0]); }
#define POWER_OF_TWO(y, x) y = exp2(x);
#define BOTH(word, x, y) word = as_uint((ushort2)(JOIN(to_, STORED)(x), JOIN(to_, STORED)(y)));
#define COPIES_END
#define COPIES_WAIT(left)
#define PAIRS (sizeof(S) == 2)

// Inlined by command: PoCL gives each thread local memory of its own only where the kernel itself names it. Left a function, this one
// gets the one address that its calls have in common written into it, and all threads write to the same words.
__attribute__((always_inline)) static inline void mma(float *lo, float *hi, uint a0, uint a1, uint a2, uint a3, uint b0, uint b1,
                                                      __local uint (*words)[6]) {
    const int me = get_local_id(0), warp = me / 32 * 32, row = me % 32 / 4, pair = me % 4;
    const uint mine[6] = {a0, a1, a2, a3, b0, b1};
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < 6; i++) words[me][i] = mine[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < 4; i++) {
        float sum = 0;
        for (int word = 0; word < 8; word++) {
            const uint of_a = words[warp + row * 4 + word % 4][word / 4 * 2 + i / 2];
            const uint of_b = words[warp + (pair * 2 + i % 2) * 4 + word % 4][4 + word / 4];
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
