// Convolutions in which every channel made sees one channel read: TIMES channels are made of each. What is to be done is reading, not
// multiplying, so an item makes one element straight from the images (N, C, H, W). Shapes are macros: C channels made, of OH x OW
// pixels, through KH x KW taps, SY SX stride, PY PX padding, DY DX dilation.

// For every tap that the pixel made at (y0, x0) of the image sees there: which it is (ky, kx), and what it sees (y, x).
#define EACH_TAP(...)                                                       \
    _Pragma("unroll") for (int ky = 0; ky < KH; ky++) {                     \
        const int y = y0 + ky * DY;                                         \
        _Pragma("unroll") for (int kx = 0; kx < KW; kx++) {                 \
            const int x = x0 + kx * DX;                                     \
            if ((uint)y < H && (uint)x < W) { __VA_ARGS__ }                 \
        }                                                                   \
    }

__kernel void conv_depthwise(__global const S *image, long image_at, __global const S *weight, long weight_at,
                             __global const S *bias, long bias_at, int has_bias, __global O *out) {
    const int i = get_global_id(0), plane = get_global_id(1);
    if (i >= OH * OW) return;
    const int y0 = i / OW * SY - PY, x0 = i % OW * SX - PX, channel = plane % C;
    image += image_at + (long)(plane / TIMES) * (H * W);
    weight += weight_at + channel * (KH * KW);
    T sum = has_bias ? LOAD(bias, bias_at + channel) : (T)0;
    EACH_TAP(sum += LOAD(image, y * W + x) * LOAD(weight, ky * KW + kx);)
    STORE(sum, out, (long)plane * (OH * OW) + i);
}

// The sum, for one pixel read, of everything that saw it.
__kernel void conv_depthwise_backward_input(__global const S *grad, long grad_at, __global const S *weight, long weight_at,
                                            __global const S *bias, long bias_at, int has_bias, __global O *out) {
    const int i = get_global_id(0), plane = get_global_id(1);
    if (i >= H * W) return;
    const int y0 = i / W + PY, x0 = i % W + PX, channel = plane % (C / TIMES);
    grad += grad_at + (long)plane * TIMES * (OH * OW);
    weight += weight_at + channel * TIMES * (KH * KW);
    T sum = has_bias ? LOAD(bias, bias_at + channel) : (T)0;
    for (int made = 0; made < TIMES; made++, grad += OH * OW, weight += KH * KW) {
#pragma unroll
        for (int ky = 0; ky < KH; ky++) {
            const int y = y0 - ky * DY;
#pragma unroll
            for (int kx = 0; kx < KW; kx++) {
                const int x = x0 - kx * DX;
                if (y >= 0 && x >= 0 && y % SY == 0 && x % SX == 0 && y / SY < OH && x / SX < OW)
                    sum += LOAD(grad, y / SY * OW + x / SX) * LOAD(weight, ky * KW + kx);
            }
        }
    }
    STORE(sum, out, (long)plane * (H * W) + i);
}

// Every `shares`th pixel of all images, for one channel made: [share][channel][tap], to be added up.
__kernel void conv_depthwise_backward_weight(__global const S *image, long image_at, __global const S *grad, long grad_at,
                                             __global T *parts, int images) {
    const int share = get_global_id(0), shares = get_global_size(0), channel = get_global_id(1);
    T sums[KH * KW];
#pragma unroll
    for (int k = 0; k < KH * KW; k++) sums[k] = 0;
    for (int i = share; i < images * (OH * OW); i += shares) {
        const int n = i / (OH * OW), pixel = i % (OH * OW);
        const int y0 = pixel / OW * SY - PY, x0 = pixel % OW * SX - PX;
        __global const S *seen = image + image_at + (long)(n * (C / TIMES) + channel / TIMES) * (H * W);
        const T g = LOAD(grad, grad_at + (long)(n * C + channel) * (OH * OW) + pixel);
        EACH_TAP(sums[ky * KW + kx] += g * LOAD(seen, y * W + x);)
    }
#pragma unroll
    for (int k = 0; k < KH * KW; k++) parts[((long)share * C + channel) * (KH * KW) + k] = sums[k];
}
