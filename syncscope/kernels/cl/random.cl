// A tensor filled with random numbers. As in CUDA's kernels each of `streams` draws EACH numbers x at a time (MAKE), for elements that
// lie `streams` apart, and PUT says what becomes of one, with the numbers a, b and c.
#include "philox.cl"

static inline ulong2 words2(uint4 bits) { return convert_ulong2(bits.xz) << 32 | convert_ulong2(bits.yw); }
#define words4(bits) bits

__kernel void NAME(__global O *out, long at, ulong total, uint streams, GIVEN a, GIVEN b, GIVEN c, Draw draw) {
    const uint item = get_global_id(0), turn = item / streams, stream = item - turn * streams;
    const ulong first = (ulong)turn * streams * EACH + stream;
    if (first >= total) return;
    const JOIN(DRAWN, EACH) drawn = MAKE(philox(draw, stream, turn));
#if EACH == 4
    const DRAWN made[4] = {drawn.x, drawn.y, drawn.z, drawn.w};
#else
    const DRAWN made[2] = {drawn.x, drawn.y};
#endif
    for (int j = 0; j < EACH; j++) {
        const ulong i = first + (ulong)j * streams;
        const DRAWN x = made[j];
        if (i < total) { PUT }
    }
}
