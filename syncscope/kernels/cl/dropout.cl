// Dropout: what is kept, and those numbers scaled; both in one pass. A stream's four numbers are for EACH neighbours at a time, as in
// CUDA's kernel: two, four, or of halves eight, by two turns. Where a tensor leaves some over (EACH is 1) they are for elements that
// lie `streams` apart.
#include "philox.cl"
#define KEEP(drawn, i) {                                                                                               \
    const int kept = drawn < keep;                                                                                     \
    STORE(LOAD(x, i) * kept * scale, out, i);                                                                          \
    mask[i] = kept; }

__kernel void dropout(__global const S *x, long x_at, __global O *out, __global uchar *mask, ulong total, uint streams, T keep, T scale,
                      Draw draw) {
    const ulong item = get_global_id(0) * LANES, round = item / streams, stream = item - round * streams;
    x += x_at;
#if EACH == 1
    const ulong first = round * streams * 4 + stream, step = streams;
#else
    const ulong first = item * EACH;
#endif
    if (first >= total) return;
    L(float) drawn[4];
#if EACH > 1
    for (int part = 0; part < (EACH + 3) / 4; part++) {
        uniform4(philox(draw, stream, round * ((EACH + 3) / 4) + part), drawn);
#if ON_GPU && EACH >= 4 && ALIGNED
        const int4 kept = {drawn[0] < keep, drawn[1] < keep, drawn[2] < keep, drawn[3] < keep};
        const JOIN(T, 4) flags = {kept.x, kept.y, kept.z, kept.w};
        STORE4(LOAD4(x + first + 4 * part) * flags * scale, out + first + 4 * part);
        *(__global uchar4 *)(mask + first + 4 * part) = convert_uchar4(kept);
#else
        for (int k = 0; k < LANES; k++)
            for (int j = 0; j < min(EACH, 4); j++) {
                const ulong i = first + k * EACH + 4 * part + j;
                if (i < total) KEEP(LANE(drawn[j], k), i)
            }
#endif
    }
#else
    uniform4(philox(draw, stream, round), drawn);
    for (int j = 0; j < 4; j++)
        for (int k = 0; k < LANES; k++) {
            const ulong i = first + j * step + k;
            if (i < total) KEEP(LANE(drawn[j], k), i)
        }
#endif
}

// Leaky ReLU by a slope drawn for each element, and the slopes themselves, 1 where the input is positive. CUDA scales them as doubles.
__kernel void rrelu(__global const S *x, long x_at, __global O *out, __global O *slopes, ulong total, uint streams, R lower, R range,
                    Draw draw) {
    const ulong item = get_global_id(0) * LANES, turn = item / streams, stream = item - turn * streams;
    const ulong first = turn * streams * PER_TURN + stream;
    if (first >= total) return;
#if PER_TURN == 2
    L(double) drawn[2];
    uniform2_double(philox(draw, stream, turn), drawn);
#else
    L(float) drawn[4];
    uniform4(philox(draw, stream, turn), drawn);
#endif
    for (int j = 0; j < PER_TURN; j++)
        for (int k = 0; k < LANES; k++) {
            const ulong i = first + (ulong)j * streams + k;
            if (i >= total) return;  // and so is what follows
            const R drawn_slope = FMA((R)LANE(drawn[j], k), range, lower);
            const T value = LOAD(x, x_at + i), slope = value <= 0 ? (T)drawn_slope : 1;
            STORE(value * slope, out, i);
            STORE(slope, slopes, i);
        }
}
