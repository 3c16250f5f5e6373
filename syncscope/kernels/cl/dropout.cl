// Dropout: what is kept, and those numbers scaled; both in one pass. A stream's four numbers are for EACH neighbours at a time, as in
// CUDA's kernel, or where a tensor leaves some over (EACH is 1) for elements that lie `streams` apart.
#include "philox.cl"
#define TAKEN (EACH > 4 ? 4 : EACH)

__kernel void dropout(__global const S *x, long x_at, __global O *out, __global uchar *mask, ulong total, uint streams, T keep, T scale,
                      Draw draw) {
    const ulong item = get_global_id(0);
    x += x_at;
#if EACH == 1
    const ulong turn = item / streams, stream = item - turn * streams, first = turn * streams * 4 + stream, step = streams;
#else
    const ulong thread = item * TAKEN / EACH, part = item - thread * EACH / TAKEN;
    const ulong pass = thread / streams, stream = thread - pass * streams, first = item * TAKEN, step = 1;
    const ulong turn = pass * (EACH / TAKEN) + part;
#endif
    if (first >= total) return;
    const float4 drawn = uniform4(philox(draw, stream, turn));
#if ON_GPU && EACH >= 4 && ALIGNED
    const int4 kept = {drawn.x < keep, drawn.y < keep, drawn.z < keep, drawn.w < keep};
    const JOIN(T, 4) flags = JOIN(convert_, JOIN(T, 4))(kept);
    STORE4(LOAD4(x + first) * flags * scale, out + first);
    *(__global uchar4 *)(mask + first) = convert_uchar4(kept);
#else
    const float each[4] = {drawn.x, drawn.y, drawn.z, drawn.w};
    for (int j = 0; j < (EACH == 2 ? 2 : 4); j++) {
        const ulong i = first + j * step;
        if (i >= total) return;
        const int kept = each[j] < keep;
        STORE(LOAD(x, i) * kept * scale, out, i);
        mask[i] = kept;
    }
#endif
}

// Leaky ReLU by a slope drawn for each element, and the slopes themselves, 1 where the input is positive.
__kernel void rrelu(__global const S *x, long x_at, __global O *out, __global O *slopes, ulong total, uint streams, T lower, T range,
                    Draw draw) {
    const ulong item = get_global_id(0), turn = item / streams, stream = item - turn * streams;
    const ulong first = turn * streams * PER_TURN + stream;
    if (first >= total) return;
#if PER_TURN == 2
    const double2 drawn = uniform2_double(philox(draw, stream, turn));
    const double each[2] = {drawn.x, drawn.y};
#else
    const float4 drawn = uniform4(philox(draw, stream, turn));
    const float each[4] = {drawn.x, drawn.y, drawn.z, drawn.w};
#endif
    for (int j = 0; j < PER_TURN; j++) {
        const ulong i = first + (ulong)j * streams;
        if (i >= total) return;
        const T value = LOAD(x, x_at + i), slope = value <= 0 ? FMA(each[j], range, lower) : 1;
        STORE(value * slope, out, i);
        STORE(slope, slopes, i);
    }
}
