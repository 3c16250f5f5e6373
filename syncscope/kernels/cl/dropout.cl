// Dropout: what is kept, and those numbers scaled; both in one pass. A stream's four numbers are for EACH neighbours at a time, four or
// two, as in CUDA's kernel, or where a tensor leaves some over (EACH is 1) for elements that lie `streams` apart.
#include "philox.cl"
#define KEEP(drawn, i) {                                                                                               \
    const int kept = drawn < keep;                                                                                     \
    STORE(LOAD(x, i) * kept * scale, out, i);                                                                          \
    mask[i] = kept; }

__kernel void dropout(__global const S *x, long x_at, __global O *out, __global uchar *mask, ulong total, uint streams, T keep, T scale,
                      Draw draw) {
    const ulong item = get_global_id(0) * LANES, turn = item / streams, stream = item - turn * streams;
    x += x_at;
#if EACH == 1
    const ulong first = turn * streams * 4 + stream, step = streams;
#else
    const ulong first = item * EACH, apart = EACH;
#endif
    if (first >= total) return;
    L(float) drawn[4];
    uniform4(philox(draw, stream, turn), drawn);
#if ON_GPU && EACH >= 4 && ALIGNED
    const int4 kept = {drawn[0] < keep, drawn[1] < keep, drawn[2] < keep, drawn[3] < keep};
    const JOIN(T, 4) flags = JOIN(convert_, JOIN(T, 4))(kept);
    STORE4(LOAD4(x + first) * flags * scale, out + first);
    *(__global uchar4 *)(mask + first) = convert_uchar4(kept);
#elif EACH == 1
    for (int j = 0; j < 4; j++)
        for (int k = 0; k < LANES; k++) {
            const ulong i = first + j * step + k;
            if (i < total) KEEP(LANE(drawn[j], k), i)
        }
#else
    for (int k = 0; k < LANES; k++)
        for (int j = 0; j < EACH; j++) {
            const ulong i = first + k * apart + j;
            if (i < total) KEEP(LANE(drawn[j], k), i)
        }
#endif
}

// Leaky ReLU by a slope drawn for each element, and the slopes themselves, 1 where the input is positive.
__kernel void rrelu(__global const S *x, long x_at, __global O *out, __global O *slopes, ulong total, uint streams, T lower, T range,
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
            const T value = LOAD(x, x_at + i), slope = value <= 0 ? FMA(LANE(drawn[j], k), range, lower) : 1;
            STORE(value * slope, out, i);
            STORE(slope, slopes, i);
        }
}
