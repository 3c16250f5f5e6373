// Pooling over row-major images (planes, H, W): an item makes one element.

#define WINDOW                                                                                       \
    const int x = i % OW, y = i / OW % OH;                                                           \
    const long plane = i / OW / OH;                                                                  \
    const int y0 = y * sh - ph, x0 = x * sw - pw;

__kernel void max_pool2d_forward(__global const S *in, long at, __global O *out, long out_at, __global long *places, long places_at,
                                 uint total, int H, int W, int OH, int OW, int kh, int kw, int sh, int sw, int ph, int pw,
                                 int dh, int dw) {
    const uint i = get_global_id(0);
    if (i >= total) return;
    WINDOW
    in += at + plane * H * W;
    T top = LOWEST;
    long where = -1;
    for (int ky = 0; ky < kh; ky++) {
        const int iy = y0 + ky * dh;
        if (iy < 0 || iy >= H) continue;
        for (int kx = 0; kx < kw; kx++) {
            const int ix = x0 + kx * dw;
            if (ix < 0 || ix >= W) continue;
            const T v = LOAD(in, iy * W + ix);
            if (where < 0 || v > top || v != v) {
                top = v;
                where = (long)iy * W + ix;
            }
        }
    }
    STORE(top, out, out_at + i);
    places[places_at + i] = where;
}

// The windows that may hold a pixel: two divisions, where asking each tap of the window would take two for each.
#define FIRST_WINDOW(i, pad, reach, step) ((i) + (pad) < (reach) ? 0 : ((i) + (pad) - (reach)) / (step) + 1)
#define LAST_WINDOW(i, pad, step, count) min(((i) + (pad)) / (step), (count) - 1)
#define WINDOWS(reach_y, reach_x)                                                                           \
    const int y0 = FIRST_WINDOW(iy, ph, reach_y, sh), y1 = LAST_WINDOW(iy, ph, sh, OH);                      \
    const int x0 = FIRST_WINDOW(ix, pw, reach_x, sw), x1 = LAST_WINDOW(ix, pw, sw, OW);

// An item gathers, for one input pixel, from all windows that hold it and chose it: no two items meet. KH to DW are the window's numbers
// and the sizes come with what divides by them, as a division takes longer than all else here.
__kernel void max_pool2d_backward(__global const S *grad, long grad_at, __global const long *places, long places_at,
                                  __global O *out, long out_at, uint total, int H, int W, int OH, int OW, uint h_factor, int h_shift,
                                  uint w_factor, int w_shift) {
    const uint i = get_global_id(0);
    if (i >= total) return;
    const uint row = (mul_hi(i, w_factor) + i) >> w_shift, plane = (mul_hi(row, h_factor) + row) >> h_shift;
    const int ix = i - row * W, iy = row - plane * H, here = iy * W + ix;
    const int sh = SH, sw = SW, ph = PH, pw = PW;
    WINDOWS((KH - 1) * DH + 1, (KW - 1) * DW + 1)
    T sum = 0;
    for (int y = y0; y <= y1; y++)
        for (int x = x0; x <= x1; x++) {
            const long k = ((long)plane * OH + y) * OW + x;
            if (places[places_at + k] == here) sum += LOAD(grad, grad_at + k);
        }
    STORE(sum, out, out_at + i);
}

static inline int divisor(int y0, int x0, int H, int W, int kh, int kw, int ph, int pw, int count_pad, int fixed) {
    if (fixed) return fixed;
    const int y1 = min(y0 + kh, H + ph), x1 = min(x0 + kw, W + pw);
    if (count_pad) return (y1 - y0) * (x1 - x0);
    return (min(y1, H) - max(y0, 0)) * (min(x1, W) - max(x0, 0));
}

__kernel void avg_pool2d_forward(__global const S *in, long at, __global O *out, long out_at, uint total, int H, int W, int OH,
                                 int OW, int kh, int kw, int sh, int sw, int ph, int pw, int count_pad, int fixed) {
    const uint i = get_global_id(0);
    if (i >= total) return;
    WINDOW
    in += at + plane * H * W;
    T sum = 0;
    for (int iy = max(y0, 0); iy < min(y0 + kh, H); iy++) {
        T row = 0;
        for (int ix = max(x0, 0); ix < min(x0 + kw, W); ix++) row += LOAD(in, iy * W + ix);
        sum += row;
    }
    STORE(sum / divisor(y0, x0, H, W, kh, kw, ph, pw, count_pad, fixed), out, out_at + i);
}

__kernel void avg_pool2d_backward(__global const S *grad, long grad_at, __global O *out, long out_at, uint total, int H, int W,
                                  int OH, int OW, int kh, int kw, int sh, int sw, int ph, int pw, int count_pad, int fixed) {
    const uint i = get_global_id(0);
    if (i >= total) return;
    const int ix = i % W, iy = i / W % H;
    const long plane = i / W / H;
    WINDOWS(kh, kw)
    T sum = 0;
    for (int y = y0; y <= y1; y++)
        for (int x = x0; x <= x1; x++)
            sum += LOAD(grad, grad_at + (plane * OH + y) * OW + x) /
                   divisor(y * sh - ph, x * sw - pw, H, W, kh, kw, ph, pw, count_pad, fixed);
    STORE(sum, out, out_at + i);
}

// Windows of adaptive pooling: from floor(y H / OH) to ceil((y + 1) H / OH).
#define FIRST(y, O, N) ((int)((long)(y) * (N) / (O)))
#define LAST(y, O, N) ((int)(((long)((y) + 1) * (N) + (O) - 1) / (O)))

__kernel void adaptive_avg_pool2d_forward(__global const S *in, long at, __global O *out, uint total, int H, int W, int OH, int OW) {
    const uint i = get_global_id(0);
    if (i >= total) return;
    const int x = i % OW, y = i / OW % OH;
    in += at + (long)(i / OW / OH) * H * W;
    const int y0 = FIRST(y, OH, H), y1 = LAST(y, OH, H), x0 = FIRST(x, OW, W), x1 = LAST(x, OW, W);
    T sum = 0;
    for (int iy = y0; iy < y1; iy++) {
        T row = 0;
        for (int ix = x0; ix < x1; ix++) row += LOAD(in, iy * W + ix);
        sum += row;
    }
    STORE(sum / ((y1 - y0) * (x1 - x0)), out, i);
}

__kernel void adaptive_avg_pool2d_backward(__global const S *grad, long at, __global O *out, uint total, int H, int W, int OH,
                                           int OW) {
    const uint i = get_global_id(0);
    if (i >= total) return;
    const int ix = i % W, iy = i / W % H;
    grad += at + (long)(i / W / H) * OH * OW;
    T sum = 0;
    for (int y = FIRST(iy, H, OH); y < LAST(iy, H, OH); y++)
        for (int x = FIRST(ix, W, OW); x < LAST(ix, W, OW); x++) {
            const int height = LAST(y, OH, H) - FIRST(y, OH, H), width = LAST(x, OW, W) - FIRST(x, OW, W);
            sum += LOAD(grad, y * OW + x) / (height * width);
        }
    STORE(sum, out, i);
}
