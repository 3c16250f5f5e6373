// Moves the scale of a loss: down after a step with an infinity, up after `interval` steps without one, unless that overflows.

__kernel void update_scale(__global float *scale, long scale_at, __global int *growing, long growing_at, __global const float *found,
                           long found_at, float up, float down, int interval) {
    __global float *const s = scale + scale_at;
    __global int *const steps = growing + growing_at;
    if (found[found_at] > 0) {
        *s = *s * down;
        *steps = 0;
        return;
    }
    if (++*steps < interval) return;
    const float larger = *s * up;
    if (isfinite(larger)) *s = larger;
    *steps = 0;
}
