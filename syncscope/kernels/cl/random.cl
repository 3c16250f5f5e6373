// A tensor filled with random numbers. As in CUDA's kernels each of `streams` draws EACH numbers x at a time (MAKE), for elements that
// lie `streams` apart, and PUT says what becomes of one, with the numbers a, b and c.
#include "philox.cl"

__kernel void NAME(__global O *out, long at, ulong total, uint streams, GIVEN a, GIVEN b, GIVEN c, Draw draw) {
    const uint item = get_global_id(0) * LANES, turn = item / streams, stream = item - turn * streams;
    const ulong first = (ulong)turn * streams * EACH + stream;
    if (first >= total) return;
    L(DRAWN) made[EACH];
    MAKE(philox(draw, stream, turn), made);
    for (int j = 0; j < EACH; j++)
        for (int k = 0; k < LANES; k++) {
            const ulong i = first + (ulong)j * streams + k;
            const DRAWN x = LANE(made[j], k);
            if (i < total) { PUT }
        }
}
