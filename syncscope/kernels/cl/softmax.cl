// Softmax over the middle of a row-major (outer, length, inner) tensor: an item takes one line.

static inline long line(uint i, uint length, uint inner) { return (long)(i / inner) * length * inner + i % inner; }

static inline T largest(__global const S *in, uint length, uint inner) {
    T top = -INFINITY;
    for (uint k = 0; k < length; k++) {
        const T x = LOAD(in, (long)k * inner);
        top = x != x || x > top ? x : top;
    }
    return top;
}

static inline T exp_sum(__global const S *in, uint length, uint inner, T top) {
    T sum = 0;
    for (uint k = 0; k < length; k++) sum += exp(LOAD(in, (long)k * inner) - top);
    return sum;
}

__kernel void softmax_forward(__global const S *in, long at, __global O *out, uint lines, uint length, uint inner) {
    const uint i = get_global_id(0);
    if (i >= lines) return;
    in += at + line(i, length, inner);
    out += line(i, length, inner);
    const T top = largest(in, length, inner), sum = exp_sum(in, length, inner, top);
    for (uint k = 0; k < length; k++) STORE(exp(LOAD(in, (long)k * inner) - top) / sum, out, (long)k * inner);
}

__kernel void log_softmax_forward(__global const S *in, long at, __global O *out, uint lines, uint length, uint inner) {
    const uint i = get_global_id(0);
    if (i >= lines) return;
    in += at + line(i, length, inner);
    out += line(i, length, inner);
    const T top = largest(in, length, inner), shift = log(exp_sum(in, length, inner, top));
    for (uint k = 0; k < length; k++) STORE(LOAD(in, (long)k * inner) - top - shift, out, (long)k * inner);
}

__kernel void softmax_backward(__global const S *grad, long grad_at, __global const S *result, long at, __global O *out, uint lines,
                               uint length, uint inner) {
    const uint i = get_global_id(0);
    if (i >= lines) return;
    const long base = line(i, length, inner);
    T sum = 0;
    for (uint k = 0; k < length; k++) sum += LOAD(grad, grad_at + base + (long)k * inner) * LOAD(result, at + base + (long)k * inner);
    for (uint k = 0; k < length; k++) {
        const long j = base + (long)k * inner;
        STORE((LOAD(grad, grad_at + j) - sum) * LOAD(result, at + j), out, j);
    }
}

__kernel void log_softmax_backward(__global const S *grad, long grad_at, __global const S *result, long at, __global O *out,
                                   uint lines, uint length, uint inner) {
    const uint i = get_global_id(0);
    if (i >= lines) return;
    const long base = line(i, length, inner);
    T sum = 0;
    for (uint k = 0; k < length; k++) sum += LOAD(grad, grad_at + base + (long)k * inner);
    for (uint k = 0; k < length; k++) {
        const long j = base + (long)k * inner;
        STORE(LOAD(grad, grad_at + j) - exp(LOAD(result, at + j)) * sum, out, j);
    }
}
