// Negative log likelihood of a row-major (images, classes, pixels) tensor; a target outside the classes counts as ignored.

__kernel void nll_loss_forward(__global const T *in, long at, __global const long *target, long target_at,
                               __global const T *weight, long weight_at, int has_weight, __global T *losses, __global T *weights,
                               uint total, uint classes, uint pixels, long ignore) {
    const uint i = get_global_id(0);
    if (i >= total) return;
    const long t = target[target_at + i];
    if (t == ignore || t < 0 || t >= classes) {
        losses[i] = weights[i] = 0;
        return;
    }
    const T w = has_weight ? weight[weight_at + t] : (T)1;
    losses[i] = -w * in[at + ((long)(i / pixels) * classes + t) * pixels + i % pixels];
    weights[i] = w;
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
