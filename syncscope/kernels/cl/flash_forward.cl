// What queries see of values, and the logarithm of two of each query's sum.
#include "flash.cl"

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void flash_forward(__global const S *query, __global const S *key, __global const S *value, __global const B *bias, __global O *out,
           __global float *logs, Numbers p) {
    BEGIN
    uint own[WIDTH / 16][4];
    float scores[TILE / 8][4], sums[WIDTH / 8][4], tops[2], totals[2];
    AT(query) AT(key) AT(value) AT(bias) AT(out)
    OWN(own, query, p.queries)
    EACH(j, i, WIDTH) sums[j][i] = 0;
    EVERY(half_, 2) { tops[half_] = -INFINITY; totals[half_] = 0; }
    const float factor = p.factor * LOG2_E;
    const int end = CAUSAL ? min(p.keys, (int)(get_group_id(0) + 1) * ROWS) : p.keys;
    FETCH(tiles[0][0], key, 0, end)
    FETCH(tiles[0][1], value, 0, end)
    COPIES_END
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
            EACH(j, i, TILE) scores[j][i] = 0;
            BY_ROWS(scores, own, tiles[now][0])
            LOOK(scores, n + TILE > p.keys || (CAUSAL && n + TILE > first + 1), ROW(i), n + COLUMN(j, i))
            EVERY(half_, 2) {
                float top = tops[half_], total = 0, fade;
                EVERY(j, TILE / 8) top = fmax(top, fmax(scores[j][2 * half_], scores[j][2 * half_ + 1]));
                MEET(top, fmax)
                const float base = top == -INFINITY ? 0 : top * SCALE;
                POWER_OF_TWO(fade, FMA(tops[half_], SCALE, -base))
                tops[half_] = top;
                EVERY(j, TILE / 8) EVERY(i, 2) {
                    float *const score = &scores[j][2 * half_ + i];
                    POWER_OF_TWO(*score, FMA(*score, SCALE, -base))
                    total += *score;
                }
                totals[half_] = totals[half_] * fade + total;
                EVERY(j, WIDTH / 8) EVERY(i, 2) sums[j][2 * half_ + i] *= fade;
            }
            BY_COLUMNS(sums, scores, tiles[now][1])
        }
        now ^= 1;
    }
    EVERY(half_, 2) {
        float total = totals[half_];
        MEET(total, SUM)
        totals[half_] = total == 0 ? 0 : 1 / total;
        const int row = ROW(2 * half_);
        if (lane % 4 == 0 && row < p.queries)  // one that sees nothing has no probabilities
            logs[get_group_id(1) * (long)p.queries + row] = total == 0 ? INFINITY : tops[half_] * SCALE + log2(total);
    }
    WRITE(out, sums, totals[half_], p.queries)
}
