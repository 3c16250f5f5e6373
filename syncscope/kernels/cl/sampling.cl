// Samples: ones with probabilities of their own, classes of a distribution, and the ends of a permutation.
#include "philox.cl"

#ifdef P
// Ones with the probability of each element; four neighbours are a stream's.
__kernel void bernoulli_each(__global const P *chances, long chances_at, __global O *out, long at, ulong total, Draw draw) {
    const ulong item = get_global_id(0) * LANES;
    if (item * 4 >= total) return;
    L(float) drawn[4];
    uniform4(philox(draw, item, 0), drawn);
    for (int k = 0; k < LANES; k++)
        for (int j = 0; j < 4; j++) {
            const ulong i = (item + k) * 4 + j;
            if (i < total) STORE(LANE(drawn[j], k) <= chances[chances_at + i], out, at + i);
        }
}
#endif

#ifdef T
// Of each row of running sums, which end at 1, the class that a number drawn between 0 and 1 falls into, `samples` times.
__kernel void multinomial(__global const T *sums, __global long *out, uint rows, uint classes, uint samples, uint streams, Draw draw) {
    const uint sample = get_global_id(0), row = get_global_id(1);
    if (sample >= samples || row >= rows) return;
    sums += (ulong)row * classes;
    const T wanted = LANE(unit(philox(draw, (ulong)row * streams + sample, 0).a), 0);
    uint low = 0, high = classes;
    while (low < high) {
        const uint middle = (low + high) / 2;
        if (sums[middle] < wanted) low = middle + 1;
        else high = middle;
    }
    if (low == classes) low--;
    while (low && sums[low] == sums[low - 1]) low--;  // a class of probability 0 is never drawn
    out[(ulong)row * samples + sample] = low;
}
#endif

// Keys that are equal leave their places in order: each run of such is shuffled (Fisher and Yates), by its first item.
__kernel void shuffle_equal(__global const long *keys, __global long *places, uint count, Draw draw) {
    const uint i = get_global_id(0);
    if (i + 1 >= count || keys[i] != keys[i + 1] || (i && keys[i] == keys[i - 1])) return;
    uint length = 1, turn = 0, left = 0;
    while (i + length < count && keys[i + length] == keys[i]) length++;
    Four drawn;
    for (uint last = length - 1; last; last--) {
        if (!left) {
            drawn = philox(draw, i, turn++);
            left = 4;
        }
        const uint number = LANE(left == 4 ? drawn.a : left == 3 ? drawn.b : left == 2 ? drawn.c : drawn.d, 0);
        const uint other = number % (last + 1);
        const long moved = places[i + last];
        left--;
        places[i + last] = places[i + other];
        places[i + other] = moved;
    }
}
