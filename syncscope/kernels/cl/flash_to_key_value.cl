// Gradients of keys and values.
#include "flash.cl"

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void flash_to_key_value(__global const S *query, __global const S *key, __global const S *value, __global const B *bias,
                        __global const S *grad, __global const float *logs, __global const float *dots, __global O *to_key,
                        __global O *to_value, Numbers p) {
    BEGIN
    __local float of_queries[2][2][TILE];
    uint own[WIDTH / 16][4], own_value[WIDTH / 16][4];
    float scores[TILE / 8][4], slopes[TILE / 8][4], keys[WIDTH / 8][4], values[WIDTH / 8][4];
    AT(query) AT(key) AT(value) AT(bias) AT(grad) AT(to_key) AT(to_value)
    logs += get_group_id(1) * (long)p.queries;
    dots += get_group_id(1) * (long)p.queries;
    const float factor = p.factor * LOG2_E;
#define NEXT(there, from)                                                                                              \
    FETCH(tiles[there][0], query, from, p.queries)                                                                     \
    FETCH(tiles[there][1], grad, from, p.queries)                                                                      \
    for (int i = item; i < 2 * TILE; i += ITEMS)                                                                       \
        COPY(&of_queries[there][i / TILE][i % TILE], (i < TILE ? logs : dots) + (from + i % TILE), from + i % TILE < p.queries) \
    COPIES_END
    const int begin = CAUSAL ? (int)get_group_id(0) * ROWS / TILE * TILE : 0;
    NEXT(0, begin)
    OWN(own, key, p.keys)
    OWN(own_value, value, p.keys)
    EACH(j, i, WIDTH) keys[j][i] = values[j][i] = 0;
    int now = 0;
#pragma unroll 1
    for (int n = begin; n < p.queries; n += TILE) {
        COPIES_WAIT(0)
        barrier(CLK_LOCAL_MEM_FENCE);
        NEXT(now ^ 1, n + TILE)
        if (CONCERNS(n + TILE > first)) {
            EACH(j, i, TILE) scores[j][i] = slopes[j][i] = 0;
            BY_ROWS(scores, own, tiles[now][0])
            LOOK(scores, CAUSAL && n < first + 16, n + COLUMN(j, i), ROW(i))
            EACH(j, i, TILE)
                POWER_OF_TWO(scores[j][i], FMA(scores[j][i], SCALE, -of_queries[now][0][COLUMN(j, i)]))
            BY_ROWS(slopes, own_value, tiles[now][1])
            BY_COLUMNS(values, scores, tiles[now][1])
            EACH(j, i, TILE) slopes[j][i] = scores[j][i] * (slopes[j][i] - of_queries[now][1][COLUMN(j, i)]);
            BY_COLUMNS(keys, slopes, tiles[now][0])
        }
        now ^= 1;
    }
    WRITE(to_key, keys, p.factor, p.keys)
    WRITE(to_value, values, 1, p.keys)
}
