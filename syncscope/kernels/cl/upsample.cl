// Resizing row-major images (planes, H, W) to (planes, OH, OW). A source place is computed as PyTorch does, in float.

// `half_pixel` is for nearest-exact and for bilinear without aligned corners.
static inline float source(int o, float scale, int half_pixel) { return half_pixel ? (o + 0.5f) * scale - 0.5f : o * scale; }

static inline int nearest(int o, float scale, int exact, int size) {
    return min((int)(exact ? (o + 0.5f) * scale : o * scale), size - 1);
}

// How much pixel k of the source weighs in pixel o of the result.
static inline float share(int o, int k, float scale, int half_pixel, int size) {
    const float s = fmax(source(o, scale, half_pixel), 0.0f);
    const int low = min((int)s, size - 1), high = min(low + 1, size - 1);
    const float rest = fmin(fmax(s - low, 0.0f), 1.0f);
    return (k == low ? 1 - rest : 0.0f) + (k == high ? rest : 0.0f);
}

__kernel void upsample_nearest2d(__global const T *in, long at, __global T *out, int H, int W, int OH, int OW, float scale_y,
                                 float scale_x, int mode, uint total) {
    const uint i = get_global_id(0);
    if (i >= total) return;
    const int x = nearest(i % OW, scale_x, mode, W), y = nearest(i / OW % OH, scale_y, mode, H);
    out[i] = in[at + ((long)(i / OW / OH) * H + y) * W + x];
}

__kernel void upsample_bilinear2d(__global const T *in, long at, __global T *out, int H, int W, int OH, int OW, float scale_y,
                                  float scale_x, int mode, uint total) {
    const uint i = get_global_id(0);
    if (i >= total) return;
    const float sx = fmax(source(i % OW, scale_x, mode), 0.0f), sy = fmax(source(i / OW % OH, scale_y, mode), 0.0f);
    const int x0 = min((int)sx, W - 1), y0 = min((int)sy, H - 1), x1 = min(x0 + 1, W - 1), y1 = min(y0 + 1, H - 1);
    const T fx = fmin(fmax(sx - x0, 0.0f), 1.0f), fy = fmin(fmax(sy - y0, 0.0f), 1.0f);
    in += at + (long)(i / OW / OH) * H * W;
    out[i] = (1 - fy) * ((1 - fx) * in[y0 * W + x0] + fx * in[y0 * W + x1]) +
             fy * ((1 - fx) * in[y1 * W + x0] + fx * in[y1 * W + x1]);
}

// The pixels of the result that may look at pixel k of the source: a generous range, of which each is asked.
#define FROM(k, scale) max((int)floor(((k)-1.5f) / (scale)) - 1, 0)
#define TO(k, scale, O) min((int)ceil(((k) + 1.5f) / (scale)) + 2, O)

__kernel void upsample_nearest2d_backward(__global const T *grad, long at, __global T *out, int H, int W, int OH, int OW,
                                          float scale_y, float scale_x, int mode, uint total) {
    const uint i = get_global_id(0);
    if (i >= total) return;
    const int kx = i % W, ky = i / W % H;
    grad += at + (long)(i / W / H) * OH * OW;
    T sum = 0;
    for (int y = FROM(ky, scale_y); y < TO(ky, scale_y, OH); y++) {
        if (nearest(y, scale_y, mode, H) != ky) continue;
        for (int x = FROM(kx, scale_x); x < TO(kx, scale_x, OW); x++)
            if (nearest(x, scale_x, mode, W) == kx) sum += grad[y * OW + x];
    }
    out[i] = sum;
}

__kernel void upsample_bilinear2d_backward(__global const T *grad, long at, __global T *out, int H, int W, int OH, int OW,
                                           float scale_y, float scale_x, int mode, uint total) {
    const uint i = get_global_id(0);
    if (i >= total) return;
    const int kx = i % W, ky = i / W % H;
    grad += at + (long)(i / W / H) * OH * OW;
    // Aligned corners of one row or column have scale 0: every pixel of the result looks at the first of the source.
    const int y_first = scale_y > 0 ? FROM(ky, scale_y) : 0, y_last = scale_y > 0 ? TO(ky, scale_y, OH) : OH;
    const int x_first = scale_x > 0 ? FROM(kx, scale_x) : 0, x_last = scale_x > 0 ? TO(kx, scale_x, OW) : OW;
    T sum = 0;
    for (int y = y_first; y < y_last; y++) {
        const float wy = share(y, ky, scale_y, mode, H);
        if (wy == 0) continue;
        for (int x = x_first; x < x_last; x++) sum += wy * share(x, kx, scale_x, mode, W) * grad[y * OW + x];
    }
    out[i] = sum;
}
