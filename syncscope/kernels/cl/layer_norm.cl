// Layer and group normalization: rows of `columns` neighbouring elements; a team takes a row. In a group norm a row is a group of
// channels of one image with `pixels` elements each, and weights are by channel. Of rows that are short enough each item keeps its
// HELD elements, which are of the same columns in every row; else, with HELD 0, they are read again, and lie row by row. Rows that
// are kept are read from wherever they lie: `run` of them `near` apart, and such runs `far`.
#include "rows.cl"
#if HELD
#define START(x, row) ((row) / x##_run * x##_far + (row) % x##_run * x##_near)
#else
#define START(x, row) ((long)(row) * columns)
#endif

#define EACH_HELD(...) _Pragma("unroll") for (int e = 0; e < HELD; e++) { const uint column = LANE + e * LANES; __VA_ARGS__ }

#if BY_CHANNEL
#define PLACE ((uint)(row % groups) * (columns / pixels) + (uint)(i - base) / pixels)
#else
#define PLACE (i - base)
#endif

__kernel void row_norm_forward(__global const S *restrict in, long at, uint in_run, long in_far, long in_near,
                               __global const T *restrict weight, long weight_at, int has_weight, __global const T *restrict bias, long bias_at, int has_bias,
                               __global O *restrict out, __global T *means, __global T *scales, uint rows, uint columns,
                               uint groups, uint pixels, T eps) {
    __local T all[GROUP];
    const uint row = get_group_id(0) * TEAMS + TEAM;
    const long base = (long)row * columns, end = row < rows ? base + columns : base;
    in += at;
    weight += weight_at;
    bias += bias_at;
    const long from = row < rows ? START(in, row) : 0;
    const T shift = row < rows ? LOAD(in, from) : 0;
    SUMS(sums) SUMS(squares)
#if HELD
    T x[HELD];
    EACH_HELD(x[e] = base + column < end ? LOAD(in, from + column) : shift; sums[0] += x[e] - shift;)
#else
    EACH_IN_PARTS(KEEP(sums), base, end, sums[j] += LOAD(in, i) - shift;)
#endif
    const T mean = shift + team_sum(TOTAL(sums), all) / columns;
#if HELD
    EACH_HELD(x[e] -= mean; if (column < columns) squares[0] += x[e] * x[e];)
#else
    EACH_IN_PARTS(KEEP(squares), base, end, const T d = LOAD(in, i) - mean; squares[j] += d * d;)
#endif
    const T scale = 1 / sqrt(team_sum(TOTAL(squares), all) / columns + eps);
    if (row >= rows) return;
    if (LANE == 0) {
        means[row] = mean;
        scales[row] = scale;
    }
#if HELD
    EACH_HELD(if (column >= columns) break; const long i = base + column; T y = x[e] * scale; if (has_weight) y *= weight[PLACE];
              if (has_bias) y += bias[PLACE]; STORE(y, out, i);)
    return;
#endif
    EACH(base, end, T x = (LOAD(in, i) - mean) * scale; if (has_weight) x *= weight[PLACE]; if (has_bias) x += bias[PLACE]; STORE(x, out, i);)
}

// A team takes every so many-th row, and sums what falls to weight and bias in its own line of `parts`, [2][teams][columns].
__kernel void layer_norm_backward(__global const S *restrict grad, long grad_at, uint grad_run, long grad_far, long grad_near,
                                  __global const S *restrict in, long at, uint in_run, long in_far, long in_near,
                                  __global const T *means, long means_at, __global const T *scales, long scales_at,
                                  __global const T *restrict weight, long weight_at, int has_weight,
                                  __global O *restrict to_input, int has_input, __global T *parts, int has_parts, uint rows,
                                  uint columns) {
    __local T all[GROUP];
    const uint team = get_group_id(0) * TEAMS + TEAM, teams = get_num_groups(0) * TEAMS;
    grad += grad_at;
    in += at;
    weight += weight_at;
    parts += (long)team * columns;
    __global T *const of_bias = parts + (long)teams * columns;
#if HELD
    T w[HELD], to_weight[HELD], to_bias[HELD];
    EACH_HELD(w[e] = has_weight && column < columns ? weight[column] : 1; to_weight[e] = to_bias[e] = 0;)
    for (uint turn = 0; turn * teams < rows; turn++) {
        const uint row = turn * teams + team;
        const long base = (long)row * columns, end = row < rows ? base + columns : base;
        const T mean = row < rows ? means[means_at + row] : 0, scale = row < rows ? scales[scales_at + row] : 0;
        const long of_grad = START(grad, row), from = START(in, row);
        T g[HELD], centred[HELD], plain = 0, projected = 0;
        EACH_HELD(const int there = base + column < end; g[e] = there ? LOAD(grad, of_grad + column) : 0;
                  centred[e] = there ? LOAD(in, from + column) - mean : 0;)
        EACH_HELD(plain += g[e] * w[e]; projected += g[e] * w[e] * centred[e];)
        const T level = team_sum(plain, all) / columns, tilt = team_sum(projected, all) * scale * scale / columns;
        EACH_HELD(if (has_input && base + column < end)
                      STORE((g[e] * w[e] - level - centred[e] * tilt) * scale, to_input, base + column);
                  to_weight[e] += g[e] * centred[e] * scale; to_bias[e] += g[e];)
    }
    if (has_parts) EACH_HELD(if (column < columns) { parts[column] = to_weight[e]; of_bias[column] = to_bias[e]; })
    return;
#endif
    if (has_parts) EACH(0, columns, parts[i] = of_bias[i] = 0;)
    for (uint turn = 0; turn * teams < rows; turn++) {
        const uint row = turn * teams + team;
        const long base = (long)row * columns, end = row < rows ? base + columns : base;
        const T mean = row < rows ? means[means_at + row] : 0, scale = row < rows ? scales[scales_at + row] : 0;
        SUMS(plain) SUMS(projected)
        EACH_IN_PARTS(KEEP(plain) KEEP(projected), base, end, const T g = has_weight ? LOAD(grad, i) * weight[i - base] : LOAD(grad, i); plain[j] += g;
             projected[j] += g * (LOAD(in, i) - mean);)
        const T level = team_sum(TOTAL(plain), all) / columns;
        const T tilt = team_sum(TOTAL(projected), all) * scale * scale / columns;
        EACH(base, end, const T g = LOAD(grad, i), centred = LOAD(in, i) - mean;
             if (has_input) STORE(((has_weight ? g * weight[i - base] : g) - level - centred * tilt) * scale, to_input, i);
             if (has_parts) {
                 parts[i - base] += g * centred * scale;
                 of_bias[i - base] += g;
             })
    }
}

// The sums of all lines of `parts`: 32 columns to a work-group.
__kernel void layer_norm_sums(__global const T *restrict parts, __global T *to_weight, __global T *to_bias, uint lines,
                              uint columns) {
    const uint first = get_group_id(0) * 32;
    __global T *const made = (get_group_id(1) ? to_bias : to_weight) + first;
    parts += (long)get_group_id(1) * lines * columns + first;
#if GROUP == 1
    const uint count = min(32u, columns - first);
    T sums[32] = {0};
    for (uint line = 0; line < lines; line++)
        for (uint j = 0; j < count; j++) sums[j] += parts[(long)line * columns + j];
    for (uint j = 0; j < count; j++) made[j] = sums[j];
#else
    __local T all[GROUP];
    const uint me = get_local_id(0), column = me % 32;
    T sum = 0;
    if (first + column < columns)
        for (uint line = me / 32; line < lines; line += GROUP / 32) sum += parts[(long)line * columns + column];
    all[me] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (me >= 32 || first + column >= columns) return;
    for (uint k = me + 32; k < GROUP; k += 32) sum += all[k];
    made[column] = sum;
#endif
}

// For each channel of each image: the sum of the gradient, and of the gradient times the normalized input.
__kernel void group_norm_slopes(__global const S *restrict grad, long grad_at, __global const S *restrict in, long at,
                                __global const T *means, long means_at, __global const T *scales, long scales_at,
                                __global T *parts, uint rows, uint columns, uint channels) {
    __local T all[GROUP];
    const uint row = get_group_id(0) * TEAMS + TEAM;
    const long base = (long)row * columns, end = row < rows ? base + columns : base;
    grad += grad_at;
    in += at;
    const T mean = row < rows ? means[means_at + row / channels] : 0, scale = row < rows ? scales[scales_at + row / channels] : 0;
    SUMS(plain) SUMS(projected)
    EACH_IN_PARTS(KEEP(plain) KEEP(projected), base, end, const T g = LOAD(grad, i); plain[j] += g; projected[j] += g * (LOAD(in, i) - mean);)
    const T a = team_sum(TOTAL(plain), all), b = team_sum(TOTAL(projected), all);
    if (row >= rows || LANE) return;
    parts[2 * row] = a;
    parts[2 * row + 1] = b * scale;
}

// A team takes one group of `channels` channels of one image; those of the first image also sum what falls to weight and bias.
__kernel void group_norm_backward(__global const S *restrict grad, long grad_at, __global const S *restrict in, long at,
                                  __global const T *means, long means_at, __global const T *scales, long scales_at,
                                  __global const T *parts, __global const T *restrict weight, long weight_at, int has_weight,
                                  __global O *restrict to_input, int has_input, __global T *to_weight, __global T *to_bias,
                                  uint rows, uint groups, uint channels, uint pixels) {
    const uint row = get_group_id(0) * TEAMS + TEAM;
    if (row >= rows) return;
    const uint first = row % groups * channels, columns = channels * pixels;
    if (row < groups)
        for (uint c = first + LANE; c < first + channels; c += LANES) {
            T a = 0, b = 0;
            for (uint k = c; k < rows * channels; k += groups * channels) {
                a += parts[2 * k];
                b += parts[2 * k + 1];
            }
            to_bias[c] = a;
            to_weight[c] = b;
        }
    if (!has_input) return;
    grad += grad_at;
    in += at;
    weight += weight_at;
    T level = 0, tilt = 0;
    for (uint c = 0; c < channels; c++) {
        const T w = has_weight ? weight[first + c] : (T)1;
        level += w * parts[2 * (row * channels + c)];
        tilt += w * parts[2 * (row * channels + c) + 1];
    }
    const T mean = means[means_at + row], scale = scales[scales_at + row];
    level /= columns;
    tilt *= scale / columns;
    for (uint c = 0; c < channels; c++) {
        const long base = (long)row * columns + (long)c * pixels;
        const T w = has_weight ? weight[first + c] : (T)1;
        EACH(base, base + pixels, STORE((LOAD(grad, i) * w - level - (LOAD(in, i) - mean) * tilt) * scale, to_input, i);)
    }
}
