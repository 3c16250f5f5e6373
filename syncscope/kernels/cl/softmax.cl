// Softmax over the middle of a row-major (outer, length, inner) tensor: an item takes one line.

static inline long line(uint i, uint length, uint inner) { return (long)(i / inner) * length * inner + i % inner; }

static inline T largest(__global const T *in, uint length, uint inner) {
    T top = -INFINITY;
    for (uint k = 0; k < length; k++) {
        const T x = in[(long)k * inner];
        top = x != x || x > top ? x : top;
    }
    return top;
}

static inline T exp_sum(__global const T *in, uint length, uint inner, T top) {
    T sum = 0;
    for (uint k = 0; k < length; k++) sum += exp(in[(long)k * inner] - top);
    return sum;
}

__kernel void softmax_forward(__global const T *in, long at, __global T *out, uint lines, uint length, uint inner) {
    const uint i = get_global_id(0);
    if (i >= lines) return;
    in += at + line(i, length, inner);
    out += line(i, length, inner);
    const T top = largest(in, length, inner), sum = exp_sum(in, length, inner, top);
    for (uint k = 0; k < length; k++) out[(long)k * inner] = exp(in[(long)k * inner] - top) / sum;
}

__kernel void log_softmax_forward(__global const T *in, long at, __global T *out, uint lines, uint length, uint inner) {
    const uint i = get_global_id(0);
    if (i >= lines) return;
    in += at + line(i, length, inner);
    out += line(i, length, inner);
    const T top = largest(in, length, inner), shift = log(exp_sum(in, length, inner, top));
    for (uint k = 0; k < length; k++) out[(long)k * inner] = in[(long)k * inner] - top - shift;
}

__kernel void softmax_backward(__global const T *grad, long grad_at, __global const T *result, long at, __global T *out, uint lines,
                               uint length, uint inner) {
    const uint i = get_global_id(0);
    if (i >= lines) return;
    const long base = line(i, length, inner);
    T sum = 0;
    for (uint k = 0; k < length; k++) sum += grad[grad_at + base + (long)k * inner] * result[at + base + (long)k * inner];
    for (uint k = 0; k < length; k++) {
        const long j = base + (long)k * inner;
        out[j] = (grad[grad_at + j] - sum) * result[at + j];
    }
}

__kernel void log_softmax_backward(__global const T *grad, long grad_at, __global const T *result, long at, __global T *out,
                                   uint lines, uint length, uint inner) {
    const uint i = get_global_id(0);
    if (i >= lines) return;
    const long base = line(i, length, inner);
    T sum = 0;
    for (uint k = 0; k < length; k++) sum += grad[grad_at + base + (long)k * inner];
    for (uint k = 0; k < length; k++) {
        const long j = base + (long)k * inner;
        out[j] = grad[grad_at + j] - exp(result[at + j]) * sum;
    }
}
