// Negative log likelihood of a row-major (images, classes, pixels) tensor; a target outside the classes counts as ignored.
#include "rows.cl"

// The class of target `i`, -1 if it does not count.
static inline long class_of(__global const long *target, uint i, uint classes, long ignore) {
    const long t = target[i];
    return t == ignore || t < 0 || t >= classes ? -1 : t;
}

#define NLL                                                                                             \
    const long t = class_of(target, i, classes, ignore);                                                \
    const T w = t < 0 ? (T)0 : has_weight ? weight[t] : (T)1;                                           \
    const T one = t < 0 ? (T)0 : -w * in[((long)(i / pixels) * classes + t) * pixels + i % pixels];

__kernel void nll_loss_each(__global const T *in, long at, __global const long *target, long target_at, __global const T *weight,
                            long weight_at, int has_weight, __global T *losses, uint total, uint classes, uint pixels,
                            long ignore) {
    const uint i = get_global_id(0);
    if (i >= total) return;
    in += at, target += target_at, weight += weight_at;
    NLL
    losses[i] = one;
}

// Loss and weight of all targets by one work-group, or by several for as many lines of `parts`.
static inline void leave(WIDE loss, WIDE seen, int mean, __global T *parts, __global T *out, __global T *total_weight, __local T *all) {
    loss = team_sum(loss, all);
    seen = team_sum(seen, all);
    if (get_local_id(0)) return;
    if (get_num_groups(0) > 1) {
        parts[2 * get_group_id(0)] = loss;
        parts[2 * get_group_id(0) + 1] = seen;
    } else {
        *out = mean ? loss / seen : loss;
        *total_weight = seen;
    }
}

__kernel void nll_loss_forward(__global const T *in, long at, __global const long *target, long target_at, __global const T *weight,
                               long weight_at, int has_weight, __global T *parts, __global T *out, long out_at,
                               __global T *total_weight, long total_weight_at, int mean, uint total, uint length, uint classes,
                               uint pixels, long ignore) {
    __local T all[GROUP];
    WIDE loss = 0, seen = 0;
    in += at, target += target_at, weight += weight_at;
    const uint first = get_group_id(0) * length;
    for (uint i = first + get_local_id(0); i < min(first + length, total); i += GROUP) {
        NLL
        loss += one;
        seen += w;
    }
    leave(loss, seen, mean, parts, out + out_at, total_weight + total_weight_at, all);
}

__kernel void nll_loss_total(__global T *parts, uint count, __global T *out, long out_at, __global T *total_weight,
                             long total_weight_at, int mean) {
    __local T all[GROUP];
    WIDE loss = 0, seen = 0;
    for (uint i = get_local_id(0); i < count; i += GROUP) {
        loss += parts[2 * i];
        seen += parts[2 * i + 1];
    }
    leave(loss, seen, mean, parts, out + out_at, total_weight + total_weight_at, all);
}

__kernel void nll_loss_backward(__global const T *grad, long grad_at, int grad_step, __global const long *target, long target_at,
                                __global const T *weight, long weight_at, int has_weight, __global const T *total_weight,
                                long total_weight_at, int mean, __global T *out, uint total, uint classes, uint pixels, long ignore) {
    const uint i = get_global_id(0);
    if (i >= total) return;
    const uint pixel = i % pixels, c = i / pixels % classes, image = i / pixels / classes;
    const uint k = image * pixels + pixel;
    const long t = target[target_at + k];
    T value = 0;
    if (t != ignore && t == c) {
        value = -(has_weight ? weight[weight_at + t] : (T)1) * grad[grad_at + (long)k * grad_step];
        if (mean) value /= total_weight[total_weight_at];
    }
    out[i] = value;
}
