// Batch normalization of a row-major (images, channels, columns) tensor, in two passes each way. A work-group takes a share of one
// channel: `length` units, each up to CHUNK columns of one image. The first pass leaves what the shares found; the second
// puts that together, every work-group for itself, and writes the result. Where a share is the WHOLE channel one kernel does both.
#include "rows.cl"
#if FEW  // columns of a CPU, less than V: its compiler keeps sums in registers only where this is written out
#undef KEEP
#define KEEP(x) _Pragma("unroll") for (int j = 0; j < V; j++) { x##_kept[j] += x[j]; x[j] = 0; }
#endif

#define SHARE const uint c = get_group_id(0), share = get_group_id(1), shares = get_num_groups(1);
// `ends` is what comes after every so many units, and after the last.
#define UNITS min(64u, 512u / min(columns, (uint)CHUNK) + 1)
#define OVER_SHARE(ends, ...)                                                                                        \
    {                                                                                                                \
        uint left_ = UNITS;                                                                                          \
        for (uint u = share * length + TEAM; u < min(share * length + length, units); u += TEAMS) {                  \
            const uint start = u % chunks * CHUNK;                                                                   \
            const long row = ((long)(u / chunks) * get_num_groups(0) + c) * columns;                                 \
            EACH(row + start, row + min(start + (uint)CHUNK, columns), __VA_ARGS__)                                  \
            if (!--left_) { left_ = UNITS; ends }                                                                    \
        }                                                                                                            \
        ends                                                                                                         \
    }
// The sum over the work-group: its teams' sums, in order.
#if GROUP == 1
#define group_sum(x, all) (x)
#else
static inline T group_sum(T x, __local T *all) {
    x = team_sum(x, all);
    if (TEAMS == 1) return x;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (LANE == 0) all[TEAM] = x;
    barrier(CLK_LOCAL_MEM_FENCE);
    T sum = 0;
    for (int team = 0; team < TEAMS; team++) sum += all[team];
    return sum;
}
#endif

// Of a share: how many elements, their mean, and the squares of what is left of them without it.
#define STATISTICS                                                                                                   \
    __local T all[GROUP];                                                                                            \
    const T first = LOAD(in, ((long)(share * length / chunks) * get_num_groups(0) + c) * columns);                   \
    SUMS(sums) SUMS(squares)                                                                                         \
    OVER_SHARE(KEEP(sums) KEEP(squares), const T d = LOAD(in, i) - first; sums[j] += d; squares[j] += d * d;)        \
    const WIDE sum = group_sum(TOTAL(sums), all), square = group_sum(TOTAL(squares), all);                           \
    uint count = 0;                                                                                                  \
    for (uint u = share * length; u < min(share * length + length, units); u++)                                      \
        count += min((uint)CHUNK, columns - u % chunks * CHUNK);                                                     \
    const T mean = first + sum / count, rest = fmax(square - sum * sum / count, (WIDE)0);

// Of a share: the sum of the gradient, and of the gradient times what the input is without its mean.
#define SLOPES                                                                                                       \
    __local T all[GROUP];                                                                                            \
    SUMS(each) SUMS(times)                                                                                           \
    OVER_SHARE(KEEP(each) KEEP(times), const T g = LOAD(grad, i); each[j] += g; times[j] += g * (LOAD(in, i) - mean);) \
    const WIDE plain = group_sum(TOTAL(each), all), projected = group_sum(TOTAL(times), all);

__kernel void batch_norm_statistics(__global const S *restrict in, long at, __global T *parts, uint columns, uint chunks,
                                    uint units, uint length) {
    SHARE
    in += at;
    STATISTICS
    if (get_local_id(0)) return;
    parts += (c * shares + share) * 3;
    parts[0] = count;
    parts[1] = mean;
    parts[2] = rest;
}

// With TRAINING the mean and 1 / deviation come from the shares, are saved, and move the running ones; else the running ones serve.
__kernel void batch_norm_forward(__global const S *restrict in, long at, __global const T *parts,
                                 __global const T *restrict weight, long weight_at, int has_weight,
                                 __global const T *restrict bias, long bias_at, int has_bias, __global T *running_mean,
                                 long running_mean_at, __global T *running_var, long running_var_at, int has_running,
                                 __global T *means, __global T *scales, __global O *restrict out, T momentum, T eps,
                                 uint columns, uint chunks, uint units, uint length) {
    SHARE
    running_mean += running_mean_at;
    running_var += running_var_at;
    in += at;
#if TRAINING && WHOLE
    STATISTICS
#elif TRAINING
    WIDE count = 0, mean = 0, rest = 0;
    parts += c * shares * 3;
    for (uint s = 0; s < shares; s++) {
        count += parts[3 * s];
        mean += (WIDE)parts[3 * s] * parts[3 * s + 1];
    }
    mean /= count;
    for (uint s = 0; s < shares; s++) {
        const WIDE step = parts[3 * s + 1] - mean;
        rest += parts[3 * s + 2] + parts[3 * s] * step * step;
    }
#endif
#if TRAINING
    const T scale = 1 / sqrt((WIDE)rest / count + eps), level = mean;
    if (share == 0 && get_local_id(0) == 0) {
        means[c] = level;
        scales[c] = scale;
        if (has_running) {
            running_mean[c] += momentum * (level - running_mean[c]);
            running_var[c] += momentum * ((T)(rest / fmax((WIDE)count - 1, (WIDE)1)) - running_var[c]);
        }
    }
#else
    const T level = running_mean[c], scale = 1 / sqrt(running_var[c] + eps);
#endif
    const T slope = has_weight ? scale * weight[weight_at + c] : scale;
    const T shift = has_bias ? bias[bias_at + c] : (T)0;
    OVER_SHARE(, STORE((LOAD(in, i) - level) * slope + shift, out, i);)
}

__kernel void batch_norm_slopes(__global const S *restrict grad, long grad_at, __global const S *restrict in, long at,
                                __global const T *means, long means_at, __global T *parts, uint columns, uint chunks,
                                uint units, uint length) {
    SHARE
    grad += grad_at;
    in += at;
    const T mean = means[means_at + c];
    SLOPES
    if (get_local_id(0)) return;
    parts[(c * shares + share) * 2] = plain;
    parts[(c * shares + share) * 2 + 1] = projected;
}

__kernel void batch_norm_backward(__global const S *restrict grad, long grad_at, __global const S *restrict in, long at,
                                  __global const T *means, long means_at, __global const T *scales, long scales_at,
                                  __global const T *parts, __global const T *restrict weight, long weight_at, int has_weight,
                                  __global O *restrict to_input, int has_input, __global T *to_weight, __global T *to_bias,
                                  uint columns, uint chunks, uint units, uint length, T count) {
    SHARE
    grad += grad_at;
    in += at;
    const T mean = means[means_at + c], scale = scales[scales_at + c];
#if WHOLE
    SLOPES
#else
    WIDE plain = 0, projected = 0;
    parts += c * shares * 2;
    for (uint s = 0; s < shares; s++) {
        plain += parts[2 * s];
        projected += parts[2 * s + 1];
    }
#endif
    if (share == 0 && get_local_id(0) == 0) {
        to_weight[c] = projected * scale;
        to_bias[c] = plain;
    }
    if (!has_input) return;
    const T slope = has_weight ? scale * weight[weight_at + c] : scale;
    // With TRAINING the mean and the deviation depend on the input, too.
    const T level = TRAINING ? plain / count : 0, tilt = TRAINING ? projected * scale * scale / count : 0;
    OVER_SHARE(, STORE((LOAD(grad, i) - level - (LOAD(in, i) - mean) * tilt) * slope, to_input, i);)
}
