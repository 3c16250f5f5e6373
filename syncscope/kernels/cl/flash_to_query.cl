// Gradients of queries. Also writes what those of a query's scores have in common, the sum of its result times the gradient.
#include "flash.cl"

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void flash_to_query(__global const S *query, __global const S *key, __global const S *value, __global const B *bias,
                    __global const S *out, __global const S *grad, __global const float *logs, __global float *dots,
                    __global O *to_query, Numbers p) {
    BEGIN
    uint own[WIDTH / 16][4], own_grad[WIDTH / 16][4];
    float scores[TILE / 8][4], slopes[TILE / 8][4], sums[WIDTH / 8][4], log_[2], dot[2];
    AT(query) AT(key) AT(value) AT(bias) AT(out) AT(grad) AT(to_query)
    logs += get_group_id(1) * (long)p.queries;
    dots += get_group_id(1) * (long)p.queries;
    const float factor = p.factor * LOG2_E;
    const int end = CAUSAL ? min(p.keys, (int)(get_group_id(0) + 1) * ROWS) : p.keys;
    FETCH(tiles[0][0], key, 0, end)
    FETCH(tiles[0][1], value, 0, end)
    COPIES_END
    OWN(own, query, p.queries)
    OWN(own_grad, grad, p.queries)
    EACH(j, i, WIDTH) sums[j][i] = 0;
    EVERY(half_, 2) {
        const int row = ROW(2 * half_);
        float sum = 0;
        if (row < p.queries)
            EVERY(j, WIDTH / 16) {
                const int column = 16 * j + lane % 4 * 4;
                if (column < HEAD) {
                    const float4 four = LOAD4(out + row * p.out[3] + column) * LOAD4(grad + row * p.grad[3] + column);
                    sum += four.x + four.y + four.z + four.w;
                }
            }
        MEET(sum, SUM)
        dot[half_] = sum;
        log_[half_] = row < p.queries ? logs[row] : 0;
        if (lane % 4 == 0 && row < p.queries) dots[row] = sum;
    }
    int now = 0;
#pragma unroll 1
    for (int n = 0; n < end; n += TILE) {
        COPIES_WAIT(0)
        barrier(CLK_LOCAL_MEM_FENCE);
        if (n + TILE < end) {
            FETCH(tiles[now ^ 1][0], key, n + TILE, end)
            FETCH(tiles[now ^ 1][1], value, n + TILE, end)
        }
        COPIES_END
        if (CONCERNS(n < first + 16)) {
            EACH(j, i, TILE) scores[j][i] = slopes[j][i] = 0;
            BY_ROWS(scores, own, tiles[now][0])
            BY_ROWS(slopes, own_grad, tiles[now][1])
            LOOK(scores, n + TILE > p.keys || (CAUSAL && n + TILE > first + 1), ROW(i), n + COLUMN(j, i))
            EACH(j, i, TILE) {
                POWER_OF_TWO(scores[j][i], FMA(scores[j][i], SCALE, -log_[i / 2]))
                slopes[j][i] = scores[j][i] * (slopes[j][i] - dot[i / 2]);
            }
            BY_COLUMNS(sums, slopes, tiles[now][0])
        }
        now ^= 1;
    }
    WRITE(to_query, sums, p.factor, p.queries)
}
